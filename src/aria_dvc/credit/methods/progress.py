"""Stepwise progress: contributions of the actions that sum to the outcome (SPA-RL, RUDDER).

P_t = mean outcome + c_1 + .. + c_t is what is expected after the t-th own action; q = P_t and
v = P_(t-1), so that the advantage is the contribution c_t. Outcomes are not discounted. Each c_t
is linear in kernel features of (history, action), so that every objective is a ridge regression:

    sum     (P_T - R)^2, as SPA-RL; the sum is right, its parts need not be
    spread  the same + T * variance of the c_t within the episode
    prefix  the same as sum + mean over t of (P_t - R)^2, as RUDDER; P_t is a prediction at every t

Out of fold. v looks at earlier contributions, never at the action.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.linalg

from aria_dvc.credit.methods.base import episode_folds, role_means
from aria_dvc.credit.methods.regression import spread_rows
from aria_dvc.credit.methods.ridge import LandmarkFeatures, predicted
from aria_dvc.credit.methods.similarity import (
    Similarity,
    described_by,
    describer_of,
    same_meaning_heard,
    same_words_heard,
)
from aria_dvc.credit.methods.units import Units, mean_outcomes, outcome_means, units_of
from aria_dvc.intentions.log import Log
from aria_dvc.records.names import ProgressObjective

PENALTIES = tuple(4.0**power for power in range(-1, 7))
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def same_words_and_meaning(of: Similarity) -> np.ndarray:
    """Like actions after like histories, by words or by meaning."""
    return same_words_heard(of) + same_meaning_heard(of)


class ProgressCredit:
    """Contributions by ridge regression on landmarks.

    Args:
        objective: see the module. landmarks: actions that all are compared with.
        folds: episodes are held out in so many parts to choose the penalty.
    """

    in_sample = False
    uses_labels = False
    uses_vectors = True

    def __init__(
        self,
        objective: ProgressObjective = "prefix",
        landmarks: int = 600,
        folds: int = 4,
        seed: int = 0,
    ) -> None:
        self.objective, self.landmarks = objective, landmarks
        self.folds, self.seed = folds, seed

    def fit(self, data: Log) -> Self:
        role_means(data)  # refuses actions without a return
        units = units_of(data)
        self.means_ = outcome_means(data, units)
        self.weights_: np.ndarray | None = None
        if data.acting_episodes < 2:
            return self
        self.describer_ = describer_of(data)
        actions = described_by(self.describer_, data)
        self.landmarks_ = actions.take(spread_rows(actions.turn, self.landmarks))
        basis = LandmarkFeatures(same_words_and_meaning, self.landmarks_)
        surplus = data.outcomes - mean_outcomes(self.means_, data)
        rows = objective_rows(self.objective, basis.of(actions), surplus, units)
        fold = episode_folds(data, self.folds, self.seed)[data.actions][units.first]
        self.weights_ = basis.on_landmarks(_ridge(rows, fold))
        return self

    def contributions(self, data: Log) -> np.ndarray:
        """(A,) float64 c_t."""
        if self.weights_ is None or not len(data.actions):
            return np.zeros(len(data.actions))
        actions = described_by(self.describer_, data)
        return predicted(same_words_and_meaning, self.landmarks_, self.weights_, actions)

    def q(self, data: Log) -> np.ndarray:
        running = units_of(data).running(self.contributions(data))
        return mean_outcomes(self.means_, data) + running

    def v(self, data: Log) -> np.ndarray:
        following, progress = units_of(data).following(), self.q(data)
        value = mean_outcomes(self.means_, data)
        value[following[following >= 0]] = progress[following >= 0]
        return value


def objective_rows(
    objective: ProgressObjective, features: np.ndarray, surplus: np.ndarray, units: Units
) -> Rows:
    """The regression that an objective is: (r, m) features, (r,) targets, (r,) unit of each row.

    features: (A, m). surplus: (A,) outcome less its role's mean.
    """
    running = units.running(features)
    sums, target, of = running[units.last], surplus[units.last], np.arange(len(units.last))
    if objective == "sum":
        return sums, target, of
    length = np.bincount(units.unit)[units.unit]
    if objective == "spread":
        more = features - (sums[units.unit] / length[:, None])
        wanted = np.zeros(len(more))
    else:
        root = np.sqrt(length)
        more, wanted = running / root[:, None], surplus / root
    return (
        np.concatenate([sums, more.astype(sums.dtype)]),
        np.concatenate([target, wanted]),
        np.concatenate([of, units.unit]),
    )


def _ridge(rows: Rows, fold: np.ndarray) -> np.ndarray:
    """(m,) float64 weights at the penalty with the least held-out error.

    fold: (U,) of each unit.
    """
    features, target, unit = rows
    parts = [fold[unit] == held for held in np.unique(fold)]
    grams = [_gram(features[part], target[part]) for part in parts]
    gram, moment = (np.sum(of, axis=0) for of in zip(*grams, strict=True))
    errors = []
    for penalty in PENALTIES:
        fits = [_solved(gram - g, moment - m, penalty) for g, m in grams]
        held = zip(parts, fits, strict=True)
        errors.append(sum(((features[p] @ w - target[p]) ** 2).sum() for p, w in held))
    return _solved(gram, moment, PENALTIES[int(np.argmin(errors))])


def _gram(features: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide = features.astype(np.float64)
    return wide.T @ wide, wide.T @ target


def _solved(gram: np.ndarray, moment: np.ndarray, penalty: float) -> np.ndarray:
    damped = gram.copy()
    damped[np.diag_indices(len(damped))] += penalty
    return scipy.linalg.solve(damped, moment, assume_a="pos")
