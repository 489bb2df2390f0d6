"""Held-out R2 of label cells at every k, for `select_k.method: cross_validated`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aria_dvc.credit.methods.base import CreditData, episode_folds
from aria_dvc.credit.methods.contexts import Contexts
from aria_dvc.credit.methods.shrinkage import cell_effects, turn_index_fits
from aria_dvc.credit.returns import variance

DEPTH = 2
STRENGTH = 30.0


def r2_by_k(
    data: CreditData,
    labels: np.ndarray,
    folds: int = 5,
    seed: int = 0,
    strength: float = STRENGTH,
    depth: int = DEPTH,
    counted: np.ndarray | None = None,
) -> np.ndarray:
    """R2 on held-out episodes of the shrunken cell means of each column of labels.

    The estimator is `ShrinkageCredit` with fixed settings, so that all k are compared on equal
    terms and the turn-index part, which no label changes, is fitted once a fold.

    Args:
        data: the log; its own labels are not used.
        labels: (n, K) integers, one column a k.
        counted: (A,) mask of the actions whose returns are to be predicted; None for all. All
            are fitted.

    Returns:
        (K,) float64; 0 everywhere if all counted returns are equal.
    """
    fold = episode_folds(data.episode, folds, seed)
    fits = list(turn_index_fits(data, fold, strength))
    if counted is None:
        counted = np.ones(len(data.targets), bool)
    total = variance(data.targets[counted]) * np.count_nonzero(counted)
    scores = np.zeros(labels.shape[1])
    if total == 0:
        return scores
    for column in range(labels.shape[1]):
        levels = Contexts(depth).fit(replace(data, labels=labels[:, column].astype(np.int64)))
        error = 0.0
        for turn_index, weight in fits:
            residual = data.targets - turn_index
            effect = np.zeros(len(residual))
            for level, effects in zip(
                levels, cell_effects(levels, residual, strength, weight), strict=True
            ):
                effect[level.actions] = effects[level.cells]
            error += float(((residual - effect)[(weight == 0) & counted] ** 2).sum())
        scores[column] = 1.0 - error / total
    return scores
