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
    result = mean_interval(difference)
    return {"pairs": result.pop("count"), **result}


def mean_interval(values: np.ndarray) -> dict[str, Any]:
    """Mean of (n,) float64 values with its t interval and the p value against 0.

    Fewer than two values, or values that are all equal, have no interval (null).
    """
    mean = float(values.mean()) if len(values) else None
    if len(values) < 2 or np.ptp(values) == 0:
        return {"mean": mean, "low": None, "high": None, "p": None, "count": len(values)}
    test = stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(CONFIDENCE)
    return {
        "mean": mean,
        "low": float(interval.low),
        "high": float(interval.high),
        "p": float(test.pvalue),
        "count": len(values),
    }
