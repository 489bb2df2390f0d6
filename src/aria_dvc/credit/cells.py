"""Cells and aggregated rewards at one k (paper sec. 3.3).

The cell of an action is the label sequence of everything said before it, by both sides, and its
own label; its aggregated reward R~ is the mean return of the cell. Returns of the two sides
differ in meaning, so the acting role is part of the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log


@dataclass(frozen=True)
class Cells:
    """One entry per action.

    cell: (A,) int64 in 0 .. C - 1, the same for any order of episodes. size: (A,) int64 actions
    in it. reward: (A,) float64 R~.
    """

    cell: np.ndarray
    size: np.ndarray
    reward: np.ndarray


def aggregate(log: Log, labels: np.ndarray) -> Cells:
    """Cells and R~ of every action under (n,) integer labels.

    Raises:
        AriaError: no actions, or an action without a finite return.
    """
    whole, unit = to_fixed(acting_returns(log))
    cell = cell_codes(log, labels)
    means = cell_means(cell, whole, int(cell.max()) + 1) * unit
    return Cells(cell, np.bincount(cell)[cell], means[cell])


def acting_returns(log: Log) -> np.ndarray:
    """(A,) float64 returns of the actions.

    Raises AriaError if there are no actions, or one has no finite return.
    """
    returns = log.targets
    if not returns.size or not np.isfinite(returns).all():
        raise AriaError("log: credit needs actions with a return each; give logs with rewards")
    return returns


def cell_codes(log: Log, labels: np.ndarray, history: int | None = None) -> np.ndarray:
    """(A,) int64: a number 0 .. C - 1 per acting role and label sequence up to the action.

    labels: (n,) non-negative integers. Numbers go by length, sequence and role.
    history: so many last labels count, the action's own included; None for all.
    """
    if history is not None:
        return _recent_codes(log, np.asarray(labels, np.int64), history)
    node = history_nodes(log.episode, log.place, np.asarray(labels, np.int64))[log.actions]
    keys = node * len(log.role_names) + log.role_codes[log.actions]
    return np.unique(keys, return_inverse=True)[1]


def anchor_codes(log: Log, labels: np.ndarray, history: int | None = None) -> np.ndarray:
    """(A,) int64: `cell_codes` without the action itself, what all actions at one state share."""
    if history is not None:
        return _recent_codes(log, np.asarray(labels, np.int64), history, first=1)
    rows = log.actions
    nodes = history_nodes(log.episode, log.place, np.asarray(labels, np.int64))
    before = np.where(log.place[rows] > 0, nodes[np.maximum(rows - 1, 0)] + 1, 0)
    return np.unique(before * len(log.role_names) + log.role_codes[rows], return_inverse=True)[1]


def _recent_codes(log: Log, labels: np.ndarray, history: int, first: int = 0) -> np.ndarray:
    """`cell_codes` of the last labels; before the first utterance of an episode stands 0."""
    rows, span = log.actions, int(labels.max(initial=0)) + 2
    codes = np.unique(log.role_codes[rows], return_inverse=True)[1]
    for back in range(first, min(history, int(log.place.max(initial=0)) + 1)):
        said = log.place[rows] >= back
        symbol = np.where(said, labels[np.maximum(rows - back, 0)] + 1, 0)
        codes = np.unique(codes * span + symbol, return_inverse=True)[1]
    return codes


def cell_means(
    cell: np.ndarray,
    values: np.ndarray,
    count: int,
    *,
    weight: np.ndarray | None = None,
    strength: float = 0.0,
    prior: np.ndarray | float = np.nan,
) -> np.ndarray:
    """(count,) float64 mean value of every cell; that of an empty one is its prior.

    cell: (m,) integers below `count`. values: (m,) numbers; integers are summed exactly.
    weight: (m,) 0 for values that do not count, 1 for others; None counts all.
    strength: so many values equal to the `prior` ((count,) or one number) are added to each cell.
    """
    sums = _sums(cell, values if weight is None else weight * values, count)
    sizes = np.bincount(cell, weight, count) + strength
    if strength:
        sums = sums + strength * prior
    return np.where(sizes == 0, prior, sums / np.where(sizes == 0, 1, sizes))


def _sums(cell: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(count,) sums: exact int64 of integers, else float64 in the order given."""
    if values.dtype.kind != "i":
        return np.bincount(cell, values, count)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, cell, values)
    return sums


def history_nodes(episode: np.ndarray, place: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) int64: a number per distinct label sequence from the start up to each utterance.

    Numbers go by length, then by the sequence itself, so they do not depend on episode order.
    """
    node = np.zeros(episode.size, np.int64)
    span = int(labels.max(initial=0)) + 1
    by_place = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[by_place], np.arange(int(place.max(initial=-1)) + 2))
    used = 0
    for at in range(ends.size - 1):
        rows = by_place[ends[at] : ends[at + 1]]
        parent = node[rows - 1] if at else 0
        values, inverse = np.unique(parent * span + labels[rows], return_inverse=True)
        node[rows] = used + inverse
        used += values.size
    return node


def to_fixed(returns: np.ndarray) -> tuple[np.ndarray, float]:
    """(A,) int64 multiples of the returned unit: sums of these are exact in any order.

    The unit is the smallest power of two that keeps every sum of A values in 62 bits, so that a
    value is off by less than 2^-41 of the largest for up to a million actions.
    """
    largest = float(np.abs(returns).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(returns.size, np.int64), 1.0
    bits = 62 - int(np.ceil(np.log2(returns.size + 1)))
    unit = 2.0 ** (np.ceil(np.log2(largest)) - bits)
    return np.rint(returns / unit).astype(np.int64), float(unit)
