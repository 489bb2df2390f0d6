"""Rates and differences with 95 % intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


def rate(wins: np.ndarray) -> dict[str, Any]:
    """Share of true values of a (n,) bool array with its Wilson interval."""
    if not len(wins):
        return {"rate": None, "low": None, "high": None, "episodes": 0}
    test = stats.binomtest(int(wins.sum()), len(wins))
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return {
        "rate": float(wins.mean()),
        "low": float(interval.low),
        "high": float(interval.high),
        "episodes": len(wins),
    }


def paired_difference(after: np.ndarray, before: np.ndarray) -> dict[str, Any]:
    """Mean of `after - before` over pairs, its t interval and the paired t-test's p value.

    Fewer than two pairs, or differences that are all equal, have no interval (null).
    """
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    mean = float(difference.mean()) if len(difference) else None
    if len(difference) < 2 or np.ptp(difference) == 0:
        return {"mean": mean, "low": None, "high": None, "p": None, "pairs": len(difference)}
    test = stats.ttest_1samp(difference, 0.0)
    interval = test.confidence_interval(CONFIDENCE)
    return {
        "mean": mean,
        "low": float(interval.low),
        "high": float(interval.high),
        "p": float(test.pvalue),
        "pairs": len(difference),
    }
