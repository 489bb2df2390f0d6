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
from aria_dvc.intentions.cuts import MAX_LABELS, NestedLabels

_SEED = 2506
_FIRST_FRESH = MAX_LABELS


@dataclass(frozen=True)
class CellCurves:
    """One row per k in `ks`; column 0 is all actions, column 1 + r the actions of role r.

    cells: (J, 1 + R) int64 number of cells.
    singletons: (J, 1 + R) share of the actions alone in their cell.
    live: (J, 1 + R) share of the actions whose cell has other members, so that it can still change.
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
    sweep = _Sweep(log, nested)
    summaries, scores = [sweep.cells.summary()], []
    for moves in _splits(nested.table, sweep.tree):
        scores.append(sweep.split(moves))
        summaries.append(sweep.cells.summary())
    scores.append(np.full(mean.size, np.nan))
    cells, alone, square = (np.array(column) for column in zip(*summaries, strict=True))
    with np.errstate(invalid="ignore"):
        alone, square = alone / sweep.cells.count, square / sweep.cells.count
        score = np.array(scores) / sweep.cells.count
    spread = np.maximum(square - mean**2, 0.0)
    return CellCurves(nested.ks, cells, alone, 1.0 - alone, spread, score, variance)


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
class _Move:
    """Rows tree.rows[start:stop] leave the cluster with code `old` for a new one, `new`."""

    start: int
    stop: int
    old: int
    new: int


def _splits(table: np.ndarray, tree: _TreeOrder) -> Iterator[list[_Move]]:
    """The moves of each step to the next column; of a cluster's parts the largest stays."""
    code = table[:, 0].astype(np.int64)
    fresh = _FIRST_FRESH
    for before, after in zip(table.T[:-1], table.T[1:], strict=True):
        moves = []
        for label in np.unique(before[before != after]):
            members = np.flatnonzero(before == label)
            parts = [members[after[members] == new] for new in np.unique(after[members])]
            spans = [tree.span(part) for part in parts]
            stays = max(range(len(parts)), key=lambda p: spans[p][1] - spans[p][0])
            for p, part in enumerate(parts):
                if p != stays:
                    moves.append(_Move(*spans[p], int(code[part[0]]), fresh))
                    code[part] = fresh
                    fresh += 1
        yield moves


class _Cells:
    """The partition of the actions into cells: member counts, exact totals and roles."""

    def __init__(self, keys: np.ndarray, role: np.ndarray, returns: np.ndarray) -> None:
        first, cell, size = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )[1:]
        whole, self.unit = to_fixed(returns)
        self.value, self.cell = whole, cell.astype(np.int32)
        self.size, self.total = np.zeros(keys.size, np.int32), np.zeros(keys.size, np.int64)
        self.role = np.zeros(keys.size, np.int32)
        self.size[: size.size], self.role[: size.size] = size, role[first]
        np.add.at(self.total, cell, whole)
        self.used, self.free = size.size, np.empty(0, np.int32)
        self.roles = int(role.max()) + 1
        self.count = self._by_role(role, np.ones(role.size))
        self._held = self._tally(np.arange(size.size))

    def shared(self, actions: np.ndarray) -> np.ndarray:
        """Whether each action has company in its cell."""
        return self.size[self.cell[actions]] > 1

    def summary(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Number of cells, number of singletons and sum of R~ squared, each (1 + R,)."""
        cells, alone, square = self._held
        return np.rint(cells).astype(np.int64), alone.copy(), square.copy()

    def regroup(self, actions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Move `actions` into the cells of their new keys; returns sums (1 + R,) of |change of R~|.

        New keys contain a label that is new, so the actions share cells with each other only.
        """
        order = np.argsort(keys)
        actions, keys = actions[order], keys[order]
        start = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        size = np.diff(np.append(start, actions.size)).astype(np.int32)
        total = np.add.reduceat(self.value[actions], start)
        source = self.cell[actions[start]]
        old, group = np.unique(source, return_inverse=True)
        was = self.total[old] / self.size[old]
        self._held = self._held - self._tally(old)
        change = np.abs(total / size - was[group]) * size
        moved = self._by_role(self.role[source], change)
        np.subtract.at(self.size, source, size)
        np.subtract.at(self.total, source, total)
        left = old[self.size[old] > 0]
        change = np.abs(self.total[left] / self.size[left] - was[self.size[old] > 0])
        moved += self._by_role(self.role[left], change * self.size[left])
        role = self.role[source]
        self.free = np.concatenate([self.free, old[self.size[old] == 0]])
        new = self._take(size.size)
        self.size[new], self.total[new], self.role[new] = size, total, role
        self.cell[actions] = np.repeat(new, size)
        self._held = self._held + self._tally(np.concatenate([left, new]))
        return moved * self.unit

    def _take(self, count: int) -> np.ndarray:
        """`count` unused cell numbers."""
        again = self.free[max(0, self.free.size - count) :]
        self.free = self.free[: self.free.size - again.size]
        fresh = np.arange(self.used, self.used + count - again.size, dtype=np.int32)
        self.used += fresh.size
        return np.concatenate([again, fresh])

    def _tally(self, cells: np.ndarray) -> np.ndarray:
        """(3, 1 + R): number of these cells, of singletons among them, sum of R~ squared."""
        size, total = self.size[cells], self.total[cells] * self.unit
        columns = (np.ones(cells.size), size == 1, total * (total / size))
        return np.array([self._by_role(self.role[cells], column) for column in columns])

    def _by_role(self, role: np.ndarray, value: np.ndarray) -> np.ndarray:
        sums = np.bincount(role, value, self.roles)
        return np.concatenate([[sums.sum()], sums])


class _Sweep:
    """Histories of all utterances at the current k."""

    def __init__(self, log: Log, nested: NestedLabels) -> None:
        finest = nested.finest[log.order]
        self.episode, self.action = log.episode, log.action
        self.place = log.place
        self.tree = _TreeOrder(finest, nested.table)
        self.before = np.zeros(log.order.size + 1, np.int32)
        self.before[log.action + 1] = 1
        np.cumsum(self.before, out=self.before)
        self.live_end = np.cumsum(np.bincount(log.episode))
        rng = np.random.default_rng(_SEED)
        shape = (_FIRST_FRESH + len(nested.table), int(log.place.max()) + 1)
        self.random = rng.integers(0, 2**64, shape, dtype=np.uint64)
        salt = rng.integers(0, 2**64, int(log.role.max()) + 1, dtype=np.uint64)
        terms = self.random[nested.table[finest, 0], log.place]
        self.key = _running_sum(terms, log.episode)[log.action] + salt[log.role]
        self.cells = _Cells(self.key, log.role, log.returns)

    def split(self, moves: list[_Move]) -> np.ndarray:
        """Apply the moves of one step; returns sums (1 + R,) of |R~ after - R~ before|."""
        none = np.zeros(self.cells.roles + 1)
        if not moves:
            return none
        rows, change = self._changes(moves)
        keep = rows < self.live_end[self.episode[rows]]
        rows, change = rows[keep], change[keep]
        if not rows.size:
            return none
        actions, change = self._spread(rows, _running_sum(change, self.episode[rows]))
        shared = self.cells.shared(actions)
        actions, change = actions[shared], change[shared]
        self.key[actions] += change
        moved = self.cells.regroup(actions, self.key[actions]) if actions.size else none
        self._shorten(rows, actions)
        return moved

    def _changes(self, moves: list[_Move]) -> tuple[np.ndarray, np.ndarray]:
        """Moved rows, ascending, and what each adds to the keys of its history's continuations."""
        rows = [self.tree.rows[move.start : move.stop] for move in moves]
        change = [
            self.random[move.new, self.place[r]] - self.random[move.old, self.place[r]]
            for move, r in zip(moves, rows, strict=True)
        ]
        row, value = np.concatenate(rows), np.concatenate(change)
        order = np.argsort(row)
        return row[order], value[order]

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


def _running_sum(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Running sums (wrapping uint64) that start anew with each run of equal `group` numbers."""
    total = np.cumsum(values, dtype=np.uint64)
    first = np.concatenate([[True], group[1:] != group[:-1]])
    start = np.flatnonzero(first)
    base = total[start] - values[start]
    return total - np.repeat(base, np.diff(np.append(start, group.size)))
