"""Rates and differences with 95 % intervals and p values that hold for few and related games."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import normal_sample_size_one_tail
from statsmodels.stats.proportion import proportion_confint

from aria_dvc.clustered import CONFIDENCE, ratio_interval

POWER = 0.8
ROUNDING = 1e-12
BOUNDS = ("low", "high")
SIGNIFICANT = 0.05
DECIDING_PAIRS = 100
"""Fewer pairs rarely show a difference of the usual size (0.1)."""
MANY_PAIRS = 10_000
"""From here on a normal approximation is as good as the exact test."""


def rate(wins: np.ndarray, clusters: np.ndarray | None = None) -> dict[str, Any]:
    """Share of true values of a (n,) bool array with its Wilson interval.

    Of games in clusters the interval is that of n divided by the design effect (see
    `design_effect`) and of t with one degree of freedom less than clusters. It covers the truth
    where a t interval over few clusters does not, and has a width where all or none are won.

    Args:
        clusters: (n,) labels; games of one label are not independent. None: all are.
    """
    if not len(wins):
        return {"rate": None, "low": None, "high": None, "episodes": 0}
    count = len(wins) if clusters is None else len(np.unique(clusters))
    effective, critical = float(len(wins)), float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    if clusters is not None and count < len(wins):
        effective /= design_effect(wins, clusters)
        if count > 1:
            critical = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
    share = float(wins.mean())
    low, high = _wilson(share, effective, critical)
    return {"rate": share, "low": low, "high": high, "episodes": len(wins)}


def design_effect(wins: np.ndarray, clusters: np.ndarray) -> float:
    """How many games in clusters tell as much as one game by itself; at least 1.

    The squared standard error of `clustered_interval` over that of independent games, p (1 - p) /
    n. Where that says nothing (one cluster, all won or none) it is the most there can be, the mean
    size of the cluster that a game is in.
    """
    _, group = np.unique(clusters, return_inverse=True)
    sizes, sums = np.bincount(group), np.bincount(group, weights=wins)
    count, n, won = len(sizes), len(wins), int(wins.sum())
    if count == 1 or won in (0, n):
        return float(np.square(sizes).sum() / n)
    spread = float(np.square(sums - sizes * (won / n)).sum())
    return max(1.0, count / (count - 1) * spread / (won * (n - won) / n))


def mean_rate(rates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Unweighted mean of independent rates (see `rate`; of at least one), episodes added.

    The interval is made of theirs, by the method of variance estimates recovery (Zou and Donner,
    2008): the squared distances of the ends from the rates add up as variances do.
    """
    share, low, high = (np.array([one[key] for one in rates]) for key in ("rate", *BOUNDS))
    mean = float(share.mean())
    return {
        "rate": mean,
        "low": mean - float(np.linalg.norm(share - low)) / len(share),
        "high": mean + float(np.linalg.norm(high - share)) / len(share),
        "episodes": sum(one["episodes"] for one in rates),
    }


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval for n independent games, which need not be a whole number."""
    ends = proportion_confint(share * n, n, alpha=2 * stats.norm.sf(z), method="wilson")
    low, high = map(float, ends)
    return min(share, low), max(share, high)  # all or none won: the end is the share, but rounded


def paired_difference(
    after: np.ndarray, before: np.ndarray, clusters: np.ndarray
) -> dict[str, Any]:
    """What `after` wins more than `before`, over pairs of games.

    The interval is for further configurations of the kind that was played: where training plays
    them too, that is no claim about unseen ones. p asks whether the two win alike in these
    configurations, where pairs are independent.

    Args:
        after, before: (n,) bool, whether the game was won; row i of both is one pair.
        clusters: (n,) labels; pairs of one label (one configuration) are not independent.

    Returns:
        pairs, clusters: their numbers.
        mean, low, high: difference of the rates, and its interval (see `clustered_interval`, and
        `_of_rates` where configurations agree exactly on a difference).
        gained, lost: pairs that only `after`, or only `before`, won.
        p: exact McNemar test; null without pairs.
        undecided, games_needed: see `doubt`.
    """
    difference = after.astype(int) - before.astype(int)
    gained, lost = int((difference > 0).sum()), int((difference < 0).sum())
    pairs = len(difference)
    interval = clustered_interval(difference, clusters)
    if gained != lost and interval["low"] is None and interval["clusters"] > 1:
        interval |= _of_rates(rate(after, clusters), rate(before, clusters))
    found = {
        "pairs": pairs,
        **{name: interval[name] for name in ("clusters", "mean", *BOUNDS)},
        "gained": gained,
        "lost": lost,
        "p": mcnemar(gained, lost) if pairs else None,
    }
    return {**found, **doubt(found)}


def _of_rates(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, float]:
    """The interval of the difference of two rates, as if independent, made of theirs (Newcombe,
    1998, method 10): it has a width where every configuration gained alike, say all games."""
    mean = after["rate"] - before["rate"]
    down = math.hypot(after["rate"] - after["low"], before["high"] - before["rate"])
    up = math.hypot(after["high"] - after["rate"], before["rate"] - before["low"])
    return {"low": mean - down, "high": mean + up}


def is_shown(difference: Mapping[str, Any]) -> bool:
    """Whether p, Holm's where it is known, is below SIGNIFICANT and the interval leaves out 0."""
    p, low, high = (difference.get("p_holm", difference.get("p")), *map(difference.get, BOUNDS))
    if p is None or low is None or high is None:
        return False
    return bool(p < SIGNIFICANT and (low > 0 or high < 0))


def doubt(difference: Mapping[str, Any]) -> dict[str, Any]:
    """Whether more games are wanted to tell.

    Returns:
        undecided: fewer than DECIDING_PAIRS pairs, and the difference is not shown; then
        games_needed: pairs that would show it (see `games_needed`) at the strictest of Holm's
        levels, null where there are as many.
    """
    pairs, gained, lost = (difference[name] for name in ("pairs", "gained", "lost"))
    undecided = pairs < DECIDING_PAIRS and not is_shown(difference)
    level = SIGNIFICANT / difference.get("comparisons", 1)
    needed = games_needed(gained, lost, pairs, level) if undecided else None
    enough = needed is not None and needed <= pairs
    return {"undecided": undecided, "games_needed": None if enough else needed}


def doubt_words(difference: Mapping[str, Any]) -> str:
    """How an undecided difference is told."""
    needed = difference["games_needed"]
    return f"undecided: about {needed:,} games would tell" if needed else "undecided"


def clustered_interval(values: np.ndarray, clusters: np.ndarray) -> dict[str, Any]:
    """Mean of (n,) values with a t interval that takes clusters, not values, as independent.

    For clusters of one size it is the t interval over their means, for clusters of one value that
    over the values (see `ratio_interval`).

    Returns:
        count, clusters: their numbers; mean: null without values; low, high: null for fewer than
        two clusters, or if the means of all clusters are equal but for rounding.
    """
    labels, group = np.unique(clusters, return_inverse=True)
    mean = low = high = None
    if len(values):
        mean, low, high = ratio_interval(values, np.ones(len(values)), group)
        means = np.bincount(group, weights=values) / np.bincount(group)
        if _are_equal(means, float(np.abs(values).max())):
            low = high = None
    return {"count": len(values), "clusters": len(labels), "mean": mean, "low": low, "high": high}


def _are_equal(values: np.ndarray, size: float = 1.0) -> bool:
    """Whether values differ by no more than what rounding makes of numbers of that size."""
    return bool(np.ptp(values) <= ROUNDING * max(1.0, size))


def share_of_turns(counted: np.ndarray, turns: np.ndarray) -> dict[str, Any]:
    """Share of all turns that count, with an interval that takes episodes as independent.

    Args:
        counted, turns: (n,) whole numbers, of each episode the turns that count and all of them.

    Returns:
        rate; low, high: of `clustered_interval` cut to 0..1; turns, episodes: their numbers.
    """
    values = np.concatenate([np.arange(n) < c for c, n in zip(counted, turns, strict=True)] or [[]])
    found = clustered_interval(values.astype(int), np.repeat(np.arange(len(turns)), turns))
    bounds = {
        name: None if found[name] is None else min(1.0, max(0.0, found[name])) for name in BOUNDS
    }
    return {"rate": found["mean"], **bounds, "turns": len(values), "episodes": found["clusters"]}


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided p value of the numbers of pairs that only one or only the other won."""
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def games_needed(gained: int, lost: int, pairs: int, level: float = SIGNIFICANT) -> int | None:
    """Independent pairs with which the exact McNemar test has a power of POWER.

    They are taken to differ, and to be gained, as often as those that were measured; above 100 the
    number is right to one in a hundred. From MANY_PAIRS on it is that of a normal approximation.
    Null where as many were gained as lost.

    Args:
        level: below which p has to be.
    """
    if gained == lost:
        return None
    share, difference = (gained + lost) / pairs, (gained - lost) / pairs
    spread = math.sqrt(share), math.sqrt(share - difference**2)
    about = math.ceil(normal_sample_size_one_tail(difference, POWER, level / 2, *spread))
    if about >= MANY_PAIRS:
        return about
    needed = about * 9 // 10
    while mcnemar_power(needed, share, difference, level) < POWER:
        needed += max(1, needed // 100)
    return needed


def mcnemar_power(pairs: int, share: float, difference: float, level: float) -> float:
    """How often the exact McNemar test of so many pairs gives a p below `level`.

    Args:
        share: of the pairs that differ; difference: of the rates, positive or negative.
    """
    discordant = np.arange(pairs + 1)
    chance = stats.binom.pmf(discordant, pairs, share)
    # the most that the rarer kind may be of so many: two-sided p is twice its lower tail
    most = stats.binom.ppf(level / 2, discordant, 0.5)
    most -= 2 * stats.binom.cdf(most, discordant, 0.5) >= level
    gained = (1 + difference / share) / 2
    shown = stats.binom.cdf(most, discordant, gained) + stats.binom.cdf(
        most, discordant, 1 - gained
    )
    return float(chance @ shown)


def mean_interval(values: np.ndarray) -> dict[str, Any]:
    """Mean of (n,) float64 values with its t interval and the p value against 0.

    Fewer than two values, or values that are all equal but for rounding, have no interval (null).
    """
    mean = float(values.mean()) if len(values) else None
    if len(values) < 2 or _are_equal(values):
        return {"mean": mean, "low": None, "high": None, "p": None, "count": len(values)}
    test = stats.ttest_1samp(values, 0.0)
    interval = test.confidence_interval(CONFIDENCE)
    return {
        "mean": mean,
        "low": float(interval.low),
        "high": float(interval.high),
        "p": float(test.pvalue),
        "count": len(values),
    }


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values, in the order given.

    A comparison without p (null) stays so and counts as one of those made.
    """
    adjusted = multipletests([1.0 if p is None else p for p in p_values], method="holm")[1]
    pairs = zip(p_values, adjusted.tolist(), strict=True)
    return [None if p is None else value for p, value in pairs]
