"""How good a regression of the credit is on episodes that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from aria_dvc.credit.variance import variance

BINS = 5


def fit_metrics(actual: np.ndarray, predicted: np.ndarray, training_mean: float) -> dict[str, Any]:
    """Held-out quality of predicted credits.

    Args:
        actual, predicted: (N,) credits.
        training_mean: what a model that knows nothing predicts.

    Returns:
        mse, mse_of_mean, r2 = 1 - mse / mse_of_mean (null where the actual credits are equal:
        there is nothing to explain), spearman (null where either side is constant), and
        calibration: per fifth of the predictions its mean, the mean credit and the number of
        actions.
    """
    mse = float(np.mean((actual - predicted) ** 2))
    baseline = float(np.mean((actual - training_mean) ** 2))
    return {
        "mse": mse,
        "mse_of_mean": baseline,
        "r2": 1 - mse / baseline if variance(actual) > 0 else None,
        "spearman": spearman(actual, predicted),
        "calibration": calibration_table(actual, predicted),
    }


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
