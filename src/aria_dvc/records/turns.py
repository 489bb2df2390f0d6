"""Numbers of turns, and discounted returns (paper sec. 3.3): R(h_t, a_t) = gamma^(T - t) R."""

from __future__ import annotations

import numpy as np

from aria_dvc.errors import AriaError


def positions(groups: np.ndarray) -> np.ndarray:
    """(n,) int64: how many earlier rows are of the same group, for (n,) integer groups."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(ordered) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    sizes = np.diff(np.r_[starts, len(ordered)])
    count = np.empty(len(groups), np.int64)
    count[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return count


def own_turns(episode: np.ndarray, role: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(turn, turns), (n,) int64 each: own-turn index from 1, and the speaker's turns in all.

    episode: (n,) integers. role: (n,) names or integers. Rows of an episode in the order spoken.
    """
    names, codes = np.unique(role, return_inverse=True)
    speaker = np.unique(episode * len(names) + codes, return_inverse=True)[1]
    return positions(speaker) + 1, np.bincount(speaker)[speaker]


def discounted_returns(
    final_reward: np.ndarray, turn: np.ndarray, turns: np.ndarray, gamma: float
) -> np.ndarray:
    """The return of every action: its player's final reward, discounted by own turns to go.

    final_reward: (n,) float64, R of the utterance's player; NaN where there is none.
    turn, turns: (n,) own-turn index from 1 and that player's number of turns.

    Returns:
        (n,) float64: R on a player's last turn, gamma^(T - 1) R on the first; NaN stays NaN.

    Raises:
        AriaError: gamma outside [0, 1], or a turn outside 1..turns.
    """
    if not 0.0 <= gamma <= 1.0:
        raise AriaError(f"aggregate.gamma = {gamma} is outside 0..1; the paper uses 0.95")
    to_go = np.asarray(turns, np.int64) - np.asarray(turn, np.int64)
    if (to_go < 0).any() or (np.asarray(turn) < 1).any():
        raise AriaError("turns: an own-turn index is outside 1..turns; prepare the log again")
    return np.power(float(gamma), to_go) * np.asarray(final_reward, np.float64)
