"""From tables to the chosen k and the credit of every action (paper sec. 3.3 and 3.4)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.cells import Aggregated, Log, aggregate, make_log
from aria_dvc.credit.curves import cell_curves
from aria_dvc.credit.k_quality import r2_by_k
from aria_dvc.credit.methods.base import CreditData, credit_data, fit_credit
from aria_dvc.credit.methods.registry import make_method, method_class
from aria_dvc.credit.quality import credit_quality
from aria_dvc.credit.returns import discounted_returns
from aria_dvc.credit.selection import Selection, curve_frame, labels_by_role, select_k
from aria_dvc.intentions.cuts import NestedLabels
from aria_dvc.intentions.distinct import find_distinct
from aria_dvc.intentions.indices import index_curves
from aria_dvc.intentions.space import clustered_rows, only, utterance_codes

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.params import AggregateParams, SelectKParams

ALL = "all"
CURVE_COLUMNS = [
    "k",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "split_score",
    "cells",
    "singleton_share",
    "live_share",
    "variance_ratio",
    "r2",
    "inertia",
    "role",
]


def returns_of(turns: pd.DataFrame, gamma: float) -> np.ndarray:
    """(n,) float64 discounted returns; NaN for utterances that are no action."""
    reward, turn, turns_of = (turns[name].to_numpy() for name in ("reward", "turn", "turns"))
    return discounted_returns(reward, turn, turns_of, gamma)


def role_codes(turns: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """(n,) int64 codes of the roles, and the roles' names in the order of the codes."""
    names, codes = np.unique(turns["role"].to_numpy(dtype=str), return_inverse=True)
    return codes.astype(np.int64), names.tolist()


def log_of(turns: pd.DataFrame, gamma: float, utterance: np.ndarray | None = None) -> Log:
    """The turns as arrays for `cells` and `curves`; `utterance`: (n,) codes of equal utterances."""
    return make_log(
        turns["episode_id"].to_numpy(dtype=str),
        turns["position"].to_numpy(),
        role_codes(turns)[0],
        turns["is_action"].to_numpy(dtype=bool),
        returns_of(turns, gamma),
        utterance=utterance,
    )


def choose_k(
    turns: pd.DataFrame,
    vectors: np.ndarray,
    nested: NestedLabels,
    distinct: int,
    game: str,
    params: SelectKParams,
    credit: AggregateParams,
    *,
    k: int | None,
    seed: int,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """All curves, and the k that `params` (or the integer `k`) chooses.

    credit: what the labels are for; the curve `r2` is that of its method.

    Returns:
        selection: `selected_k`, `method`, the runners-up of the other methods, and `per_role`
            (role -> its own selection; empty unless `params.per_role`).
        curve: one row per role and k with CURVE_COLUMNS; role `all` first.
    """
    import pandas as pd

    rows = clustered_rows(turns, game)
    points, clustered = vectors, nested
    if not rows.all():
        points, clustered = vectors[rows], only(nested, rows)
    same = find_distinct(points)
    log = log_of(turns, credit.gamma, utterance_codes(turns, rows, same))
    cells = cell_curves(log, nested)
    codes, names = role_codes(turns)
    acting = [code for code in np.unique(log.role).tolist() if params.per_role]
    held_out = _held_out_r2(turns, nested, credit, seed, [names[code] for code in acting])
    curves, chosen = [], {}
    for code, r2 in zip((None, *acting), held_out, strict=True):
        mine = None if code is None else codes[rows] == code
        indices = index_curves(points, clustered, rows=mine, distinct=same)
        role = ALL if code is None else names[code]
        curve = curve_frame(indices, cells, code, r2)
        chosen[role] = _record(
            select_k(
                curve,
                method=params.method,
                distinct=distinct,
                eps=params.eps,
                tau=params.tau,
                k=k,
            )
        )
        curves.append(curve.assign(role=role)[CURVE_COLUMNS])
    selection = {**chosen.pop(ALL), "distinct_utterances": distinct, "per_role": chosen}
    return selection, pd.concat(curves, ignore_index=True)


def _held_out_r2(
    turns: pd.DataFrame,
    nested: NestedLabels,
    credit: AggregateParams,
    seed: int,
    roles: list[str],
) -> np.ndarray:
    """(1 + roles, J) R2 on all held-out actions, and on each role's; NaN for one episode."""
    if turns["episode_id"].nunique() < 2:
        return np.full((1 + len(roles), nested.ks.size), np.nan)
    data = credit_data(turns, returns_of(turns, credit.gamma))
    of = data.role[data.actions]
    counted = np.stack([np.ones(len(of), bool), *(of == role for role in roles)])
    return r2_by_k(data, nested.labels, credit.method, credit.folds, seed, counted)


def _record(selection: Selection) -> dict[str, Any]:
    record = selection.record()
    return {"selected_k": record.pop("k"), **record}


def largest_k(selection: dict[str, Any]) -> int:
    """How many intentions are used: the chosen k, or the largest of the roles' own."""
    own = [record["selected_k"] for record in selection["per_role"].values()]
    return max(own, default=selection["selected_k"])


def say_if_capped(selection: dict[str, Any], game: str) -> None:
    """Tell on standard error that a given k is more than there are distinct utterances."""
    if selection["capped_from"]:
        print(
            f"{game}: k = {selection['capped_from']} is more than its "
            f"{selection['distinct_utterances']} distinct utterances; "
            f"k = {selection['selected_k']} is used",
            file=sys.stderr,
        )


def chosen_labels(
    turns: pd.DataFrame, nested: NestedLabels, selection: dict[str, Any]
) -> np.ndarray:
    """(n,) uint8 labels at the chosen k, or at each role's own."""
    per_role = selection["per_role"]
    if not per_role:
        return nested.at(selection["selected_k"])
    codes, names = role_codes(turns)
    k_of = {names.index(role): record["selected_k"] for role, record in per_role.items()}
    return labels_by_role(nested, codes, k_of)


def credit_table(
    turns: pd.DataFrame,
    vectors: np.ndarray,
    labels: np.ndarray,
    params: AggregateParams,
    seed: int,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The credit of every action, and how good it is.

    Returns:
        rewards: one row an action: episode_id, position, role, turn, label, cell, cell_size,
            live (whether a finer cut can still change the cell), return (discounted), reward (the
            credit of `aggregate.method`).
        quality: see credit/quality.py; only the number of episodes if there is a single one.
    """
    rows = clustered_rows(turns, str(turns["game"].iloc[0]))
    codes = utterance_codes(turns, rows, find_distinct(vectors if rows.all() else vectors[rows]))
    log = log_of(turns, params.gamma, codes)
    cells = aggregate(log, labels)
    data = credit_data(turns, returns_of(turns, params.gamma), vectors, labels)
    frame = turns.iloc[cells.row][["episode_id", "position", "role", "turn"]].reset_index(drop=True)
    frame = frame.assign(
        label=cells.label,
        cell=cells.cell,
        cell_size=cells.cell_size,
        live=_live(log, cells),
        **{"return": cells.returns, "reward": _credit(data, cells.reward, params, seed)},
    )
    return frame, quality_of(params.method, data, params.folds, seed)


def _live(log: Log, cells: Aggregated) -> np.ndarray:
    """(A,) bool: whether the action's cell has members of more than one history."""
    assert log.kind is not None
    kind = log.kind[np.argsort(log.order[log.action], kind="stable")]
    pairs = np.unique(np.stack([cells.cell, kind], axis=1), axis=0)
    return (np.bincount(pairs[:, 0]) > 1)[cells.cell]


def _credit(
    data: CreditData, cell_means: np.ndarray, params: AggregateParams, seed: int
) -> np.ndarray:
    if params.method == "aria":
        return cell_means
    return fit_credit(make_method(params.method), data, params.folds, seed)


def quality_of(method: str, data: CreditData, folds: int, seed: int) -> dict[str, Any]:
    """See credit/quality.py; of a single episode only that it is one."""
    episodes = int(data.episode.max()) + 1
    if episodes < 2:
        return {"method": method, "episodes": episodes}
    return {"method": method, **credit_quality(method_class(method), data, folds, seed)}
