"""Group-relative objectives: GRPO (Shao et al. 2024; StarPO over whole episodes, Wang et al. 2025)
GiGPO (Feng et al. 2025) and IGPO (Wang et al. 2025).

A group is the episodes of one configuration (`repeats`), one role at a time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aria_dvc.learning.advantages import EQUAL, actions, all_advantages
from aria_dvc.learning.examples import Key, LogFrames, keyed_rows
from aria_dvc.learning.objectives.base import Figures
from aria_dvc.learning.objectives.clipped import ClippedRatio

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)
EPSILON = 1e-6  # beside the standard deviation, as in the published code
GROUP = ["group_id", "role"]


class Grpo(ClippedRatio):
    """A = (R - mean of the group) / (standard deviation + 1e-6), for every action of an episode.

    Of every log the `grpo.keep` of the groups with the most spread train (StarPO-S keeps a
    quarter).
    """

    def tabled(self, frames: Sequence[LogFrames]) -> tuple[dict[Key, float], Figures]:
        found: dict[Key, float] = {}
        figures = {"groups": 0.0, "groups_without_spread": 0.0, "groups_kept": 0.0}
        for log in frames:
            table = with_groups(actions(log))
            groups = table.drop_duplicates(GROUP)
            kept = most_spread(groups, self.params.grpo.keep)
            figures["groups"] += len(groups)
            figures["groups_without_spread"] += int((groups["spread"] == 0).sum())
            figures["groups_kept"] += len(kept)
            for key, row in keyed_rows(log.name, table):
                if (row.group_id, row.role) in kept:
                    found[key] = row.apart / (row.spread + EPSILON)
        if figures["groups"] == figures["groups_without_spread"]:
            logger.warning(
                "policy.method: %s finds no group of games with different rewards in %s: the "
                "policy stays as it is; `repeats` above 1 plays several games of one configuration",
                *(self.params.method, ", ".join(log.name for log in frames)),
            )
        return found, figures


def with_groups(table: pd.DataFrame) -> pd.DataFrame:
    """The actions with their group's `spread` (population standard deviation of its episodes' final
    rewards; 0 where these are equal) and how far their episode's reward is `apart` from its mean.
    """
    episodes = table.drop_duplicates([*GROUP, "episode_id"])[[*GROUP, "episode_id", "final"]]
    of_group = episodes.groupby(GROUP)["final"]
    mean = of_group.transform("mean")
    equal = of_group.transform("max") - of_group.transform("min") <= EQUAL
    spread = of_group.transform(lambda values: values.std(ddof=0)).mask(equal, 0.0)
    apart = (episodes["final"] - mean).mask(equal, 0.0)
    known = episodes.assign(spread=spread, apart=apart).drop(columns="final")
    merged: pd.DataFrame = table.merge(known, on=[*GROUP, "episode_id"], how="left")
    return merged


def most_spread(groups: pd.DataFrame, keep: float) -> set[tuple[str, str]]:
    """(group_id, role) of the share `keep` of the groups, at least one, those of most spread
    first; of equal ones those that come first by name."""
    order = groups.sort_values(["spread", *GROUP], ascending=[False, True, True])
    first = order.head(math.ceil(keep * len(groups) - EQUAL))
    return set(zip(first["group_id"], first["role"], strict=True))


class OfCredit(ClippedRatio):
    """A = q - v of the method's own credit: `gigpo`, which adds to the group's outcome that of the
    steps of the group that share an anchor, or for IGPO `information_gain`, which adds what the
    answers told (see the aggregate stage)."""

    def tabled(self, frames: Sequence[LogFrames]) -> tuple[dict[Key, float], Figures]:
        return all_advantages(frames, self.params.credit, "value"), {}
