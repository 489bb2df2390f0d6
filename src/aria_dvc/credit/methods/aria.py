"""The paper's credit (sec. 3.3): mean return of the cell (intentions of the history, of a_t)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from aria_dvc.credit.methods.base import CreditData
from aria_dvc.credit.methods.histories import HistoryMeans


class AriaCredit(HistoryMeans):
    """R~: cells of equal label sequences, in sample; unseen cells get their role's mean."""

    uses_labels = True

    def symbols(self, data: CreditData) -> Iterable[Hashable]:
        return data.labels.tolist()
