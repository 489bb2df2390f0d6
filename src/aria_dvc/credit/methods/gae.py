"""Generalised advantage estimation over the turns of a role, on values of the history's words.

    A_t = d_t + gamma lam A_(t+1),   d_t = r_t + gamma V(h_(t+1)) - V(h_t)   (Schulman et al. 2016)

The reward is the return of the role's last action; gamma counts once for every own turn between two
actions. V is the regression of the history alone, fitted on other episodes, so that an action's
credit is what became of its state: how much better the next turn's state looks than this one's
(lam 0), up to the return less V (lam 1).
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np

from aria_dvc.credit.methods.base import Values, fit_values, role_means
from aria_dvc.credit.methods.regression import RegressionCredit
from aria_dvc.credit.methods.units import discounts, units_of
from aria_dvc.intentions.log import Log

LAM = 0.3  # in four games near the best: at 0 all hangs on V, at 1 on the luck of the game


class GaeCredit:
    """q = V + A, v = V.

    In sample: A holds what the episode came to, V is out of fold. Of an episode that was not
    fitted, whose later turns are not looked at, q and v are those of `regression`.

    unseen: the method of such episodes. lam: weight of later turns. folds: episodes are held out in
        so many parts. seed: deals them.
    """

    in_sample = True
    unseen = "regression"
    uses_labels = False
    uses_vectors = True

    def __init__(self, lam: float = LAM, folds: int = 5, seed: int = 0) -> None:
        self.lam, self.folds, self.seed = lam, folds, seed

    def fit(self, data: Log) -> Self:
        role_means(data)  # refuses actions without a return
        self._data = data
        self.__dict__.pop("_unseen", None)
        return self

    @cached_property
    def _unseen(self) -> RegressionCredit:
        """What judges other episodes, fitted when some are first asked for."""
        return RegressionCredit(seed=self.seed).fit(self._data)

    def fitted(self) -> Values:
        history = RegressionCredit(seed=self.seed).of_history()
        value = fit_values(history, self._data, self.folds, self.seed).q
        return Values(value + self._advantages(value), value)

    def q(self, data: Log) -> np.ndarray:
        return self._unseen.q(data)

    def v(self, data: Log) -> np.ndarray:
        return self._unseen.v(data)

    def _advantages(self, value: np.ndarray) -> np.ndarray:
        """(A,) float64, from the last turn of each role to its first."""
        units = units_of(self._data)
        following = units.following()
        gamma = discounts(self._data, following)
        later = np.where(following >= 0, gamma * value[following], self._data.targets)
        found = later - value
        for action in units.order[::-1]:
            if following[action] >= 0:
                found[action] += gamma[action] * self.lam * found[following[action]]
        return found
