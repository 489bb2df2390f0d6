"""Geometric quality of every cut: silhouette, Calinski-Harabasz, Davies-Bouldin (App. E).

One quadratic pass sums the distances from each distinct point to each of the finest clusters;
cuts are nested, so coarser k only add columns. The other two indices need the sums of the finest
clusters and the mean distance to the centre of each of the fewer than 2 K clusters that any cut
has. Values equal scikit-learn's (silhouette to 1e-5, see `distances`).

Defined where scikit-learn refuses: a silhouette of 0 when every cluster is a singleton; NaN for
all three when fewer than two clusters have members. Calinski-Harabasz is 1 when the clusters have
no spread (as in scikit-learn) or as many members as clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.intentions.cuts import Cuts
from aria_dvc.intentions.distinct import Distinct, find_distinct

_SMALL = 2_048
_COLUMNS = 2_048
_ROWS = 4_096
_NOTHING = 1e-25
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Indices:
    """One value per number of clusters, all (K - 1,) float64 aligned with `ks`.

    inertia: within-cluster sum of squared distances to the centres.
    """

    ks: np.ndarray
    silhouette: np.ndarray
    calinski_harabasz: np.ndarray
    davies_bouldin: np.ndarray
    inertia: np.ndarray


def index_curves(
    points: np.ndarray,
    cuts: Cuts,
    *,
    rows: np.ndarray | None = None,
    distinct: Distinct | None = None,
    threads: int | None = None,
) -> Indices:
    """All indices at every k of `cuts`.

    points: (n, d) float32 or float64, the rows that were clustered.
    rows: (r,) indices or (n,) mask: judge the cuts on these utterances only (one role's).
    distinct: the grouping of all n rows, if already known and `rows` is not given.
    """
    finest = cuts.finest
    if len(cuts.table) < 2:
        unknown = np.full(cuts.ks.size, np.nan)
        return Indices(cuts.ks, unknown, unknown, unknown, np.zeros(cuts.ks.size))
    if rows is not None:
        points, finest, distinct = points[rows], finest[rows], None
    distinct = distinct or find_distinct(points)
    order = _tree_order(cuts, finest[distinct.first])
    unique = np.take(points, distinct.first[order], axis=0)
    weights = distinct.count[order].astype(np.float64)
    finest = finest[distinct.first[order]]
    silhouette = _silhouettes(unique, weights, finest, cuts, threads)
    chs, dbs, inertia = _sum_indices(unique, weights, finest, cuts)
    return Indices(cuts.ks, silhouette, chs, dbs, inertia)


def _tree_order(cuts: Cuts, finest: np.ndarray) -> np.ndarray:
    """Points sorted so that every cluster of every cut is a contiguous range."""
    place = np.empty(len(cuts.table), np.int64)
    place[np.lexsort(cuts.table.T[::-1])] = np.arange(len(cuts.table))
    return np.argsort(place[finest], kind="stable")


def _silhouettes(unique, weights, finest, cuts: Cuts, threads: int | None) -> np.ndarray:
    clusters = cuts.ks.size + 1
    if len(unique) <= _SMALL:
        sums = _small_sums(unique, weights, finest, clusters)
    else:
        from aria_dvc.intentions.distances import cluster_sums

        sums = cluster_sums(unique, weights, finest, clusters, threads=threads)
    sizes = np.bincount(finest, weights, clusters)
    parents = _parents(cuts)
    totals = np.zeros(cuts.ks.size)
    for start in range(0, len(unique), _COLUMNS):
        part = slice(start, start + _COLUMNS)
        totals += _silhouette_sums(
            sums[:, part].copy(), weights[part], finest[part], sizes, parents
        )
    return np.where(_occupied(cuts, sizes) > 1, totals / weights.sum(), np.nan)


def _small_sums(unique, weights, finest, clusters: int) -> np.ndarray:
    """(K, m) weighted distance sums from all points to each finest cluster, in float64."""
    x = unique.astype(np.float64)
    x -= x.mean(axis=0)
    norms = np.einsum("ij,ij->i", x, x)
    squared = np.maximum(norms[:, None] + norms - 2.0 * (x @ x.T), 0.0)
    np.fill_diagonal(squared, 0.0)
    members = np.zeros((clusters, len(x)))
    members[finest, np.arange(len(x))] = weights
    return members @ np.sqrt(squared)


def _parents(cuts: Cuts) -> list[int]:
    """For each new label 1 .. K - 1, the label that it splits from."""
    table = np.concatenate([np.zeros((len(cuts.table), 1), np.uint8), cuts.table], axis=1)
    return [int(table[label, label - 1]) for label in range(1, len(table))]


def _occupied(cuts: Cuts, sizes: np.ndarray) -> np.ndarray:
    """(K - 1,) clusters with members at each k."""
    used = cuts.table[sizes > 0]
    return np.array([np.unique(column).size for column in used.T])


def _silhouette_sums(sums, weights, finest, sizes, parents) -> np.ndarray:
    """(K - 1,) weighted sums of the silhouette values of some points; `sums` (K, p) is used up."""
    own, sizes, each = finest.astype(np.int64), sizes.copy(), np.arange(finest.size)
    totals = np.zeros(len(parents))
    for k in range(len(sums), 1, -1):
        with np.errstate(divide="ignore", invalid="ignore"):
            means = sums[:k] / np.where(sizes[:k] > 0, sizes[:k], 0.0)[:, None]
            inside = sums[own, each] / (sizes[own] - 1.0)
        means[sizes[:k] == 0] = np.inf
        means[own, each] = np.inf
        outside = means.min(axis=0)
        value = _silhouette(inside, outside)
        totals[k - 2] = weights @ np.where(sizes[own] > 1, value, 0.0)
        parent = parents[k - 2]
        sums[parent] += sums[k - 1]
        sizes[parent] += sizes[k - 1]
        own[own == k - 1] = parent
    return totals


def _silhouette(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (outside - inside) / np.maximum(inside, outside)
    return np.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)


def _sum_indices(unique, weights, finest, cuts: Cuts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Calinski-Harabasz, Davies-Bouldin and inertia at every k, from the sums of all clusters."""
    clusters, parents = cuts.ks.size + 1, _parents(cuts)
    mean = np.average(unique, axis=0, weights=weights).astype(np.float64)
    sums, sizes = _cluster_totals(unique, weights, finest, clusters, mean)
    nodes = _nodes(parents)
    node_sums, node_sizes = nodes @ sums, nodes @ sizes
    centres = node_sums / np.maximum(node_sizes, 1.0)[:, None]
    spread, inertia_finest = _spreads(unique, weights, finest, mean, centres, nodes, node_sizes)
    return _walk(parents, centres, node_sizes, spread, inertia_finest)


def _cluster_totals(unique, weights, finest, clusters, mean) -> tuple[np.ndarray, np.ndarray]:
    sums = np.zeros((clusters, unique.shape[1]))
    for start in range(0, len(unique), _ROWS):
        part = slice(start, start + _ROWS)
        members = np.zeros((clusters, len(unique[part])))
        members[finest[part], np.arange(len(unique[part]))] = weights[part]
        sums += members @ (unique[part] - mean)
    return sums, np.bincount(finest, weights, clusters)


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


def _spreads(unique, weights, finest, mean, centres, nodes, sizes) -> tuple[np.ndarray, float]:
    """Mean distance (2 K - 1,) of members to their centre, and the inertia of the finest cut."""
    clusters = nodes.shape[1]
    lengths = np.einsum("ij,ij->i", centres, centres)
    totals, inertia = np.zeros(len(centres)), 0.0
    for start in range(0, len(unique), _ROWS):
        part = slice(start, start + _ROWS)
        x = unique[part] - mean
        scale = np.einsum("ij,ij->i", x, x)[:, None] + lengths
        squared = scale - 2.0 * (x @ centres.T)
        squared[squared < _ROUNDING * scale] = 0.0
        x -= centres[finest[part]]
        inertia += float(weights[part] @ np.einsum("ij,ij->i", x, x))
        np.sqrt(squared, out=squared)
        squared *= weights[part, None]
        members = np.zeros((clusters, len(x)))
        members[finest[part], np.arange(len(x))] = 1.0
        totals += np.einsum("ij,ji->i", nodes, members @ squared)
    return totals / np.maximum(sizes, 1.0), inertia


def _walk(parents, centres, sizes, spread, inertia_finest):
    """Go from the finest cut to two clusters, joining one pair at a time."""
    clusters = len(parents) + 1
    current = np.arange(clusters)
    n, between_all = (
        sizes[:clusters].sum(),
        float(sizes[:clusters] @ (centres[:clusters] ** 2).sum(1)),
    )
    total = inertia_finest + between_all
    gaps = _gaps(centres)
    chs, dbs, inertias = (np.empty(clusters - 1) for _ in range(3))
    inertia = inertia_finest
    for t, k in enumerate(range(clusters, 1, -1)):
        live = current[:k][sizes[current[:k]] > 0]
        chs[k - 2] = _calinski_harabasz(total - inertia, inertia, live.size, n)
        dbs[k - 2] = _davies_bouldin(spread[live], gaps[np.ix_(live, live)])
        inertias[k - 2] = inertia
        a, b = current[parents[k - 2]], current[k - 1]
        both = max(sizes[a] + sizes[b], 1.0)
        inertia += sizes[a] * sizes[b] / both * float(((centres[a] - centres[b]) ** 2).sum())
        current[parents[k - 2]] = clusters + t
    return chs, dbs, inertias


def _gaps(centres: np.ndarray) -> np.ndarray:
    """(2 K - 1, 2 K - 1) distances between all centres."""
    from scipy.spatial.distance import cdist

    return cdist(centres, centres)


def _calinski_harabasz(between: float, within: float, k: int, n: float) -> float:
    if k < 2:
        return float("nan")
    if n <= k or within <= _NOTHING * between:
        return 1.0
    return between / within * (n - k) / (k - 1.0)


def _davies_bouldin(spread: np.ndarray, gaps: np.ndarray) -> float:
    if spread.size < 2:
        return float("nan")
    gaps = np.where(gaps == 0.0, np.inf, gaps)
    return float(((spread[:, None] + spread) / gaps).max(axis=1).mean())
