"""Baseline: every action of a role is worth that role's mean return."""

from __future__ import annotations

from typing import Self

import numpy as np

from aria_dvc.credit.methods.base import by_role, role_means
from aria_dvc.intentions.log import Log


class ConstantCredit:
    """Mean return by role, as q and as v; out of fold."""

    in_sample = False
    uses_labels = False
    uses_vectors = False

    def fit(self, data: Log) -> Self:
        self.role_means_ = role_means(data)
        return self

    def q(self, data: Log) -> np.ndarray:
        return by_role(self.role_means_, data.role[data.actions])

    def v(self, data: Log) -> np.ndarray:
        return self.q(data)
