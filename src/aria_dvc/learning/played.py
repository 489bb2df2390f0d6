"""The games of online training on disk, iteration by iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from aria_dvc.files import read_json, read_parquet, write_json, write_parquet
from aria_dvc.learning.examples import LogFrames
from aria_dvc.player_specs import TRAINED_ONLINE
from aria_dvc.records.episodes import Episode
from aria_dvc.records.tables import episodes_table, turns_table


@dataclass(frozen=True)
class PlayedGames:
    """`folder/iteration-N/`: the tables of its games, and the policy version that played them."""

    folder: Path

    def _of(self, iteration: int) -> Path:
        return self.folder / f"iteration-{iteration}"

    def holds(self, iteration: int, version: str) -> bool:
        """Whether this very policy's games of the iteration are there, all of them."""
        mark = self._of(iteration) / "played.json"
        return mark.is_file() and read_json(mark) == version

    def keep(self, iteration: int, version: str, episodes: Sequence[Episode]) -> None:
        """Write the iteration's games; ids and records say when and by whom they were played."""
        for episode in episodes:
            episode.episode_id = f"{iteration}/{episode.episode_id}"
            record = episode.record
            record.policy_version = version
            record.group_id = record.group_id and f"{iteration}/{record.group_id}"
            episode.info = record.to_json()
        folder = self._of(iteration)
        write_parquet(folder / "episodes.parquet", episodes_table(episodes))
        write_parquet(folder / "turns.parquet", turns_table(episodes, TRAINED_ONLINE))
        write_json(folder / "played.json", version)

    def last(self, iteration: int, count: int) -> list[LogFrames]:
        """The games of the last `count` iterations up to this one, game by game, without credit."""
        folders = [self._of(i) for i in range(max(0, iteration - count + 1), iteration + 1)]
        turns, episodes = (
            pd.concat([read_parquet(folder / f"{name}.parquet") for folder in folders])
            for name in ("turns", "episodes")
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
        """Like `last`, reaching further back until two episodes of each game have actions.

        A single episode cannot be held out: a game that has no more is left out.
        """
        for more in range(min(count, iteration + 1), iteration + 2):
            newest = self.last(iteration, more)
            enough = [log for log in newest if _acting_episodes(log) > 1]
            if len(enough) == len(newest):
                break
        return enough


def _acting_episodes(log: LogFrames) -> int:
    return int(log.turns.loc[log.turns["is_action"], "episode_id"].nunique())


def mean_reward(frames: Sequence[LogFrames]) -> float:
    """Mean final reward over acting roles and games."""
    turns = pd.concat([log.turns for log in frames])
    finals = turns[turns["is_action"]].groupby(["episode_id", "role"])["reward"].first()
    return float(finals.mean())
