"""The intention space of one log: the merge tree of its utterances and the table of all cuts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.intentions.answers import clustered_rows
from aria_dvc.intentions.cuts import NestedLabels, cut_all, nested_labels, with_fixed_answers
from aria_dvc.intentions.linkage import linkage
from aria_dvc.intentions.log import Log
from aria_dvc.records.schemas import LABELS, TREE, check_file, read_table, whole_parquet

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

    Raises AriaError as `read_table` does, and for cuts with gaps, labels that are not nested or
    more than a cut has; `turns` are those that the rows must belong to.
    """
    import pyarrow.parquet as pq

    check_file(labels, LABELS, turns)
    with whole_parquet(labels, LABELS):
        table = pq.read_table(labels)
    names = [name for name in table.column_names if _COLUMN.fullmatch(name)]
    ks = np.array([int(name[1:]) for name in names])
    if ks.tolist() not in ([1], list(range(2, len(ks) + 2))):
        raise LABELS.wrong(labels, "its cuts are not k2, k3, .. in this order without a gap")
    if empty := [name for name in names if table[name].null_count]:
        raise LABELS.wrong(labels, f"column {empty[0]} has rows without a label")
    matrix = np.stack([table[name].to_numpy() for name in names], axis=1)
    try:
        cuts = nested_labels(matrix, ks)
    except AriaError:
        raise LABELS.wrong(labels, "its cuts are not nested") from None
    if turns is not None:
        over = _clustered(turns) & (cuts.finest >= ks[-1])
        LABELS.refuse(over, turns, labels, f"column {names[-1]} has a label above {ks[-1] - 1}")
    return cuts


def _clustered(turns: pd.DataFrame) -> np.ndarray:
    role, is_action = turns["role"].to_numpy(object).astype(str), turns["is_action"]
    return clustered_rows(role, is_action.to_numpy(bool), str(turns["game"].iloc[0]))


def read_space(labels: str | Path, tree: str | Path, turns: pd.DataFrame | None = None) -> Space:
    """What `labels_table` and `tree_table` wrote into files; else as `read_cuts`.

    Raises AriaError also for merges that are no tree, or one of other utterances.
    """
    cuts, table = read_cuts(labels, turns), read_table(tree, TREE)
    if turns is not None and len(table) + 1 != (count := int(_clustered(turns).sum())):
        problem = f"{len(table)} merges are no tree of the {count} clustered turns"
        raise TREE.wrong(tree, problem)
    merges = table.to_numpy(dtype=np.float64)
    _check_tree(merges, table, tree)
    return Space(merges, cuts)


def _check_tree(merges: np.ndarray, table: pd.DataFrame, path: str | Path) -> None:
    """Raises AriaError unless (m - 1, 4) merges join what is there, each once, by height."""
    row = np.arange(len(merges))
    pairs, height, size = merges[:, :2].astype(np.int64), merges[:, 2], merges[:, 3]
    unknown = ((pairs < 0) | (pairs >= (len(merges) + 1 + row)[:, None])).any(axis=1)
    TREE.refuse(unknown, table, path, "it merges a cluster that is not there yet")
    again = np.ones(pairs.size, bool)
    again[np.unique(pairs, return_index=True)[1]] = False
    TREE.refuse(again.reshape(-1, 2).any(axis=1), table, path, "it merges a cluster again")
    lower = (height < 0) | (np.diff(height, prepend=0) < 0)
    TREE.refuse(lower, table, path, "its height is below that of the row before")
    sizes = np.concatenate([np.ones(len(merges) + 1), size])
    other = sizes[pairs].sum(axis=1) != size
    TREE.refuse(other, table, path, "its size is not that of its two clusters")
