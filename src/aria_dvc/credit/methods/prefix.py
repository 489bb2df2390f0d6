"""Credit by exact texts: mean return of all actions after the very same words."""

from __future__ import annotations

import numpy as np

from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.intentions.log import Log


class PrefixCredit(HistoryMeans):
    """Cells of equal dialogue prefixes, in sample; unseen prefixes get their role's mean."""

    def symbols(self, data: Log) -> np.ndarray:
        return np.array([text.strip() for text in data.text], dtype=object)
