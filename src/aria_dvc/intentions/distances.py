"""Distance sums from every point to every finest cluster, without an n x n array.

Tiles of squared distances come from float32 products of points taken relative to the mean of the
tile's rows, so that close groups keep their digits; pairs still much closer than the tile is wide
are recomputed in float64 from the points. Sums run in float32 inside a tile (at most `BLOCK`
terms) and in float64 across tiles.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from aria_dvc.intentions.spreads import Members
from aria_dvc.intentions.workers import rounds_of_pairs, workers

BLOCK = 1024
_CLOSE = np.float32(1e-3)
_LOOSE = {"nnan", "nsz", "reassoc", "contract", "arcp"}


def cluster_sums(members: Members, *, threads: int | None = None) -> np.ndarray:
    """(K, m) float64: sum over the members j of cluster c of weights[j] |x_i - x_j|."""
    points, m = members.points, len(members.points)
    spans = [slice(start, min(start + BLOCK, m)) for start in range(0, m, BLOCK)]
    means = [points[span].mean(axis=0, dtype=np.float64) for span in spans]
    weight, cluster = members.weights.astype(np.float32), members.cluster.astype(np.int64)
    sums = np.zeros((members.clusters, m))

    def tile(i: int, j: int) -> None:
        r, c = spans[i], spans[j]
        rows, columns = _relative(points[r], means[i]), _relative(points[c], means[i])
        products = rows @ columns.T
        norms_r, norms_c = (
            np.einsum("ij,ij->i", rows, rows),
            np.einsum("ij,ij->i", columns, columns),
        )
        _distances(products, norms_r, norms_c, points[r], points[c], i == j)
        _add_rows(products, weight[c], cluster[c], sums[:, r])
        if i != j:
            _add_columns(products, weight[r], cluster[r], sums[:, c])

    with workers(threads) as pool:
        for pairs in rounds_of_pairs(len(spans)):
            pool.run(tile, pairs)
    return sums


def _relative(points: np.ndarray, mean: np.ndarray) -> np.ndarray:
    if points.dtype == np.float32:
        return points - mean.astype(np.float32)
    return (points - mean).astype(np.float32)


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _row_distances(row, norm, norms):
    close = 0
    for c in range(row.shape[0]):
        both = norm + norms[c]
        squared = both - np.float32(2.0) * row[c]
        close += squared < _CLOSE * both
        row[c] = np.sqrt(max(squared, np.float32(0.0)))
    return close


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _gap(a, b):
    total = 0.0
    for t in range(a.shape[0]):
        gap = np.float64(a[t]) - np.float64(b[t])
        total += gap * gap
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def _distances(products, norms_r, norms_c, points_r, points_c, same):
    """Turn a tile of products into distances in place."""
    for r in range(products.shape[0]):
        row = products[r]
        if _row_distances(row, norms_r[r], norms_c) > 0:
            for c in range(row.shape[0]):
                if row[c] * row[c] < _CLOSE * (norms_r[r] + norms_c[c]) * np.float32(1.01):
                    row[c] = _gap(points_r[r], points_c[c])
        if same:
            row[r] = np.float32(0.0)


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _segment(row, weight, start, stop):
    total = np.float32(0.0)
    for c in range(start, stop):
        total += row[c] * weight[c]
    return total


@njit(cache=True, nogil=True)
def _ends(cluster):
    """Ends of the runs of equal numbers."""
    ends = np.empty(cluster.shape[0], np.int64)
    found = 0
    for c in range(cluster.shape[0]):
        if c + 1 == cluster.shape[0] or cluster[c + 1] != cluster[c]:
            ends[found] = c + 1
            found += 1
    return ends[:found]


@njit(cache=True, nogil=True)
def _add_rows(distances, weight, cluster, sums):
    """sums (K, r): add each row's weighted distances to the clusters of the columns."""
    ends = _ends(cluster)
    for r in range(distances.shape[0]):
        start = 0
        for stop in ends:
            sums[cluster[start], r] += _segment(distances[r], weight, start, stop)
            start = stop


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _accumulate(row, weight, total):
    for c in range(row.shape[0]):
        total[c] += row[c] * weight


@njit(cache=True, nogil=True)
def _add_columns(distances, weight, cluster, sums):
    """sums (K, c): add each column's weighted distances to the clusters of the rows."""
    total = np.empty(distances.shape[1], np.float32)
    start = 0
    for stop in _ends(cluster):
        total[:] = np.float32(0.0)
        for r in range(start, stop):
            _accumulate(distances[r], weight[r], total)
        for c in range(total.shape[0]):
            sums[cluster[start], c] += total[c]
        start = stop
