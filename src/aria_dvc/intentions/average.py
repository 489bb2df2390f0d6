"""Exact average linkage of weighted points without an n x n array (paper App. D).

The distance of two clusters is the mean Euclidean distance between their members. It is reducible,
so all pairs that are each other's nearest are merged at once and only clusters whose neighbour has
gone look again: the distances of their members to all points are computed in float64, block by
block, and summed by cluster. Once at most `DENSE` clusters are left, the matrix of their summed
distances is made once, and the rest of the tree only adds rows.

Float64 products leave a relative error of about 1e-10 in a distance (pairs much closer than the
data are wide are recomputed from their difference), so distances that agree to 1e-9 are reported
as tied; of equal ones the cluster whose earliest point comes first is the nearer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from aria_dvc.intentions.ward import Merges
from aria_dvc.intentions.workers import Workers, workers

DENSE = 4_096
_ELEMENTS = 1 << 21
_CLOSE = 1e-6
_TIE = 1e-9


def average_merges(
    points: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    threads: int | None = None,
    dense: int = DENSE,
) -> Merges:
    """Average-linkage merges of (m, d) distinct points that stand for `weights` (m,) points."""
    m = len(points)
    weights = np.ones(m) if weights is None else np.asarray(weights)
    if m < 2:
        return Merges(np.empty((0, 2), np.int32), np.empty(0), False)
    clusters = _Clusters(points, weights)
    with workers(threads) as pool:
        while clusters.count > max(dense, 1):
            clusters.look(pool)
            clusters.merge_reciprocal()
        if clusters.count > 1:
            _finish(clusters, clusters.sums_between(pool))
    return Merges(clusters.pairs, clusters.heights, clusters.tied)


class _Clusters:
    """Clusters in the order of their earliest points, and the merges so far.

    of: (m,) cluster of each point; node, size: (c,) node number and weight of each cluster.
    nearest, reach: (c,) nearest cluster (-1: must look) and its distance.
    """

    def __init__(self, points: np.ndarray, weights: np.ndarray) -> None:
        m = len(points)
        self.points = points.astype(np.float64)
        self.points -= np.einsum("i,ij->j", weights, self.points) / weights.sum()
        self.lengths = np.einsum("ij,ij->i", self.points, self.points)
        self.weights = weights.astype(np.float64)
        self.of, self.node, self.size = np.arange(m), np.arange(m), self.weights.copy()
        self.nearest, self.reach = np.full(m, -1), np.full(m, np.inf)
        self.pairs, self.heights = np.empty((m - 1, 2), np.int32), np.empty(m - 1)
        self.done, self.tied = 0, False

    @property
    def count(self) -> int:
        return self.node.size

    def look(self, pool: Workers) -> None:
        """Find the nearest cluster of every one that has none."""
        order, start = self._layout()

        def search(some: np.ndarray) -> None:
            mean = self._sums(some, order, start) / (self.size[some, None] * self.size)
            mean[np.arange(some.size), some] = np.inf
            self.nearest[some] = mean.argmin(axis=1)
            self.reach[some] = mean.min(axis=1)
            near = mean <= self.reach[some, None] * (1.0 + _TIE)
            if (near.sum(axis=1) > 1).any():
                self.tied = True

        pool.run(search, ((g,) for g in self._groups(np.flatnonzero(self.nearest < 0))))

    def sums_between(self, pool: Workers) -> np.ndarray:
        """(c, c) weighted sums of the distances between the members of all clusters."""
        order, start = self._layout()
        sums = np.empty((self.count, self.count))

        def fill(some: np.ndarray) -> None:
            sums[some] = self._sums(some, order, start)

        pool.run(fill, ((g,) for g in self._groups(np.arange(self.count))))
        return (sums + sums.T) / 2.0

    def merge_reciprocal(self) -> None:
        """Merge all pairs that are each other's nearest."""
        each = np.arange(self.count)
        first = np.flatnonzero((self.nearest[self.nearest] == each) & (each < self.nearest))
        second = self.nearest[first]
        if not first.size:  # rounding broke a tie differently seen from its two sides
            i = int(self.reach.argmin())
            first, second = np.sort([[i], [self.nearest[i]]], axis=0)
        into = each.copy()
        into[second] = first
        gone = np.isin(self.nearest, np.concatenate([first, second]))
        for i, j in zip(first.tolist(), second.tolist(), strict=True):
            self.record(i, j, float(self.reach[i]))
        self.nearest = np.where(gone, -1, into[self.nearest])
        self.nearest[first] = -1
        self._keep(np.delete(each, second), into)

    def record(self, i: int, j: int, height: float) -> None:
        """Note the merge of cluster j into cluster i."""
        self.pairs[self.done] = self.node[i], self.node[j]
        self.heights[self.done] = height
        self.node[i] = self.of.size + self.done
        self.size[i] += self.size[j]
        self.done += 1

    def _keep(self, kept: np.ndarray, into: np.ndarray) -> None:
        """Number the `kept` clusters afresh; `into` tells where the points of the others went."""
        number = np.full(into.size, -1)
        number[kept] = np.arange(kept.size)
        self.of = number[into[self.of]]
        self.node, self.size, self.reach = self.node[kept], self.size[kept], self.reach[kept]
        near = self.nearest[kept]
        self.nearest = np.where(near < 0, -1, number[near])

    def _layout(self) -> tuple[np.ndarray, np.ndarray]:
        """Points sorted by cluster, and where each cluster starts."""
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(self.of[order], np.arange(self.count + 1))

    def _groups(self, some: np.ndarray) -> Iterator[np.ndarray]:
        """Clusters in groups whose distance blocks stay small."""
        rows = np.bincount(self.of, minlength=self.count)[some]
        block = np.cumsum(rows) // max(1, _ELEMENTS // self.of.size)
        yield from np.split(some, np.flatnonzero(np.diff(block)) + 1)

    def _sums(self, some: np.ndarray, order: np.ndarray, start: np.ndarray) -> np.ndarray:
        """(s, c) weighted sums of the distances from clusters `some` to all clusters."""
        rows = np.concatenate([order[start[c] : start[c + 1]] for c in some])
        owner = np.repeat(np.arange(some.size), start[some + 1] - start[some])
        sums = np.zeros((some.size, self.count))
        step = max(1, _ELEMENTS // self.of.size)
        for at in range(0, rows.size, step):  # a single cluster may hold most of the points
            part, owners = rows[at : at + step], owner[at : at + step]
            distances = self._distances(part)[:, order]
            distances *= self.weights[order]
            distances *= self.weights[part, None]
            by_cluster = np.add.reduceat(distances, start[:-1], axis=1)
            begins = np.flatnonzero(np.diff(owners, prepend=-1))
            sums[owners[begins]] += np.add.reduceat(by_cluster, begins, axis=0)
        return sums

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        """(r, m) Euclidean distances from some points to all."""
        scale = self.lengths[rows, None] + self.lengths
        squared = scale - 2.0 * (self.points[rows] @ self.points.T)
        close = np.nonzero(squared < _CLOSE * scale)
        for at in range(0, close[0].size, 1024):
            i, j = close[0][at : at + 1024], close[1][at : at + 1024]
            gap = self.points[rows[i]] - self.points[j]
            squared[i, j] = np.einsum("ij,ij->i", gap, gap)
        return np.sqrt(squared, out=squared)


def _finish(clusters: _Clusters, sums: np.ndarray) -> None:
    """Merge what is left by nearest-neighbour chains on the (c, c) summed distances."""
    pairs, heights, tied = _chain(sums, clusters.size.copy())
    for (i, j), height in zip(pairs.tolist(), heights.tolist(), strict=True):
        clusters.record(i, j, height)
    clusters.tied = clusters.tied or bool(tied)


@njit(cache=True, nogil=True)
def _nearest(sums, size, alive, i):
    """Nearest live cluster of i, its mean distance and whether another one is as near."""
    best, low, second = -1, np.inf, np.inf
    for j in range(size.shape[0]):
        if j == i or not alive[j]:
            continue
        mean = sums[i, j] / (size[i] * size[j])
        if mean < low:
            best, low, second = j, mean, low
        elif mean < second:
            second = mean
    return best, low, second <= low * (1.0 + _TIE)


@njit(cache=True, nogil=True)
def _chain(sums, size):
    """Pairs (c - 1, 2), the second merging into the first, heights and whether any was tied."""
    count = size.shape[0]
    pairs, heights = np.empty((count - 1, 2), np.int64), np.empty(count - 1)
    alive, chain = np.ones(count, np.bool_), np.empty(count, np.int64)
    length, done, tied = 0, 0, False
    while done < count - 1:
        if length == 0:
            chain[0], length = np.argmax(alive), 1
        i = chain[length - 1]
        j, low, equal = _nearest(sums, size, alive, i)
        tied = tied or equal
        if length > 1:
            back = chain[length - 2]
            if sums[i, back] / (size[i] * size[back]) <= low:
                j = back
        if length < 2 or j != chain[length - 2]:
            chain[length] = j
            length += 1
            continue
        length -= 2
        i, j = min(i, j), max(i, j)
        pairs[done, 0], pairs[done, 1], heights[done] = i, j, low
        for t in range(count):
            sums[i, t] += sums[j, t]
            sums[t, i] = sums[i, t]
        size[i] += size[j]
        alive[j] = False
        done += 1
    return pairs, heights, tied
