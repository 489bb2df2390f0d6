"""How near a credit comes to the true advantages, and to what anybody could see of them.

Measured advantages carry the noise of their continuations. Two halves that share nothing tell how
much: their correlation, stepped up by Spearman and Brown's formula, is the reliability, the share
of the variance of the measured advantages that is true. Even the true advantage correlates with
the measured one by its square root at the most, so a score is also given as a share of what is
reachable. Of ranks that is an approximation, with the halves' rank correlation in the formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm, rankdata

from aria_dvc.errors import AriaError
from aria_dvc.resampling import groups_drawn

if TYPE_CHECKING:
    import pandas as pd

KEY = ["episode_id", "position", "role"]
CONFIDENCE = 0.95
REPLICATES = 1000
CLEAR = 2.0  # standard errors from 0, above which the sign of an advantage counts as known
FEWEST = 3  # turns that have scores
MOST_UNDEFINED = 0.05  # share of the replicates in which a score may be undefined
Sample = dict[str, np.ndarray]
Scores = dict[str, float]


def credit_scores(
    truth: pd.DataFrame,
    credit: pd.DataFrame,
    column: str = "reward",
    *,
    plain: bool = False,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Scores of one credit against the true advantages of one log, by role.

    Args:
        truth: as `truth_table` gives it. credit: KEY and `column`, of at least the same turns.
        plain: against the advantages of returns without discount.
        replicates: of the bootstrap, in which whole groups (`group_id`) are drawn, by `seed`.

    Returns:
        By role the numbers of `turns` and `groups`, and of each of these `value`, `low` and `high`
        (95 %), null where it is not defined:
        pearson, spearman: with the measured advantage; `pearson_share`, `spearman_share` of the
            reachable: divided by the root of the reliability.
        sign: share of the turns with |A| above CLEAR standard errors whose credit, less its mean
            over all turns, has the advantage's sign (0 counts half); sign_share: divided by the
            share that the true advantage is expected to reach; `clear_turns` is their number.
        rmse: root mean squared error of the best a + b * credit; rmse_true: of that the part that
            is not noise of the measurement; explained_share: the part of the variance of the true
            advantages that it explains.
        reliability, rank_reliability: of the measured advantages.

    Raises:
        AriaError: a turn that was measured has no credit, or two.
    """
    table = _joined(truth, credit, column)
    prefix = "plain_" if plain else ""
    return {
        str(role): _of_role(rows, prefix, replicates, seed)
        for role, rows in table.groupby("role", sort=True)
    }


def _joined(truth: pd.DataFrame, credit: pd.DataFrame, column: str) -> pd.DataFrame:
    known = credit[[*KEY, column]].rename(columns={column: "credit"})
    if known.duplicated(KEY).any():
        raise AriaError(f"scores: the credit {column} has a turn twice: give every action one row")
    table = truth.merge(known, on=KEY, how="left")
    missing = table["credit"].isna()
    if missing.any():
        first = table[missing].iloc[0]
        raise AriaError(
            f"scores: {int(missing.sum())} of {len(table)} turns that were measured have no credit "
            f"{column}, such as position {first['position']} of {first['episode_id']}: credit the "
            "same log"
        )
    return table


def _of_role(rows: pd.DataFrame, prefix: str, replicates: int, seed: int) -> dict[str, Any]:
    names = {"advantage": "advantage", "se": "se_advantage", "first": "first", "second": "second"}
    sample: Sample = {name: rows[prefix + of].to_numpy(float) for name, of in names.items()}
    sample["credit"] = rows["credit"].to_numpy(float)
    groups = np.unique(rows["group_id"].to_numpy(str), return_inverse=True)[1]
    found = all_scores(sample)
    bounds = bootstrap(sample, groups, all_scores, replicates, seed)
    return {
        "turns": len(rows),
        "groups": int(groups.max()) + 1,
        "clear_turns": int(is_clear(sample).sum()),
        **{name: {"value": _known(value), **bounds[name]} for name, value in found.items()},
    }


def all_scores(sample: Sample) -> Scores:
    """Every score of one sample of turns (see `credit_scores`); NaN where it is not defined.

    sample: (n,) float64 each: credit, advantage, se, first, second.
    """
    credit, advantage = sample["credit"], sample["advantage"]
    rel = reliability(sample["first"], sample["second"])
    ranked = reliability(*(_ranks(sample[name]) for name in ("first", "second")))
    pearson = correlation(credit, advantage)
    spearman = correlation(_ranks(credit), _ranks(advantage))
    return {
        "pearson": pearson,
        "pearson_share": _share(pearson, rel),
        "spearman": spearman,
        "spearman_share": _share(spearman, ranked),
        **_signs(sample, rel),
        **_errors(advantage, pearson, rel),
        "reliability": rel,
        "rank_reliability": ranked,
    }


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's; NaN where either does not vary, or for fewer than FEWEST values."""
    if len(one) < FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return np.nan
    return float(np.corrcoef(one, other)[0, 1])


def reliability(first: np.ndarray, second: np.ndarray) -> float:
    """That of the mean of two halves, 2 r / (1 + r); NaN where the halves do not agree at all."""
    halves = correlation(first, second)
    return 2 * halves / (1 + halves) if halves > 0 else np.nan


def is_clear(sample: Sample) -> np.ndarray:
    """(n,) bool: the advantage is further from 0 than its noise explains."""
    return np.abs(sample["advantage"]) > CLEAR * sample["se"]


def _share(score: float, rel: float) -> float:
    return float(score / np.sqrt(rel))


def _ranks(values: np.ndarray) -> np.ndarray:
    return rankdata(values)


def _signs(sample: Sample, rel: float) -> Scores:
    clear = is_clear(sample)
    if not clear.any():
        return {"sign": np.nan, "sign_share": np.nan}
    credit = (sample["credit"] - sample["credit"].mean())[clear]
    advantage, se = sample["advantage"][clear], sample["se"][clear]
    hit = float((1 + np.sign(credit) * np.sign(advantage)).mean() / 2)
    true_variance = rel * sample["advantage"].var()
    return {"sign": hit, "sign_share": hit / reachable_signs(advantage, se, true_variance)}


def reachable_signs(advantage: np.ndarray, se: np.ndarray, true_variance: float) -> float:
    """The share of (n,) turns whose measured sign is expected to be the true one.

    For true advantages from a normal distribution around 0 with that variance: given the measured
    one they are normal, with mean s A and variance s se^2, s = variance / (variance + se^2).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shrunk = np.sqrt(true_variance / (true_variance + se**2))
        return float(norm.cdf(shrunk * np.abs(advantage) / se).mean())


def _errors(advantage: np.ndarray, pearson: float, rel: float) -> Scores:
    variance = float(advantage.var())
    left, noise = variance * (1 - pearson**2), variance * (1 - rel)
    return {
        "rmse": float(np.sqrt(left)),
        "rmse_true": float(np.sqrt(max(0.0, left - noise))) if rel == rel else np.nan,
        "explained_share": pearson**2 / rel,
    }


def bootstrap(
    sample: Sample,
    groups: np.ndarray,
    scored: Callable[[Sample], Scores],
    replicates: int = REPLICATES,
    seed: int = 0,
) -> dict[str, dict[str, float | None]]:
    """`low` and `high` of every score: percentiles over samples of as many whole groups.

    groups: (n,) int64, the group of each turn. Null for one group alone, and where more
    than MOST_UNDEFINED of the replicates have no such score.
    """
    drawn: dict[str, list[float]] = {name: [] for name in scored(sample)}
    for rows in groups_drawn(groups, replicates, seed):
        for name, value in scored({key: of[rows] for key, of in sample.items()}).items():
            drawn[name].append(value)
    return {name: _bounds(np.array(values)) for name, values in drawn.items()}


def _bounds(values: np.ndarray) -> dict[str, float | None]:
    known = values[np.isfinite(values)]
    if len(known) < max(1.0, (1 - MOST_UNDEFINED) * len(values)):
        return {"low": None, "high": None}
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return {"low": float(low), "high": float(high)}


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
