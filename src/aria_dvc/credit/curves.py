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
    cells, alone, square = np.stack(summaries, axis=1)
    with np.errstate(invalid="ignore"):
        alone, square = alone / sweep.cells.count, square / sweep.cells.count
        score = np.array(scores) / sweep.cells.count
    spread = np.maximum(square - mean**2, 0.0)
    cells = np.rint(cells).astype(np.int64)
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
    """The partition of the actions into cells: member counts, exact totals and roles.

    tally: (4, R) by role: number of cells, of singletons, sum of R~ squared, and, for the last
        `regroup`, sum of |change of R~|.
    """

    def __init__(self, keys: np.ndarray, role: np.ndarray, returns: np.ndarray) -> None:
        self.value, self.unit = to_fixed(returns)
        self.cell = np.empty(keys.size, np.int32)
        self.size, self.total = np.zeros(keys.size, np.int32), np.zeros(keys.size, np.int64)
        self.role = np.zeros(keys.size, np.int32)
        self.used, self.free = 0, np.empty(0, np.int32)
        self.roles = np.arange(int(role.max()) + 1)
        count = np.bincount(role).astype(np.float64)
        self.count = np.concatenate([[count.sum()], count])
        actions, start, size, total = self._groups(np.arange(keys.size), keys)
        new = self._add(actions, size, total, role[actions[start]])
        self.tally = self._by_role(new, np.array(_columns(size, total * self.unit, 0.0)))

    def shared(self, actions: np.ndarray) -> np.ndarray:
        """Whether each action has company in its cell."""
        return self.size[self.cell[actions]] > 1

    def summary(self) -> np.ndarray:
        """(3, 1 + R) numbers of cells and of singletons, sum of R~ squared; column 0 is all."""
        return _with_sum(self.tally[:3])

    def regroup(self, actions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Move `actions` into the cells of their new keys; returns sums (1 + R,) of |change of R~|.

        New keys contain a label that is new, so the actions share cells with each other only.
        """
        actions, start, size, total = self._groups(actions, keys)
        source = self.cell[actions[start]]
        old, group = np.unique(source, return_inverse=True)
        had, held = self.size[old], self.total[old]
        was = held / had
        self.tally[3] = 0.0
        self.tally -= self._by_role(old, np.array(_columns(had, held * self.unit, 0.0)))
        np.subtract.at(self.size, source, size)
        np.subtract.at(self.total, source, total)
        stays = self.size[old] > 0
        left = old[stays]
        self.free = np.concatenate([self.free, old[~stays]])
        new = self._add(actions, size, total, self.role[source])
        size, total = (
            np.concatenate([self.size[left], size]),
            np.concatenate([self.total[left], total]),
        )
        change = np.abs(total / size - np.concatenate([was[stays], was[group]])) * size
        gained = _columns(size, total * self.unit, change * self.unit)
        self.tally += self._by_role(np.concatenate([left, new]), np.array(gained))
        return _with_sum(self.tally[3])

    def _groups(
        self, actions: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Actions sorted by key, where each key starts, and its count and exact total."""
        order = np.argsort(keys)
        actions, keys = actions[order], keys[order]
        start = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        size = np.diff(np.append(start, actions.size)).astype(np.int32)
        return actions, start, size, np.add.reduceat(self.value[actions], start)

    def _add(
        self, actions: np.ndarray, size: np.ndarray, total: np.ndarray, role: np.ndarray
    ) -> np.ndarray:
        """Put runs of actions into unused cells; returns the cells' numbers."""
        again = self.free[max(0, self.free.size - size.size) :]
        self.free = self.free[: self.free.size - again.size]
        fresh = np.arange(self.used, self.used + size.size - again.size, dtype=np.int32)
        self.used += fresh.size
        new = np.concatenate([again, fresh])
        self.size[new], self.total[new], self.role[new] = size, total, role
        self.cell[actions] = np.repeat(new, size)
        return new

    def _by_role(self, cells: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return columns @ (self.role[cells, None] == self.roles)


def _columns(size: np.ndarray, total: np.ndarray, change: np.ndarray | float) -> list[np.ndarray]:
    """What each cell adds to a tally."""
    ones = np.ones(size.size)
    return [ones, (size == 1).astype(np.float64), total * total / size, ones * change]


def _with_sum(by_role: np.ndarray) -> np.ndarray:
    return np.concatenate([by_role.sum(axis=-1, keepdims=True), by_role], axis=-1)


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
        none = np.zeros(self.cells.count.size)
        if not moves:
            return none
        rows, change = self._changes(moves)
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
        """Moved live rows, ascending, and what each adds to the keys of histories that hold it."""
        rows = [self.tree.rows[move.start : move.stop] for move in moves]
        rows = [r[r < self.live_end[self.episode[r]]] for r in rows]
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
