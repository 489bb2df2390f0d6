"""Agglomerative merge trees over utterance embeddings (paper sec. 3.2 and App. D).

`linkage` returns the tree that SciPy's float64 `linkage` returns, without its n x n array:
duplicates become weighted points, neighbours come from blocked float32 products, and whatever
decides a merge is computed in float64 (`ward`). Up to `SMALL` utterances SciPy itself is the
fastest; up to `TIED` utterances it also decides when equally near clusters make several trees
right, so that ties fall as they do there. Above, ties go to the cluster with the earliest
utterance. Beyond `exact_limit` distinct utterances the tree is near-exact (`micro`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster import hierarchy

from aria_dvc.errors import AriaError
from aria_dvc.intentions.distinct import check_points, find_distinct
from aria_dvc.intentions.tree import scipy_tree

if TYPE_CHECKING:
    from aria_dvc.intentions.ward import Merges

METHODS = ("ward", "average")
SMALL = 1_024
TIED = 4_096
EXACT_LIMIT = 200_000
_TIE = 1e-11


def linkage(
    points: np.ndarray,
    method: str = "ward",
    *,
    exact_limit: int = EXACT_LIMIT,
    threads: int | None = None,
    small: int = SMALL,
    tied: int = TIED,
) -> np.ndarray:
    """The merge tree of (n, d) embeddings: float64 (n - 1, 4) in SciPy's layout.

    points: float32 or float64 (n, d), finite; n = 0 and n = 1 give an empty tree.
    method: "ward" or "average" (Euclidean distances).
    exact_limit: Ward trees of more distinct points than this are near-exact.
    threads: worker threads (default: OMP_NUM_THREADS or all); they change nothing in the result.
    small, tied: sizes up to which SciPy's own loop is used always, or when there are ties.

    Raises:
        AriaError: unknown method, NaN or infinite values, an array that is not (n, d).
    """
    if method not in METHODS:
        raise AriaError(f"linkage: unknown method '{method}'; choose one of {', '.join(METHODS)}")
    points = check_points(points)
    if len(points) < 2:
        return np.empty((0, 4))
    if len(points) <= small:
        return _reference(points, method)
    distinct = find_distinct(points)
    unique = points if distinct.first.size == len(points) else points[distinct.first]
    merges = _merges(unique, distinct.count, method, exact_limit, threads)
    z = scipy_tree(merges.pairs, merges.heights, distinct)
    if len(points) <= tied and (merges.tied or _equal_heights(z[:, 2])):
        return _reference(points, method)
    return z


def _merges(
    unique: np.ndarray, weights: np.ndarray, method: str, exact_limit: int, threads: int | None
) -> Merges:
    # Compiled loops take half a second to load, which small logs should not wait for.
    if method == "average":
        from aria_dvc.intentions.average import average_merges

        return average_merges(unique, weights, threads=threads)
    if len(unique) > exact_limit:
        from aria_dvc.intentions.micro import near_exact_merges

        return near_exact_merges(unique, weights, exact_limit=exact_limit, threads=threads)
    from aria_dvc.intentions.ward import ward_merges

    return ward_merges(unique, weights, threads=threads)


def _reference(points: np.ndarray, method: str) -> np.ndarray:
    return hierarchy.linkage(points.astype(np.float64), method)


def _equal_heights(heights: np.ndarray) -> bool:
    positive = heights[heights > 0]
    return bool((np.diff(positive) <= _TIE * positive[1:]).any())
