"""What the page says of policies: differences with intervals, and how training went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.report.evaluation import rate_of
from aria_dvc.report.intervals import doubt_words, is_shown
from aria_dvc.report.metrics import pooled_curve
from aria_dvc.settings.training import VANILLA

if TYPE_CHECKING:
    import pandas as pd

Block = dict[str, Any]
TRAINING = ("kl_per_action", "entropy_per_action", "gradient_norm", "loss")
HISTORY = ("loss", "gradient_norm", "entropy_per_action")


def results(evaluation: Mapping[str, Any]) -> list[Block]:
    """One row a game and variant, over all roles (see `report.evaluation`).

    game, variant, rate, low, high, episodes. Where vanilla was evaluated too: `vanilla` (the same
    numbers of it), `difference` (mean, low, high, p, p_holm, comparisons, pairs, games_needed) and
    `verdict` in words; vanilla itself has a row only where it stands alone.
    """
    return [row for game, metrics in evaluation.items() for row in _rows(game, metrics)]


def _rows(game: str, metrics: Mapping[str, Any]) -> list[Block]:
    gains, rates_of = metrics["minus_vanilla"], metrics["all"]
    vanilla = rate_of(rates_of[VANILLA]) if VANILLA in rates_of else None
    return [
        {
            "game": game,
            "variant": name,
            **rate_of(numbers),
            "vanilla": vanilla if name in gains else None,
            "difference": gains.get(name),
            "verdict": verdict(gains[name]) if name in gains else None,
        }
        for name, numbers in rates_of.items()
        if name != VANILLA or not gains
    ]


def verdict(difference: Mapping[str, Any]) -> str:
    """Better or worse only where the interval leaves out 0 and p holds among all of the table."""
    if is_shown(difference):
        return "better" if difference["low"] > 0 else "worse"
    if not difference["pairs"]:
        return "no game of both"
    if not difference["undecided"]:
        return "not shown"
    return doubt_words(difference)


def learning_block(
    category: str,
    course: pd.DataFrame,
    histories: Mapping[str, pd.DataFrame],
    reward_model: Mapping[str, Any],
) -> Block:
    """How the policies that learn from one log were trained.

    Args:
        category: whose policies these are; its logs train them together.
        course: rows of online.csv of that log, with a column `variant`; may be empty.
        histories: variant -> its offline steps (step, and columns of HISTORY).
        reward_model: what the stage reward_model measured on held-out episodes.

    Returns:
        category; online: variant -> games, episodes, win_rate, low, high, mean_reward (every role
        alike) and the columns of TRAINING that there are, by iteration; offline: variant -> step
        and columns; reward_model.
    """
    kept = ("not_trained", "r2", "r2_low", "r2_high", "spearman", "mse", "mse_of_baseline")
    return {
        "category": category,
        "online": _online(course) if len(course) else {},
        "offline": {
            name: _series(history, ("step", *HISTORY)) for name, history in histories.items()
        },
        "reward_model": {key: reward_model[key] for key in kept if key in reward_model},
    }


def _online(course: pd.DataFrame) -> Block:
    pooled = pooled_curve(course)
    block = {}
    for name, rows in course.groupby("variant", sort=False):
        curve = pooled[pooled["variant"] == name]
        by_games = rows.groupby("games", sort=False)
        block[str(name)] = {
            **_series(curve, ("games", "episodes", "win_rate", "low", "high")),
            "mean_reward": _list(by_games["mean_reward"].mean().to_numpy()),
            **_series(by_games.first().reset_index(), TRAINING),
        }
    return block


def _series(table: pd.DataFrame, names: tuple[str, ...]) -> Block:
    return {name: _list(table[name].to_numpy(dtype=float)) for name in names if name in table}


def _list(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values.tolist()]
