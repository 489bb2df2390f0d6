"""The whole audit of a log as one JSON-able report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from aria_dvc.audit.advice import advice
from aria_dvc.audit.contents import contents
from aria_dvc.audit.judged import judged, tasks_of
from aria_dvc.audit.signal import held_out, signal
from aria_dvc.credit.cells import cell_codes
from aria_dvc.credit.chain import labelled
from aria_dvc.credit.logs import embedded, log_of
from aria_dvc.credit.settings import EMBEDDER, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.records.episodes import Episode

METHODS = ("aria", "shrinkage", "regression")
Q = "regression"


def audit(
    episodes: Iterable[Episode],
    settings: CreditSettings,
    column: str | None = None,
    embed: str | None = None,
) -> dict[str, Any]:
    """What is there, how much signal, and what of a given credit is what.

    column: the name under which the episodes' utterances have somebody else's credit (`given`);
        None judges no credit.

    Raises:
        AriaError: fewer than two episodes with actions, no such credit, or one that misses turns.
    """
    kept = list(episodes)
    log = log_of(iter(kept), settings.aggregate.gamma, embed is None)
    if log.acting_episodes < 2:
        raise AriaError("audit: fewer than 2 episodes with actions: give a longer log")
    final = np.array([_reward(e, u.role) for e in kept for u in e.utterances], np.float64)
    given = _given(kept, log, column) if column else None
    (log,) = embedded([log], embed or EMBEDDER)
    log = labelled(log, settings)
    found = held_out(log, METHODS, settings, "" if given is None else Q)
    report: dict[str, Any] = {
        "contents": contents(log, final),
        "signal": signal(log, found, settings.seed),
        "cells": _cells(log),
        "settings": {"gamma": settings.aggregate.gamma, "folds": settings.aggregate.folds},
    }
    if given is not None:
        values = found[Q].q, found[Q].v
        credit = judged(log, tasks_of(kept, log), given, final[log.actions], *values)
        report["credit"] = {"column": column, **credit}
    report["advice"] = advice(report)
    return report


def _reward(episode: Episode, role: str) -> float:
    return episode.rewards.get(role, float("nan"))


def _given(episodes: list[Episode], log: Log, column: str) -> np.ndarray:
    """(A,) the given credit of the actions."""
    values = [u.given for episode in episodes for u in episode.utterances]
    found = np.array([np.nan if v is None else v for v in values], np.float64)[log.actions]
    known = np.isfinite(found)
    if not known.any():
        raise AriaError(
            f"--credit: no turn has a number {column}: it is a key of messages, a column of a "
            "table of utterances, or a list in an entry's info; or a table that `aria credit` "
            "wrote (FILE.parquet)"
        )
    if not known.all():
        raise AriaError(
            f"--credit: {int((~known).sum())} of {len(known)} turns have no {column}: give every "
            "turn a number, or name who is credited by --agent"
        )
    return found


def _cells(log: Log) -> dict[str, Any]:
    """Cells of whole intention histories: how many, and the share of turns that share theirs."""
    cell = cell_codes(log, log.labels)
    size = np.bincount(cell)
    return {
        "intentions": len(np.unique(log.labels)),
        "cells": len(size),
        "shared": float((size[cell] > 1).mean()),
        "singletons": float((size[cell] == 1).mean()),
    }
