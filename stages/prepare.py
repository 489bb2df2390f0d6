"""Check the raw dialogues of one log and lay them out as tables."""

import logging

from aria_dvc.errors import AriaError
from aria_dvc.games.decided import tell_decisions
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.episodes import without_broken_off
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import EPISODES, TURNS, write_table
from aria_dvc.records.tables import check_lengths, episodes_table, turns_table


def main(params: Params, log: str) -> None:
    files = files_of(params, log)
    how = Reading(game=log, warn=False)  # collect has said what is odd
    logged = read_log(files.raw, how)
    episodes = without_broken_off(logged)
    if len(episodes) < len(logged):
        logging.getLogger(__name__).warning(
            "%s: %d of %d episodes were broken off by the other side of the game and are left out",
            *(log, len(logged) - len(episodes), len(logged)),
        )
    if not episodes:
        raise AriaError(f"{files.raw}: no episode came to its end: see the oracle's endpoint")
    check_lengths(episodes, params.prepare.max_chars, files.raw)
    tell_decisions(episodes, params.prepare.decisions)
    turns = turns_table(episodes, params.prepare.players)
    if not turns["is_action"].any():
        raise AriaError(
            f"{files.raw}: nobody of the kinds {', '.join(params.prepare.players)} said anything "
            "with a reward of its own doing: add the kind that played to prepare.players"
        )
    write_table(files.turns, turns, TURNS)
    write_table(files.episodes, episodes_table(episodes), EPISODES)


if __name__ == "__main__":
    run_stage(main, "log")
