"""Variance of returns and of the credit that replaces them (paper Lemma 4.1)."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-12


def variance(values: np.ndarray) -> float:
    """Population variance of (m,) numbers; 0 where they are equal but for rounding."""
    found = float(np.var(values))
    return found if found > ROUNDING * float(np.abs(values).max(initial=0.0)) ** 2 else 0.0


def variances(returns: np.ndarray, credit: np.ndarray, in_sample: bool) -> tuple[float, float]:
    """Variance of the (A,) returns and of the credit that replaces them.

    in_sample: the credit is the mean of cells of the returns, whose variance is never the larger.
    """
    before, after = variance(returns), variance(credit)
    return before, min(before, after) if in_sample else after
