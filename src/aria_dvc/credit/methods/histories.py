"""Means over cells of equal whole histories, for `aria` (labels) and `prefix` (texts)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Self

import numpy as np

from aria_dvc.credit.methods.base import CreditData, by_role, role_means

ROOT = -1
UNSEEN = -2


class HistoryMeans(ABC):
    """Credit = mean return of all fitted actions with the same history and the same action.

    Histories are equal if the same symbols were said in the same order; the acting role is part of
    the cell. An action whose history was never fitted gets the mean return of its role.
    """

    in_sample = True
    uses_labels = False
    uses_embeddings = False

    @abstractmethod
    def symbols(self, data: CreditData) -> Iterable[Hashable]:
        """What an utterance is taken for, n symbols."""

    def fit(self, data: CreditData) -> Self:
        self.role_means_ = role_means(data)
        self.tree_: dict[tuple[int, Hashable], int] = {}
        self.cells_: dict[tuple[int, str], int] = {}
        nodes = self._walk(data, grow=True)
        keys = zip(nodes[data.is_action].tolist(), data.role[data.is_action].tolist(), strict=True)
        cells = np.array([self.cells_.setdefault(key, len(self.cells_)) for key in keys])
        sums = np.bincount(cells, weights=data.targets)
        self.means_ = sums / np.bincount(cells)
        return self

    def credit(self, data: CreditData) -> np.ndarray:
        role = data.role[data.is_action]
        nodes = self._walk(data, grow=False)[data.is_action]
        keys = zip(nodes.tolist(), role.tolist(), strict=True)
        cells = np.array([self.cells_.get(key, UNSEEN) for key in keys], np.int64)
        credit, known = by_role(self.role_means_, role), cells != UNSEEN
        credit[known] = self.means_[cells[known]]
        return credit

    def _walk(self, data: CreditData, grow: bool) -> np.ndarray:
        """(n,) node of the tree of histories that each utterance leads to, or UNSEEN."""
        nodes = np.empty(len(data), np.int64)
        node, previous = ROOT, -1
        steps = zip(data.episode.tolist(), self.symbols(data), strict=True)
        for row, (episode, symbol) in enumerate(steps):
            step = (ROOT if episode != previous else node, symbol)
            if grow:
                node = self.tree_.setdefault(step, len(self.tree_))
            else:
                node = self.tree_.get(step, UNSEEN)
            nodes[row], previous = node, episode
        return nodes
