"""SIGKILLs of the pipeline at random moments, and the runs after them."""

from __future__ import annotations

import os
import random
import re
import time
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from scripts.chaos.comparing import compared, left_over
from scripts.chaos.place import LOOK_S, Command, Place, Stage, end

GOLDEN = 0.618033988749895  # its multiples, without their integers, spread evenly
TRIES = 8  # at a moment that lies after the end of the run
LOOKS = 500  # for processes whose parent was killed
EVERY = 20  # kills, of which one is of a run of all stages


@dataclass(frozen=True)
class Kill:
    """One kill to come.

    way: script (the stage's own), stage (`dvc repro` of it alone), whole (`dvc repro` of all).
    written: the moment counts from the first thing that the stage writes, not from the start.
    moment: in seconds.
    alone: the script's process only, so that the players beside it must end by themselves.
    """

    stage: Stage
    way: str
    written: bool
    moment: float
    alone: bool = False

    @property
    def command(self) -> Command:
        commands = {"script": self.stage.script, "stage": ["dvc", "repro", "-s", self.stage.name]}
        return commands.get(self.way, ["dvc", "repro"])


def planned(number: int, seed: int, stages: list[Stage]) -> Kill:
    """The kill of that number: over all stages by their time."""
    rng = random.Random(f"{seed} {number}")
    sums = list(accumulate(stage.seconds for stage in stages))
    if number % EVERY == EVERY // 2:
        return Kill(stages[0], "whole", False, rng.uniform(0, sums[-1]))
    at = (number * GOLDEN + random.Random(seed).random()) % 1 * sums[-1]
    stage = next(one for one, until in zip(stages, sums, strict=True) if at < until)
    way, written = rng.choice(("stage", "script")), rng.random() < 0.5
    share = 0.4 if written else {"stage": 1.0, "script": 0.8}[way]
    alone = way == "script" and rng.random() < 0.5
    return Kill(stage, way, written, rng.uniform(0, share) * stage.seconds, alone)


def kill_and_rerun(place: Place, kill: Kill, stages: list[Stage]) -> dict[str, Any]:
    """One kill, the run after it, and how that ended."""
    group = None
    for halved in range(TRIES):
        place.restore(without=None if kill.way == "whole" else kill.stage)
        group = _killed(place, kill, kill.moment / 2**halved)
        if group is not None:
            break
    ran = re.findall("Running stage '(.+)'", place.said()) if kill.way == "whole" else []
    code, said = place.run(kill.command)
    result = compared(place, stages if kill.way == "whole" else [kill.stage])
    return {
        "stage": ran[-1] if ran else kill.stage.name,
        "way": kill.way + (", alone" if kill.alone else ""),
        "moment": kill.moment / 2**halved,
        "wrong": result.wrong
        + ([f"ended with {code}: {said[-1500:]}"] if code else [])
        + (["not killed, it was faster"] if group is None else []),
        "left": left_over([place.work, place.cache]) + _survivors(group),
        "largest": result.largest,
    }


def _killed(place: Place, kill: Kill, moment: float) -> int | None:
    """Start the command and kill it; its process group, or None if it ended before."""
    before = _names(place, kill.stage)
    process = place.start(kill.command)
    due = None if kill.written else time.monotonic() + moment
    while process.poll() is None:
        if due is None and _names(place, kill.stage) != before:
            due = time.monotonic() + moment
        if due is not None and time.monotonic() >= due:
            end(process, kill.alone)
            return process.pid
        time.sleep(LOOK_S)
    return None


def _names(place: Place, stage: Stage) -> list[str]:
    """What lies beside a stage's outputs, and in the cache."""
    beside = {(place.work / out).parent for out in stage.outs}
    folders = [*sorted(beside), place.cache, *sorted(place.cache.glob("*"))]
    return [name for folder in folders if folder.is_dir() for name in sorted(os.listdir(folder))]


def _survivors(group: int | None) -> list[str]:
    """Processes of a killed group that still live after a while."""
    for _ in range(LOOKS):
        if not (found := _alive(group)):
            break
        time.sleep(LOOK_S)
    return found


def _alive(group: int | None) -> list[str]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(f"process {stat.parent.name}")
    return found
