"""Intentions of utterances that were not clustered: the nearest cluster's."""

from __future__ import annotations

import numpy as np

from aria_dvc.intentions.distinct import find_distinct
from aria_dvc.intentions.log import Log

_BLOCK = 16_384


def unseen_labels(known: Log, new: Log) -> np.ndarray:
    """(m,) int64 labels of a new log's utterances in the space of a labelled one of n.

    An utterance that was clustered keeps its label, any other joins the cluster whose mean vector
    is nearest; an answer with a fixed label gets that of answers of its kind (-1 if none was
    labelled).
    """
    found = np.full(len(new), -1, np.int64)
    found[new.clustered] = _found_again(known.points, known.labels[known.clustered], new.points)
    if not new.clustered.all():
        labels = known.labels[~known.clustered].tolist()
        label_of = dict(zip(known.answers.tolist(), labels, strict=True))
        found[~new.clustered] = [label_of.get(kind, -1) for kind in new.answers.tolist()]
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
