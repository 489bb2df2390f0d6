"""Episodes a second of the default run's games: several processes side by side against one.

    python benchmarks/processes.py [--model data/base_model] [--games 96] [--repeats 3]

Both get the same games, seeds and settings (params.yaml's); every way starts without a journal.
Printed are medians over the repeats, which take turns, and their ratio. The processes are started
before anything is measured, as those of online training are after its first iteration.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time

from aria_dvc.arena.sessions import Session
from aria_dvc.arena.side_by_side import play_side_by_side, processes
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.params import Params, load_params

GAMES = ("bargaining", "negotiation")


def sessions(params: Params, model: str, games: int) -> list[Session]:
    """One of each game, with the players of its log."""
    return [
        Session(
            get_game(name),
            params.logs[name].players,
            params.collect,
            games,
            params.logs[name].grid,
            model=model,
            reward=params.reward_rule(name),
            trained=params.prepare.players,
        )
        for name in GAMES
    ]


def seconds(params: Params, count: int, found: list[Session]) -> float:
    """How long `count` processes take without anything in the cache."""
    shutil.rmtree(os.environ["ARIA_CACHE"], ignore_errors=True)
    pace = params.pace.model_copy(update={"processes": count})
    started = time.perf_counter()
    play_side_by_side(params.model_copy(update={"pace": pace}), found, "play")
    return time.perf_counter() - started


def compare(model: str, games: int, repeats: int) -> dict[int, float]:
    """Median seconds by number of processes."""
    params = load_params()
    found = sessions(params, model, games)
    several = processes(params, found)
    seconds(params, several, sessions(params, model, 2))
    spent: dict[int, list[float]] = {1: [], several: []}
    for _ in range(repeats):
        for count, taken in spent.items():
            taken.append(seconds(params, count, found))
    return {count: statistics.median(taken) for count, taken in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="data/base_model")
    parser.add_argument("--games", type=int, default=96, help="of each game")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ARIA_CACHE"] = f"{folder}/cache"  # before a process inherits another
            medians = compare(args.model, args.games, args.repeats)
    except AriaError as error:
        raise SystemExit(f"error: {error}") from None
    for count, median in medians.items():
        print(f"{count} process(es): {len(GAMES) * args.games / median:6.2f} episodes a second")
    print(f"ratio: {medians[1] / min(medians.values()):.2f}")


if __name__ == "__main__":
    main()
