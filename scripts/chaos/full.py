"""A disk that is full after a random share of what a stage writes.

The disk is a small tmpfs in a user namespace. `python -m scripts.chaos.full FOLDER NUMBER SEED`
is what runs inside it: it mounts, fills, runs the stage, frees the space, and runs it again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scripts.chaos.comparing import Compared, compared, left_over, sums_of
from scripts.chaos.killing import GOLDEN
from scripts.chaos.place import ROOT, Place, Stage, blocks, copy
from test_failures import MAY_MOUNT, may_mount

from aria_dvc.files import write_json

__all__ = ["fill_and_rerun", "may_mount"]
TRIES = 5
PAGE = 4096
ROOM = 64 << 20  # bytes beside what the project and the stage take
TIMEOUT_S = 900


def fill_and_rerun(place: Place, number: int, seed: int) -> dict[str, Any]:
    """One full disk, and how the runs on it ended."""
    result = place.folder / "full.json"
    result.unlink(missing_ok=True)
    command = [*MAY_MOUNT, sys.executable, "-m", "scripts.chaos.full"]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [*command, str(place.folder), str(number), str(seed)],
        cwd=ROOT,
        env={**place.workspace.env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if not result.exists():
        return {"stage": "?", "way": "?", "equal": False, "problem": done.stderr[-1500:]}
    found: dict[str, Any] = json.loads(result.read_bytes())
    return found


def main() -> None:
    folder, number, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    place, rng = Place(folder), random.Random(f"{seed} {number} full")
    stages = place.prepare()
    at = (number * GOLDEN + random.Random(seed).random()) % 1
    stage = stages[int(at * len(stages))]
    share, way = rng.random(), ("script", "dvc")[number % 2]
    place.restore(without=stage)
    disk = _mounted(place)
    write_json(folder / "full.json", tried(disk, place, stage, share, way))


def _mounted(place: Place) -> Place:
    """The project on a disk of its own, which only this process and its children see."""
    point = place.folder / "disk"
    point.mkdir(exist_ok=True)
    size = 2 * blocks(place.work) + ROOM
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(point)]
    subprocess.run(mount, check=True)
    copy(place.work, point / "work")
    return Place(point)


def tried(disk: Place, place: Place, stage: Stage, share: float, way: str) -> dict[str, Any]:
    """Run the stage with that share of the room that it needs, and again with enough."""
    began = time.monotonic()
    command = stage.script if way == "script" else ["dvc", "repro", "-s", stage.name]
    outs = [disk.work / out for out in stage.outs]
    own = [*outs, disk.work / ".dvc", disk.work / ".git", disk.work / "dvc.lock"]
    before = sums_of([disk.work], but=own)
    for _ in range(TRIES):
        ballast = _fill(disk, int(share * stage.written) // PAGE * PAGE)
        first = _run(disk, command)
        ballast.unlink()
        if first.returncode:
            break
        share /= 2  # there was room enough
        for out in outs:
            shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
        shutil.rmtree(disk.cache, ignore_errors=True)
        copy(place.work / "dvc.lock", disk.work / "dvc.lock")
    inputs = sums_of([disk.work], but=own) == before
    second, result = _run(disk, command), Compared()
    for out in stage.outs:
        result.add(compared(place.undisturbed / out, disk.work / out, stage.kind))
    said = first.stdout + first.stderr
    return {
        "stage": stage.name,
        "way": way,
        "share": round(share, 3),
        "failed": first.returncode != 0,
        "line": _line(first, way),
        "clear": _is_clear(first, way),
        "inputs": inputs,
        "equal": second.returncode == 0 and not result.wrong,
        "left": [Path(one).name for one in left_over([disk.folder])],
        "problem": "; ".join(result.wrong)
        + (second.stderr[-1500:] if second.returncode else "")
        + ("" if _is_clear(first, way) else said[-3000:]),
        "seconds": round(time.monotonic() - began, 1),
    }


def _fill(disk: Place, room: int) -> Path:
    """A file that leaves so many bytes of the disk."""
    ballast = disk.folder / "ballast"
    with ballast.open("wb") as file:
        size = shutil.disk_usage(disk.folder).free - room
        if size > 0:
            os.posix_fallocate(file.fileno(), 0, size)
    return ballast


def _run(disk: Place, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=disk.work,
        env=disk.workspace.env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S / 3,
        check=False,
    )


def _line(done: subprocess.CompletedProcess[str], way: str) -> str:
    said = (done.stdout + done.stderr).splitlines()
    start = "error: " if way == "script" else "ERROR"
    lines = [line for line in said if line.startswith(("error: ", start))]
    return lines[0][:300] if lines else ""


def _is_clear(done: subprocess.CompletedProcess[str], way: str) -> bool:
    """One line that says that the disk is full, and no traceback; DVC adds lines of its own."""
    said = done.stdout + done.stderr
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    full = ("full", "No space left", "not enough")
    named = [line for line in lines if "disk" in line and "full" in line]
    if "Traceback" in said:
        return False
    if way == "dvc" and not lines:  # DVC's own files did not fit
        return any(words in said for words in full)
    return len(lines) == len(named) == 1


if __name__ == "__main__":
    main()
