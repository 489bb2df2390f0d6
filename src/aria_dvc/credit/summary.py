"""What `aria credit` says at its end, of what it has computed anyway, in five lines.

The number of intentions, the variance of the credit beside that of the returns, the skill where it
was measured, what was written, and what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import METHOD, CreditSettings
from aria_dvc.credit.variance import variance, variances

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.log import Log

FEW_SHARED = 0.1  # of the turns: below it, means over cells are hardly any means


@dataclass(frozen=True)
class Told:
    """What the lines are about.

    table: the credit table. fitted: the log as the method saw it. quality: see `credit_quality`;
    None if it was not asked for. written: the files. audit, audit_of_credit, export: the commands
    that come next, of the log, of the table's advantages and for a trainer.
    scored: whether the rows are of other logs than the fitted one.
    """

    table: pd.DataFrame
    fitted: Log
    settings: CreditSettings
    quality: Mapping[str, Any] | None
    written: str
    audit: str
    audit_of_credit: str
    export: str
    scored: bool = False


def summary(told: Told) -> list[str]:
    """The five lines, without line ends; names of files and logs as they are."""
    rows = f"{len(told.table)} actions of {told.table['episode_id'].nunique()} episodes"
    return [
        f"k: {_intentions(told)}",
        f"variance: {_variance(told.table)}",
        f"skill: {_skill(told.quality)}{_unseen(told)}",
        f"written: {told.written} ({rows}{_scored_by(told)})",
        f"next: {_next(told)}",
    ]


def _intentions(told: Told) -> str:
    name = told.settings.aggregate.method
    if not make_method(name, told.settings.aggregate).uses_labels:
        return f"none, since {name} looks at no intentions"
    found = len(np.unique(told.fitted.labels[told.fitted.clustered]))
    how = "by silhouette" if told.settings.k == "auto" else f"{told.settings.k} asked for"
    return f"{found} intentions ({how})"


def _variance(table: pd.DataFrame) -> str:
    credit, returns = table["credit"].to_numpy(float), _returns(table)
    if returns is None:
        return f"{variance(credit):.4g} of the credit; the outcomes of these dialogues are unknown"
    before, after = variances(returns, credit)
    if before == 0:
        return f"{after:.4g} of the credit; all returns are equal"
    return f"{after:.4g} of the credit, {after / before:.3f} of that of the returns ({before:.4g})"


def _returns(table: pd.DataFrame) -> np.ndarray | None:
    """(A,) float64; None where some are unknown."""
    found = table["return"].to_numpy(float)
    return None if np.isnan(found).any() else found


def _skill(quality: Mapping[str, Any] | None) -> str:
    if quality is None:
        return "not measured; --quality FILE does (some more fits, by folds)"
    if "skill" not in quality:
        return "not measured: a single episode has nothing to hold out"
    found = quality["skill"]["all"]
    value, over = found["skill"], found["over"]
    if value["value"] is None:
        return "not defined: the returns do not vary"
    interval = ""
    if value["low"] is not None:
        interval = f" (95 % interval {value['low']:+.3f} to {value['high']:+.3f})"
    return f"{value['value']:+.3f} over {over}, the best baseline, held out{interval}"


def stand_in(settings: CreditSettings) -> str | None:
    """What credits dialogues that were not fitted, and why, where it is not the method itself."""
    aggregate = settings.aggregate
    unseen = getattr(make_method(aggregate.method, aggregate), "unseen", None)
    return unseen and f"{unseen}, since {aggregate.method} needs to see how a dialogue goes on"


def _scored_by(told: Told) -> str:
    other = stand_in(told.settings)
    return f"; values of {other}" if told.scored and other else ""


def _unseen(told: Told) -> str:
    """Of what the skill is, where something else credits what was not fitted."""
    other = stand_in(told.settings)
    if not other or told.quality is None or "skill" not in told.quality:
        return ""
    return f"; that of {other}"


def _next(told: Told) -> str:
    if _ends_alike(told.fitted):
        return "add episodes that ended otherwise: where all end alike, no credit tells turns apart"
    shared = _shared(told)
    if shared is not None and shared < FEW_SHARED:
        return (
            f"aggregation changes {shared:.0%} of the turns, the others are alone in their cell: "
            f"try --method {METHOD}, and see what the log can teach: {told.audit}"
        )
    if told.quality is None:
        return f"see whether the log can teach anything: {told.audit}"
    own = told.scored or not _unseen(told)  # whether the skill is that of the table's credit
    if own and not _is_shown(told.quality):
        return (
            "no gain over the baseline is shown: add episodes or try another --method before you "
            f"train on it; more: {told.audit}"
        )
    if _returns(told.table) is None:
        return "join it with the dialogues by episode_id and position (docs/exports.md)"
    if not own:
        return (
            "whether to train on it this skill cannot tell, since it is not its own; what the "
            f"credit consists of: {told.audit_of_credit}"
        )
    return told.export


def _ends_alike(log: Log) -> bool:
    """Whether every episode brought its role the same reward."""
    role = log.role[log.actions]
    return all(variance(log.outcomes[role == name]) == 0 for name in np.unique(role))


def _shared(told: Told) -> float | None:
    """Share of the turns that share their cell; None where the credit is no cell's mean."""
    aggregate = told.settings.aggregate
    if not isinstance(make_method(aggregate.method, aggregate), HistoryMeans):
        return None
    return float((told.table["n_cell"] > 1).mean())


def _is_shown(quality: Mapping[str, Any]) -> bool:
    """Whether the interval of the skill lies above 0."""
    if "skill" not in quality:
        return False
    low = quality["skill"]["all"]["skill"]["low"]
    return low is not None and low > 0
