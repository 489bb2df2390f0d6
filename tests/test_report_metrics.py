"""Rates, intervals and paired differences against their textbook formulas."""

import math

import numpy as np
import pandas as pd
import pytest

from aria_dvc.report.intervals import paired_difference, rate
from aria_dvc.report.metrics import brief_evaluation, credit_metrics, evaluation_metrics
from aria_dvc.report.projection import project


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


def played(variant, episode, won, kind="", role="alice"):
    return {
        "variant": variant,
        "role": role,
        "opponent": "scripted:fair",
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
            played("vanilla", "b", True, role="bob"),
            played("aria", "b", True),
            played("aria", "a", False, "no_offer"),
            played("aria", "b", True, role="bob"),
        ]
    )
    result = evaluation_metrics(table, adversarial=True)
    alice = result["by_role"]["alice"]
    assert alice["vanilla"]["rate"] == 0.0
    assert alice["aria"]["rate"] == 0.5
    assert alice["aria"]["failures"] == {"alice: no_offer": 1}
    assert alice["aria"]["no_deal_rate"] == 0.5
    assert result["all"]["aria"]["episodes"] == 3
    gain = result["minus_vanilla"]["aria"]
    assert gain["mean"] == pytest.approx(1 / 3)
    assert gain["pairs"] == 3
    brief = brief_evaluation(result)
    assert brief["vanilla"] == 0.3333
    assert set(brief) == {"vanilla", "aria", "aria_gain_low", "aria_gain_high"}


def test_credit_is_reported_for_the_intentions_that_are_used():
    rewards = pd.DataFrame(
        {
            "episode_id": ["a", "a", "b"],
            "cell": [0, 1, 0],
            "cell_size": [2, 1, 2],
            "live": [True, False, True],
            "return": [0.1, 0.1, 0.1],
            "reward": [0.1, 0.1, 0.1 + 1e-16],
        }
    )
    own = {"alice": {"selected_k": 5}, "bob": {"selected_k": 2}}
    for per_role, k in ((own, 5), ({}, 3)):
        selection = {"selected_k": 3, "per_role": per_role}
        result = credit_metrics(selection, rewards, {"method": "aria"})
        assert result["selected_k"] == k
        assert result["live_share"] == pytest.approx(2 / 3)
        assert result["reward_variance_before"] == result["reward_variance_after"] == 0.0


@pytest.mark.parametrize(("rows", "width"), [(9, 1), (3, 6)])
def test_too_little_for_a_projection_is_drawn_as_it_is(rows, width):
    vectors = np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32)
    drawn, points = project(vectors, 100, 0)
    assert points.shape == (rows, 2)
    np.testing.assert_array_equal(points[:, : min(width, 2)], vectors[drawn][:, :2])
