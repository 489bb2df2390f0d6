"""Cells of equal recent history, from the action's own intention back to the whole history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aria_dvc.credit.methods.base import CreditData

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
    """Level 0 is (role, label) of the action, level j adds the j-th utterance before it.

    The level at which a history begins ends in START, so that its cell holds whole histories. An
    action alone in its fitted cell goes no deeper: its deeper cells would hold the same action.

    depth: the last level.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def fit(self, data: CreditData) -> list[Level]:
        pairs = set(zip(data.role.tolist(), data.labels.tolist(), strict=True))
        self.symbols_ = {pair: code for code, pair in enumerate(sorted(pairs), start=START + 1)}
        self.keys_: list[np.ndarray] = []
        return self._levels(data, grow=True)

    def find(self, data: CreditData) -> list[Level]:
        """The fitted cells of other episodes' actions; an unseen context goes no deeper."""
        return self._levels(data, grow=False)

    def _levels(self, data: CreditData, grow: bool) -> list[Level]:
        pairs = zip(data.role.tolist(), data.labels.tolist(), strict=True)
        symbols = np.array([self.symbols_.get(pair, -1) for pair in pairs], np.int64)
        rows, position = data.actions, data.position
        actions, cells = np.arange(len(rows)), np.zeros(len(rows), np.int64)
        levels: list[Level] = []
        while len(actions) and len(levels) <= self.depth:
            back = len(levels)
            place = position[rows[actions]] - back
            symbol = np.where(place >= 0, symbols[np.maximum(rows[actions] - back, 0)], START)
            keys = cells * (len(self.symbols_) + 1) + symbol
            if grow:
                self.keys_.append(np.unique(keys))
            elif back == len(self.keys_):
                break
            table = self.keys_[back]
            cells = np.minimum(np.searchsorted(table, keys), max(len(table) - 1, 0))
            seen = (symbol >= 0) & (table[cells] == keys)
            actions, cells, place = actions[seen], cells[seen], place[seen]
            levels.append(Level(actions, cells, table // (len(self.symbols_) + 1)))
            deeper = place >= 0
            if grow:
                deeper &= np.bincount(cells, minlength=len(table))[cells] > 1
            actions, cells = actions[deeper], cells[deeper]
        return levels
