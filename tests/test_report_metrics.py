"""Rates, intervals and paired differences against their textbook formulas."""

import math

import numpy as np
import pandas as pd
import pytest

from aria_dvc.report.intervals import paired_difference, rate
from aria_dvc.report.metrics import evaluation_metrics


def wilson(wins: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    p = wins / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return centre - half, centre + half


@pytest.mark.parametrize(("wins", "n"), [(0, 5), (3, 10), (10, 10), (500, 1200)])
def test_rate_has_the_wilson_interval(wins, n):
    result = rate(np.arange(n) < wins)
    assert result["rate"] == wins / n
    assert (result["low"], result["high"]) == pytest.approx(wilson(wins, n))


def test_nothing_played_has_no_rate():
    assert rate(np.zeros(0, bool))["rate"] is None


def test_paired_difference_is_the_paired_t_test():
    after, before = np.array([1, 1, 0, 1, 1.0]), np.array([0, 1, 0, 0, 1.0])
    result = paired_difference(after, before)
    difference = after - before
    error = difference.std(ddof=1) / math.sqrt(5)
    assert result["mean"] == pytest.approx(0.4)
    assert result["low"] == pytest.approx(0.4 - 2.7764451052 * error)
    assert result["high"] == pytest.approx(0.4 + 2.7764451052 * error)


def test_equal_differences_have_no_interval():
    assert paired_difference(np.ones(3), np.zeros(3)) == {
        "mean": 1.0,
        "low": None,
        "high": None,
        "p": None,
        "pairs": 3,
    }


def played(variant, episode, won, kind=""):
    return {
        "variant": variant,
        "role": "alice",
        "episode": episode,
        "won": won,
        "reward": float(won),
        "turns": 3,
        "no_deal": kind != "",
        "failure_role": "alice" if kind else "",
        "failure_kind": kind,
    }


def test_evaluation_pairs_episodes_and_counts_failures_by_kind():
    table = pd.DataFrame(
        [
            played("vanilla", "a", False, "no_offer"),
            played("vanilla", "b", False),
            played("aria", "b", True),
            played("aria", "a", False, "no_offer"),
        ]
    )
    result = evaluation_metrics(table, adversarial=True)["alice"]
    assert result["vanilla"]["win_rate"] == 0.0
    assert result["aria"]["win_rate"] == 0.5
    assert result["aria"]["failures"] == {"alice: no_offer": 1}
    assert result["aria"]["no_deal_rate"] == 0.5
    assert result["aria_minus_vanilla"]["mean"] == 0.5
    assert result["aria_minus_vanilla"]["pairs"] == 2
