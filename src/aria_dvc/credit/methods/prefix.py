"""Credit by exact texts: mean return of all actions after the very same words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from aria_dvc.credit.methods.base import CreditData
from aria_dvc.credit.methods.histories import HistoryMeans


class PrefixCredit(HistoryMeans):
    """Cells of equal dialogue prefixes, in sample; unseen prefixes get their role's mean."""

    def symbols(self, data: CreditData) -> Iterable[Hashable]:
        return [text.strip() for text in data.text]
