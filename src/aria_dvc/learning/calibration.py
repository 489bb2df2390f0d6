"""How good a regression of the credit is at returns of games that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from aria_dvc.clustered import ratio_interval
from aria_dvc.credit.variance import variance

BINS = 5


def fit_metrics(
    actual: np.ndarray,
    predicted: np.ndarray,
    baseline: np.ndarray | float,
    groups: np.ndarray | None = None,
) -> dict[str, Any]:
    """Held-out quality of predicted credits.

    Args:
        actual: (N,) realised returns. A credit holds those of other actions as well, of the
            training side too, so that to predict it proves nothing.
        predicted: (N,) credits.
        baseline: (N,) or one for all: what is predicted of each without reading what was said.
        groups: (N,) labels, of whose group of episodes each action is; None: each is its own.

    Returns:
        mse, mse_of_baseline, r2 = 1 - mse / mse_of_baseline (null where the returns are equal, or
        the baseline errs nowhere: there is nothing to explain), r2_low and r2_high (see
        `r2_interval`), spearman (null where either side is constant), and calibration: per fifth
        of the predictions its mean, the mean return and the number of actions.
    """
    errors, spread = (actual - predicted) ** 2, (actual - baseline) ** 2
    mse, of_baseline = float(np.mean(errors)), float(np.mean(spread))
    explained = variance(actual) > 0 and of_baseline > 0
    drawn = np.arange(len(actual)) if groups is None else groups
    low, high = r2_interval(errors, spread, drawn) if explained else (None, None)
    return {
        "mse": mse,
        "mse_of_baseline": of_baseline,
        "r2": 1 - mse / of_baseline if explained else None,
        "r2_low": low,
        "r2_high": high,
        "spearman": spearman(actual, predicted),
        "calibration": calibration_table(actual, predicted),
    }


def r2_interval(
    errors: np.ndarray, spread: np.ndarray, groups: np.ndarray
) -> tuple[float | None, float | None]:
    """95 % interval of the ratio 1 - sum(errors) / sum(spread), with groups as independent.

    Actions of one episode share its outcome and those of one group their configuration (see
    `ratio_interval`).

    Args:
        errors, spread: (N,) squared distances of the returns to predictions and baseline; the sum
            of spread is not 0.
        groups: (N,) labels.

    Returns:
        low, high; both None for a single group.
    """
    _, low, high = ratio_interval(errors, spread, groups)
    if low is None or high is None:
        return None, None
    return 1 - high, min(1.0, 1 - low)


def spearman(actual: np.ndarray, predicted: np.ndarray) -> float | None:
    """Rank correlation; None where it is undefined."""
    from scipy.stats import spearmanr

    if len(actual) < 2 or np.ptp(actual) == 0 or np.ptp(predicted) == 0:
        return None
    return float(spearmanr(actual, predicted).statistic)


def calibration_table(actual: np.ndarray, predicted: np.ndarray) -> list[dict[str, float]]:
    """Rows of {predicted, actual, actions}, from the lowest to the highest predictions."""
    order = np.argsort(predicted, kind="stable")
    return [
        {
            "predicted": float(predicted[part].mean()),
            "actual": float(actual[part].mean()),
            "actions": len(part),
        }
        for part in np.array_split(order, min(BINS, len(order)))
    ]
