"""The numbers of a run, gathered from what the stages wrote: in full, and in brief for reviews."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from aria_dvc.credit.chain import largest_k
from aria_dvc.credit.variance import variances
from aria_dvc.params import VANILLA
from aria_dvc.records.episodes import Record
from aria_dvc.report.intervals import paired_difference, rate, share_of_turns

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 4
PAIR = ["role", "opponent", "episode"]


def credit_metrics(
    selection: dict[str, Any],
    rewards: pd.DataFrame,
    quality: dict[str, Any],
) -> dict[str, Any]:
    """One log's intention space and credit.

    selected_k: the largest of the roles' own numbers of intentions where they have some.
    reward_variance_before / after: variance over all actions of the discounted return and of the
    credit that replaces it (population variance; Lemma 4.1 bounds the second by the first for
    `aggregate.method: aria`).
    """
    returns, credit = rewards["return"].to_numpy(), rewards["reward"].to_numpy()
    before, after = variances(returns, credit)
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


def refused_per_turn(turns: pd.DataFrame, episodes: pd.DataFrame) -> dict[str, float]:
    """By role, texts that were no legal move over own utterances; empty for a log of one's own."""
    spoken = Counter(turns["role"].tolist())
    infos = episodes.drop_duplicates("episode_id")["info"]
    records = [Record.from_json(orjson.loads(info)) for info in infos]
    refused = Counter(one.role for record in records for one in record.refused)
    roles = sorted({role for record in records for role in record.players})
    return {role: refused[role] / max(spoken[role], 1) for role in roles}


def evaluation_metrics(games: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    """One game's evaluation: rates with 95 % intervals, failures, and gains over vanilla.

    Args:
        games: one row an episode (see arena/evaluate.py), of all variants, whether its
            configuration can be won by its role (bool column `winnable`), and what kind of task
            it is (column `kind`, null without kinds).
        adversarial: the rate is the win rate (own utility strictly above the opponent's), with
            the share of games without a deal beside it; otherwise the success rate.

    Returns:
        all: by variant over all roles; by_role: role -> by variant; minus_vanilla: variant ->
        paired difference on the same configurations and seeds, over all roles, clustered by
        configuration; winnable: the rates and differences of the winnable games alone; by_kind,
        where tasks have kinds: kind -> by variant.
    """
    roles = [(str(role), rows) for role, rows in games.groupby("role")]
    kinds = [(str(kind), rows) for kind, rows in games.groupby("kind", sort=False)]
    by_kind = {kind: _by_variant(rows, adversarial) for kind, rows in kinds}
    return {
        "all": _by_variant(games, adversarial),
        "by_role": {role: _by_variant(rows, adversarial) for role, rows in roles},
        "minus_vanilla": _gains(games),
        "winnable": {
            "all": _winnable_rates(games),
            "by_role": {role: _winnable_rates(rows) for role, rows in roles},
            "minus_vanilla": _gains(games[games["winnable"]]),
        },
        **({"by_kind": by_kind} if by_kind else {}),
    }


def _by_variant(rows: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    return {
        str(name): _variant_metrics(part, adversarial)
        for name, part in rows.groupby("variant", sort=False)
    }


def _winnable_rates(rows: pd.DataFrame) -> dict[str, Any]:
    """By variant the rate on winnable games; null where there are none."""
    return {
        str(name): rate(part.loc[part["winnable"], "won"].to_numpy(dtype=bool))
        for name, part in rows.groupby("variant", sort=False)
    }


def _gains(games: pd.DataFrame) -> dict[str, Any]:
    """Every variant's paired difference to vanilla, over the games that both have played."""
    won = games.pivot(index=[*PAIR, "config"], columns="variant", values="won")
    if VANILLA not in won:
        return {}
    return {
        str(name): _gain(won[[name, VANILLA]].dropna())
        for name in games["variant"].unique()
        if name != VANILLA
    }


def _gain(pairs: pd.DataFrame) -> dict[str, Any]:
    after, before = pairs.to_numpy(dtype=bool).T
    return paired_difference(after, before, pairs.index.get_level_values("config").to_numpy())


def _variant_metrics(part: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    failed = part[part["failure_kind"] != ""]
    kinds = Counter((failed["failure_role"] + ": " + failed["failure_kind"]).tolist())
    result = {
        **rate(part["won"].to_numpy(dtype=bool)),
        "mean_reward": float(part["reward"].mean()),
        "mean_turns": float(part["turns"].mean()),
        "refused_per_turn": float(part["refused"].sum() / max(part["turns"].sum(), 1)),
        "failed": len(failed),
        "failures": dict(sorted(kinds.items())),
    }
    if adversarial:
        result["no_deal_rate"] = float(part["no_deal"].mean())
    answered = part[part["executed"].notna()]
    if len(answered):
        counts = (answered[name].to_numpy(dtype=int) for name in ("executed", "turns"))
        result["grounding"] = share_of_turns(*counts)
    return result


def brief_credit(metrics: dict[str, Any]) -> dict[str, Any]:
    """selected_k, and the R2 of the credit on held-out episodes (null: nothing to explain)."""
    r2 = metrics["credit_quality"].get("r2", {}).get("method")
    return {"selected_k": metrics["selected_k"], "r2": rounded(r2)}


def brief_learning(metrics: dict[str, Any]) -> dict[str, Any]:
    """R2 of the reward model on held-out episodes; each variant's ratio of gradient variances.

    A reward model that was not trained has no R2.
    """
    ratios = {
        name: {"gradient_variance_ratio": rounded(policy["gradient_variance_ratio"])}
        for name, policy in metrics["policy"].items()
        if "gradient_variance_ratio" in policy
    }
    model = metrics["reward_model"]
    return {**({"reward_model_r2": rounded(model["r2"])} if "r2" in model else {}), **ratios}


def pooled_curve(course: pd.DataFrame) -> pd.DataFrame:
    """Learning curves over both roles: log, variant, games, episodes, wins, win_rate, low, high.

    Args:
        course: rows of online.csv (see learning/course.py) with a column `variant`.
    """
    rows = course.assign(wins=course["win_rate"] * course["episodes"])
    pooled = rows.groupby(["log", "variant", "games"], sort=False)[["episodes", "wins"]].sum()
    won = [
        rate(np.arange(round(n)) < round(wins))
        for n, wins in pooled[["episodes", "wins"]].itertuples(index=False)
    ]
    columns = {"win_rate": "rate", "low": "low", "high": "high"}
    numbers = {name: [numbers[key] for numbers in won] for name, key in columns.items()}
    return pooled.assign(**numbers).reset_index()


def brief_evaluation(metrics: dict[str, Any]) -> dict[str, Any]:
    """Win or success rate of every variant, how many of its commands were carried out where an
    environment does that, and the interval of its gain over vanilla."""
    brief = {name: rounded(numbers["rate"]) for name, numbers in metrics["all"].items()}
    for name, numbers in metrics["all"].items():
        if "grounding" in numbers:
            brief[f"{name}_grounding"] = rounded(numbers["grounding"]["rate"])
    for name, gain in metrics["minus_vanilla"].items():
        brief[f"{name}_gain_low"] = rounded(gain["low"])
        brief[f"{name}_gain_high"] = rounded(gain["high"])
    return brief


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
