"""The games of online training on disk, iteration by iteration.

Of several processes the first one plays and credits; the others read what it has written. So this
folder must lie where all of them see it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from aria_dvc.cache.sums import SUFFIX, damage_of, differing, read_mark, vouch
from aria_dvc.files import read_parquet, write_parquet
from aria_dvc.learning.checkpoints import process_state
from aria_dvc.learning.examples import LogFrames
from aria_dvc.player_specs import TRAINED_ONLINE
from aria_dvc.records.episodes import Episode
from aria_dvc.records.tables import episodes_table, turns_table

logger = logging.getLogger(__name__)
PLAYED, EPISODES, TURNS = f"played{SUFFIX}", "episodes.parquet", "turns.parquet"
LOOK_S = 0.5  # between two looks for what the first process is at


def first_only(mark: Path, version: str, work: Callable[[], Any], files: Sequence[str] = ()) -> Any:
    """What `work` returns (JSON-able), done by the first process and read by the others.

    It is done once: where `mark` holds the result of this version, nothing is. The mark is written
    last, with the sums of the `files` beside it that `work` has written; where it or one of them is
    damaged, that is named and the work is done again. The others look for the mark rather than meet
    at a barrier, whose patience playing would exhaust.
    """
    first = process_state().is_main_process
    while (found := _marked(mark, version)) is None:
        if first:
            result = work()
            vouch(mark, [mark.with_name(n) for n in files], version=version, result=result)
        else:
            time.sleep(LOOK_S)
    return found["result"]


def _marked(mark: Path, version: str) -> dict[str, Any] | None:
    if not mark.is_file():
        return None
    try:
        found = read_mark(mark)
        damaged = differing(mark.parent, found["sums"]) if found["version"] == version else None
    except ValueError:
        damaged = [mark.name]
    if damaged:
        logger.warning("%s: %s damaged: done again", mark.parent, ", ".join(damaged))
    return found if damaged == [] else None


@dataclass(frozen=True)
class PlayedGames:
    """`folder/iteration-N/`: the tables of its games, and the policy version that played them."""

    folder: Path

    def of(self, iteration: int) -> Path:
        """The folder of an iteration."""
        return self.folder / f"iteration-{iteration}"

    def keep(self, iteration: int, version: str, episodes: Sequence[Episode]) -> None:
        """Write the iteration's games; ids and records say when and by whom they were played."""
        for episode in episodes:
            episode.episode_id = f"{iteration}/{episode.episode_id}"
            record = episode.record
            record.policy_version = version
            record.group_id = record.group_id and f"{iteration}/{record.group_id}"
            episode.info = record.to_json()
        folder = self.of(iteration)
        write_parquet(folder / EPISODES, episodes_table(episodes))
        write_parquet(folder / TURNS, turns_table(episodes, TRAINED_ONLINE))

    def damaged(self, iterations: int) -> list[Path]:
        """What is damaged of the games of the first so many iterations."""
        folders = [self.of(number) for number in range(iterations)]
        return [folder / name for folder in folders for name in damage_of(folder / PLAYED)]

    def last(self, iteration: int, count: int) -> list[LogFrames]:
        """The games of the last `count` iterations up to this one, game by game, without credit."""
        folders = [self.of(i) for i in range(max(0, iteration - count + 1), iteration + 1)]
        turns, episodes = (
            pd.concat([read_parquet(folder / name) for folder in folders])
            for name in (TURNS, EPISODES)
        )
        return [
            LogFrames(
                name=str(game),
                turns=rows.reset_index(drop=True),
                episodes=episodes[episodes["game"] == game].reset_index(drop=True),
                rewards=pd.DataFrame(),
            )
            for game, rows in turns.groupby("game", sort=True)
        ]

    def since(self, iteration: int, count: int) -> list[LogFrames]:
        """Like `last`, without games of which a single episode has actions: none could be held
        out. Older games would not do: who has learned from them is not to be judged by them."""
        return [log for log in self.last(iteration, count) if _acting_episodes(log) > 1]


def _acting_episodes(log: LogFrames) -> int:
    return int(log.turns.loc[log.turns["is_action"], "episode_id"].nunique())


def write_rewards(file: Path, frames: Sequence[LogFrames]) -> None:
    """The rewards of several logs in one file, with a column `log`."""
    tables = [log.rewards.assign(log=log.name) for log in frames]
    write_parquet(file, pd.concat(tables) if tables else pd.DataFrame({"log": []}))


def with_rewards(file: Path, frames: Sequence[LogFrames]) -> list[LogFrames]:
    """Those of the logs that the file of `write_rewards` has, with their rewards."""
    found = dict(list(read_parquet(file).groupby("log")))
    return [
        LogFrames(
            log.name,
            log.turns,
            log.episodes,
            found[log.name].drop(columns="log").reset_index(drop=True),
        )
        for log in frames
        if log.name in found
    ]
