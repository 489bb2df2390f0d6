"""Cells of equal recent history, from the action's own intention back to the whole history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aria_dvc.intentions.log import Log

START = 0


class Level(NamedTuple):
    """The actions whose context reaches this level, and the cells that they fall in.

    actions: (m,) index of the action. cells: (m,) its cell. parents: (cells,) each cell's cell at
    the level before.
    """

    actions: np.ndarray
    cells: np.ndarray
    parents: np.ndarray


class Contexts:
    """Level 0 is (role, label) of the action, level j adds the j-th label before it.

    The level at which a history begins ends in START, so that its cell holds whole histories. An
    action alone in its fitted cell goes no deeper: its deeper cells would hold the same action.

    depth: the last level.
    skipped: 1 leaves out the action, so that level 0 is (role, label before the action).
    """

    def __init__(self, depth: int, skipped: int = 0) -> None:
        self.depth, self.skipped = depth, skipped

    def fit(self, data: Log) -> list[Level]:
        self.roles_ = np.unique(data.role[data.is_action])
        self.labels_ = np.unique(data.labels)
        self.keys_: list[np.ndarray] = []
        return self._levels(data, grow=True)

    def find(self, data: Log) -> list[Level]:
        """The fitted cells of other episodes' actions; an unseen context goes no deeper."""
        return self._levels(data, grow=False)

    def _levels(self, data: Log, grow: bool) -> list[Level]:
        rows = data.actions
        symbols = _codes(self.labels_, data.labels) + START + 1
        base = len(self.labels_) + 1
        cells = _codes(self.roles_, data.role[rows])
        actions = np.flatnonzero(cells >= 0)
        cells = cells[actions]
        levels: list[Level] = []
        while len(actions) and len(levels) <= self.depth:
            level = len(levels)
            back = level + self.skipped
            place = data.place[rows[actions]] - back
            symbol = np.where(place >= 0, symbols[np.maximum(rows[actions] - back, 0)], START)
            keys = cells * base + symbol
            if grow:
                self.keys_.append(np.unique(keys))
            elif level == len(self.keys_):
                break
            table = self.keys_[level]
            cells = np.minimum(np.searchsorted(table, keys), len(table) - 1)
            seen = ((symbol > START) | (place < 0)) & (table[cells] == keys)
            actions, cells, place = actions[seen], cells[seen], place[seen]
            levels.append(Level(actions, cells, table // base if level else np.zeros_like(table)))
            deeper = place >= 0
            if grow:
                deeper &= np.bincount(cells, minlength=len(table))[cells] > 1
            actions, cells = actions[deeper], cells[deeper]
        return levels


def _codes(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(n,) place of each value among the sorted known ones, -1 for others."""
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[place] == values, place, -1).astype(np.int64)
