"""Soft credit as q - v: how much better the return is expected to be with the action than without.

Both are regressions on what was said (see regression.py), fitted on the same episodes: q sees the
history and the action, v the history alone. No cell, hence no singleton; and the value of the
state, which all its actions share, is gone.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from aria_dvc.credit.methods.regression import RegressionCredit
from aria_dvc.credit.methods.similarity import (
    meaning_before,
    words_before,
    words_before_and_last,
)
from aria_dvc.intentions.log import Log


class AdvantageCredit:
    """q(h_t, a_t) - v(h_t), out of fold: no action sees the returns of its own episode.

    It is near 0 on average and may be negative, so it says nothing about the size of returns: an
    R2 against them is no measure of it.
    """

    in_sample = False
    uses_labels = False
    uses_vectors = True
    centred = True

    def fit(self, data: Log) -> Self:
        self.action_ = RegressionCredit().fit(data)
        self.state_ = RegressionCredit((words_before, words_before_and_last, meaning_before))
        self.state_.fit(data)
        return self

    def credit(self, data: Log) -> np.ndarray:
        return self.action_.credit(data) - self.state_.credit(data)
