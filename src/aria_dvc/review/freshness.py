"""Whether dvc.lock says what the working tree would give: what `dvc repro` would run.

Outputs need not be here: a stage whose inputs stand in Git, or in dvc.lock as another stage's
outputs, is judged without them. An edit below src/ makes DVC run the stage `code` and tells no
more; which stages that concerns is known from the fingerprints that `code` would write.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.files import write_json
from aria_dvc.review.locks import CODE, LOCK, Lock, read_lock

CODE_STAGE = "code"
Away = Callable[[str, str], bool]
_ABSENT = ("deleted", "not in cache")
# By the checkout's own code, which need not be the code that runs here.
_FINGERPRINTS = """
import json, pathlib
from aria_dvc.fingerprints import stage_fingerprint
scripts = [path for path in pathlib.Path("stages").glob("*.py") if path.stem != "code"]
print(json.dumps({path.stem: stage_fingerprint(path) for path in scripts}))
"""


@dataclass(frozen=True)
class Freshness:
    """stale: stage -> what changed for it since dvc.lock was written; stages behind it run too.

    code_only: `code` itself would run, and no fingerprint of a stage differs.
    absent: stages whose outputs are not on this machine.
    """

    stale: dict[str, tuple[str, ...]]
    code_only: bool
    absent: int


def freshness(root: Path) -> Freshness:
    """Compare the working tree in `root` with its dvc.lock, by DVC.

    Raises:
        AriaError: DVC cannot read the repository.
    """
    file = root / LOCK
    lock = read_lock(file.read_bytes() if file.exists() else None, str(file))
    status = dvc_status(root)
    outs = {str(out["path"]) for entry in lock.values() for out in entry.get("outs", [])}
    gone = {path for found in status.values() for change in found for path in _missing(change)}
    away = partial(_is_away, outs=outs | gone, gone=gone)
    stale = {stage: found for stage in status if (found := _reasons(stage, status, lock, away))}
    edited = stale.pop(CODE_STAGE, None) if CODE_STAGE in lock else None
    if edited:
        for stage in _other_code(root, lock):
            stale[stage] = tuple(dict.fromkeys(["code", *stale.get(stage, ())]))
    absent = sum(any(_missing(change) for change in found) for found in status.values())
    return Freshness(stale, bool(edited) and not stale, absent)


def dvc_status(root: Path, *targets: str) -> dict[str, list[Any]]:
    """Stage -> its changes, as `dvc status --json [TARGETS]` prints them.

    Raises:
        AriaError: DVC cannot read the repository.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    logging.getLogger("dvc").setLevel(logging.ERROR)
    try:
        with Repo(str(root)) as repo:
            found: dict[str, list[Any]] = repo.status(targets=list(targets))
    except DvcException as error:
        raise AriaError(f"dvc status: {error}: mend it, then run again") from None
    return found


def _reasons(
    stage: str, status: Mapping[str, list[Any]], lock: Lock, away: Away
) -> tuple[str, ...]:
    """What DVC says of a stage, without what is merely not on this machine."""
    if stage not in lock and not stage.endswith(".dvc"):
        return ("never run",)
    found = (why for change in status[stage] for why in _of_change(change, away))
    return tuple(dict.fromkeys(found))


def _of_change(change: Any, away: Away) -> Iterator[str]:
    if change == "changed command":
        yield "command"
    if not isinstance(change, Mapping):
        return
    for path, state in change.get("changed deps", {}).items():
        if path == "params.yaml":
            yield "params"
        elif not away(path, state):
            yield "code" if path.startswith(CODE) else path
    for path, state in change.get("changed outs", {}).items():
        if state not in _ABSENT:
            yield f"{path} was changed by hand"


def _is_away(path: str, state: str, outs: set[str], gone: set[str]) -> bool:
    """Whether an input differs for want of outputs that are not here: it is one of a stage's or
    lies in one, or is a folder that lacks some (one that Git keeps by a file is in every clone)."""
    if any(out.startswith(f"{path}/") for out in gone):
        return True
    return state in _ABSENT and any(path == out or path.startswith(f"{out}/") for out in outs)


def _missing(change: Any) -> list[str]:
    """The outputs of a stage that are not on this machine."""
    found = change.get("changed outs", {}) if isinstance(change, Mapping) else {}
    return [path for path, state in found.items() if state in _ABSENT]


def _other_code(root: Path, lock: Lock) -> list[str]:
    """Stages for which `code` would write another fingerprint than dvc.lock knows."""
    sums = _fingerprint_sums(root)
    return [
        stage
        for stage, entry in lock.items()
        for file in entry.get("deps", [])
        if str(file["path"]).startswith(CODE)
        and sums.get(Path(str(file["path"])).stem) not in (None, file.get("md5"))
    ]


def _fingerprint_sums(root: Path) -> dict[str, str]:
    """Script of a stage -> MD5 sum of the file that `code` would write for it."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", _FINGERPRINTS]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise AriaError(f"the code of the stages cannot be read: {' '.join(said)}: mend it")
    with TemporaryDirectory() as folder:
        sums = {}
        for name, value in orjson.loads(done.stdout).items():
            write_json(file := Path(folder, name), value)
            sums[name] = hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
    return sums
