"""A partition of actions into cells that is refined split by split."""

from __future__ import annotations

import numpy as np

_ITEMS, _SIZE, _TOTAL = range(3)


class Partition:
    """Items (actions that no label can tell apart) in cells, with exact integer totals.

    Each item stands for `weight` (T,) actions whose returns sum to `value` (T,) int64 times `unit`.
    A cell knows its items, its actions and its total (rows of `stats`).

    tally: (5, R) by role: numbers of cells, of actions alone in their cell, of actions in cells of
        several items, sum of R~ squared and, for the last `regroup`, sum of |change of R~|.
    """

    def __init__(
        self,
        keys: np.ndarray,
        role: np.ndarray,
        weight: np.ndarray,
        value: np.ndarray,
        unit: float,
    ) -> None:
        self.weight, self.value, self.unit = weight, value, unit
        self.cell = np.empty(keys.size, np.int32)
        self.stats = np.zeros((keys.size, 3), np.int64)
        self.role = np.zeros(keys.size, np.int32)
        self.roles = np.arange(int(role.max()) + 1)
        self.used, self.free = 0, np.empty(0, np.int32)
        items, start, stats = self._groups(np.arange(keys.size), keys)
        new = self._add(items, stats, role[items[start]])
        self.tally = self._by_role(new, stats, 0.0)

    def shared(self, items: np.ndarray) -> np.ndarray:
        """Whether each item has company in its cell."""
        return self.stats[self.cell[items], _ITEMS] > 1

    def summary(self) -> np.ndarray:
        """(4, 1 + R): the first rows of the tally, column 0 for all roles together."""
        return with_sum(self.tally[:4])

    def regroup(self, items: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Move items into the cells of their new keys; returns sums (1 + R,) of |change of R~|.

        New keys contain a label that is new, so these items share cells with each other only.
        """
        items, start, stats = self._groups(items, keys)
        source = self.cell[items[start]]
        old, group = np.unique(source, return_inverse=True)
        before = self.stats[old]
        was = before[:, _TOTAL] / before[:, _SIZE]
        self.tally[4] = 0.0
        self.tally -= self._by_role(old, before, 0.0)
        np.subtract.at(self.stats, source, stats)
        stays = self.stats[old, _ITEMS] > 0
        left = old[stays]
        self.free = np.concatenate([self.free, old[~stays]])
        new = self._add(items, stats, self.role[source])
        after = np.concatenate([self.stats[left], stats])
        change = np.abs(
            after[:, _TOTAL] / after[:, _SIZE] - np.concatenate([was[stays], was[group]])
        )
        self.tally += self._by_role(np.concatenate([left, new]), after, change * self.unit)
        return with_sum(self.tally[4])

    def _groups(
        self, items: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Items sorted by key, where each key starts, and the (groups, 3) stats of each."""
        order = grouping_order(keys)
        items, keys = items[order], keys[order]
        start = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        stats = np.empty((start.size, 3), np.int64)
        stats[:, _ITEMS] = np.diff(start, append=items.size)
        stats[:, _SIZE] = np.add.reduceat(self.weight[items], start)
        stats[:, _TOTAL] = np.add.reduceat(self.value[items], start)
        return items, start, stats

    def _add(self, items: np.ndarray, stats: np.ndarray, role: np.ndarray) -> np.ndarray:
        """Put runs of items into unused cells; returns the cells' numbers."""
        again = self.free[max(0, self.free.size - len(stats)) :]
        self.free = self.free[: self.free.size - again.size]
        fresh = np.arange(self.used, self.used + len(stats) - again.size, dtype=np.int32)
        self.used += fresh.size
        new = np.concatenate([again, fresh])
        self.stats[new], self.role[new] = stats, role
        self.cell[items] = np.repeat(new, stats[:, _ITEMS])
        return new

    def _by_role(
        self, cells: np.ndarray, stats: np.ndarray, change: np.ndarray | float
    ) -> np.ndarray:
        """(5, R) what these cells add to the tally."""
        items, size = stats[:, _ITEMS], stats[:, _SIZE].astype(np.float64)
        mean = stats[:, _TOTAL] / size * self.unit
        columns = np.empty((5, size.size))
        columns[0], columns[1], columns[2] = 1.0, size == 1, size * (items > 1)
        columns[3], columns[4] = mean * mean * size, change * size
        return columns @ (self.role[cells, None] == self.roles)


def grouping_order(keys: np.ndarray) -> np.ndarray:
    """An order (n,) that puts equal uint64 keys together, by one sort of packed numbers."""
    bits = np.uint64(keys.size.bit_length())
    low = (np.uint64(1) << bits) - np.uint64(1)
    packed = np.sort((keys & ~low) | np.arange(keys.size, dtype=np.uint64))
    order = (packed & low).astype(np.int64)
    high, found = packed >> bits, keys[order]
    if ((high[1:] == high[:-1]) & (found[1:] != found[:-1])).any():
        return np.argsort(keys, kind="stable")
    return order


def with_sum(by_role: np.ndarray) -> np.ndarray:
    """Put the sum over the last axis before it."""
    return np.concatenate([by_role.sum(axis=-1, keepdims=True), by_role], axis=-1)
