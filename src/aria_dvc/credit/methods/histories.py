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

    Histories are equal if the same roles said the same symbols in the same order. An action whose
    history was never fitted gets the mean return of its role.
    """

    in_sample = True
    uses_labels = False
    uses_embeddings = False

    @abstractmethod
    def symbols(self, data: CreditData) -> Iterable[Hashable]:
        """What an utterance is taken for, n symbols."""

    def fit(self, data: CreditData) -> Self:
        self.role_means_ = role_means(data)
        self.tree_: dict[tuple[int, str, Hashable], int] = {}
        cells = self._walk(data, grow=True)[data.is_action]
        self.counts_ = np.bincount(cells, minlength=len(self.tree_))
        sums = np.bincount(cells, weights=data.targets, minlength=len(self.tree_))
        self.means_ = sums / np.maximum(self.counts_, 1)
        return self

    def credit(self, data: CreditData) -> np.ndarray:
        cells = self._walk(data, grow=False)[data.is_action]
        known = (cells >= 0) & (self.counts_[np.maximum(cells, 0)] > 0)
        return np.where(
            known, self.means_[cells], by_role(self.role_means_, data.role[data.actions])
        )

    def _walk(self, data: CreditData, grow: bool) -> np.ndarray:
        """(n,) node of the tree of histories that each utterance leads to, or UNSEEN."""
        nodes = np.empty(len(data), np.int64)
        node, previous = ROOT, -1
        steps = zip(data.episode.tolist(), data.role.tolist(), self.symbols(data), strict=True)
        for row, (episode, role, symbol) in enumerate(steps):
            step = (ROOT if episode != previous else node, role, symbol)
            node = (
                self.tree_.setdefault(step, len(self.tree_))
                if grow
                else (self.tree_.get(step, UNSEEN))
            )
            nodes[row], previous = node, episode
        return nodes
