"""What an action is judged by: itself and what was said before it, never what comes after.

Every feature of an action is a function of four views, sums over utterances of its own episode
up to the action: what is `said` by it, the `last` utterance before it, all that the acting role
`heard` from others before it, and its `own` earlier utterances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from aria_dvc.credit.methods.base import CreditData

TINY = 1e-9


@dataclass(frozen=True)
class Views:
    """(A, n) sparse 0/1 matrices: row a selects the utterances of a view of action a.

    turn: (A,) float64 own-turn index from 1.
    """

    said: sp.csr_matrix
    last: sp.csr_matrix
    heard: sp.csr_matrix
    own: sp.csr_matrix
    turn: np.ndarray


VIEWS = ("said", "last", "heard", "own")


def views_of(data: CreditData) -> Views:
    """The views of the A actions of `data`."""
    rows = data.actions
    back = data.position[rows]
    action = np.repeat(np.arange(len(rows)), back)
    starts = np.repeat(np.cumsum(back) - back, back)
    utterance = np.repeat(rows - back, back) + np.arange(len(action)) - starts
    mine = data.role[utterance] == data.role[rows[action]]
    follows = np.flatnonzero(back > 0)
    shape = (len(rows), len(data))
    return Views(
        _selection(np.arange(len(rows)), rows, shape),
        _selection(follows, rows[follows] - 1, shape),
        _selection(action[~mine], utterance[~mine], shape),
        _selection(action[mine], utterance[mine], shape),
        data.turn[rows].astype(np.float64),
    )


def unit_rows(matrix: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1; zero rows stay zero."""
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), TINY)


def mean_rows(selection: sp.csr_matrix, matrix: np.ndarray) -> np.ndarray:
    """(A, d) float64 mean of the selected rows of an (n, d) matrix, zero where none is selected."""
    count = np.diff(selection.indptr)
    return (selection @ matrix.astype(np.float64)) / np.maximum(count, 1)[:, None]


def scalar_features(data: CreditData, views: Views) -> np.ndarray:
    """(A, 13) float64: turn, lengths of texts, similarities of the action with its past."""
    length = np.array([len(text) for text in data.text], np.float64)[:, None]
    lengths = [mean_rows(getattr(views, name), length) for name in VIEWS]
    vectors = unit_rows(data.embeddings.astype(np.float64))
    said, last = mean_rows(views.said, vectors), mean_rows(views.last, vectors)
    heard, own = mean_rows(views.heard, vectors), mean_rows(views.own, vectors)
    dots = [(said * other).sum(axis=1) for other in (last, heard, own)]
    dots.append((last * heard).sum(axis=1))
    norms = [np.linalg.norm(mean, axis=1) for mean in (heard, own)]
    nearest = [_largest_similarity(view, said, vectors) for view in (views.own, views.heard)]
    return np.column_stack([views.turn, *lengths, *dots, *norms, *nearest])


def _largest_similarity(
    selection: sp.csr_matrix, said: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    """(A,) largest dot product of each action with the utterances of a view; 0 for none."""
    count = np.diff(selection.indptr)
    action = np.repeat(np.arange(len(count)), count)
    dots = np.einsum("ij,ij->i", said[action], vectors[selection.indices])
    largest = np.zeros(len(count))
    filled = np.flatnonzero(count)
    if len(filled):
        largest[filled] = np.maximum.reduceat(dots, selection.indptr[filled])
    return largest


def _selection(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
