"""How much of the returns of unseen groups an estimator predicts, beyond role and turn index."""

from __future__ import annotations

from typing import Any

import numpy as np

from aria_dvc.credit.methods.base import Values, out_of_fold
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import CreditSettings
from aria_dvc.intentions.log import Log

DRAWS = 400
BASELINES = ("constant", "turn_index")


def held_out(
    log: Log, methods: tuple[str, ...], settings: CreditSettings, valued: str | None = None
) -> dict[str, Values]:
    """Method -> values by a fit on other groups, the two baselines among them.

    valued: the method of which v is wanted too; that of the others is NaN.
    """
    folds, seed = settings.aggregate.folds, settings.seed
    return {
        name: out_of_fold(make_method(name), log, folds, seed, with_value=name == valued)
        for name in dict.fromkeys((*BASELINES, *methods))
    }


def signal(log: Log, found: dict[str, Values], seed: int = 0) -> list[dict[str, Any]]:
    """One row a method and role (all of them first): its skill over both baselines.

    Skill is 1 - SSE / SSE of the baseline, on held-out actions; 95 % intervals by drawing groups.
    """
    group, role = groups_of(log), log.role[log.actions]
    errors = {name: (values.q - log.targets) ** 2 for name, values in found.items()}
    rows = []
    for name in found:
        if name == "constant":
            continue
        for who in ("all", *np.unique(role).tolist()):
            mine = np.ones(len(role), bool) if who == "all" else role == who
            row: dict[str, Any] = {"method": name, "role": who, "actions": int(mine.sum())}
            for base in BASELINES:
                pair = errors[name][mine], errors[base][mine]
                row[f"over_{base}"] = None if name == base else skill(*pair, group[mine], seed)
            rows.append(row)
    return rows


def skill(
    errors: np.ndarray, base: np.ndarray, group: np.ndarray, seed: int = 0
) -> dict[str, float] | None:
    """value, low, high; None where the baseline makes no error."""
    if not base.sum() > 1e-12:
        return None
    codes = np.unique(group, return_inverse=True)[1]
    sums = np.stack([np.bincount(codes, errors), np.bincount(codes, base)])
    draws = np.random.default_rng(seed).integers(0, sums.shape[1], (DRAWS, sums.shape[1]))
    drawn = sums[:, draws].sum(axis=2)
    ratios = 1 - drawn[0] / np.maximum(drawn[1], 1e-12)
    low, high = np.quantile(ratios, [0.025, 0.975])
    value = 1 - float(errors.sum() / base.sum())
    return {"value": value, "low": float(low), "high": float(high)}


def groups_of(log: Log) -> np.ndarray:
    """(A,) number of each action's group."""
    episode = log.episode[log.actions]
    return episode if log.group is None else log.group[episode]
