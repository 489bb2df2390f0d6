"""Merge trees in SciPy's layout, from merges in any order where parts come before wholes."""

from __future__ import annotations

import numpy as np

from aria_dvc.intentions.distinct import Distinct


def monotone_heights(pairs: np.ndarray, heights: np.ndarray, leaves: int) -> np.ndarray:
    """Heights (t,) raised to those of their parts where rounding put them below."""
    raised = heights.copy()
    inner = pairs.astype(np.int64) - leaves
    while True:
        parts = np.where(inner >= 0, raised[np.maximum(inner, 0)], 0.0).max(axis=1, initial=0.0)
        if not (parts > raised).any():
            return raised
        raised = np.maximum(raised, parts)


def scipy_tree(pairs: np.ndarray, heights: np.ndarray, distinct: Distinct) -> np.ndarray:
    """The merge tree Z, float64 (n - 1, 4), over all n rows of a `Distinct` grouping.

    Duplicates merge first, at height 0, each group in row order; then the merges of the distinct
    points by height (equal heights in the order given). Columns as in `scipy.cluster.hierarchy`:
    two cluster numbers, the smaller first, height, number of rows.

    pairs: (m - 1, 2) node numbers (point i is node i, merge t is node m + t).
    heights: (m - 1,) merge heights.
    """
    n, m = distinct.point.size, distinct.first.size
    z = np.empty((n - 1, 4))
    points = _merge_duplicates(z, distinct)
    raised = monotone_heights(pairs, heights, m)
    order = np.argsort(raised, kind="stable")
    number = np.empty(2 * m - 1, np.int64)
    number[:m] = points
    number[m + order] = n + (n - m) + np.arange(m - 1)
    both = np.sort(number[pairs[order]], axis=1)
    z[n - m :, :2] = both
    z[n - m :, 2] = raised[order]
    z[n - m :, 3] = _sizes(pairs, distinct.count)[order]
    return z


def _merge_duplicates(z: np.ndarray, distinct: Distinct) -> np.ndarray:
    """Fill the first n - m rows of z; returns the (m,) cluster number of each distinct point."""
    n, m = distinct.point.size, distinct.first.size
    order = np.argsort(distinct.point, kind="stable")
    start = np.cumsum(distinct.count) - distinct.count
    later = np.delete(order, start)
    group = distinct.point[later]
    step = np.arange(n - m) - np.searchsorted(group, group)
    before = np.where(step == 0, distinct.first[group], n + np.arange(n - m) - 1)
    z[: n - m, 0], z[: n - m, 1] = np.minimum(before, later), np.maximum(before, later)
    z[: n - m, 2], z[: n - m, 3] = 0.0, step + 2
    number = distinct.first.copy()
    number[group] = n + np.arange(n - m)
    return number


def _sizes(pairs: np.ndarray, count: np.ndarray) -> np.ndarray:
    """(m - 1,) rows below each merge."""
    m = count.size
    size = np.zeros(2 * m - 1, np.int64)
    size[:m] = count
    pending = np.arange(m - 1)
    while pending.size:
        parts = size[pairs[pending]]
        ready = (parts > 0).all(axis=1)
        size[m + pending[ready]] = parts[ready].sum(axis=1)
        pending = pending[~ready]
    return size[m:]
