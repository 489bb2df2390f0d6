"""Harm the real pipeline at random moments, on tiny sizes, and see that nothing is lost.

    make chaos                        100 SIGKILLs, 1,000 games among faults, 20 full disks
    make chaos KILLS=10 GAMES=0 DISKS=0

After every harm the same command runs once more, and what it leaves is compared with an
undisturbed run: bytes up to `aggregate`, weights and numbers within a tolerance after it. Most
kills are of one stage, whose inputs are the undisturbed ones: a stage that ends equal from equal
inputs proves what a run of all stages proves; one kill in twenty is of such a run. Results go to a
journal: a run that is stopped goes on, and one of more kills does the further ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.chaos.faulty import survive
from scripts.chaos.full import fill_and_rerun, may_mount
from scripts.chaos.killing import kill_and_rerun, planned
from scripts.chaos.place import Place, code_of_project
from scripts.chaos.table import markdown, problems, rows_of

from aria_dvc.cache.lines import CheckedLines
from aria_dvc.files import write_json

KILLS_AMONG_FAULTS = 10


class Results:
    """What was found so far, by part and number, in a journal."""

    def __init__(self, path: Path) -> None:
        self._lines = CheckedLines(path)
        self._lines.mend("they are found again")
        self.found: list[dict[str, Any]] = self._lines.read()

    def once(self, part: str, number: int, find: Callable[[], dict[str, Any]]) -> None:
        """Find and keep it, unless it is there."""
        if any((one["part"], one["number"]) == (part, number) for one in self.found):
            return
        began, found = time.monotonic(), find()
        found |= {"part": part, "number": number, "seconds": time.monotonic() - began}
        self._lines.add(found)
        self.found.append(found)
        print(f"{part} {number}: {str(found)[:500]}", file=sys.stderr, flush=True)


def main() -> None:
    args = _arguments()
    folder = args.folder / f"{code_of_project()}-{args.seed}"
    place = Place(folder / "place")
    stages = place.prepare()
    results = Results(folder / "results.jsonl")
    if args.games:
        kills = min(KILLS_AMONG_FAULTS, args.games // 10)
        results.once("faulty", args.games, lambda: survive(place, args.games, kills, args.seed))
    if args.disks and not may_mount():
        raise SystemExit("error: full disks need user namespaces: DISKS=0 leaves them out")
    for number in range(args.disks):
        results.once("full", number, lambda n=number: fill_and_rerun(place, n, args.seed))
    for number in range(args.kills):
        kill = planned(number, args.seed, stages)
        results.once("kill", number, lambda kill=kill: kill_and_rerun(place, kill, stages))
    raise SystemExit(_tell(results.found, args.out))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--games", type=int, default=1000, help="among faults; 0: none")
    parser.add_argument("--disks", type=int, default=20, help="that are full")
    parser.add_argument("--seed", type=int, default=0)
    default = Path(tempfile.gettempdir()) / "aria-chaos"
    parser.add_argument("--folder", type=Path, default=default, help=f"of the work ({default})")
    parser.add_argument("--out", type=Path, help="also written as NAME.md and NAME.json")
    return parser.parse_args()


def _tell(found: list[dict[str, Any]], out: Path | None) -> int:
    """Print the table, write it where one asks for it; 1 if anything was lost."""
    rows, wrong = rows_of(found), problems(found)
    largest = max((one["largest"] for one in found if one["part"] == "kill"), default=0.0)
    table = f"{markdown(rows)}\nThe largest difference of a weight: {largest:g}.\n"
    print(table, *wrong, sep="\n")
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".md").write_text(table)
        write_json(out.with_suffix(".json"), {"table": rows, "wrong": wrong, "results": found})
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
