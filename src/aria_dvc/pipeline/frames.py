"""The tables that the learning stages read, for all logs of a category."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.files import write_json, written_aside
from aria_dvc.learning.advantages import groups_of
from aria_dvc.learning.examples import LogFrames
from aria_dvc.learning.own_actions import learned_by
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.policy_checks import ESTIMATOR
from aria_dvc.records.schemas import REWARDS
from aria_dvc.records.stored import (
    read_contributions,
    read_episodes,
    read_rewards,
    read_turns,
)

if TYPE_CHECKING:
    import pandas as pd


def category_frames(
    params: Params,
    category: str,
    max_episodes: int | None,
    credit: str | None = None,
    method: str = "",
) -> list[LogFrames]:
    """Turns, episodes and rewards of every log of `category`.

    The logs come from params.yaml, never from what lies in the folders: a log that was taken off
    the list leaves its files behind.

    Args:
        max_episodes: at most so many episodes per log, drawn by whole groups with the run's seed;
            None: all.
        credit: what a policy trains on: the method whose q and v become `reward` and `value`, if
            it is not that already, and only where the action was sampled as training scores it
            (`learned_by`); None: all actions.
        method: that of the policy (see `learned_by`).
    """
    frames = []
    for log in params.logs_of(category):
        files = files_of(params, log)
        turns = read_turns(files.turns)
        rewards = read_rewards(files.rewards, turns)
        if credit in params.aggregate.further:
            if f"credit_{credit}" not in rewards:
                raise REWARDS.wrong(files.rewards, f"has no column credit_{credit}")
            rewards["reward"] = rewards[f"credit_{credit}"]
            rewards["value"] = rewards[f"value_{credit}"]
        elif credit == ESTIMATOR:
            told = read_contributions(files.contributions, turns)
            rewards[["reward", "value"]] = told[["reward", "value"]]
        episodes = read_episodes(files.episodes, turns)
        of_group = groups_of(episodes)
        groups = {one: of_group[one] for one in rewards["episode_id"].unique()}
        kept = drawn(groups, max_episodes, params.seed)
        tables = (turns, episodes, rewards)
        frames.append(LogFrames(log, *(_only(table, kept) for table in tables)))
    if credit is None:
        return frames
    return [learned_by(method, log) for log in frames]


def outcome_frames(params: Params, category: str) -> list[LogFrames]:
    """Turns and episodes of every log of `category`, all of them and before any credit."""
    frames = []
    for log in params.logs_of(category):
        files = files_of(params, log)
        turns = read_turns(files.turns)
        episodes = read_episodes(files.episodes, turns)
        frames.append(LogFrames(log, turns, episodes, rewards=turns.iloc[:0]))
    return frames


def drawn(groups: Mapping[str, str], count: int | None, seed: int) -> list[str]:
    """At most `count` episodes, by whole groups, which objectives compare; None: all.

    Groups are taken in random order where they fit; where the first is larger, `count` of it.

    groups: of each episode.
    """
    if count is None or len(groups) <= count:
        return list(groups)
    members: dict[str, list[str]] = {}
    for episode, group in groups.items():
        members.setdefault(group, []).append(episode)
    rng = np.random.default_rng(seed)
    wholes = list(members.values())
    kept: list[str] = []
    for place in rng.permutation(len(wholes)):
        whole = wholes[place]
        if not kept and len(whole) > count:
            return rng.choice(whole, count, replace=False).tolist()
        kept += whole if len(kept) + len(whole) <= count else []
    return kept


def _only(table: pd.DataFrame, ids: Collection[str]) -> pd.DataFrame:
    return table[table["episode_id"].isin(ids)].reset_index(drop=True)


def nothing_to_train(out: Path, reason: str = "") -> None:
    """The output folder of a stage that trains no model; its metrics say why, if there is a why."""
    with written_aside(out) as aside:
        aside.mkdir(parents=True)
        write_json(aside / "metrics.json", {"not_trained": reason} if reason else {})
