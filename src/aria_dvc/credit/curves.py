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

from aria_dvc.credit.cells import Log, to_fixed
from aria_dvc.credit.partition import Partition, with_sum
from aria_dvc.intentions.cuts import MAX_LABELS, NestedLabels

_SEED = 2506


@dataclass(frozen=True)
class CellCurves:
    """One row per k in `ks`; column 0 is all actions, column 1 + r the actions of role r.

    cells: (J, 1 + R) int64 number of cells.
    singletons: (J, 1 + R) share of the actions alone in their cell.
    live: (J, 1 + R) share of the actions whose cell can still change: some member has another
        history (if the log knows which utterances are equal; else, simply another member).
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
    """Sweep all k of `nested`, the labels of the rows that the log was made from."""
    mean, variance = _moments(log)
    count = with_sum(np.bincount(log.role).astype(np.float64))
    sweep = _Sweep(log, nested)
    summaries, scores = [sweep.cells.summary()], []
    for step in _steps(nested.table, sweep.tree):
        scores.append(sweep.split(step))
        summaries.append(sweep.cells.summary())
    scores.append(np.full(mean.size, np.nan))
    cells, alone, live, square = np.stack(summaries, axis=1)
    with np.errstate(invalid="ignore"):
        shares = [part / count for part in (alone, live)]
        spread = np.maximum(square / count - mean**2, 0.0)
        score = np.array(scores) / count
    cells = np.rint(cells).astype(np.int64)
    return CellCurves(nested.ks, cells, *shares, spread, score, variance)


def _moments(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (1 + R,) of the returns of all actions and of each role's."""
    groups = [log.returns, *(log.returns[log.role == r] for r in range(int(log.role.max()) + 1))]
    mean = [float(g.mean()) if g.size else np.nan for g in groups]
    variance = [float(g.var()) if g.size else np.nan for g in groups]
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

    old, new: (256,) code of the cluster of each finest label before and after.
    """

    spans: list[tuple[int, int]]
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
        yield _Step(moved, old, code.copy())


class _Sweep:
    """Histories of all utterances at the current k."""

    def __init__(self, log: Log, nested: NestedLabels) -> None:
        keep, weight, value, unit = _items(log)
        role, self.action = log.role[keep], log.action[keep]
        self.finest = nested.finest[log.order]
        self.episode, self.place = log.episode.astype(np.int32), log.place.astype(np.int32)
        self.tree = _TreeOrder(self.finest, nested.table)
        self.before = np.zeros(log.order.size + 1, np.int32)
        self.before[self.action + 1] = 1
        np.cumsum(self.before, out=self.before)
        self.live_end = np.cumsum(np.bincount(log.episode)).astype(np.int32)
        rng = np.random.default_rng(_SEED)
        shape = (MAX_LABELS + len(nested.table), int(log.place.max()) + 1)
        self.random = rng.integers(0, 2**64, shape, dtype=np.uint64)
        salt = rng.integers(0, 2**64, int(role.max()) + 1, dtype=np.uint64)
        terms = self.random[nested.table[self.finest, 0], self.place]
        self.key = _running_sum(terms, self.episode)[self.action] + salt[role]
        self.cells = Partition(self.key, role, weight, value, unit)

    def split(self, step: _Step) -> np.ndarray:
        """Apply one step; returns sums (1 + R,) of |R~ after - R~ before|."""
        none = np.zeros(self.cells.roles.size + 1)
        rows = self._moved(step)
        if not rows.size:
            return none
        label, place = self.finest[rows], self.place[rows]
        change = self.random[step.new[label], place] - self.random[step.old[label], place]
        actions, change = self._spread(rows, _running_sum(change, self.episode[rows]))
        shared = self.cells.shared(actions)
        actions, change = actions[shared], change[shared]
        self.key[actions] += change
        moved = self.cells.regroup(actions, self.key[actions]) if actions.size else none
        self._shorten(rows, actions)
        return moved

    def _moved(self, step: _Step) -> np.ndarray:
        """The moved rows, ascending, that some action which shares its cell comes after."""
        spans = [self.tree.rows[start:stop] for start, stop in step.spans]
        live = [rows[rows < self.live_end[self.episode[rows]]] for rows in spans]
        return np.sort(np.concatenate([np.empty(0, np.int32), *live]))

    def _spread(self, rows: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The actions from each row up to the next (or the episode's live end), with its change."""
        episode = self.episode[rows]
        stop = self.live_end[episode]
        same = np.flatnonzero(episode[1:] == episode[:-1])
        stop[same] = rows[same + 1]
        first, count = self.before[rows], self.before[stop] - self.before[rows]
        offset = first - (np.cumsum(count) - count)
        actions = np.repeat(offset, count) + np.arange(int(count.sum()))
        return actions, np.repeat(change, count)

    def _shorten(self, rows: np.ndarray, actions: np.ndarray) -> None:
        """Let the live part of each touched episode end at its last shared action."""
        episode = self.episode[rows]
        first = np.concatenate([[True], episode[1:] != episode[:-1]])
        self.live_end[episode[first]] = rows[first]
        last = self.action[actions[self.cells.shared(actions)]]
        self.live_end[self.episode[last]] = last + 1


def _items(log: Log) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """One action of each kind, how many there are of it, and the exact sum of their returns."""
    value, unit = to_fixed(log.returns)
    if log.kind is None:
        return np.arange(value.size), np.ones(value.size, np.int64), value, unit
    keep, kind, weight = np.unique(
        log.kind, return_index=True, return_inverse=True, return_counts=True
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
