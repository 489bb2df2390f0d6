"""SIGKILLs of the pipeline at random moments, and the runs after them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from scripts.chaos.comparing import Compared, compared, left_over
from scripts.chaos.place import Place, Stage

GOLDEN = 0.618033988749895  # its multiples, without their integers, spread evenly
LOOK_S = 0.005
TRIES = 8  # at a moment that lies before the end of the run
GONE_S = 15.0  # for processes whose parent was killed
RERUN_S = 900.0
RUNNING = b"Running stage"


@dataclass(frozen=True)
class Kill:
    """One kill to come.

    way: script (the stage's own), stage (`dvc repro` of it alone), whole (`dvc repro` of all).
    since: what the moment counts from: start, running (the stage, in `dvc repro`) or written (the
        first thing that the stage writes).
    alone: the script's process only, so that the players beside it must end by themselves.
    """

    number: int
    stage: Stage
    way: str
    since: str
    moment: float
    alone: bool


def planned(number: int, seed: int, stages: list[Stage]) -> Kill:
    """The kill of that number: over all stages by their time, one in ten in a run of all."""
    rng = random.Random(f"{seed} {number}")
    sums = list(accumulate(stage.seconds for stage in stages))
    at = (number * GOLDEN + random.Random(seed).random()) % 1 * sums[-1]
    stage = next(one for one, until in zip(stages, sums, strict=True) if at < until)
    way = rng.choices(("stage", "script", "whole"), (6, 3, 1))[0]
    if way == "whole":
        return Kill(number, stage, way, "start", rng.uniform(0, 1.2) * sums[-1], False)
    since = rng.choice(("written", "running" if way == "stage" else "start"))
    longest = stage.seconds * (0.4 if since == "written" else 1.1)
    alone = way == "script" and rng.random() < 0.5
    return Kill(number, stage, way, since, rng.uniform(0, longest), alone)


def kill_and_rerun(place: Place, kill: Kill, stages: list[Stage]) -> dict[str, Any]:
    """One kill, the run after it, and how that ended."""
    began, moment, session = time.monotonic(), kill.moment, None
    command = _command(kill)
    for _ in range(TRIES):
        place.restore(without=None if kill.way == "whole" else kill.stage)
        session = _killed(place, command, kill, moment)
        if session is not None:
            break
        moment *= 0.7  # it had ended before
    hit = _stage_at(place.output, stages) if kill.way == "whole" else kill.stage.name
    code, said = _run(place, command)
    result = Compared()
    for stage in stages if kill.way == "whole" else [kill.stage]:
        for out in stage.outs:
            result.add(compared(place.undisturbed / out, place.work / out, stage.kind))
    left = [Path(one).name for one in left_over([place.work, place.cache])]
    left += [f"process {pid}" for pid in _survivors(session)]
    return {
        "stage": hit,
        "way": kill.way + (", alone" if kill.alone else ""),
        "since": kill.since,
        "moment": round(moment, 3),
        "killed": session is not None,
        "equal": code == 0 and not result.wrong,
        "same_bytes": not result.bytes_differ,
        "largest": result.largest,
        "left": left,
        "problem": "; ".join(result.wrong) + ("" if code == 0 else said[-1500:]),
        "seconds": round(time.monotonic() - began, 1),
    }


def _command(kill: Kill) -> list[str]:
    if kill.way == "script":
        return kill.stage.script
    return ["dvc", "repro", *(["-s", kill.stage.name] if kill.way == "stage" else [])]


def _killed(place: Place, command: list[str], kill: Kill, moment: float) -> int | None:
    """Start the command and kill it; its session, or None if it ended before."""
    before = _written(place, kill.stage)
    process = started(place, command)
    due = time.monotonic() + moment if kill.since == "start" else None
    while process.poll() is None:
        now = time.monotonic()
        if due is None and _has_come(place, kill, before):
            due = now + moment
        if due is not None and now >= due:
            end(process, kill.alone)
            return process.pid
        time.sleep(LOOK_S)
    return None


def _has_come(place: Place, kill: Kill, before: list[str]) -> bool:
    if kill.since == "running":
        return RUNNING in place.output.read_bytes()
    return _written(place, kill.stage) != before


def _written(place: Place, stage: Stage) -> list[str]:
    """Names beside a stage's outputs, and in the cache."""
    beside = {(place.work / out).parent for out in stage.outs}
    folders = [*sorted(beside), place.cache, *sorted(place.cache.glob("*"))]
    return [name for folder in folders if folder.is_dir() for name in sorted(os.listdir(folder))]


def started(place: Place, command: list[str]) -> subprocess.Popen[bytes]:
    """The command in a session of its own, its output in a file."""
    with place.output.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=place.work,
            env=place.workspace.env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes], alone: bool = False) -> None:
    """SIGKILL: to the process alone, or to all of its group."""
    if alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _run(place: Place, command: list[str]) -> tuple[int, str]:
    """Run it to its end: exit status and output."""
    process = started(place, command)
    try:
        code = process.wait(RERUN_S)
    except subprocess.TimeoutExpired:
        end(process)
        code = -signal.SIGKILL
    return code, place.output.read_text(errors="replace")


def _survivors(session: int | None) -> list[int]:
    """Processes of a killed session that still live after GONE_S."""
    until = time.monotonic() + GONE_S
    while (found := _of_session(session)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _of_session(session: int | None) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _stage_at(output: Path, stages: list[Stage]) -> str:
    """The stage that a run of all was in."""
    lines = [line for line in output.read_text(errors="replace").splitlines() if "'" in line]
    ran = [line.split("'")[1] for line in lines if RUNNING.decode() in line]
    return ran[-1] if ran else stages[0].name
