"""From tables to the chosen k and the credit of every action (paper sec. 3.3 and 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.cells import Log, aggregate, make_log
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
from aria_dvc.intentions.space import clustered_rows, only

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
    *,
    k: int | None,
    gamma: float,
    seed: int,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """All curves, and the k that `params` (or the integer `k`) chooses.

    Returns:
        selection: `selected_k`, `method`, the runners-up of the other methods, and `per_role`
            (role -> its own selection; empty unless `params.per_role`).
        curve: one row per role and k with CURVE_COLUMNS; role `all` first.
    """
    import pandas as pd

    log = log_of(turns, gamma, find_distinct(vectors).point)
    cells = cell_curves(log, nested)
    rows = clustered_rows(turns, game)
    clustered = only(nested, rows) if not rows.all() else nested
    r2 = _held_out_r2(turns, nested, gamma, seed)
    codes, names = role_codes(turns)
    acting = [code for code in np.unique(log.role).tolist() if params.per_role]
    curves, chosen = [], {}
    for code in (None, *acting):
        mine = None if code is None else codes[rows] == code
        indices = index_curves(vectors[rows], clustered, rows=mine)
        curve = curve_frame(indices, cells, code, r2)
        role = ALL if code is None else names[code]
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


def _held_out_r2(turns: pd.DataFrame, nested: NestedLabels, gamma: float, seed: int) -> np.ndarray:
    """(J,) R2 on held-out episodes at each k; NaN where there is a single episode."""
    if turns["episode_id"].nunique() < 2:
        return np.full(nested.ks.size, np.nan)
    return r2_by_k(credit_data(turns, returns_of(turns, gamma)), nested.labels, seed=seed)


def _record(selection: Selection) -> dict[str, Any]:
    record = selection.record()
    return {"selected_k": record.pop("k"), **record}


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
            return (discounted), reward (the credit of `aggregate.method`).
        quality: see credit/quality.py; only the number of episodes if there is a single one.
    """
    cells = aggregate(log_of(turns, params.gamma), labels)
    data = credit_data(turns, returns_of(turns, params.gamma), vectors, labels)
    frame = turns.iloc[cells.row][["episode_id", "position", "role", "turn"]].reset_index(drop=True)
    frame = frame.assign(
        label=cells.label,
        cell=cells.cell,
        cell_size=cells.cell_size,
        **{"return": cells.returns, "reward": _credit(data, cells.reward, params, seed)},
    )
    return frame, _quality(data, params, seed)


def _credit(
    data: CreditData, cell_means: np.ndarray, params: AggregateParams, seed: int
) -> np.ndarray:
    if params.method == "aria":
        return cell_means
    return fit_credit(make_method(params.method), data, params.folds, seed)


def _quality(data: CreditData, params: AggregateParams, seed: int) -> dict[str, Any]:
    episodes = int(data.episode.max()) + 1
    if episodes < 2:
        return {"method": params.method, "episodes": episodes}
    quality = credit_quality(method_class(params.method), data, params.folds, seed)
    return {"method": params.method, **quality}
