"""The numbers of a run, gathered from what the stages wrote, for metrics/*.json."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from aria_dvc.credit.chain import largest_k
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.variance import variances
from aria_dvc.report.intervals import paired_difference, rate

if TYPE_CHECKING:
    import pandas as pd

VARIANTS = ("vanilla", "aria")


def credit_metrics(
    selection: dict[str, Any],
    rewards: pd.DataFrame,
    quality: dict[str, Any],
) -> dict[str, Any]:
    """One game's intention space and credit.

    selected_k: the largest of the roles' own numbers of intentions where they have some.
    reward_variance_before / after: variance over all actions of the discounted return and of the
    credit that replaces it (population variance; Lemma 4.1 bounds the second by the first for
    `aggregate.method: aria`).
    """
    in_sample = make_method(quality["method"]).in_sample
    returns, credit = rewards["return"].to_numpy(), rewards["reward"].to_numpy()
    before, after = variances(returns, credit, in_sample)
    return {
        "selected_k": largest_k(selection),
        "selection": selection,
        "episodes": int(rewards["episode_id"].nunique()),
        "turns": len(rewards),
        "cells": int(rewards["cell"].nunique()),
        "singleton_share": float((rewards["cell_size"] == 1).mean()),
        "live_share": float(rewards["live"].mean()),
        "reward_variance_before": before,
        "reward_variance_after": after,
        "credit_quality": quality,
    }


def evaluation_metrics(games: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    """One game's evaluation, per role and policy: rates with 95 % intervals and failures.

    Args:
        games: one row an episode (see arena/evaluate.py).
        adversarial: the rate is the win rate (own utility strictly above the opponent's), with
            the share of games without a deal beside it; otherwise the success rate.
    """
    return {role: _role_metrics(rows, adversarial) for role, rows in games.groupby("role")}


def _role_metrics(rows: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    by_variant = {name: rows[rows["variant"] == name] for name in VARIANTS}
    result: dict[str, Any] = {
        name: _variant_metrics(part, adversarial) for name, part in by_variant.items()
    }
    paired = by_variant["aria"].merge(
        by_variant["vanilla"], on="episode", suffixes=("_aria", "_vanilla"), validate="1:1"
    )
    result["aria_minus_vanilla"] = paired_difference(
        paired["won_aria"].to_numpy(), paired["won_vanilla"].to_numpy()
    )
    return result


def _variant_metrics(part: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    key = "win_rate" if adversarial else "success_rate"
    interval = rate(part["won"].to_numpy(dtype=bool))
    failed = part[part["failure_kind"] != ""]
    kinds = Counter((failed["failure_role"] + ": " + failed["failure_kind"]).tolist())
    result = {
        key: interval["rate"],
        f"{key}_low": interval["low"],
        f"{key}_high": interval["high"],
        "episodes": interval["episodes"],
        "mean_reward": float(part["reward"].mean()),
        "mean_turns": float(part["turns"].mean()),
        "failed": len(failed),
        "failures": dict(sorted(kinds.items())),
    }
    if adversarial:
        result["no_deal_rate"] = float(part["no_deal"].mean())
    return result
