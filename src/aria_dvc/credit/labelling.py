"""Intentions of utterances that were not clustered: the nearest cluster's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.intentions.distinct import find_distinct
from aria_dvc.intentions.space import answer_kinds, clustered_rows

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 16_384


def unseen_labels(
    turns: pd.DataFrame,
    vectors: np.ndarray,
    labels: np.ndarray,
    new_turns: pd.DataFrame,
    new_vectors: np.ndarray,
    game: str,
) -> np.ndarray:
    """(m,) labels of new utterances in the space of (n,) labelled ones.

    An utterance that was clustered keeps its label, any other joins the cluster whose mean vector
    is nearest; an answer with a fixed
    label gets that of answers of its kind (-1 if none was labelled).
    """
    clustered, new = clustered_rows(turns, game), clustered_rows(new_turns, game)
    found = np.full(len(new_turns), -1, np.int64)
    found[new] = _found_again(vectors[clustered], labels[clustered], new_vectors[new])
    if not new.all():
        kinds = answer_kinds(turns["text"][~clustered].tolist())
        label_of = dict(zip(kinds.tolist(), labels[~clustered].tolist(), strict=True))
        new_kinds = answer_kinds(new_turns["text"][~new].tolist()).tolist()
        found[~new] = [label_of.get(kind, -1) for kind in new_kinds]
    return found


def _found_again(vectors: np.ndarray, labels: np.ndarray, new: np.ndarray) -> np.ndarray:
    """(m,) label of the equal clustered point, else of the nearest cluster."""
    point = find_distinct(np.concatenate([vectors, new])).point
    label_of = np.full(int(point.max(initial=-1)) + 1, -1)
    label_of[point[: len(vectors)]] = labels
    known = label_of[point[len(vectors) :]]
    return np.where(known >= 0, known, nearest_cluster(vectors, labels, new))


def nearest_cluster(vectors: np.ndarray, labels: np.ndarray, new: np.ndarray) -> np.ndarray:
    """(m,) label of the cluster with the nearest mean (Euclidean; ties to the smaller label).

    Args:
        vectors: (n, d) clustered points with their (n,) labels. new: (m, d).
    """
    names, codes = np.unique(labels, return_inverse=True)
    means = np.zeros((len(names), vectors.shape[1]))
    np.add.at(means, codes, vectors)
    means /= np.bincount(codes)[:, None]
    offsets = (means**2).sum(axis=1) / 2
    nearest = np.empty(len(new), np.int64)
    for start in range(0, len(new), _BLOCK):
        block = slice(start, start + _BLOCK)
        nearest[block] = np.argmin(offsets - new[block].astype(np.float64) @ means.T, axis=1)
    return names[nearest]
