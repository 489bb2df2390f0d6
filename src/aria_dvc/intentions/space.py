"""The intention space of one game: which utterances are clustered, and the table of all cuts.

In a game with fixed answers (Twenty Questions) only the questions are clustered and answers have
fixed labels (yes, no, other); everywhere else both sides' utterances share one tree (paper App. D).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.games.registry import has_fixed_answers
from aria_dvc.intentions.cuts import NestedLabels, cut_all, nested_labels, with_fixed_answers
from aria_dvc.intentions.distinct import Distinct
from aria_dvc.intentions.linkage import linkage

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from aria_dvc.params import ClusterParams

YES, NO, OTHER = 0, 1, 2
_COLUMN = re.compile(r"k(\d+)")


def clustered_rows(turns: pd.DataFrame, game: str) -> np.ndarray:
    """(n,) bool: the utterances that are clustered; the rest have fixed labels."""
    if has_fixed_answers(game):
        return turns["is_action"].to_numpy(dtype=bool)
    return np.ones(len(turns), dtype=bool)


def answer_kinds(texts: list[str]) -> np.ndarray:
    """(n,) YES, NO or OTHER by an answer's first word."""
    first = [re.split(r"\W+", text.strip().lower(), maxsplit=1)[0] for text in texts]
    return np.array([{"yes": YES, "no": NO}.get(word, OTHER) for word in first])


def utterance_codes(turns: pd.DataFrame, clustered: np.ndarray, same: Distinct) -> np.ndarray:
    """(n,) int64, equal for utterances that no cut tells apart: equal vectors, or equal answers.

    clustered: (n,) bool as from `clustered_rows`. same: the distinct vectors of these rows.
    """
    codes = np.empty(len(turns), np.int64)
    codes[clustered] = same.point
    kinds = answer_kinds(turns["text"][~clustered].tolist())
    codes[~clustered] = len(same.first) + kinds
    return codes


def build_space(
    turns: pd.DataFrame, vectors: np.ndarray, game: str, params: ClusterParams
) -> tuple[np.ndarray, NestedLabels]:
    """The merge tree of the clustered utterances and the labels of all n utterances.

    Args:
        turns: one row an utterance (records/tables.py).
        vectors: (n, d) float32, one row a row of `turns`.

    Returns:
        tree: (m - 1, 4) float64 in SciPy's layout over the m clustered utterances, in order.
        labels: at every k from 2 to min(cluster.k_max, distinct utterances).

    Raises:
        AriaError: turns and vectors of different lengths, or nothing to cluster.
    """
    if len(turns) != len(vectors):
        raise AriaError(f"{len(turns)} turns but {len(vectors)} embeddings: run embed again")
    rows = clustered_rows(turns, game)
    if not rows.any():
        raise AriaError(f"{game}: no utterance to cluster: give a log with actions")
    clustered = vectors if rows.all() else vectors[rows]
    tree = linkage(clustered, params.linkage, exact_limit=params.exact_limit)
    nested: NestedLabels = cut_all(tree, params.k_max)
    if not rows.all():
        nested = with_fixed_answers(nested, rows, answer_kinds(turns["text"].tolist()))
    return tree, nested


def labels_table(turns: pd.DataFrame, nested: NestedLabels) -> pa.Table:
    """Columns episode_id, position, k2 ... kK (uint8)."""
    import pyarrow as pa

    columns = {
        "episode_id": pa.array(turns["episode_id"], type=pa.string()),
        "position": pa.array(turns["position"], type=pa.int32()),
    }
    labels = nested.labels
    for column, k in enumerate(nested.ks.tolist()):
        columns[f"k{k}"] = pa.array(np.ascontiguousarray(labels[:, column]))
    return pa.table(columns)


def read_labels(path: object) -> NestedLabels:
    """The cuts in a labels file, rows in the order of the turns."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = [name for name in table.column_names if _COLUMN.fullmatch(name)]
    matrix = np.stack([table[name].to_numpy() for name in names], axis=1)
    return nested_labels(matrix, np.array([int(name[1:]) for name in names]))


def only(nested: NestedLabels, rows: np.ndarray) -> NestedLabels:
    """The cuts of the rows in an (n,) mask, with a table of just their labels."""
    return nested_labels(nested.labels[rows], nested.ks)


def tree_table(tree: np.ndarray) -> pa.Table:
    """Columns left, right (int64), height (float64), size (int64): one row a merge."""
    import pyarrow as pa

    return pa.table(
        {
            "left": tree[:, 0].astype(np.int64),
            "right": tree[:, 1].astype(np.int64),
            "height": tree[:, 2],
            "size": tree[:, 3].astype(np.int64),
        }
    )


def distinct_points(heights: np.ndarray) -> int:
    """Number of distinct clustered utterances, from the (m - 1,) merge heights."""
    return int(np.count_nonzero(heights > 0)) + 1
