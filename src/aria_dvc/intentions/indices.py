"""Geometric quality of every cut: silhouette, Calinski-Harabasz, Davies-Bouldin (App. E).

One quadratic pass sums the distances from each distinct point to each of the finest clusters;
cuts are nested, so coarser k only add columns. The other two indices come from running sums
(`spreads`). Values equal scikit-learn's, the silhouette to 1e-5 (see `distances`).

Defined where scikit-learn refuses: a silhouette of 0 when every cluster is a singleton; NaN for
all three when fewer than two clusters have members. Calinski-Harabasz is 1 when the clusters have
no spread (as in scikit-learn) or as many members as clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.intentions.cuts import NestedLabels
from aria_dvc.intentions.distinct import Distinct, find_distinct
from aria_dvc.intentions.spreads import Members, spread_indices

SAMPLE = 200_000
_SMALL = 2_048
_COLUMNS = 2_048


@dataclass(frozen=True)
class Indices:
    """One value per number of clusters, all (J,) float64 aligned with `ks`.

    inertia: within-cluster sum of squared distances to the centres.
    """

    ks: np.ndarray
    silhouette: np.ndarray
    calinski_harabasz: np.ndarray
    davies_bouldin: np.ndarray
    inertia: np.ndarray


def index_curves(
    points: np.ndarray,
    cuts: NestedLabels,
    *,
    rows: np.ndarray | None = None,
    distinct: Distinct | None = None,
    threads: int | None = None,
    sample: int = SAMPLE,
) -> Indices:
    """All indices at every k of `cuts` (k = 2 .. K, or k = 1 alone: NaN).

    points: (n, d) float32 or float64, the rows that were clustered; `cuts` has every k up to K.
    rows: (r,) indices or (n,) mask: judge the cuts on these utterances only (one role's).
    distinct: the grouping of all n rows, if already known and `rows` is not given.
    sample: with more distinct utterances than this the silhouette is that of a seeded sample of so
        many utterances, since its cost is quadratic.
    """
    finest = cuts.finest
    if cuts.ks[-1] < 2:
        unknown = np.full(cuts.ks.size, np.nan)
        return Indices(cuts.ks, unknown, unknown, unknown, np.zeros(cuts.ks.size))
    if rows is not None:
        points, finest, distinct = points[rows], finest[rows], None
    distinct = distinct or find_distinct(points)
    members, parents = _members(points, finest, distinct, cuts), _parents(cuts)
    judged = members
    if distinct.first.size > sample:
        some = np.sort(np.random.default_rng(0).choice(len(points), sample, replace=False))
        few = points[some]
        judged = _members(few, finest[some], find_distinct(few), cuts)
    silhouette = _silhouettes(judged, parents, cuts, threads)
    return Indices(cuts.ks, silhouette, *spread_indices(members, parents))


def _members(
    points: np.ndarray, finest: np.ndarray, distinct: Distinct, cuts: NestedLabels
) -> Members:
    """Distinct points sorted so that every cluster of every cut is a contiguous range."""
    place = np.empty(len(cuts.table), np.int64)
    place[np.lexsort(cuts.table.T[::-1])] = np.arange(len(cuts.table))
    order = np.argsort(place[finest[distinct.first]], kind="stable")
    first = distinct.first[order]
    weights = distinct.count[order].astype(np.float64)
    return Members(np.take(points, first, axis=0), weights, finest[first], int(cuts.ks[-1]))


def _parents(cuts: NestedLabels) -> list[int]:
    """For each new label 1 .. K - 1, the label that it splits from; 0 if no row has it."""
    table = np.concatenate([np.zeros((len(cuts.table), 1), np.uint8), cuts.table], axis=1)
    holder = [int(np.argmax(table[:, label] == label)) for label in range(1, table.shape[1])]
    return [int(table[row, label]) for label, row in enumerate(holder)]


def _silhouettes(
    members: Members, parents: list[int], cuts: NestedLabels, threads: int | None
) -> np.ndarray:
    """(J,) mean silhouette at every k."""
    if len(members.points) <= _SMALL:
        sums = _small_sums(members)
    else:
        # Compiled loops take half a second to load, which small logs should not wait for.
        from aria_dvc.intentions.distances import cluster_sums

        sums = cluster_sums(members, threads=threads)
    totals = np.zeros(cuts.ks.size)
    for start in range(0, len(members.points), _COLUMNS):
        part = slice(start, start + _COLUMNS)
        totals += _silhouette_sums(sums[:, part].copy(), members, part, parents)
    used = cuts.table[np.unique(members.cluster)]
    occupied = np.array([np.unique(column).size for column in used.T])
    return np.where(occupied > 1, totals / members.weights.sum(), np.nan)


def _small_sums(members: Members) -> np.ndarray:
    """(K, m) weighted distance sums from all points to each finest cluster, in float64."""
    x = members.points.astype(np.float64)
    x -= x.mean(axis=0)
    norms = np.einsum("ij,ij->i", x, x)
    squared = np.maximum(norms[:, None] + norms - 2.0 * (x @ x.T), 0.0)
    np.fill_diagonal(squared, 0.0)
    return members.indicator(slice(None), weighted=True) @ np.sqrt(squared)


def _silhouette_sums(
    sums: np.ndarray, members: Members, part: slice, parents: list[int]
) -> np.ndarray:
    """(J,) weighted sums of the silhouettes of some points; their `sums` (K, p) are used up."""
    own, sizes = members.cluster[part].astype(np.int64), members.sizes.copy()
    each, totals = np.arange(own.size), np.zeros(len(parents))
    for k in range(len(sums), 1, -1):
        with np.errstate(divide="ignore", invalid="ignore"):
            means = sums[:k] / sizes[:k, None]
            inside = sums[own, each] / (sizes[own] - 1.0)
        means[sizes[:k] == 0] = np.inf
        means[own, each] = np.inf
        value = _silhouette(inside, means.min(axis=0))
        totals[k - 2] = members.weights[part] @ np.where(sizes[own] > 1, value, 0.0)
        parent = parents[k - 2]
        sums[parent] += sums[k - 1]
        sizes[parent] += sizes[k - 1]
        own[own == k - 1] = parent
    return totals


def _silhouette(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (outside - inside) / np.maximum(inside, outside)
    return np.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)
