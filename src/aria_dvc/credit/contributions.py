"""How near the contributions of actions come to outcomes: as sums, and before the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from aria_dvc.credit.methods.units import units_of
from aria_dvc.intentions.log import Log

QUARTERS = 4


def contribution_quality(
    contributions: np.ndarray, expected: np.ndarray, data: Log
) -> dict[str, Any]:
    """What is measured of contributions that were made without the outcomes of their own episodes.

    Args:
        contributions: (A,) c_t. expected: (A,) what the outcome was expected to be before the first
            action, so that P_t = expected + c_1 + .. + c_t.

    Returns:
        dialogues: of one role in one episode. sum_error, constant_error: mean (P_T - R)^2, and mean
        (expected - R)^2. sum_r2: 1 less their quotient; null where no outcome differs from what
        was expected. last_share: mean share of the last action in sum |c_t|; null where all are 0.
        quarters: of P_t within each quarter of the dialogues (the last action is in the last one)
        the number of actions, r2 against what was expected, and auc: how often P_t - expected is
        larger where the outcome is above what was expected than where it is not; null where
        there are not both.
    """
    units = units_of(data)
    running, surplus = units.running(contributions), data.outcomes - expected
    errors = [float(np.mean(d[units.last] ** 2)) for d in (running - surplus, surplus)]
    size = np.abs(contributions)
    total = np.bincount(units.unit, weights=size)
    shares = (size[units.last] / np.where(total > 0, total, 1.0))[total > 0]
    so_far = units.running(np.ones(len(size)))
    quarter = np.ceil(QUARTERS * so_far / np.bincount(units.unit)[units.unit])
    parts = [quarter == number for number in range(1, QUARTERS + 1)]
    return {
        "dialogues": len(units.last),
        "sum_error": errors[0],
        "constant_error": errors[1],
        "sum_r2": 1 - errors[0] / errors[1] if errors[1] > 0 else None,
        "last_share": float(shares.mean()) if len(shares) else None,
        "quarters": [_predicts(running[part], surplus[part]) for part in parts],
    }


def _predicts(running: np.ndarray, surplus: np.ndarray) -> dict[str, Any]:
    """How well sums so far predict the (n,) surplus of the outcome."""
    spread = float((surplus**2).sum())
    r2 = 1 - float(((running - surplus) ** 2).sum()) / spread if spread > 0 else None
    return {"actions": len(surplus), "r2": r2, "auc": area_under_curve(running, surplus > 0)}


def area_under_curve(scores: np.ndarray, good: np.ndarray) -> float | None:
    """How often a (n,) score is larger where `good`, (n,) bool, ties counting half; None where
    all are good, or none."""
    count, others = int(good.sum()), int((~good).sum())
    if not count or not others:
        return None
    above = float(rankdata(scores)[good].sum()) - count * (count + 1) / 2
    return above / (count * others)
