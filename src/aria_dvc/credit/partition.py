"""A partition of actions into cells that is refined split by split (compiled loops).

Items are actions that no label can tell apart: `weight` actions whose returns sum to `value`
(int64, so that sums are exact in any order). A cell knows its items, actions and total.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CELLS, ALONE, LIVE, SQUARE, CHANGE = range(5)


class Partition:
    """Cells of T items, all in one cell until the first `regroup`.

    key, cell: (T,) 64-bit key of each item's history and its cell.
    totals: (5, R) by role: numbers of cells, of actions alone in their cell, of actions in cells of
        several items, sum of R~ squared and, for the last `regroup`, sum of |change of R~|.
    """

    def __init__(
        self,
        key: np.ndarray,
        role: np.ndarray,
        weight: np.ndarray,
        value: np.ndarray,
        unit: float,
    ) -> None:
        count = key.size
        self.key, self.role, self.unit = key, role.astype(np.int16), unit
        self.weight, self.value = weight, value
        self.cell = np.zeros(count, np.int32)
        self.items, self.size = np.zeros(2 * count, np.int32), np.zeros(2 * count, np.int32)
        self.total, self.was = np.zeros(2 * count, np.int64), np.zeros(2 * count)
        self.cell_key = np.zeros(2 * count, np.uint64)
        self.cell_role, self.stamp = np.zeros(2 * count, np.int16), np.zeros(2 * count, np.int16)
        self.free = np.arange(2 * count, dtype=np.int32)[::-1].copy()
        self.taken = 1
        self.steps = 0
        self.totals = np.zeros((5, int(role.max()) + 1))
        self.items[0], self.size[0], self.total[0] = count, weight.sum(), value.sum()
        self.regroup(np.arange(count, dtype=np.int32))

    def regroup(self, items: np.ndarray) -> None:
        """Move items to the cells of their new keys, which no other item's key equals."""
        self.totals[CHANGE] = 0.0
        self.taken = _regroup(
            *(items, self.key, self.role, self.weight, self.value, self.unit, self.cell),
            *(self.items, self.size, self.total, self.was, self.cell_key, self.cell_role),
            *(self.stamp, self.steps, self.free, self.taken, self.totals),
        )
        self.steps += 1


@njit(cache=True)
def _count(totals, sign, role, items, size, mean):
    totals[CELLS, role] += sign
    totals[ALONE, role] += sign * (size == 1)
    totals[LIVE, role] += sign * size * (items > 1)
    totals[SQUARE, role] += sign * size * mean * mean


@njit(cache=True)
def _find(key, table, cell_key):
    """Place in the hash table of the cell with this key, or of the gap where it belongs."""
    mask = np.uint64(table.shape[0] - 1)
    place = key & mask
    while table[place] >= 0 and cell_key[table[place]] != key:
        place = (place + np.uint64(1)) & mask
    return place


@njit(cache=True)
def _recount(changed, role, items, size, total, unit, was, free, taken, totals):
    """Count changed cells anew and free the empty ones; returns the cell numbers taken."""
    for c in changed:
        if items[c] == 0:
            taken -= 1
            free[free.shape[0] - 1 - taken] = c
            continue
        mean = total[c] / size[c] * unit
        totals[CHANGE, role[c]] += abs(mean - was[c]) * size[c]
        _count(totals, 1.0, role[c], items[c], size[c], mean)
    return taken


@njit(cache=True)
def _regroup(
    moved, key, role, weight, value, unit, cell, items, size, total, was, cell_key, cell_role,
    stamp, step, free, taken, totals,
):  # fmt: skip
    """Returns the number of cell numbers taken from the end of `free` so far."""
    room = 16
    while room < 2 * moved.shape[0]:
        room *= 2
    table = np.full(room, -1, np.int32)
    old, new = np.empty(moved.shape[0], np.int32), np.empty(moved.shape[0], np.int32)
    olds, news = 0, 0
    for a in moved:
        c = cell[a]
        if stamp[c] != step + 1:
            stamp[c] = step + 1
            was[c] = total[c] / size[c] * unit
            old[olds] = c
            olds += 1
            if step > 0:
                _count(totals, -1.0, cell_role[c], items[c], size[c], was[c])
        place = _find(key[a], table, cell_key)
        if table[place] < 0:
            b = free[free.shape[0] - 1 - taken]
            taken += 1
            table[place], new[news] = b, b
            news += 1
            items[b], size[b], total[b], was[b] = 0, 0, 0, was[c]
            cell_key[b], cell_role[b], stamp[b] = key[a], role[a], 0
        b = table[place]
        cell[a] = b
        items[c] -= 1
        size[c] -= weight[a]
        total[c] -= value[a]
        items[b] += 1
        size[b] += weight[a]
        total[b] += value[a]
    for changed in (old[:olds], new[:news]):
        taken = _recount(changed, cell_role, items, size, total, unit, was, free, taken, totals)
    return taken


@njit(cache=True)
def move_keys(
    spans, rows, finest, place, old, new, random, episode, live_end, first, touched, moved, item,
    cell, items, key, out,
):  # fmt: skip
    """Change the keys of all items whose history holds a moved row; returns their number.

    Only items that share a cell count, and of each episode only the part up to its `live_end`, the
    end of its last such item. `first` (-1), `moved` (False), `touched` and `out` are scratch.
    """
    episodes = 0
    for p in range(spans.shape[0]):
        for t in range(spans[p, 0], spans[p, 1]):
            row = rows[t]
            e = episode[row]
            if row >= live_end[e]:
                continue
            moved[row] = True
            if first[e] < 0:
                touched[episodes] = e
                episodes += 1
                first[e] = row
            first[e] = min(first[e], row)
    found = 0
    for t in range(episodes):
        e = touched[t]
        change, last = np.uint64(0), first[e]
        for row in range(first[e], live_end[e]):
            if moved[row]:
                moved[row] = False
                change += random[new[finest[row]], place[row]]
                change -= random[old[finest[row]], place[row]]
            a = item[row]
            if a >= 0 and items[cell[a]] > 1:
                key[a] += change
                out[found] = a
                found += 1
                last = row + 1
        live_end[e], first[e] = last, -1
    return found
