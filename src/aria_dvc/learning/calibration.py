"""How good a regression of the credit is on episodes that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from aria_dvc.credit.variance import variance

BINS = 5
RESAMPLES = 2000
TAILS = (2.5, 97.5)  # percentiles


def fit_metrics(
    actual: np.ndarray,
    predicted: np.ndarray,
    training_mean: float,
    episodes: np.ndarray | None = None,
) -> dict[str, Any]:
    """Held-out quality of predicted credits.

    Args:
        actual, predicted: (N,) credits.
        training_mean: what a model that knows nothing predicts.
        episodes: (N,) labels, whose episode each action is of; None: each is its own.

    Returns:
        mse, mse_of_mean, r2 = 1 - mse / mse_of_mean (null where the actual credits are equal:
        there is nothing to explain), r2_low and r2_high (see `r2_interval`), spearman (null where
        either side is constant), and calibration: per fifth of the predictions its mean, the mean
        credit and the number of actions.
    """
    errors, spread = (actual - predicted) ** 2, (actual - training_mean) ** 2
    mse, baseline = float(np.mean(errors)), float(np.mean(spread))
    explained = variance(actual) > 0
    groups = np.arange(len(actual)) if episodes is None else episodes
    low, high = r2_interval(errors, spread, groups) if explained else (None, None)
    return {
        "mse": mse,
        "mse_of_mean": baseline,
        "r2": 1 - mse / baseline if explained else None,
        "r2_low": low,
        "r2_high": high,
        "spearman": spearman(actual, predicted),
        "calibration": calibration_table(actual, predicted),
    }


def r2_interval(
    errors: np.ndarray, spread: np.ndarray, episodes: np.ndarray
) -> tuple[float | None, float | None]:
    """95 % bootstrap interval of 1 - mean(errors) / mean(spread), drawing whole episodes.

    Actions of one episode share its outcome, so episodes are what is independent.

    Args:
        errors, spread: (N,) squared distances of the credits to the predictions, and to the mean.
        episodes: (N,) labels.

    Returns:
        low, high; both None for a single episode.
    """
    _, group = np.unique(episodes, return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    if count < 2:
        return None, None
    sums = np.stack([np.bincount(group, weights=values) for values in (errors, spread)])
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    resampled = sums[:, drawn].sum(axis=2)
    some = resampled[1] > 0
    low, high = np.percentile(1 - resampled[0, some] / resampled[1, some], TAILS)
    return float(low), float(high)


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
