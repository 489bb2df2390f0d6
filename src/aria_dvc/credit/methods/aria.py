"""The paper's credit (sec. 3.3): mean return of the cell (intentions of the history, of a_t)."""

from __future__ import annotations

from typing import Self

import numpy as np

from aria_dvc.credit.methods.base import out_of_fold
from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log

WHOLE = 1_000_000
CANDIDATES = (1, 2, 3, 4, 6, WHOLE)  # lengths of a cell, in utterances
DEFAULT = 2  # of a single episode


class AriaCredit(HistoryMeans):
    """R~: cells of equal label sequences, in sample; unseen cells get their role's mean."""

    uses_labels = True

    def symbols(self, data: Log) -> np.ndarray:
        return data.labels


class AriaRecentCredit(AriaCredit):
    """ARIA whose cells forget: the action's intention and those of the utterances before it.

    Whole histories are nearly all singletons after a few turns, so that R~ is the return itself.
    Cells of the last exchange are larger and their means vary less. The price is bias: a cell
    holds actions after different beginnings, so what an earlier turn has earned or spoilt (an
    anchor, the rounds that were lost, the configuration) is credited to everybody alike.

    In sample. An action that was not fitted and whose cell is empty falls back to shorter
    histories, down to its own intention.

    history: utterances that make a cell, the action counted; 2 is the last exchange, 0 takes that
        of CANDIDATES which predicts held-out episodes best.
    """

    def __init__(self, history: int = Aggregate.history, folds: int = 5, seed: int = 0) -> None:
        if history < 0:
            raise AriaError(
                f"history is {history}: a cell holds at least the action itself (0: chosen by "
                "cross-validation)"
            )
        self.history, self.folds, self.seed = history, folds, seed

    def fit(self, data: Log) -> Self:
        self.history_ = self.history or self._chosen(data)
        self.lengths = backed_off(self.history_)
        return super().fit(data)

    def _chosen(self, data: Log) -> int:
        if data.acting_episodes < 2:
            return DEFAULT
        errors = []
        for length in CANDIDATES:
            held = out_of_fold(AriaRecentCredit(length), data, self.folds, self.seed, False).q
            errors.append(((held - data.targets) ** 2).sum())
        return CANDIDATES[int(np.argmin(errors))]


def backed_off(history: int) -> tuple[int, ...]:
    """A length and the shorter ones that stand in for it."""
    return (history, *(length for length in reversed(CANDIDATES) if length < history))
