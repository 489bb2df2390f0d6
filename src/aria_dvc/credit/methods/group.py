"""Leave one out: an episode's outcome against the others of its group (RLOO, GRPO's baseline)."""

from __future__ import annotations

from typing import Self

import numpy as np

from aria_dvc.credit.methods.base import Values, role_means
from aria_dvc.credit.methods.units import Units, mean_outcomes, outcome_means, units_of
from aria_dvc.intentions.log import Log


class GroupCredit:
    """q = the episode's own outcome R, v = the mean outcome of the others in its group and role.

    In sample: q is the own outcome and tells nothing of single actions; all of an episode have the
    same advantage. Outcomes are not discounted. Episodes alone in their group, and all where no
    groups are known, are compared with all others of the role. Of an episode that was not fitted
    both are the role's mean outcome, since its own is not looked at.

    unseen: what such episodes get.
    """

    in_sample = True
    unseen = "the role's mean outcome"
    uses_labels = False
    uses_vectors = False

    def fit(self, data: Log) -> Self:
        role_means(data)  # refuses actions without a return
        units = units_of(data)
        self.means_ = outcome_means(data, units)
        outcome = data.outcomes[units.first]
        self.fitted_ = Values(outcome[units.unit], others_mean(data, units, outcome)[units.unit])
        return self

    def fitted(self) -> Values:
        return self.fitted_

    def q(self, data: Log) -> np.ndarray:
        return mean_outcomes(self.means_, data)

    def v(self, data: Log) -> np.ndarray:
        return self.q(data)


def others_mean(data: Log, units: Units, outcome: np.ndarray) -> np.ndarray:
    """(U,) mean of the (U,) outcomes of other episodes of the same group and role."""
    role = np.unique(units.role, return_inverse=True)[1]
    means = without_own(role, outcome, outcome)
    if data.group is None:
        return means
    pair = data.group[units.episode] * (int(role.max()) + 1) + role
    return without_own(np.unique(pair, return_inverse=True)[1], outcome, means)


def without_own(cell: np.ndarray, values: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """(n,) mean of the others in each one's cell; `alone` where there is no other."""
    total, count = np.bincount(cell, values)[cell], np.bincount(cell)[cell]
    return np.where(count > 1, (total - values) / np.maximum(count - 1, 1), alone)
