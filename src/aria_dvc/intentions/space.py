"""The intention space of one log: the merge tree of its utterances and the table of all cuts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.intentions.cuts import NestedLabels, cut_all, nested_labels, with_fixed_answers
from aria_dvc.intentions.linkage import linkage
from aria_dvc.intentions.log import Log
from aria_dvc.records.schemas import LABELS, TREE, check_file, read_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_COLUMN = re.compile(r"k(\d+)")


class ClusterSettings(Protocol):
    """The block `cluster` of params.yaml."""

    @property
    def k_max(self) -> int: ...
    @property
    def linkage(self) -> str: ...
    @property
    def exact_limit(self) -> int: ...


@dataclass(frozen=True)
class Space:
    """The merges of the m clustered utterances, and the labels of all n.

    tree: (m - 1, 4) float64 in SciPy's layout.
    cuts: labels at every k from 2 to min(cluster.k_max, distinct utterances).
    """

    tree: np.ndarray
    cuts: NestedLabels

    @property
    def distinct(self) -> int:
        """Number of distinct clustered utterances: beyond it no cluster can split."""
        return int(np.count_nonzero(self.tree[:, 2] > 0)) + 1


def find_intentions(log: Log, settings: ClusterSettings) -> Space:
    """The merge tree of the clustered utterances and the labels of all (paper sec. 3.2).

    Raises:
        AriaError: nothing to cluster, or no vectors.
    """
    rows = log.clustered
    if not rows.any():
        raise AriaError(f"{log.game}: no utterance to cluster: give a log with actions")
    tree = linkage(log.points, settings.linkage, exact_limit=settings.exact_limit)
    cuts: NestedLabels = cut_all(tree, settings.k_max)
    if not rows.all():
        kinds = np.zeros(len(log), np.int64)
        kinds[~rows] = log.answers
        cuts = with_fixed_answers(cuts, rows, kinds)
    return Space(tree, cuts)


def labels_table(turns: pd.DataFrame, cuts: NestedLabels) -> pa.Table:
    """The cuts as a table (see records/schemas.py), rows in the order of `turns`."""
    import pyarrow as pa

    columns = {
        "episode_id": pa.array(turns["episode_id"], type=pa.string()),
        "position": pa.array(turns["position"], type=pa.int32()),
    }
    labels = cuts.labels
    for column, k in enumerate(cuts.ks.tolist()):
        columns[f"k{k}"] = pa.array(np.ascontiguousarray(labels[:, column]))
    return pa.table(columns)


def tree_table(tree: np.ndarray) -> pa.Table:
    """The (m - 1, 4) merge tree as a table (see records/schemas.py)."""
    import pyarrow as pa

    return pa.table(
        {
            "left": tree[:, 0].astype(np.int64),
            "right": tree[:, 1].astype(np.int64),
            "height": tree[:, 2],
            "size": tree[:, 3].astype(np.int64),
        }
    )


def read_cuts(labels: str | Path, turns: pd.DataFrame | None = None) -> NestedLabels:
    """The cuts in a labels file, rows in the order of the turns.

    Raises AriaError as `read_table` does; `turns` are those that the rows must belong to.
    """
    import pyarrow.parquet as pq

    check_file(labels, LABELS, turns)
    table = pq.read_table(labels)
    names = [name for name in table.column_names if _COLUMN.fullmatch(name)]
    matrix = np.stack([table[name].to_numpy() for name in names], axis=1)
    return nested_labels(matrix, np.array([int(name[1:]) for name in names]))


def read_space(labels: str | Path, tree: str | Path, turns: pd.DataFrame | None = None) -> Space:
    """What `labels_table` and `tree_table` wrote into files; else as `read_cuts`."""
    merges = read_table(tree, TREE).to_numpy(dtype=np.float64)
    return Space(merges, read_cuts(labels, turns))
