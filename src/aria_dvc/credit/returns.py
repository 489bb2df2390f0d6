"""Discounted returns (paper sec. 3.3): R(h_t, a_t) = gamma^(T - t) R."""

from __future__ import annotations

import numpy as np

from aria_dvc.errors import AriaError

ROUNDING = 1e-12


def discounted_returns(
    final_reward: np.ndarray, turn: np.ndarray, turns: np.ndarray, gamma: float = 0.95
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


def variance(values: np.ndarray) -> float:
    """Population variance of (m,) numbers; 0 where they are equal but for rounding."""
    found = float(np.var(values))
    return found if found > ROUNDING * float(np.abs(values).max(initial=0.0)) ** 2 else 0.0


def variances(returns: np.ndarray, credit: np.ndarray, in_sample: bool) -> tuple[float, float]:
    """Variance of the (A,) returns and of the credit that replaces them.

    in_sample: the credit is the mean of cells of the returns, whose variance is never the larger.
    """
    before, after = variance(returns), variance(credit)
    return before, min(before, after) if in_sample else after


def own_turns(
    episode: np.ndarray, position: np.ndarray, role: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(turn, turns), (n,) int64 each: how often an utterance's speaker has spoken in its episode.

    episode, position, role: (n,) integers; rows may come in any order.
    """
    order = np.lexsort((position, role, episode))
    new = np.ones(order.size, bool)
    new[1:] = (np.diff(episode[order]) != 0) | (np.diff(role[order]) != 0)
    start = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    turn, turns = np.empty(order.size, np.int64), np.empty(order.size, np.int64)
    turn[order] = np.arange(order.size) - start[group] + 1
    turns[order] = np.diff(np.append(start, order.size))[group]
    return turn, turns
