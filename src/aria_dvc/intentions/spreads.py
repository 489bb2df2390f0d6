"""Calinski-Harabasz, Davies-Bouldin and inertia of all nested cuts from running sums.

The cuts at k = 2 .. K have 2 K - 1 clusters in all: the K finest, and one more for each join on the
way up. Their sums give the centres, one product with all centres the distances to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

_ROWS = 4_096
_NOTHING = 1e-25
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Members:
    """m distinct points, those of a finest cluster next to each other.

    points: (m, d) float32 or float64. weights: (m,) float64 counts.
    cluster: (m,) finest cluster, 0 .. clusters - 1.
    """

    points: np.ndarray
    weights: np.ndarray
    cluster: np.ndarray
    clusters: int

    @cached_property
    def sizes(self) -> np.ndarray:
        """(K,) float64 weight of each finest cluster."""
        return np.bincount(self.cluster, self.weights, self.clusters)

    def indicator(self, part: slice, *, weighted: bool) -> np.ndarray:
        """(K, p) which points of a part are in which finest cluster: 1 or their weight."""
        own = self.cluster[part]
        out = np.zeros((self.clusters, own.size))
        out[own, np.arange(own.size)] = self.weights[part] if weighted else 1.0
        return out

    def parts(self) -> list[slice]:
        return [slice(start, start + _ROWS) for start in range(0, len(self.points), _ROWS)]


def spread_indices(
    members: Members, parents: list[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Calinski-Harabasz, Davies-Bouldin and inertia, (K - 1,) float64 each, at k = 2 .. K.

    parents: for each new label 1 .. K - 1, the label that it splits from.
    """
    mean = np.einsum("i,ij->j", members.weights, members.points) / members.weights.sum()
    nodes = _nodes(parents)
    sizes = nodes @ members.sizes
    centres = nodes @ _sums(members, mean) / np.maximum(sizes, 1.0)[:, None]
    spread, inertia = _spreads(members, mean, centres, nodes)
    return _walk(parents, centres, sizes, spread / np.maximum(sizes, 1.0), inertia)


def _sums(members: Members, mean: np.ndarray) -> np.ndarray:
    """(K, d) weighted sums of the finest clusters, relative to the mean."""
    sums = np.zeros((members.clusters, members.points.shape[1]))
    for part in members.parts():
        sums += members.indicator(part, weighted=True) @ (members.points[part] - mean)
    return sums


def _nodes(parents: list[int]) -> np.ndarray:
    """(2 K - 1, K) membership of the finest clusters in all clusters of all cuts.

    Rows 0 .. K - 1 are the finest clusters by label; row K + t is the cluster that the t-th join
    (undoing the last split first) makes.
    """
    clusters = len(parents) + 1
    nodes = np.zeros((2 * clusters - 1, clusters))
    nodes[:clusters] = np.eye(clusters)
    current = list(range(clusters))
    for t, label in enumerate(range(clusters - 1, 0, -1)):
        parent = parents[label - 1]
        nodes[clusters + t] = nodes[current[parent]] + nodes[current[label]]
        current[parent] = clusters + t
    return nodes


def _spreads(
    members: Members, mean: np.ndarray, centres: np.ndarray, nodes: np.ndarray
) -> tuple[np.ndarray, float]:
    """Summed distance (2 K - 1,) of members to their centre, and the inertia of the finest cut."""
    lengths = np.einsum("ij,ij->i", centres, centres)
    totals, inertia = np.zeros(len(centres)), 0.0
    for part in members.parts():
        x, weights = members.points[part] - mean, members.weights[part]
        scale = np.einsum("ij,ij->i", x, x)[:, None] + lengths
        squared = scale - 2.0 * (x @ centres.T)
        squared[squared < _ROUNDING * scale] = 0.0
        np.sqrt(squared, out=squared)
        by_cluster = members.indicator(part, weighted=True) @ squared
        totals += np.einsum("ij,ji->i", nodes, by_cluster)
        x -= centres[members.cluster[part]]
        inertia += float(weights @ np.einsum("ij,ij->i", x, x))
    return totals, inertia


def _walk(
    parents: list[int], centres: np.ndarray, sizes: np.ndarray, spread: np.ndarray, inertia: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Go from the finest cut to two clusters, joining one pair at a time."""
    clusters, gaps = len(parents) + 1, cdist(centres, centres)
    finest = slice(0, clusters)
    total = inertia + float(sizes[finest] @ (centres[finest] ** 2).sum(axis=1))
    current = np.arange(clusters)
    out = np.empty((3, clusters - 1))
    for t, k in enumerate(range(clusters, 1, -1)):
        live = current[:k][sizes[current[:k]] > 0]
        out[0, k - 2] = _calinski_harabasz(total, inertia, live.size, sizes[finest].sum())
        out[1, k - 2] = _davies_bouldin(spread[live], gaps[np.ix_(live, live)])
        out[2, k - 2] = inertia
        a, b = current[parents[k - 2]], current[k - 1]
        inertia += sizes[a] * sizes[b] / max(sizes[a] + sizes[b], 1.0) * gaps[a, b] ** 2
        current[parents[k - 2]] = clusters + t
    return out[0], out[1], out[2]


def _calinski_harabasz(total: float, within: float, k: int, n: float) -> float:
    if k < 2:
        return float("nan")
    if n <= k or within <= _NOTHING * total:
        return 1.0
    return (total - within) / within * (n - k) / (k - 1.0)


def _davies_bouldin(spread: np.ndarray, gaps: np.ndarray) -> float:
    if spread.size < 2:
        return float("nan")
    apart = np.where(gaps == 0.0, np.inf, gaps)
    return float(((spread[:, None] + spread) / apart).max(axis=1).mean())
