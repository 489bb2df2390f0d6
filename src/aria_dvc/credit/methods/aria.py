"""The paper's credit (sec. 3.3): mean return of the cell (intentions of the history, of a_t)."""

from __future__ import annotations

import numpy as np

from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log


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

    history: utterances that make a cell, the action counted; 2 is the last exchange.
    """

    def __init__(self, history: int = Aggregate.history) -> None:
        if history < 1:
            raise AriaError(f"history is {history}: a cell holds at least the action itself")
        self.history = history
