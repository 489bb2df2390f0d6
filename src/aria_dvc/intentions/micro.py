"""Near-exact Ward trees of a million points.

Points are dealt to blocks of near neighbours, each block gets its exact Ward tree, all block trees
are cut at the one height that leaves `micro` clusters, and these get an exact Ward tree weighted
by their sizes. Every merge below that height is Ward's own within a block; what is lost are merges
across block borders below it, which the coarse cuts hardly feel.
"""

from __future__ import annotations

import numpy as np

from aria_dvc.intentions.tree import monotone_heights
from aria_dvc.intentions.ward import Merges, merge_all
from aria_dvc.intentions.workers import Workers, workers

MICRO = 40_000
SAMPLE = 8_192
BLOCK = 4_096
_ROWS = 16_384


def near_exact_merges(
    points: np.ndarray,
    weights: np.ndarray,
    *,
    exact_limit: int,
    micro: int = MICRO,
    threads: int | None = None,
    seed: int = 0,
) -> Merges:
    """Merges of (m, d) distinct points that stand for `weights` (m,) points each.

    micro: how many micro-clusters the exact top of the tree starts from, at most `exact_limit`
        and a quarter of the points.
    seed: draws the sample whose clusters define the blocks.
    """
    m = len(points)
    micro = max(2, min(micro, exact_limit, m // 4))
    with workers(threads) as pool:
        blocks = _blocks(points, np.random.default_rng(seed), pool)
        low = _block_merges(points, weights, blocks, pool)
        kept = np.argsort(low.heights, kind="stable")[: m - micro]
        below = _renumbered(low, np.sort(kept), m)
        cluster, node = _clusters(below.pairs, m)
        centres, sizes = _centres(points, weights, cluster, node.size)
        top = merge_all(centres, sizes, pool)
    return _stacked(below, top, node, m)


def _blocks(points: np.ndarray, rng: np.random.Generator, pool: Workers) -> list[np.ndarray]:
    """Rows of each block: the points nearest to one cluster of a sample, at most 2 x BLOCK."""
    m = len(points)
    if m <= BLOCK:
        return [np.arange(m)]
    rows = np.sort(rng.choice(m, min(m, SAMPLE), replace=False))
    sample = points[rows]
    merges = merge_all(sample, np.ones(rows.size), pool)
    order = np.argsort(monotone_heights(merges.pairs, merges.heights, rows.size), kind="stable")
    count = min(-(-m // BLOCK), rows.size)
    lowest = _renumbered(merges, np.sort(order[: rows.size - count]), rows.size)
    centres = _centres(sample, np.ones(rows.size), *_with_count(lowest.pairs, rows.size))[0]
    nearest = _nearest(points, centres.astype(np.float32), pool)
    order = np.argsort(nearest, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(nearest[order])) + 1)
    return [part for g in groups for part in np.array_split(g, -(-g.size // (2 * BLOCK)))]


def _with_count(pairs: np.ndarray, m: int) -> tuple[np.ndarray, int]:
    cluster, node = _clusters(pairs, m)
    return cluster, node.size


def _nearest(points: np.ndarray, centres: np.ndarray, pool: Workers) -> np.ndarray:
    """(m,) index of the centre nearest to each point."""
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    nearest = np.empty(len(points), np.int64)

    def assign(start: int) -> None:
        rows = slice(start, start + _ROWS)
        nearest[rows] = np.argmax(points[rows].astype(np.float32) @ centres.T - half, axis=1)

    pool.run(assign, [(start,) for start in range(0, len(points), _ROWS)])
    return nearest


def _block_merges(
    points: np.ndarray, weights: np.ndarray, blocks: list[np.ndarray], pool: Workers
) -> Merges:
    """The merges of all blocks, one after the other, over nodes of the whole."""
    m = len(points)
    starts = np.cumsum([0, *(rows.size - 1 for rows in blocks)])
    pairs, heights = np.empty((starts[-1], 2), np.int64), np.empty(starts[-1])

    def tree(b: int) -> None:
        rows, at = blocks[b], slice(starts[b], starts[b + 1])
        merges = merge_all(points[rows], weights[rows], Workers(None))
        inner = merges.pairs.astype(np.int64)
        pairs[at] = np.where(
            inner < rows.size,
            rows[np.minimum(inner, rows.size - 1)],
            inner - rows.size + m + at.start,
        )
        heights[at] = monotone_heights(merges.pairs, merges.heights, rows.size)

    pool.run(tree, [(b,) for b in range(len(blocks))])
    return Merges(pairs, heights, False)


def _renumbered(merges: Merges, kept: np.ndarray, m: int) -> Merges:
    """Only the merges `kept` (ascending, parts included), with their nodes numbered afresh."""
    number = np.full(m + len(merges.pairs), -1)
    number[:m] = np.arange(m)
    number[m + kept] = m + np.arange(kept.size)
    return Merges(number[merges.pairs[kept]], merges.heights[kept], False)


def _clusters(pairs: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Cluster (m,) of every point after some merges, and the node (c,) of every cluster."""
    up = np.arange(m + len(pairs))
    up[pairs] = m + np.arange(len(pairs))[:, None]
    while True:
        higher = up[up]
        if np.array_equal(higher, up):
            break
        up = higher
    node, cluster = np.unique(up[:m], return_inverse=True)
    return cluster, node


def _centres(
    points: np.ndarray, weights: np.ndarray, cluster: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted float64 means (c, d) and weights (c,) of all clusters."""
    sums = np.zeros((count, points.shape[1]))
    order = np.argsort(cluster, kind="stable")
    for start in range(0, order.size, _ROWS):
        rows = order[start : start + _ROWS]
        first = np.flatnonzero(np.diff(cluster[rows], prepend=-1))
        weighted = points[rows] * weights[rows, None].astype(np.float64)
        sums[cluster[rows[first]]] += np.add.reduceat(weighted, first, axis=0)
    sizes = np.bincount(cluster, weights, count)
    return sums / sizes[:, None], sizes


def _stacked(below: Merges, top: Merges, node: np.ndarray, m: int) -> Merges:
    """Block merges, then those of the micro-clusters, whose leaves are the nodes `node`."""
    upper = top.pairs.astype(np.int64)
    start = m + len(below.pairs)
    leaves = node[np.minimum(upper, node.size - 1)]
    pairs = np.where(upper < node.size, leaves, upper - node.size + start)
    heights = np.concatenate([below.heights, top.heights])
    return Merges(np.concatenate([below.pairs, pairs]), heights, top.tied)
