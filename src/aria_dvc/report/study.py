"""Variants compared over several trainings: rates, and differences with the t interval over seeds.

Games of one training are not independent evidence about the training method, so intervals of
differences are taken over the seeds' means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aria_dvc.params import VANILLA
from aria_dvc.report.intervals import mean_interval, rate

if TYPE_CHECKING:
    import pandas as pd

PAIR = ["seed", "game", "role", "opponent", "episode"]


def compared(games: pd.DataFrame, reference: str) -> dict[str, Any]:
    """Per game and role, and over all games: see `_compared`.

    Args:
        games: rows of evaluation tables (see arena/evaluate.py) with a column `seed`.
        reference: the variant that every other is compared with, beside vanilla.
    """
    out: dict[str, Any] = {"seeds": sorted(games["seed"].unique().tolist()), "games": {}}
    for (game, role), rows in games.groupby(["game", "role"], sort=True):
        out["games"].setdefault(game, {})[role] = _compared(rows, reference)
    return {**out, "all": _compared(games, reference)}


def _compared(rows: pd.DataFrame, reference: str) -> dict[str, Any]:
    """Win rates by variant, and `<variant>_minus_<other>`: mean and t interval over seeds."""
    won = rows.pivot(index=PAIR, columns="variant", values="won").astype(float)
    by_seed = won.groupby("seed").mean()
    variants = [str(name) for name in won.columns]
    result: dict[str, Any] = {
        "win_rate": {name: rate(won[name].to_numpy(dtype=bool)) for name in variants},
        "by_seed": by_seed.rename(index=str).to_dict("index"),
        "by_opponent": won.groupby("opponent").mean().to_dict("index"),
        "no_deal_rate": rows.groupby("variant")["no_deal"].mean().to_dict(),
        "failed_rate": (rows["failure_kind"] != "").groupby(rows["variant"]).mean().to_dict(),
    }
    for other in dict.fromkeys((VANILLA, reference)):
        for name in variants:
            if name not in (VANILLA, other):
                difference = (by_seed[name] - by_seed[other]).to_numpy()
                result[f"{name}_minus_{other}"] = mean_interval(difference)
    return result
