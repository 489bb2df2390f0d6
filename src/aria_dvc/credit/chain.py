"""From a log to the credit of its actions: intentions, the chosen k, credit (paper sec. 3.2-3.4).

    space = find_intentions(log, params.cluster)
    selection, curve = choose_k(log, space, params)
    rewards, quality = credit(log.with_labels(chosen_labels(log, space.cuts, selection)), params)

The stages run these one by one; `credit(labelled(log, params), params)` is all three.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.cells import Cells, aggregate
from aria_dvc.credit.curves import cell_curves, kinds
from aria_dvc.credit.k_quality import nested_r2, r2_by_k
from aria_dvc.credit.methods.base import CreditMethod, Values, fit_values
from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.credit.methods.registry import make_method, method_class
from aria_dvc.credit.quality import credit_quality
from aria_dvc.credit.selection import curve_frame, labels_by_role, select_k
from aria_dvc.errors import AriaError
from aria_dvc.intentions.cuts import NestedLabels, only
from aria_dvc.intentions.indices import index_curves
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import Space, find_intentions
from aria_dvc.records.stored import read_stage_json

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.credit.settings import AnySettings

ALL = "all"
STAGE = "select_k"
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
logger = logging.getLogger(__name__)


def choose_k(log: Log, space: Space, params: AnySettings) -> tuple[dict[str, Any], pd.DataFrame]:
    """All curves, and the k that `params.select_k` (or the integer `params.k`) chooses.

    Returns:
        selection: `selected_k`, `method`, the runners-up of the other methods, and `per_role`
            (role -> its own selection; empty unless `select_k.per_role`).
        curve: one row per role and k with CURVE_COLUMNS; role `all` first.
    """
    import pandas as pd

    acting = np.unique(log.role_codes[log.actions]).tolist() if params.select_k.per_role else []
    curves, chosen = [], {}
    for role, curve in _curves(log, space.cuts, params, acting):
        chosen[role] = _choice(curve, space.distinct, params)
        curves.append(curve.assign(role=role)[CURVE_COLUMNS])
    selection = {**chosen.pop(ALL), "distinct_utterances": space.distinct, "per_role": chosen}
    if selection["method"] == "cross_validated" and not selection["overridden"]:
        selection |= _nested(log, space.cuts, params)
    _say_if_capped(selection, log.game)
    return selection, pd.concat(curves, ignore_index=True)


def _curves(
    log: Log, cuts: NestedLabels, params: AnySettings, acting: list[int]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """(role, one row per k) of all actions, then of each acting role's."""
    clustered = cuts if log.clustered.all() else only(cuts, log.clustered)
    codes, cells = log.role_codes[log.clustered], cell_curves(log, cuts)
    held_out = _held_out_r2(log, cuts, params, acting)
    for code, r2 in zip((None, *acting), held_out, strict=True):
        mine = None if code is None else codes == code
        indices = index_curves(log.points, clustered, rows=mine, distinct=log.distinct)
        role = ALL if code is None else log.role_names[code]
        yield role, curve_frame(indices, cells, code, r2)


def _held_out_r2(
    log: Log, cuts: NestedLabels, params: AnySettings, acting: list[int]
) -> np.ndarray:
    """(1 + roles, J) R2 on all held-out actions, and on each role's; NaN for one episode."""
    if log.acting_episodes < 2:
        return np.full((1 + len(acting), cuts.ks.size), np.nan)
    of, credit = log.role_codes[log.actions], params.aggregate
    counted = np.stack([np.ones(len(of), bool), *(of == code for code in acting)])
    options = (credit.method, credit.folds, params.seed, counted, credit.history)
    return r2_by_k(log, cuts.labels, *options)


def _nested(log: Log, cuts: NestedLabels, params: AnySettings) -> dict[str, Any]:
    """What choosing k brings on episodes that did not choose: see `nested_r2`."""
    of = params.aggregate
    r2, columns = nested_r2(log, cuts.labels, of.method, of.folds, params.seed, of.history)
    return {"nested_r2": r2, "nested_k": [int(cuts.ks[column]) for column in columns]}


def _choice(curve: pd.DataFrame, distinct: int, params: AnySettings) -> dict[str, Any]:
    select, k = params.select_k, None if params.k == "auto" else params.k
    found = select_k(
        curve, method=select.method, distinct=distinct, eps=select.eps, tau=select.tau, k=k
    )
    record = found.record()
    return {"selected_k": record.pop("k"), **record}


def _say_if_capped(selection: dict[str, Any], game: str) -> None:
    """Tell that a given k is more than there are distinct utterances."""
    if selection["capped_from"]:
        logger.warning(
            "%s: k = %d is more than its %d distinct utterances; k = %d is used",
            game,
            selection["capped_from"],
            selection["distinct_utterances"],
            selection["selected_k"],
        )


def read_selection(
    path: str | Path, cuts: NestedLabels | None = None, roles: Collection[str] = ()
) -> dict[str, Any]:
    """The selection that `choose_k` made, from its file.

    Args:
        cuts: those that every chosen k must be among.
        roles: those that may have a k of their own.

    Raises:
        AriaError: no such file, another content, or a k or role that the log has not.
    """
    found = read_stage_json(path, STAGE)
    own = found.get("per_role")
    records = {"selected_k": found, **(own if isinstance(own, dict) else {"per_role": None})}
    for name, record in records.items():
        k = record.get("selected_k") if isinstance(record, dict) else None
        if type(k) is not int or (cuts is not None and k not in cuts.ks):
            held = "" if cuts is None else f" (the cuts are {cuts.ks[0]}..{cuts.ks[-1]})"
            raise AriaError(f"{path}: {name}: {k!r} is no k{held}: run the stage {STAGE} again")
    if strange := sorted(set(own or {}) - set(roles)) if cuts is not None else []:
        raise AriaError(f"{path}: the log has no role {strange[0]}: run the stage {STAGE} again")
    return found


def largest_k(selection: dict[str, Any]) -> int:
    """How many intentions are used: the chosen k, or the largest of the roles' own."""
    own = [record["selected_k"] for record in selection["per_role"].values()]
    return max(own, default=selection["selected_k"])


def chosen_labels(log: Log, cuts: NestedLabels, selection: dict[str, Any]) -> np.ndarray:
    """(n,) uint8 labels at the chosen k, or at each role's own."""
    per_role, names = selection["per_role"], log.role_names
    if not per_role:
        return cuts.at(selection["selected_k"])
    k_of = {names.index(role): record["selected_k"] for role, record in per_role.items()}
    return labels_by_role(cuts, log.role_codes, k_of)


def credit(log: Log, params: AnySettings) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The credit of every action of a labelled log, and how good it is.

    Returns:
        rewards: see `credit_table`.
        quality: see `quality_of`.
    """
    return credit_table(log, params), quality_of(log, params)


def credit_table(log: Log, params: AnySettings) -> pd.DataFrame:
    """One row an action of a labelled log, with its credit (see records/schemas.py)."""
    cells = aggregate(log, log.labels)
    method, own = _fitted(params.aggregate.method, log, params)
    return log.action_frame().assign(
        label=log.labels[log.actions],
        cell=cells.cell,
        cell_size=cells.size,
        live=_live(log, cells),
        pool=_pools(log, method),
        **{"return": log.targets, "reward": own.q, "value": own.v},
        **_further(log, params),
    )


def _pools(log: Log, fitted: CreditMethod) -> np.ndarray:
    """(A,) int64: see the column `pool` of records/schemas.py."""
    return fitted.pools() if isinstance(fitted, HistoryMeans) else np.full(len(log.actions), -1)


def _further(log: Log, params: AnySettings) -> dict[str, np.ndarray]:
    """The columns of `aggregate.further`: credit_<method> and value_<method>."""
    found = {name: _fitted(name, log, params)[1] for name in params.aggregate.further}
    columns = [{f"credit_{name}": of.q, f"value_{name}": of.v} for name, of in found.items()]
    return {name: column for pair in columns for name, column in pair.items()}


def _live(log: Log, cells: Cells) -> np.ndarray:
    """(A,) bool: whether the action's cell has members of more than one history."""
    pairs = np.unique(np.stack([cells.cell, kinds(log)], axis=1), axis=0)
    return (np.bincount(pairs[:, 0]) > 1)[cells.cell]


def action_values(log: Log, params: AnySettings) -> Values:
    """Credit q and value v of `aggregate.method`, out of fold unless the method is in sample."""
    return _fitted(params.aggregate.method, log, params)[1]


def _fitted(name: str, log: Log, params: AnySettings) -> tuple[CreditMethod, Values]:
    """The method of that name, and the values that it gives the log's actions."""
    method = make_method(name, params.aggregate, params.seed)
    return method, fit_values(method, log, params.aggregate.folds, params.seed)


def quality_of(log: Log, params: AnySettings) -> dict[str, Any]:
    """See credit/quality.py; of a single episode only that it is one."""
    method, folds = params.aggregate.method, params.aggregate.folds
    make = method_class(method, params.aggregate, params.seed)
    if log.acting_episodes < 2:
        return {"method": method, "episodes": log.acting_episodes}
    return {"method": method, **credit_quality(make, log, folds, params.seed)}


def labelled(log: Log, params: AnySettings) -> Log:
    """The log under the intentions of the chosen k."""
    space = find_intentions(log, params.cluster)
    selection, _ = choose_k(log, space, params)
    return log.with_labels(chosen_labels(log, space.cuts, selection))
