"""Cells, R~ and SplitScore at every k (paper sec. 3.4 and App. C) in one pass.

Going from k to k + 1 splits one cluster. Only actions with an utterance of the split-off part in
their history (or as themselves) can change cell, and of these only actions that still share a
cell. Each history carries a 64-bit sum of one random number per (label, position), which a split
changes by the differences of its moved utterances; two different label sequences have the same
sum with probability 2^-64. Sums of returns are kept as integers, hence exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aria_dvc.credit.cells import acting_returns, history_nodes, to_fixed
from aria_dvc.credit.partition import Partition, move_keys
from aria_dvc.credit.variance import variance as variance_of
from aria_dvc.intentions.cuts import MAX_LABELS, NestedLabels
from aria_dvc.intentions.log import Log

_SEED = 2506


@dataclass(frozen=True)
class CellCurves:
    """One row per k in `ks`; column 0 is all actions, column 1 + r the actions of role r.

    cells: (J, 1 + R) int64 number of cells.
    singletons: (J, 1 + R) share of the actions alone in their cell.
    live: (J, 1 + R) share of the actions whose cell can still change: some member has another
        history (where the log has vectors; else, simply another member).
    variance: (J, 1 + R) variance of R~ over the actions, at most `variance_of_returns` (1 + R,).
    split_score: (J, 1 + R) mean |R~(next k) - R~(k)| over the actions; NaN in the last row.
    """

    ks: np.ndarray
    cells: np.ndarray
    singletons: np.ndarray
    live: np.ndarray
    variance: np.ndarray
    split_score: np.ndarray
    variance_of_returns: np.ndarray


def cell_curves(log: Log, nested: NestedLabels) -> CellCurves:
    """Sweep all k of `nested`, the labels of the log's rows.

    Raises AriaError if there are no actions, or one has no return.
    """
    returns, role = acting_returns(log), log.role_codes[log.actions]
    mean, variance = _moments(returns, role)
    count = _with_sum(np.bincount(role).astype(np.float64))
    sweep = _Sweep(log, nested)
    totals = [sweep.cells.totals.copy()]
    for step in _steps(nested.table, sweep.tree):
        sweep.split(step)
        totals.append(sweep.cells.totals.copy())
    cells, alone, live, square, change = np.stack([_with_sum(t) for t in totals], axis=1)
    change = np.concatenate([change[1:], np.full((1, mean.size), np.nan)])
    with np.errstate(invalid="ignore"):
        alone, live, square, score = (part / count for part in (alone, live, square, change))
        spread = np.clip(square - mean**2, 0.0, variance)  # rounding aside, it is never beyond
    cells = np.rint(cells).astype(np.int64)
    return CellCurves(nested.ks, cells, alone, live, spread, score, variance)


def _with_sum(by_role: np.ndarray) -> np.ndarray:
    """Put the sum over the last axis before it."""
    return np.concatenate([by_role.sum(axis=-1, keepdims=True), by_role], axis=-1)


def kinds(log: Log) -> np.ndarray:
    """(A,) int64, equal for actions of one role that no label can tell apart, history included."""
    if not log.vectors.shape[1]:
        return np.arange(len(log.actions))
    node = history_nodes(log.episode, log.place, log.utterances)[log.actions]
    return node * len(log.role_names) + log.role_codes[log.actions]


def _moments(returns: np.ndarray, role: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (1 + R,) of the returns of all actions and of each role's."""
    groups = [returns, *(returns[role == r] for r in range(int(role.max()) + 1))]
    mean = [float(g.mean()) if g.size else np.nan for g in groups]
    variance = [variance_of(g) if g.size else np.nan for g in groups]
    return np.array(mean), np.array(variance)


class _TreeOrder:
    """Rows sorted so that every cluster of every cut is a contiguous range."""

    def __init__(self, finest: np.ndarray, table: np.ndarray) -> None:
        codes = len(table)
        self.place = np.empty(codes, np.int64)
        self.place[np.lexsort(table.T[::-1])] = np.arange(codes)
        places = self.place.astype(np.uint8)[finest]
        self.rows = np.argsort(places, kind="stable").astype(np.int32)
        self.start = np.zeros(codes + 1, np.int64)
        np.cumsum(np.bincount(places, minlength=codes), out=self.start[1:])

    def span(self, members: np.ndarray) -> tuple[int, int]:
        places = self.place[members]
        return int(self.start[places.min()]), int(self.start[places.max() + 1])


@dataclass(frozen=True)
class _Step:
    """One step to the next k: rows tree.rows[start:stop] of each span leave their cluster.

    spans: (p, 2) starts and stops.
    old, new: (256,) code of the cluster of each finest label before and after.
    """

    spans: np.ndarray
    old: np.ndarray
    new: np.ndarray


def _steps(table: np.ndarray, tree: _TreeOrder) -> Iterator[_Step]:
    """All steps; of a splitting cluster's parts the largest stays and keeps its code."""
    code = np.zeros(MAX_LABELS, np.int64)
    code[: len(table)] = table[:, 0]
    fresh = MAX_LABELS
    for before, after in zip(table.T[:-1], table.T[1:], strict=True):
        moved, old = [], code.copy()
        for label in np.unique(before[before != after]):
            members = np.flatnonzero(before == label)
            parts = [members[after[members] == new] for new in np.unique(after[members])]
            spans = [tree.span(part) for part in parts]
            stays = max(range(len(parts)), key=lambda p: spans[p][1] - spans[p][0])
            for p, part in enumerate(parts):
                if p != stays:
                    moved.append(spans[p])
                    code[part] = fresh
                    fresh += 1
        yield _Step(np.array(moved, np.int64).reshape(-1, 2), old, code.copy())


class _Sweep:
    """Histories of all utterances at the current k."""

    def __init__(self, log: Log, nested: NestedLabels) -> None:
        keep, weight, value, unit = _items(log)
        n, action = len(log), log.actions[keep]
        role = log.role_codes[action]
        self.finest = nested.finest
        self.episode, self.place = log.episode.astype(np.int32), log.place.astype(np.int32)
        self.tree = _TreeOrder(self.finest, nested.table)
        self.item = np.full(n, -1, np.int32)
        self.item[action] = np.arange(action.size)
        self.live_end = np.cumsum(np.bincount(self.episode)).astype(np.int32)
        self.first = np.full(self.live_end.size, -1, np.int32)
        self.touched, self.moved = np.empty(self.live_end.size, np.int32), np.zeros(n, np.bool_)
        self.out = np.empty(action.size, np.int32)
        rng = np.random.default_rng(_SEED)
        shape = (MAX_LABELS + len(nested.table), int(log.place.max()) + 1)
        self.random = rng.integers(0, 2**64, shape, dtype=np.uint64)
        salt = rng.integers(0, 2**64, int(role.max()) + 1, dtype=np.uint64)
        terms = self.random[nested.table[self.finest, 0], self.place]
        key = _running_sum(terms, self.episode)[action] + salt[role]
        self.cells = Partition(key, role, weight, value, unit)

    def split(self, step: _Step) -> None:
        """Apply one step to the cells and their totals."""
        cells = self.cells
        found = move_keys(
            *(step.spans, self.tree.rows, self.finest, self.place, step.old, step.new),
            *(self.random, self.episode, self.live_end, self.first, self.touched, self.moved),
            *(self.item, cells.cell, cells.items, cells.key, self.out),
        )
        cells.regroup(self.out[:found])


def _items(log: Log) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """One action of each kind, how many there are of it, and the exact sum of their returns."""
    value, unit = to_fixed(acting_returns(log))
    if not log.vectors.shape[1]:
        return np.arange(value.size), np.ones(value.size, np.int64), value, unit
    keep, kind, weight = np.unique(
        kinds(log), return_index=True, return_inverse=True, return_counts=True
    )[1:]
    total = np.zeros(keep.size, np.int64)
    np.add.at(total, kind, value)
    back = np.argsort(keep)
    return keep[back], weight[back], total[back], unit


def _running_sum(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Running sums (wrapping uint64) that start anew with each run of equal `group` numbers."""
    total = np.cumsum(values, dtype=np.uint64)
    first = np.concatenate([[True], group[1:] != group[:-1]])
    start = np.flatnonzero(first)
    base = total[start] - values[start]
    return total - np.repeat(base, np.diff(np.append(start, group.size)))
