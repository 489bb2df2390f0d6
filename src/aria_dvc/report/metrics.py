"""The numbers of a run, gathered from what the stages wrote: in full, and in brief for reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.chain import largest_k
from aria_dvc.credit.variance import variances
from aria_dvc.records.tables import records_of
from aria_dvc.report.intervals import mean_rate, rate

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 4


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
    records = records_of(episodes).values()
    refused = Counter(one.role for record in records for one in record.refused)
    roles = sorted({role for record in records for role in record.players})
    return {role: refused[role] / max(spoken[role], 1) for role in roles}


def log_failures(episodes: pd.DataFrame) -> dict[str, int]:
    """How many games of a log a role could not go on with, by role and kind (`alice: empty`)."""
    failures = [record.failure for record in records_of(episodes).values()]
    kinds = Counter(f"{one.role}: {one.kind}" for one in failures if one)
    return dict(sorted(kinds.items()))


def brief_credit(metrics: dict[str, Any]) -> dict[str, Any]:
    """selected_k, and the R2 of the credit on held-out episodes (null: nothing to explain)."""
    r2 = metrics["credit_quality"].get("r2", {}).get("method")
    return {"selected_k": metrics["selected_k"], "r2": rounded(r2)}


def brief_learning(metrics: dict[str, Any]) -> dict[str, Any]:
    """R2 of the reward model on held-out episodes; how well the progress estimator tells unseen
    outcomes, by log; each variant's ratio of gradient variances.

    What was not trained has no number.
    """
    ratios = {
        name: {"gradient_variance_ratio": rounded(gradient_ratio(policy))}
        for name, policy in metrics["policy"].items()
        if "gradient_variance_ratio" in policy
    }
    model, told = metrics["reward_model"], metrics["progress"].get("logs", {})
    estimated = {f"progress_{log}": _brief_progress(of) for log, of in told.items()}
    of_model = {"reward_model_r2": rounded(model["r2"])} if "r2" in model else {}
    return {**of_model, **estimated, **ratios}


def _brief_progress(quality: dict[str, Any]) -> dict[str, Any]:
    """How near the sums come, how much of them is the last action's, and how early they tell."""
    half, end = (quality["quarters"][number]["auc"] for number in (1, 3))
    found = {name: quality[name] for name in ("sum_r2", "last_share")}
    found |= {"auc_at_half": half, "auc_at_end": end}
    return {name: rounded(value) for name, value in found.items()}


def gradient_ratio(policy: dict[str, Any]) -> float | None:
    """Gradient variance with the credit over that with plain returns; None where it says nothing:
    no step was taken, every advantage was 0, or a gradient never varied."""
    idle = policy.get("steps") == 0 or policy.get("zero_advantages") == 1.0
    both = (policy.get("gradient_variance"), policy.get("gradient_variance_discounted"))
    if idle or not all(value is not None and value > 0 for value in both):
        return None
    ratio = policy["gradient_variance_ratio"]
    return None if ratio is None else float(ratio)


def pooled_curve(course: pd.DataFrame) -> pd.DataFrame:
    """Learning curves over all roles: log, variant, games, episodes, win_rate, low, high.

    Every role counts alike, as in the evaluation: how many of an iteration's games each plays is
    drawn, and roles differ more than iterations do.

    Args:
        course: rows of online.csv (see learning/course.py) with a column `variant`. Without its
            column `groups` the intervals take all games as independent.
    """
    rows = course.assign(wins=course["win_rate"] * course["episodes"])
    points = rows[rows["episodes"] > 0].groupby(["log", "variant", "games"], sort=False)
    pooled = points[["episodes"]].sum()
    won = [mean_rate([_rate_of_role(row) for row in of.to_dict("records")]) for _, of in points]
    columns = {"win_rate": "rate", "low": "low", "high": "high"}
    numbers = {name: [numbers[key] for numbers in won] for name, key in columns.items()}
    return pooled.assign(**numbers).reset_index()


def _rate_of_role(row: Mapping[str, Any]) -> dict[str, Any]:
    """The win rate of a role's games of one iteration; groups of games are clusters."""
    texts = row.get("groups")
    if not isinstance(texts, str):
        return rate(np.arange(round(row["episodes"])) < round(row["wins"]))
    groups = [tuple(map(int, text.split("/"))) for text in texts.split()]
    wins = np.concatenate([np.arange(played) < won for won, played in groups])
    return rate(wins, np.repeat(np.arange(len(groups)), [played for _, played in groups]))


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
