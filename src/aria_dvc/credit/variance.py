"""Variance of returns and of the credit that replaces them (paper Lemma 4.1)."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-12


def variance(values: np.ndarray) -> float:
    """Population variance of (m,) numbers; 0 where they are equal but for rounding."""
    found = float(np.var(values))
    return found if found > ROUNDING * float(np.abs(values).max(initial=0.0)) ** 2 else 0.0


def variances(returns: np.ndarray, credit: np.ndarray) -> tuple[float, float]:
    """Variance of the (A,) returns and of the credit that replaces them, each as it is.

    For means of cells of the returns the second is never the larger but for rounding (law of total
    variance); nothing here makes it so.
    """
    return variance(returns), variance(credit)


def r_squared(credit: np.ndarray, returns: np.ndarray) -> float | None:
    """1 - SSE / SST; None where the returns do not vary."""
    total = variance(returns) * len(returns)
    if total == 0:
        return None
    return 1.0 - float(((returns - credit) ** 2).sum()) / total
