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
_ROWS = 65_536


@dataclass(frozen=True)
class NestedLabels:
    """Labels at every k of `ks`, held as one byte an utterance and a small table.

    ks: (J,) ascending numbers of clusters.
    finest: (n,) uint8: the label of each utterance at the largest k.
    table: (codes, J) uint8: table[c, j] is the label at ks[j] of an utterance with finest label c.
    """

    ks: np.ndarray
    finest: np.ndarray
    table: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """(n, J) uint8 labels, one column per k."""
        return self.table[self.finest]

    def at(self, k: int) -> np.ndarray:
        """(n,) uint8 labels at k clusters.

        Raises:
            AriaError: k is not among `ks`.
        """
        column = np.flatnonzero(self.ks == k)
        if not column.size:
            held = f"{self.ks[0]}..{self.ks[-1]}"
            raise AriaError(f"labels: no cut at k = {k} (cuts: {held}); choose k among them")
        return self.table[self.finest, column[0]]


@dataclass(frozen=True)
class Cuts(NestedLabels):
    """The cuts of one tree at ks = 2 .. K, or at ks = 1 alone if all utterances are equal.

    heights: (K,) merge height that ends each number of clusters: heights[k - 1] joins k into k - 1
        (heights[0] is infinite).
    distinct: number of distinct utterances, the largest k possible.
    """

    heights: np.ndarray
    distinct: int


def nested_labels(labels: np.ndarray, ks: np.ndarray) -> NestedLabels:
    """The compact form of an (n, J) label matrix whose last column tells all others.

    Raises:
        AriaError: labels above 255, a wrong number of columns, or cuts that are not nested.
    """
    labels, ks = np.asarray(labels), np.asarray(ks)
    if labels.ndim != 2 or labels.shape[1] != ks.size or not ks.size:
        raise AriaError(f"labels: expected (n, {ks.size}), got {labels.shape}; one column per k")
    if labels.size and (labels.min() < 0 or labels.max() >= MAX_LABELS):
        raise AriaError(f"labels: values outside 0..{MAX_LABELS - 1}; lower k_max")
    labels = labels.astype(np.uint8, copy=False)
    finest = labels[:, -1].copy()
    codes, first = np.unique(finest, return_index=True)
    table = np.zeros((int(codes.max(initial=0)) + 1, ks.size), np.uint8)
    table[codes] = labels[first]
    for start in range(0, len(labels), _ROWS):
        rows = slice(start, start + _ROWS)
        if not np.array_equal(table[finest[rows]], labels[rows]):
            raise AriaError("labels: the cuts are not nested; run the cluster stage again")
    return NestedLabels(ks, finest, table)


def only(cuts: NestedLabels, rows: np.ndarray) -> NestedLabels:
    """The cuts of the rows in an (n,) mask, with a table of just their labels."""
    return nested_labels(cuts.labels[rows], cuts.ks)


def with_fixed_answers(
    questions: NestedLabels, is_question: np.ndarray, answer: np.ndarray, base: int = 100
) -> NestedLabels:
    """Cluster labels for the questions, the same fixed label at every k for each kind of answer.

    questions: the cuts of the questions alone (q rows, at most `base` clusters).
    is_question: (n,) bool with q True; the questions keep their order.
    answer: (n,) kinds of answer 0, 1, 2, .. (say yes, no, other), read where not a question.
    Answers get the labels base + kind, so that questions keep 0 .. base - 1.

    Raises:
        AriaError: more than `base` clusters, more than 256 - base kinds, or lengths that differ.
    """
    answers = np.asarray(answer, np.int64)[~is_question]
    kinds = int(answers.max(initial=-1)) + 1
    if questions.finest.size != np.count_nonzero(is_question):
        raise AriaError("labels: is_question must be true once for each clustered question")
    if len(questions.table) > base or base + kinds > MAX_LABELS or answers.min(initial=0) < 0:
        raise AriaError(f"labels: no room for {kinds} kinds of answer from {base}; lower k_max")
    finest = np.empty(len(is_question), np.uint8)
    finest[is_question] = questions.finest
    finest[~is_question] = base + answers
    table = np.repeat(np.arange(base + kinds, dtype=np.uint8)[:, None], questions.ks.size, axis=1)
    table[: len(questions.table)] = questions.table
    return NestedLabels(questions.ks, finest, table)


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
    if k == 1:
        one = np.zeros((1, 1), np.uint8)
        return Cuts(np.array([1]), np.zeros(n, np.uint8), one, np.array([np.inf]), 1)
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
