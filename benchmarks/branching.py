"""Continuations a second of `aria truth` with scripted players, in one process.

    python benchmarks/branching.py

Every game is played by scripted players first, and then gone on with from turns of its own; the
journal is written as ever, in a folder that is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from aria_dvc.arena.sessions import Session
from aria_dvc.games.registry import get_game
from aria_dvc.params import Params, load_params
from aria_dvc.settings.dialogues import TruthParams
from aria_dvc.truth.table import Question, truth_table

PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"
PLAYERS = {
    "bargaining": {"alice": "scripted:varied", "bob": "scripted:mixed"},
    "negotiation": {"alice": "scripted:varied", "bob": "scripted:mixed"},
    "twenty_questions": {"agent": "scripted:casual", "oracle": "embedded"},
    "guess_my_city": {"agent": "scripted:casual", "oracle": "embedded"},
}


def measure(params: Params, name: str, games: int, asked: Question) -> tuple[int, float, float]:
    """Continuations, and the seconds and CPU seconds that they took."""
    log = Session(
        *(get_game(name), PLAYERS[name], params.collect, games, "default"),
        model=str(PARAMS),  # which nobody loads
        reward=params.reward_rule(name),
        purpose="log",
    ).play(params)
    started, worked = time.perf_counter(), time.process_time()
    table = truth_table(params, log, asked)
    spent = time.perf_counter() - started, time.process_time() - worked
    each = table["draws"] * table["draw_continuations"]
    return int((table["continuations"] + each).sum()), *spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", default=list(PLAYERS), choices=PLAYERS)
    parser.add_argument("--log", type=int, default=100, help="games that are gone on with")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--continuations", type=int, default=64)
    parser.add_argument("--draws", type=int, default=64)
    args = parser.parse_args()
    settings = TruthParams(
        turns=args.turns,
        continuations=args.continuations,
        draws=args.draws,
        draw_continuations=1,
    )
    asked = Question(settings, 0.95, ["scripted"], str(PARAMS))
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ARIA_CACHE"] = cache
        for name in args.games:
            count, spent, worked = measure(load_params(PARAMS), name, args.log, asked)
            print(
                f"{name:18} {count:7,d} continuations  {count / spent:7,.0f} a second  "
                f"{count / worked:7,.0f} a CPU second",
                flush=True,
            )


if __name__ == "__main__":
    main()
