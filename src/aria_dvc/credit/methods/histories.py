"""Means over cells of equal whole histories, for `aria` (labels) and `prefix` (texts)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import product
from typing import Self

import numpy as np

from aria_dvc.credit.cells import cell_codes, cell_means, to_fixed
from aria_dvc.credit.methods.base import Values, by_role, role_means
from aria_dvc.intentions.log import Log, joined


class HistoryMeans(ABC):
    """q = mean return of all fitted actions with the same history and the same action.

    v = that of all fitted actions with the same history, whatever the action. Histories are equal
    if the same symbols were said in the same order; the acting role is part of the cell. Both are
    in sample: of a fitted action its own return counts. Of an action that was never fitted after
    its history nothing is known but the history, so that q = v; where that was not fitted either,
    both are the mean return of its role. Returns are summed exactly, so that the order of episodes
    changes nothing, and q = v wherever the same actions share both cells.

    lengths: so many last utterances count, the action's own included; None for all. Of several
        the first counts whose cell was fitted.
    """

    in_sample = True
    uses_labels = False
    uses_vectors = False
    lengths: tuple[int | None, ...] = (None,)

    @property
    def span(self) -> int | None:
        """So many last utterances make a cell; None for all. Of a fitted method."""
        return self.lengths[0]

    @abstractmethod
    def symbols(self, data: Log) -> np.ndarray:
        """(n,) what each utterance is taken for."""

    def fit(self, data: Log) -> Self:
        self.role_means_ = role_means(data)
        self.fitted_ = data.without_vectors()
        self.whole_, self.unit_ = to_fixed(data.targets)
        return self

    def pools(self) -> np.ndarray:
        """(A,) int64: equal where fitted actions share their q, the mean of their returns."""
        import pandas as pd

        symbols = pd.factorize(self.symbols(self.fitted_))[0]
        return cell_codes(self.fitted_, symbols, self.span)

    def fitted(self) -> Values:
        return Values(self.q(self.fitted_), self.v(self.fitted_))

    def q(self, data: Log) -> np.ndarray:
        return self._first_mean(data, with_action=(True, False))

    def v(self, data: Log) -> np.ndarray:
        return self._first_mean(data, with_action=(False,))

    def _first_mean(self, data: Log, with_action: tuple[bool, ...]) -> np.ndarray:
        """(A,) means of the first cells that were fitted, of the kinds given; else of the role."""
        import pandas as pd

        both = joined([self.fitted_, data.without_vectors()])
        symbols = pd.factorize(self.symbols(both))[0]
        found = np.full(len(data.actions), np.nan)
        for own, length in product(with_action, self.lengths):
            if not np.isnan(found).any():
                return found
            cell = cell_codes(both, symbols, length, own)
            known, asked = np.split(cell, [len(self.fitted_.actions)])
            means = cell_means(known, self.whole_, int(cell.max(initial=-1)) + 1) * self.unit_
            found = np.where(np.isnan(found), means[asked], found)
        return np.where(np.isnan(found), by_role(self.role_means_, data.role[data.actions]), found)
