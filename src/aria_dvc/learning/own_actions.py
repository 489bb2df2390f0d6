"""Which actions the policy is trained on: what it sampled, after the prompt that training sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

if TYPE_CHECKING:
    import pandas as pd

# What policy.players calls the player of that name.
KIND_OF = {"policy": "policy", "base": "policy", "scripted": "scripted", "endpoint": "endpoint"}


def said_by(rewards: pd.DataFrame, episodes: pd.DataFrame, players: Sequence[str]) -> pd.DataFrame:
    """The rows of `rewards` of roles that a player of one of the kinds `players` had.

    Where an episode does not record a player of ours, as in a user's own log, its rows stay.
    """
    others = {name for name, kind in KIND_OF.items() if kind not in players}
    dropped = {
        (episode, role)
        for episode, info in _infos(episodes)
        for role, player in _mapping(info.get("players")).items()
        if str(_mapping(player).get("name")).partition(":")[0] in others
    }
    return _without(rewards, "role", dropped)


def without_reasked(rewards: pd.DataFrame, episodes: pd.DataFrame) -> pd.DataFrame:
    """The rows of `rewards` without utterances that came after a re-ask, where that is recorded.

    Those were sampled from a prompt with a hint that is not part of the dialogue, so training
    would score them after another prompt than they were sampled from.
    """
    dropped = {
        (episode, position)
        for episode, info in _infos(episodes)
        if isinstance(info.get("reasked"), list)
        for position in info["reasked"]
        if isinstance(position, int)
    }
    return _without(rewards, "position", dropped)


def _infos(episodes: pd.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every episode's id and what is recorded about it."""
    first = episodes.drop_duplicates("episode_id")
    for episode, info in zip(first["episode_id"], first["info"], strict=True):
        yield episode, orjson.loads(info)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _without(rewards: pd.DataFrame, column: str, dropped: set[Any]) -> pd.DataFrame:
    """The rows whose (episode_id, `column`) is not in `dropped`."""
    keys = zip(rewards["episode_id"], rewards[column], strict=True)
    kept = np.array([key not in dropped for key in keys], dtype=bool)
    return rewards[kept].reset_index(drop=True)
