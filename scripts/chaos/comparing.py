"""What a disturbed run left, compared with what an undisturbed one leaves."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout
from safetensors.torch import load_file

WEIGHTS = 1e-6  # largest difference of a weight
NUMBERS = 1e-4  # largest relative difference of a number that was measured in training
# Up to `aggregate` bytes count, the weights that play aside; after it, weights and numbers.
BY_WEIGHTS = {"base_model", "reward_model", "policy", "online", "evaluate", "report"}
TIMES = "second"  # what has this in its name is measured by the clock


@dataclass
class Compared:
    """Names of files that differ beyond the tolerances or by bytes; the largest difference of a
    weight."""

    wrong: list[str] = field(default_factory=list)
    bytes_differ: list[str] = field(default_factory=list)
    largest: float = 0.0

    def add(self, other: Compared) -> None:
        self.wrong += other.wrong
        self.bytes_differ += other.bytes_differ
        self.largest = max(self.largest, other.largest)


def compared(undisturbed: Path, found: Path, kind: str) -> Compared:
    """Two files or folders; `kind` of stage decides whether bytes count."""
    result = Compared()
    names = {*files_of(undisturbed), *files_of(found)}
    for name in sorted(names):
        one, other = undisturbed / name, found / name
        if not (one.is_file() and other.is_file()):
            result.wrong.append(f"{found.name}/{name} is not in both")
        elif one.read_bytes() != other.read_bytes():
            result.bytes_differ.append(f"{found.name}/{name}")
            apart = _apart(one, other) if kind in BY_WEIGHTS else math.inf
            if one.suffix == ".safetensors":
                result.largest = max(result.largest, apart)
            if apart > (WEIGHTS if one.suffix == ".safetensors" else NUMBERS):
                result.wrong.append(f"{found.name}/{name} differs")
    return result


def files_of(path: Path) -> set[str]:
    """Names below a folder, but what killed writers leave; "." for a file."""
    if not path.is_dir():
        return {"."}
    files = (one.relative_to(path) for one in path.rglob("*") if one.is_file())
    return {one.as_posix() for one in files if ".aside" not in one.as_posix()}


def _apart(one: Path, other: Path) -> float:
    """How far two files of one kind are apart: absolutely for weights, relatively for numbers."""
    readers = {".safetensors": _weights, ".json": _json, ".csv": _table, ".parquet": _table}
    reader = readers.get(one.suffix)
    if reader is None:
        return math.inf
    first, second = _leaves(reader(one)), _leaves(reader(other))
    if first.keys() != second.keys():
        return math.inf
    absolutely = one.suffix == ".safetensors"
    return max((_distance(first[k], second[k], absolutely) for k in first), default=0.0)


def _weights(path: Path) -> Any:
    return {name: tensor.double().numpy() for name, tensor in load_file(path).items()}


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _table(path: Path) -> Any:
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return table.to_dict("list")


def _leaves(value: Any, at: str = "") -> dict[str, Any]:
    """Every number and text by where it stands, but times."""
    if isinstance(value, dict):
        parts = [(str(key), one) for key, one in value.items() if TIMES not in str(key)]
    elif isinstance(value, list):
        parts = [(str(index), one) for index, one in enumerate(value)]
    else:
        return {at: value}
    return {k: leaf for key, one in parts for k, leaf in _leaves(one, f"{at}/{key}").items()}


def _distance(one: Any, other: Any, absolutely: bool) -> float:
    if isinstance(one, np.ndarray):
        if one.shape != other.shape:
            return math.inf
        if not one.size:
            return 0.0
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
        scale = np.ones(()) if absolutely else np.maximum(np.abs(one), 1e-9)
        return float(np.nan_to_num(apart / scale, nan=math.inf).max())
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        if one == other or (one != one and other != other):
            return 0.0
        return abs(one - other) / max(abs(one), abs(other))
    return 0.0 if one == other else math.inf


def sums_of(folders: list[Path], but: list[Path]) -> dict[str, str]:
    """SHA-256 of every file of the folders that is in or below none of `but`."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(path == one or one in path.parents for one in but)
        and not any(part.endswith((".aside", "__pycache__")) for part in path.parts)
    }


def left_over(folders: list[Path]) -> list[str]:
    """Folders of writers, and locks that somebody holds, in any of the folders."""
    found = [path for folder in folders for path in folder.rglob("*.aside")]
    locks = (path for folder in folders for path in folder.rglob("lock") if path.is_file())
    return [str(path) for path in (*found, *(lock for lock in locks if is_held(lock)))]


def is_held(path: Path) -> bool:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False
