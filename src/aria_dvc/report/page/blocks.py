"""What the page shows of one log, as columns of plain numbers and texts.

The client draws and filters; all that is computed is computed here, over all of the log. Only the
dialogues themselves may be too long for a page: then the first ones are in it, and it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.chain import largest_k
from aria_dvc.credit.selection import drawn_curve
from aria_dvc.intentions.log import Log
from aria_dvc.report.intentions import COLUMNS, above_turn, spread_out
from aria_dvc.report.page.tree import tree_block
from aria_dvc.shown import printable

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.cuts import NestedLabels

Block = dict[str, Any]
DIGITS = 4
OCCUPANCY = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 30), (31, 100), (101, None))
"""Bounds of the groups of cell sizes, both included."""
TAILS = (0.1, 0.9)
ROW_BYTES = 50
"""What an utterance takes besides its text."""


@dataclass(frozen=True)
class LogTables:
    """All that the page is told of one log.

    log: the utterances under their intentions. cuts: at every k, rows as in `log`.
    rewards: one row an action (see records/schemas.py). curve: one row a k.
    selection: what `choose_k` chose. intentions: one row an intention (see
    report/intentions.py).
    rows, points: (m,) places among the clustered utterances and their (m, 2) places on the map.
    """

    log: Log
    cuts: NestedLabels
    rewards: pd.DataFrame
    curve: pd.DataFrame
    selection: Mapping[str, Any]
    intentions: pd.DataFrame
    rows: np.ndarray
    points: np.ndarray


def log_block(tables: LogTables, most: float) -> Block:
    """Everything of one log.

    most: bytes that its dialogues may take on the page (see `sizes`); those beyond stay out.
    """
    log, k = tables.log, largest_k(dict(tables.selection))
    credit = tables.rewards["reward"].to_numpy()
    over = spread_out(log, above_turn(log, credit))
    names = dict(zip(tables.intentions["intention"], tables.intentions["name"], strict=True))
    if tables.selection["per_role"]:  # roles' own cuts: their intentions are no parts of one cut
        names = {}
    return {
        "k": k,
        "utterances": len(log),
        "clustered": int(log.clustered.sum()),
        "fixed": len(np.unique(log.labels[~log.clustered])),
        "episodes": log.episodes,
        "actions": len(tables.rewards),
        "intentions": _intentions(tables.intentions),
        "map": _map(tables),
        "said": said(log, spread_out(log, credit), over, _point_of(tables), most),
        "tree": tree_block(tables.cuts, k, log.clustered, over, names),
        "curve": _curve(tables.curve, tables.selection),
        "by_turn": _columns(by_turn(tables.rewards)),
        "cells": _columns(occupancy(tables.rewards)),
    }


def by_turn(rewards: pd.DataFrame) -> pd.DataFrame:
    """role, turn, mean, low, high (middle four fifths of the credits), actions."""
    grouped = rewards.groupby(["role", "turn"])["reward"]
    low, high = (grouped.quantile(share) for share in TAILS)
    mean, count = grouped.mean(), grouped.size()
    return mean.to_frame("mean").assign(low=low, high=high, actions=count).reset_index()


def occupancy(rewards: pd.DataFrame) -> pd.DataFrame:
    """Groups of cell sizes: size (words), cells of that size, share of all actions in them."""
    import pandas as pd

    sizes = rewards.groupby("cell").size().to_numpy()
    rows = []
    for low, high in OCCUPANCY:
        inside = sizes[(sizes >= low) & (sizes <= (high or sizes.max(initial=0)))]
        label = str(low) if low == high else f"{low} to {high}" if high else f"over {low - 1}"
        rows.append((label, len(inside), float(inside.sum() / max(len(rewards), 1))))
    return pd.DataFrame(rows, columns=["size", "cells", "share"])


def said(log: Log, credit: np.ndarray, over: np.ndarray, point: np.ndarray, most: float) -> Block:
    """The utterances, episode by episode; each distinct text once.

    credit, over: (n,) float64, NaN where an utterance has no credit. point: (n,) int64 places on
    the map, -1 for none. Whole episodes from the first on, as far as `most` bytes go; one at least.
    """
    total = np.cumsum(sizes(log))
    kept = (total <= max(most, total[:1].max(initial=0)))[log.episode]
    texts, text = np.unique(log.text[kept].astype(str), return_inverse=True)
    ids = np.arange(log.episodes) if log.episode_ids is None else log.episode_ids
    final = np.full(len(log), np.nan) if log.final is None else log.final
    return {
        "texts": [printable(one, keep="\n\t") for one in texts.tolist()],
        "roles": [printable(name) for name in log.role_names],
        "ids": [printable(str(name)) for name in ids[: int(log.episode[kept].max(initial=-1)) + 1]],
        "episode": log.episode[kept].tolist(),
        "role": log.role_codes[kept].tolist(),
        "turn": log.turn[kept].tolist(),
        "text": text.tolist(),
        "label": log.labels[kept].tolist(),
        "credit": _numbers(credit[kept]),
        "over": _numbers(over[kept]),
        "final": _numbers(final[kept]),
        "point": point[kept].tolist(),
    }


def sizes(log: Log) -> np.ndarray:
    """(E,) about how many bytes each episode takes on the page: repeated texts count once."""
    _, first = np.unique(log.text.astype(str), return_index=True)
    row = np.full(len(log), ROW_BYTES)
    row[first] += [len(log.text[one].encode(errors="replace")) for one in first]
    return np.bincount(log.episode, weights=row, minlength=log.episodes)


def shares(needs: Sequence[float], most: float) -> list[float]:
    """`most` handed out to `needs`: nobody gets more than it needs, and nobody less than another
    one unless it needs less."""
    found, left = [0.0] * len(needs), most
    for rank, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        found[place] = min(needs[place], left / (len(needs) - rank))
        left -= found[place]
    return found


def _point_of(tables: LogTables) -> np.ndarray:
    """(n,) int64: where on the map each utterance stands, -1 if it is not drawn."""
    log = tables.log
    place = np.full(len(log.distinct.first), -1)
    place[log.distinct.point[tables.rows]] = np.arange(len(tables.rows))
    points = np.full(len(log), -1)
    points[log.clustered] = place[log.distinct.point]
    return points


def _map(tables: LogTables) -> Block:
    drawn = np.flatnonzero(tables.log.clustered)[tables.rows]
    return {
        "x": _numbers(tables.points[:, 0]),
        "y": _numbers(tables.points[:, 1]),
        "label": tables.log.labels[drawn].tolist(),
        "distinct": len(tables.log.distinct.first),
    }


def _curve(curve: pd.DataFrame, selection: Mapping[str, Any]) -> Block:
    """The indices by k, and the k of every method, the one in use first."""
    chosen = {str(selection["method"]): selection["selected_k"], **selection["runners_up"]}
    numbers = drawn_curve(curve).drop(columns=["role"], errors="ignore")
    return {
        "columns": _columns(numbers),
        "chosen": [{"method": name, "k": k} for name, k in chosen.items()],
        "overridden": bool(selection["overridden"]),
    }


def _intentions(table: pd.DataFrame) -> list[Block]:
    """One record an intention, in the table's order."""
    return [_record(row) for row in table[list(COLUMNS)].to_dict("records")]


def _record(row: Mapping[Any, Any]) -> Block:
    return {
        str(name): [printable(str(one)) for one in value]
        if name == "examples"
        else printable(value)
        if isinstance(value, str)
        else _numbers(np.array([value], dtype=float))[0]
        for name, value in row.items()
    }


def _columns(table: pd.DataFrame) -> Block:
    from pandas.api.types import is_numeric_dtype

    return {
        str(name): _numbers(column.to_numpy(dtype=float))
        if is_numeric_dtype(column)
        else [printable(str(value)) for value in column]
        for name, column in table.items()
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    """Rounded to DIGITS significant digits; what is not finite becomes null, whole numbers int."""
    return [
        None if not np.isfinite(v) else int(v) if v == int(v) else float(f"{v:.{DIGITS}g}")
        for v in np.asarray(values, dtype=float).tolist()
    ]
