"""A disk that is full after a random share of what a stage writes.

The disk is a small tmpfs in a user namespace. `python -m scripts.chaos.full FOLDER NUMBER SEED`
is what runs inside it: it mounts, fills, runs the stage, frees the space, and runs it again.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.chaos.comparing import compared, left_over, sums_of
from scripts.chaos.killing import GOLDEN
from scripts.chaos.place import ROOT, Place, Stage, blocks, copy, remove
from test_failures import MAY_MOUNT, may_mount

from aria_dvc.files import read_json, write_json

__all__ = ["fill_and_rerun", "may_mount"]
TRIES = 8
PAGE = 4096
ROOM = 64 << 20  # bytes beside what the project takes
FULL = ("disk full", "disk is full")
OF_DVC = (*FULL, "No space left")


def fill_and_rerun(place: Place, number: int, seed: int) -> dict[str, Any]:
    """One full disk, and how the runs on it ended."""
    result = place.folder / "full.json"
    remove(result)
    command = [*MAY_MOUNT, sys.executable, "-m", "scripts.chaos.full"]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [*command, str(place.folder), str(number), str(seed)],
        cwd=ROOT,
        env={**place.workspace.env, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not result.exists():
        return {"stage": "?", "wrong": [done.stderr[-1500:]], "left": []}
    found: dict[str, Any] = read_json(result)
    return found


def main() -> None:
    place, number, seed = Place(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    stages, rng = place.prepare(), random.Random(f"{seed} {number} full")
    stage = stages[int((number * GOLDEN + random.Random(seed).random()) % 1 * len(stages))]
    way, share = rng.choice(("script", "stage")), rng.random()
    place.restore(without=stage)
    write_json(place.folder / "full.json", tried(_disk(place), place, stage, way, share))


def _disk(place: Place) -> Place:
    """The project on a disk of its own, which only this process and its children see."""
    point = place.folder / "disk"
    point.mkdir(exist_ok=True)
    size = 2 * blocks(place.work) + ROOM
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(point)]
    subprocess.run(mount, check=True)
    disk = Place(point)
    disk.output, disk.undisturbed = place.output, place.undisturbed
    copy(place.work, disk.work)
    return disk


def tried(disk: Place, place: Place, stage: Stage, way: str, share: float) -> dict[str, Any]:
    """Run the stage with that share of the room that it needs, and again with enough."""
    command = stage.script if way == "script" else ["dvc", "repro", "-s", stage.name]
    own = [disk.work / name for name in (*stage.outs, ".dvc", ".git", "dvc.lock")]
    before, wrong = sums_of(disk.work, but=own), ["the disk was never full"]
    for halved in range(TRIES):
        code, said = _run_full(disk, command, int(share * stage.written) >> halved)
        if code:
            wrong = [] if is_clear(said, way) else [f"no clear line: {said[-3000:]}"]
            break
        for name in (*stage.outs, "dvc.lock"):  # there was room enough
            remove(disk.work / name)
        copy(place.work / "dvc.lock", disk.work / "dvc.lock")
        remove(disk.cache)
    if sums_of(disk.work, but=own) != before:
        wrong.append("the inputs are not what they were")
    lines = [line for line in said.splitlines() if line.lower().startswith("error")]
    code, said = disk.run(command)
    wrong += [f"ended with {code}: {said[-1500:]}"] if code else []
    wrong += compared(disk, [stage]).wrong
    return {
        "stage": stage.name,
        "way": way,
        "said": lines,
        "wrong": wrong,
        "left": left_over([disk.folder]),
    }


def _run_full(disk: Place, command: list[str], room: int) -> tuple[int, str]:
    """Run it on a disk on which so many bytes are free."""
    ballast = disk.folder / "ballast"
    with ballast.open("wb") as file:
        size = shutil.disk_usage(disk.folder).free - room // PAGE * PAGE
        os.posix_fallocate(file.fileno(), 0, size)
    try:
        return disk.run(command)
    finally:
        ballast.unlink()


def is_clear(said: str, way: str) -> bool:
    """One line that says that the disk is full, and no traceback; DVC adds lines of its own."""
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    if way == "stage" and not lines:  # DVC's own files did not fit
        return "Traceback" not in said and any(words in said for words in OF_DVC)
    named = [line for line in lines if any(words in line for words in FULL)]
    return "Traceback" not in said and len(lines) == len(named) == 1


if __name__ == "__main__":
    main()
