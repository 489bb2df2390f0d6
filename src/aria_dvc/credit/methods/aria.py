"""The paper's credit (sec. 3.3): mean return of the cell (intentions of the history, of a_t)."""

from __future__ import annotations

import numpy as np

from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.intentions.log import Log


class AriaCredit(HistoryMeans):
    """R~: cells of equal label sequences, in sample; unseen cells get their role's mean."""

    uses_labels = True

    def symbols(self, data: Log) -> np.ndarray:
        return data.labels
