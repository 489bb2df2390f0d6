"""Groups within groups: outcome against the group, return against steps at an equal anchor (GiGPO).

    A = (R - mean of the group's others) + w (G_t - mean over the steps S of the group)

S are the group's actions of the same role whose anchor is equal. The two parts are averaged with
weights 1 and w, so that q stays on the scale of a return; no part is divided by its spread.
"""

from __future__ import annotations

import numpy as np

from aria_dvc.credit.cells import cell_codes, cell_means
from aria_dvc.credit.methods.base import Values
from aria_dvc.credit.methods.group import GroupCredit
from aria_dvc.credit.methods.turn_index import OfFittedEpisodes
from aria_dvc.intentions.log import Log
from aria_dvc.records.names import Anchor

# so many utterances make an anchor, the action's place counted; None for all
SPANS: dict[Anchor, int | None] = {"observation": 2, "state": None, "intentions": 3}


class GigpoCredit(OfFittedEpisodes):
    """Group outcome and anchored step.

    In sample: q holds the own outcome and return, v those of the group. A step whose anchor recurs
    nowhere in its group has the group's part alone. Where no groups are known the log is one. Of
    an episode that was not fitted both are the mean of its role and turn.

    anchor: observation (the words before the action), state (all words before it: equal histories
        are equal states, equal states after unlike histories are not seen) or intentions (of the
        two utterances before it; the usable one in free dialogue).
    weight: w.
    """

    def __init__(self, anchor: Anchor = "intentions", weight: float = 1.0) -> None:
        self.anchor, self.weight = anchor, weight
        self.span = SPANS[anchor]
        self.uses_labels = anchor == "intentions"

    def of_fitted(self, data: Log) -> Values:
        outcome = GroupCredit().fit(data).fitted()
        step = self._step_means(data)
        share = self.weight / (1 + self.weight)
        return Values(
            (1 - share) * outcome.q + share * data.targets,
            (1 - share) * outcome.v + share * step,
        )

    def _step_means(self, data: Log) -> np.ndarray:
        """(A,) mean return of the group's steps at the action's anchor, itself counted."""
        cell = anchors(data, self.anchor)
        if data.group is not None:
            cell = cell * (int(data.group.max()) + 1) + data.group[data.episode[data.actions]]
        cell = np.unique(cell, return_inverse=True)[1]
        return cell_means(cell, data.targets, int(cell.max()) + 1)[cell]


def anchors(data: Log, anchor: Anchor) -> np.ndarray:
    """(A,) int64, equal where role and anchor are."""
    import pandas as pd

    said = data.labels
    if anchor != "intentions":
        said = pd.factorize(np.array([text.strip() for text in data.text], object))[0]
    return cell_codes(data, said, SPANS[anchor], with_action=False)
