"""What is in a log: episodes, groups, turns, who speaks, and how it ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from aria_dvc.intentions.log import Log
from aria_dvc.records.turns import own_turns

MOST_VALUES = 12  # of final rewards that are listed; of more only quantiles


def contents(log: Log, final: np.ndarray) -> dict[str, Any]:
    """Counts and distributions.

    final: (n,) final reward of each utterance's role, NaN where it has none.
    """
    groups = log.episodes if log.group is None else len(np.unique(log.group))
    return {
        "game": log.game,
        "episodes": log.episodes,
        "groups": groups,
        "utterances": len(log),
        "actions": len(log.actions),
        "characters": int(sum(len(text) for text in log.text)),
        "roles": {role: _role(log, final, role) for role in log.role_names},
    }


def _role(log: Log, final: np.ndarray, role: str) -> dict[str, Any]:
    mine = log.role == role
    acting = mine & log.is_action
    places = np.flatnonzero(acting)
    rewards = final[places[np.unique(log.episode[places], return_index=True)[1]]]
    turns = own_turns(log.episode, log.role)[1][mine & (log.turn == 1)]
    return {
        "utterances": int(mine.sum()),
        "actions": int(acting.sum()),
        "episodes": len(turns),
        "turns": _quantiles(turns),
        "reward": None if not len(rewards) else _rewards(rewards),
    }


def _rewards(rewards: np.ndarray) -> dict[str, Any]:
    values, counts = np.unique(rewards, return_counts=True)
    listed = dict(zip(map(str, values.tolist()), counts.tolist(), strict=True))
    return {
        "mean": float(rewards.mean()),
        "deviation": float(rewards.std()),
        "quantiles": _quantiles(rewards),
        "values": listed if len(values) <= MOST_VALUES else None,
    }


def _quantiles(values: np.ndarray) -> list[float]:
    """Smallest, quartiles, largest."""
    return [float(q) for q in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])]
