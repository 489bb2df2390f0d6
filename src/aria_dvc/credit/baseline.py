"""What the state before an action is worth: the baseline that turns a credit into an advantage.

A baseline may look at the history and the role, never at the action. It is not the mean by turn
index either: which turns there are depends on when the episode stops, and so on the actions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.credit.methods.base import CreditMethod, fit_credit
from aria_dvc.credit.methods.regression import RegressionCredit
from aria_dvc.credit.methods.similarity import (
    meaning_before,
    words_before,
    words_before_and_last,
)
from aria_dvc.intentions.log import Log

if TYPE_CHECKING:
    from aria_dvc.credit.settings import AnySettings

STRENGTH = 10.0  # so many returns at the role's mean are added to those of every state


def state_values(
    fitted: Log,
    asked: Log,
    anchors: tuple[np.ndarray, np.ndarray],
    method: CreditMethod,
    settings: AnySettings,
) -> np.ndarray:
    """(A,) float64: the return to be expected at the history of each action of `asked`.

    A credit that is centred has no more to lose: 0. Where the method looks at meaning it is a
    regression on the history, else a mean over the actions at the same anchor. Neither sees the
    own episode of an action of the fitted log.

    anchors: those of the fitted actions and of the asked ones.
    """
    if method.centred:
        return np.zeros(len(asked.actions))
    if not method.uses_vectors:
        return anchor_means(fitted, asked, anchors)
    kernels = (words_before, words_before_and_last, meaning_before)
    value = RegressionCredit(kernels)
    if asked is fitted:
        return fit_credit(value, fitted, settings.aggregate.folds, settings.seed)
    return value.fit(fitted).credit(asked)


def anchor_means(
    fitted: Log, asked: Log, anchors: tuple[np.ndarray, np.ndarray], strength: float = STRENGTH
) -> np.ndarray:
    """(A,) mean return at the anchor over other episodes, shrunk to the role's mean over them."""
    prior = _others_mean(fitted, asked, fitted.role[fitted.actions], asked.role[asked.actions])
    known, wanted = anchors
    total, count = _others(fitted, asked, known, wanted)
    return (total + strength * prior) / (count + strength)


def _others_mean(fitted: Log, asked: Log, known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(A,) mean return of the same key in other episodes; where there is none, that of all."""
    total, count = _others(fitted, asked, known, wanted)
    overall = float(fitted.targets.mean())
    return np.where(count > 0, total / np.maximum(count, 1), overall)


def _others(
    fitted: Log, asked: Log, known: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(A,) sum and number of the fitted returns with the wanted key, the own episode's left out."""
    import pandas as pd

    frame = pd.DataFrame(
        {"key": known, "episode": fitted.episode[fitted.actions], "value": fitted.targets}
    )
    whole = frame.groupby("key")["value"].agg(["sum", "count"]).reindex(wanted, fill_value=0)
    found = whole.to_numpy(np.float64)
    if asked is fitted:
        own = frame.groupby(["key", "episode"])["value"].transform("sum").to_numpy()
        size = frame.groupby(["key", "episode"])["value"].transform("size").to_numpy()
        found = found - np.stack([own, size], axis=1)
    return found[:, 0], found[:, 1]
