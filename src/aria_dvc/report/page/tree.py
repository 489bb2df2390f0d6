"""The merge tree from one cluster down to the k intentions in use, as an icicle shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aria_dvc.intentions.cuts import NestedLabels
from aria_dvc.shown import printable

NAMED_PARTS, TERMS = 2, 2
"""A cluster that is split further is called by so many of its largest intentions, shortened."""


def tree_block(
    cuts: NestedLabels, k: int, rows: np.ndarray, over: np.ndarray, names: Mapping[Any, str]
) -> dict[str, list[Any]]:
    """The clusters that appear on the way from one to k, parts after wholes.

    Args:
        cuts: labels of n utterances at every k.
        rows: (n,) bool, the utterances that were clustered.
        over: (n,) float64, credit over the turn's mean; NaN without credit.
        names: of the intentions at k, by label.

    Returns:
        id, parent (empty for the root), k (the cut at which it appears), size (utterances),
        over (mean, null without actions), name, intentions (how many it holds at k).
    """
    labels, finest = cuts.labels[rows], cuts.at(k)[rows] if k in cuts.ks else cuts.finest[rows]
    block: dict[str, list[Any]] = {
        name: [] for name in ("id", "parent", "k", "size", "over", "name", "intentions")
    }
    for parent, label, at, inside in _clusters(labels, cuts.ks, k):
        mean, leaves = over[rows][inside], finest[inside]
        known = mean[~np.isnan(mean)]
        row = {
            "id": f"{label}@{at}",
            "parent": parent,
            "k": at,
            "size": int(inside.sum()),
            "over": float(f"{known.mean():.4g}") if len(known) else None,
            "name": _name(leaves, names),
            "intentions": len(np.unique(leaves)),
        }
        for name, value in row.items():
            block[name].append(value)
    return block


def _clusters(labels: np.ndarray, ks: np.ndarray, k: int) -> Any:
    """(id of the parent, label, k, (m,) bool members) of the root and of both parts of each split.

    Cuts are nested: at k one cluster splits and its new part gets the label k - 1.
    """
    everything = np.ones(len(labels), bool)
    node = {0: "0@1"}
    yield "", 0, 1, everything
    before = np.zeros(len(labels), np.int64)
    for column, at in enumerate(ks.tolist()):
        if at > k or at < 2:
            break
        now = labels[:, column].astype(np.int64)
        new = now == at - 1
        old = int(before[new][0])
        parent, rest = node[old], (before == old) & ~new
        for label, inside in ((old, rest), (at - 1, new)):
            node[label] = f"{label}@{at}"
            yield parent, label, at, inside
        before = now


def _name(leaves: np.ndarray, names: Mapping[Any, str]) -> str:
    """The name of the one intention in (m,) labels, or of the largest of several."""
    labels, counts = np.unique(leaves, return_counts=True)
    largest = labels[np.argsort(-counts, kind="stable")][:NAMED_PARTS].tolist()
    called = [str(names.get(one, f"intention {one}")) for one in largest]
    if len(called) > 1:
        called = [", ".join(name.split(", ")[:TERMS]) for name in called]
    return printable(" / ".join(called))
