"""Credit by regression on everything said up to the action: words, meaning and turn.

Several kernel ridge regressions predict what the turn index leaves of the return; their held-out
predictions are combined with non-negative weights. Every choice is made on held-out episodes.
"""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
from scipy.optimize import nnls

from aria_dvc.credit.methods.base import ValueByHistory, episode_folds
from aria_dvc.credit.methods.ridge import Design, Fold, LandmarkRidge
from aria_dvc.credit.methods.shared import kept
from aria_dvc.credit.methods.shrinkage import turn_index_fits
from aria_dvc.credit.methods.similarity import (
    Kernel,
    described_by,
    describer_of,
    meaning_before,
    same_meaning_heard,
    same_words_exchanged,
    same_words_heard,
    same_words_said,
    words_before,
    words_before_and_last,
)
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.intentions.log import Log

KERNELS: tuple[Kernel, ...] = (
    same_words_heard,
    same_words_said,
    same_words_exchanged,
    same_meaning_heard,
)
HISTORY_KERNELS: tuple[Kernel, ...] = (words_before, words_before_and_last, meaning_before)
MOST_KEPT = 2**26  # features, a quarter of a gigabyte: more are made anew for other returns


class RegressionCredit(ValueByHistory):
    """Turn-index credit plus a weighted sum of kernel ridge regressions.

    v is the same with kernels that look at the history alone. Both are out of fold.

    Args:
        kernels: what makes two actions alike, one regression each.
        landmarks: so many actions, evenly spread over the episodes, all others are compared with.
        folds: episodes are held out in so many parts for penalties and weights.

    Attributes:
        shares_: (kernels,) float64 weights; all 0 when fitted on a single episode.
    """

    in_sample = False
    uses_labels = False
    uses_vectors = True

    def __init__(
        self,
        kernels: tuple[Kernel, ...] = KERNELS,
        landmarks: int = 1600,
        strength: float = 10.0,
        folds: int = 4,
        seed: int = 0,
    ) -> None:
        self.kernels, self.landmarks, self.strength = kernels, landmarks, strength
        self.folds, self.seed = folds, seed

    def fit(self, data: Log) -> Self:
        self.keep(data)
        self.turn_index_ = TurnIndexCredit(self.strength).fit(data)
        self.members_: list[LandmarkRidge] = []
        self.shares_ = np.zeros(len(self.kernels))
        if data.acting_episodes < 2:
            return self
        self.describer_ = describer_of(data)
        actions = described_by(self.describer_, data)
        landmarks = actions.take(spread_rows(actions.turn, self.landmarks))
        residual = data.targets - self.turn_index_.q(data)
        folds = self._folds(data)

        def member(kernel: Kernel) -> LandmarkRidge:
            options = (kernel, self.landmarks, self.strength, self.folds, self.seed)
            fresh = LandmarkRidge(kernel, landmarks)
            return kept(data, options, lambda: fresh.fit(design(kernel), residual, folds))

        def design(kernel: Kernel) -> Design:
            options = (kernel, self.landmarks, self.folds, self.seed)
            held = [fold.held for fold in folds]
            make = partial(Design, kernel, landmarks, actions, held)
            small = len(actions) * len(landmarks) <= MOST_KEPT
            return kept(data.told, options, make) if small else make()

        self.members_ = [member(kernel) for kernel in self.kernels]
        self.shares_ = self._weigh(folds)
        return self

    def of_history(self) -> RegressionCredit:
        options = (self.landmarks, self.strength, self.folds, self.seed)
        return RegressionCredit(HISTORY_KERNELS, *options)

    def q(self, data: Log) -> np.ndarray:
        credit = self.turn_index_.q(data)
        if self.members_ and len(credit):
            actions = described_by(self.describer_, data)
            for share, member in zip(self.shares_, self.members_, strict=True):
                if share > 0:
                    credit = credit + share * kept(data, member, partial(member.predict, actions))
        return credit

    def _folds(self, data: Log) -> list[Fold]:
        fold = episode_folds(data, self.folds, self.seed)
        fits = turn_index_fits(data.without_vectors(), fold, self.strength)
        return [Fold(data.targets - turn_index, weight == 0) for turn_index, weight in fits]

    def _weigh(self, folds: list[Fold]) -> np.ndarray:
        """(kernels,) non-negative least squares of residual returns on held-out predictions."""
        order = np.concatenate([np.flatnonzero(fold.held) for fold in folds])
        target = np.concatenate([fold.residual[fold.held] for fold in folds])
        predictions = np.stack([member.held_out_[order] for member in self.members_], axis=1)
        return nnls(predictions, target)[0]


def spread_rows(weight: np.ndarray, count: int) -> np.ndarray:
    """At most `count` row numbers, evenly spaced along the running sum of (A,) positive weights.

    Weighted by turn, every episode gets its share and late turns, whose histories tell more, get
    more.
    """
    if count >= len(weight):
        return np.arange(len(weight))
    running = np.cumsum(weight)
    return np.unique(np.searchsorted(running, np.linspace(running[0], running[-1], count)))
