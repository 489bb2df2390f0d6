"""All cuts of a merge tree in one pass, with labels that make a split readable.

Labels are nested: with one cluster every utterance is 0, and going from k to k + 1 clusters one
cluster splits; the part with the earlier utterance keeps the label, the other part gets label k.
So a label never changes unless its own cluster splits, and the last column tells all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.errors import AriaError

MAX_LABELS = 256


@dataclass(frozen=True)
class Cuts:
    """The cuts of one tree at ks = 2 .. K.

    ks: (K - 1,) the numbers of clusters; empty if all utterances are equal.
    finest: (n,) uint8: the label of each utterance at K clusters.
    table: (K, K - 1) uint8: label at ks[j] of finest cluster c is table[c, j].
    heights: (K,) merge height that ends each number of clusters: heights[k - 1] joins k into k - 1
        (heights[0] is infinite).
    distinct: number of distinct utterances, the largest k possible.
    """

    ks: np.ndarray
    finest: np.ndarray
    table: np.ndarray
    heights: np.ndarray
    distinct: int

    @property
    def labels(self) -> np.ndarray:
        """(n, K - 1) uint8 labels, one column per k."""
        return self.table[self.finest]

    def at(self, k: int) -> np.ndarray:
        """(n,) uint8 labels of the cut into k clusters.

        Raises:
            AriaError: k is not 1 and not among `ks`.
        """
        if k == 1:
            return np.zeros(self.finest.size, np.uint8)
        if k < 1 or k > self.ks.size + 1:
            raise AriaError(
                f"cut: k = {k} is outside 1..{self.ks.size + 1} "
                f"({self.distinct} distinct utterances); lower k or raise k_max"
            )
        return self.table[self.finest, k - 2]


def cut_all(tree: np.ndarray, k_max: int = 100) -> Cuts:
    """Cut a merge tree (n - 1, 4) at every k from 2 to k_max.

    k_max is capped at the number of distinct utterances (merges of positive height plus one).

    Raises:
        AriaError: k_max outside 2..256.
    """
    if not 2 <= k_max <= MAX_LABELS:
        raise AriaError(f"cut: k_max = {k_max} is outside 2..{MAX_LABELS}; labels are one byte")
    n = len(tree) + 1
    distinct = int(np.count_nonzero(tree[:, 2] > 0)) + 1
    k = min(k_max, distinct)
    joins = tree[n - k :, :2].astype(np.int64)
    roots, finest = _finest(tree, n, k)
    table, finest = _number(joins, roots, finest, n, k)
    heights = np.concatenate([[np.inf], tree[n - k :, 2][::-1]])
    return Cuts(np.arange(2, k + 1), finest, table, heights, distinct)


def _finest(tree: np.ndarray, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Root nodes (k,) of the cut into k clusters and the root index (n,) of each leaf."""
    lower = tree[: n - k, :2].astype(np.int64)
    up = np.arange(2 * n - k)
    up[lower] = n + np.arange(n - k)[:, None]
    roots = np.flatnonzero(up == np.arange(up.size))
    while True:
        higher = up[up]
        if np.array_equal(higher, up):
            break
        up = higher
    place = np.zeros(up.size, np.int64)
    place[roots] = np.arange(k)
    return roots, place[up[:n]]


def _number(
    joins: np.ndarray, roots: np.ndarray, finest: np.ndarray, n: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Label table (k, k - 1) and finest labels (n,) from the top k - 1 joins."""
    earliest = np.full(k, n, np.int64)
    earliest[finest[::-1]] = np.arange(n - 1, -1, -1)
    members = {int(root): [c] for c, root in enumerate(roots)}
    parts = []
    for row, (left, right) in enumerate(joins.tolist()):
        a, b = members.pop(left), members.pop(right)
        if earliest[a].min() > earliest[b].min():
            a, b = b, a
        parts.append(b)
        members[2 * n - k + row] = a + b
    label = np.zeros(k, np.int64)
    table = np.zeros((k, k - 1), np.uint8)
    for new, later in enumerate(reversed(parts), start=1):
        label[later] = new
        table[:, new - 1] = label
    ordered = np.empty_like(table)
    ordered[label] = table
    return ordered, label[finest].astype(np.uint8)
