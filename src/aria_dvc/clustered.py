"""The one interval of figures whose observations come in clusters: games of a configuration, turns
of an episode."""

from __future__ import annotations

import math

import numpy as np

CONFIDENCE = 0.95


def ratio_interval(
    above: np.ndarray, below: np.ndarray, clusters: np.ndarray
) -> tuple[float, float | None, float | None]:
    """sum(above) / sum(below) with a 95 % interval that takes clusters as independent.

    t with G - 1 degrees of freedom for G clusters, on the ratio r's linearisation: squared standard
    error G / (G - 1) * sum_g (a_g - r b_g)^2 / sum(below)^2, a_g and b_g the sums of cluster g. It
    keeps its 95 % with few clusters, where a bootstrap believes what a few say alike.

    Args:
        above, below: (n,) float64; the sum of below is not 0. Ones below make it a mean.
        clusters: (n,) labels.

    Returns:
        ratio, low, high; low and high are None for a single cluster.
    """
    from scipy.stats import t

    _, group = np.unique(clusters, return_inverse=True)
    over, under = np.bincount(group, weights=above), np.bincount(group, weights=below)
    total, count = float(under.sum()), len(over)
    ratio = float(over.sum()) / total
    if count < 2:
        return ratio, None, None
    residuals = (over - ratio * under) / total
    error = math.sqrt(count / (count - 1) * float(np.square(residuals).sum()))
    half = float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    return ratio, ratio - half, ratio + half
