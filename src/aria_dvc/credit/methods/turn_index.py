"""Baseline: the credit is a function of the role and its own-turn index alone.

Credits that are read off the fitted episodes themselves give it to all others.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from aria_dvc.credit.methods.base import Values, by_role, role_means
from aria_dvc.intentions.log import Log


class TurnIndexCredit:
    """Mean return by role and own-turn index, each shrunk towards its role's mean.

    Both values are the same, out of fold: the action is not looked at.

    strength: how many pseudo-actions at the role's mean are added to every (role, turn).
    """

    in_sample = False
    uses_labels = False
    uses_vectors = False

    def __init__(self, strength: float = 10.0) -> None:
        self.strength = strength

    def fit(self, data: Log) -> Self:
        self.role_means_ = role_means(data)
        prior = by_role(self.role_means_, data.role[data.actions])
        sums: dict[tuple[str, int], tuple[float, int]] = {}
        for key, residual in zip(_keys(data), (data.targets - prior).tolist(), strict=True):
            total, count = sums.get(key, (0.0, 0))
            sums[key] = (total + residual, count + 1)
        self.effects_ = {key: s / (n + self.strength) for key, (s, n) in sums.items()}
        return self

    def q(self, data: Log) -> np.ndarray:
        effects = [self.effects_.get(key, 0.0) for key in _keys(data)]
        return by_role(self.role_means_, data.role[data.actions]) + np.array(effects, np.float64)

    def v(self, data: Log) -> np.ndarray:
        return self.q(data)


class OfFittedEpisodes:
    """A credit in sample; of an episode that was not fitted q and v are the turn's mean.

    unseen: the method of such episodes.
    """

    in_sample = True
    unseen = "turn_index"
    uses_vectors = False

    def fit(self, data: Log) -> Self:
        self.turn_index_ = TurnIndexCredit().fit(data)  # refuses actions without a return
        self.fitted_ = self.of_fitted(data)
        return self

    def of_fitted(self, data: Log) -> Values:
        """Of the A actions of the episodes that are fitted."""
        raise NotImplementedError

    def fitted(self) -> Values:
        return self.fitted_

    def q(self, data: Log) -> np.ndarray:
        return self.turn_index_.q(data)

    def v(self, data: Log) -> np.ndarray:
        return self.q(data)


def _keys(data: Log) -> list[tuple[str, int]]:
    rows = data.actions
    return list(zip(data.role[rows].tolist(), data.turn[rows].tolist(), strict=True))
