"""What an action is judged by: itself and what was said before it, never what comes after.

Every feature of an action is a function of four views, sums over utterances of its own episode
up to the action: what is `said` by it, the `last` utterance before it, all that the acting role
`heard` from others before it, and its `own` earlier utterances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from aria_dvc.intentions.log import Log

TINY = 1e-9


@dataclass(frozen=True)
class Views:
    """(A, n) sparse 0/1 float32 matrices: row a selects the utterances of a view of action a.

    turn: (A,) float64 own-turn index from 1.
    """

    said: sp.csr_matrix
    last: sp.csr_matrix
    heard: sp.csr_matrix
    own: sp.csr_matrix
    turn: np.ndarray


def views_of(data: Log) -> Views:
    """The views of the A actions of `data`."""
    rows = data.actions
    back = data.place[rows]
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
    """The same matrix, its rows scaled in place to length 1; zero rows stay zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    matrix /= np.maximum(lengths, TINY)[:, None]
    return matrix


def mean_rows(
    selection: sp.csr_matrix, matrix: np.ndarray, centre: np.ndarray | float = 0.0
) -> np.ndarray:
    """(A, d) mean of the selected rows of an (n, d) matrix of floats, less the (d,) centre; zero
    where none is selected.

    A row is summed in the matrix's own precision.
    """
    count = np.diff(selection.indptr)
    means: np.ndarray = selection @ matrix
    means /= np.maximum(count, 1).astype(matrix.dtype)[:, None]
    means -= centre
    means[count == 0] = 0.0
    return means


def _selection(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
