"""How many commands a second the household carries out, and whether the expert solves its tasks.

    python benchmarks/household.py [--tasks N]

By split and player, over N tasks of mixed kinds (drawing the rooms included, the player's thinking
too): steps a second of one core's time, mean and most steps, tasks solved, commands carried out.
"""

from __future__ import annotations

import argparse
import time

from aria_dvc.games.household import AGENT, GAME, HouseholdMatch
from aria_dvc.games.household_rooms import SPLITS
from aria_dvc.games.household_tasks import KINDS
from aria_dvc.players.dialogues import play_out
from aria_dvc.players.housekeeping import HOUSEKEEPERS
from aria_dvc.players.scripted import ScriptedPlayer


def played(split: str, player: str, number: int) -> HouseholdMatch:
    """The task with that number, of each kind in turn, played to its end."""
    task = {"kind": KINDS[number % len(KINDS)], "number": number // len(KINDS)}
    match = GAME.start({"split": split, **task})
    play_out(match, {AGENT: ScriptedPlayer(player)}, seed=number)
    return match


def measured(split: str, player: str, tasks: int) -> str:
    """One row of the table."""
    started = time.process_time()
    matches = [played(split, player, number) for number in range(tasks)]
    seconds = time.process_time() - started
    steps = [match.steps for match in matches]
    solved = sum(match.outcome is not None and match.outcome.rewards[AGENT] for match in matches)
    executed = sum(sum(match.grounded[AGENT]) for match in matches)
    return (
        f"{split:8}{player:14}{sum(steps) / seconds:12,.0f}{sum(steps) / tasks:12.1f}"
        f"{max(steps):8}{solved:8.0f} of {tasks:<8,}{executed / sum(steps):8.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000)
    tasks = parser.parse_args().tasks
    print("split   player         steps/s     mean steps    most  solved              carried out")
    for split in SPLITS:
        for player in HOUSEKEEPERS:
            print(measured(split, player, tasks))


if __name__ == "__main__":
    main()
