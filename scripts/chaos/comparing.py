"""What a disturbed run left, compared with what an undisturbed one leaves."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout
from safetensors.torch import load_file
from scripts.chaos.place import Place, Stage

WEIGHTS = 1e-6  # largest difference of a weight
NUMBERS = 1e-4  # largest relative difference of a number that follows from weights
# Of all other stages bytes count.
BY_WEIGHTS = {"base_model", "reward_model", "progress", "policy", "online", "evaluate", "report"}
TIMES = "second"  # what has this in its name is measured by the clock


@dataclass
class Compared:
    """What differs beyond the tolerances, and the largest difference of a weight."""

    wrong: list[str] = field(default_factory=list)
    largest: float = 0.0


def compared(place: Place, stages: Iterable[Stage]) -> Compared:
    """The outputs of stages."""
    result = Compared()
    for stage in stages:
        for out in stage.outs:
            one, other = place.undisturbed / out, place.work / out
            for name in sorted(_files(one) | _files(other)):
                _compare(one / name, other / name, stage.kind in BY_WEIGHTS, result)
    return result


def _files(path: Path) -> set[str]:
    """Names below a folder; "" for a file."""
    if path.is_file():
        return {""}
    return {one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file()}


def _compare(one: Path, other: Path, by_weights: bool, result: Compared) -> None:
    if not (one.is_file() and other.is_file()):
        result.wrong.append(f"{other} is there only {'before' if one.is_file() else 'after'}")
    elif one.read_bytes() == other.read_bytes():
        return
    elif by_weights and one.suffix == ".safetensors":
        apart = apart_weights(one, other)
        result.largest = max(result.largest, apart)
        result.wrong += [f"{other} differs by {apart:g}"] if apart > WEIGHTS else []
    elif not by_weights or not are_close(_value(one), _value(other)):
        result.wrong.append(f"{other} differs")


def apart_weights(one: Path, other: Path) -> float:
    """The largest difference; infinite if names or shapes differ, or one is not a number."""
    first, second = load_file(one), load_file(other)
    if {k: v.shape for k, v in first.items()} != {k: v.shape for k, v in second.items()}:
        return math.inf
    apart = [(first[k].double() - second[k].double()).abs().max().item() for k in first]
    return math.inf if any(map(math.isnan, apart)) else max(apart)


def are_close(one: Any, other: Any) -> bool:
    """Whether two JSON values say the same, times aside."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [name for name in one if TIMES not in name]
        return one.keys() == other.keys() and all(are_close(one[k], other[k]) for k in names)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        both_none = math.isnan(one) and math.isnan(other)
        return both_none or math.isclose(one, other, rel_tol=NUMBERS)
    return bool(one == other)


def _value(path: Path) -> Any:
    if path.suffix == ".json":
        return json.loads(path.read_bytes())
    if path.suffix == ".csv":
        return pd.read_csv(path).to_dict("list")
    if path.suffix == ".parquet":
        return json.loads(pd.read_parquet(path).to_json(double_precision=15))
    return path.read_bytes()


def sums_of(folder: Path, but: list[Path]) -> dict[str, str]:
    """SHA-256 of every file of the folder that is neither in nor below any of `but`."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".aside" not in str(path)
        if not any(path == one or one in path.parents for one in but)
    }


def left_over(folders: Iterable[Path]) -> list[str]:
    """Folders of writers, checkpoints, and locks that somebody holds, in any of the folders."""
    found = [path for folder in folders for path in folder.rglob("*")]
    return [path.name for path in found if _is_left(path)]


def _is_left(path: Path) -> bool:
    if path.name == "lock" and path.is_file():
        return is_held(path)
    return path.suffix == ".aside" or path.match("checkpoint-*")


def is_held(path: Path) -> bool:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False
