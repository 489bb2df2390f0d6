"""Check the raw dialogues of one game and lay them out as tables."""

import sys

from aria_dvc.errors import AriaError
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.episodes import without_broken_off
from aria_dvc.records.readers import read_log
from aria_dvc.records.schemas import EPISODES, TURNS, write_table
from aria_dvc.records.tables import check_lengths, episodes_table, turns_table


def main(params: Params, game: str) -> None:
    logged = read_log(paths.raw(game), game)
    episodes = without_broken_off(logged)
    if len(episodes) < len(logged):
        print(
            f"{game}: {len(logged) - len(episodes)} of {len(logged)} episodes were broken off by "
            "the other side of the game and are left out",
            file=sys.stderr,
        )
    if not episodes:
        raise AriaError(f"{paths.raw(game)}: no episode came to its end: see the oracle's endpoint")
    check_lengths(episodes, params.prepare.max_chars, paths.raw(game))
    write_table(paths.turns(game), turns_table(episodes), TURNS)
    write_table(paths.episodes(game), episodes_table(episodes), EPISODES)


if __name__ == "__main__":
    run_stage(main)
