"""Rates, intervals and paired differences against their textbook formulas."""

import gc
import json
import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aria_dvc.games.alternating import Move
from aria_dvc.games.negotiation import FACTORS
from aria_dvc.games.registry import get_game
from aria_dvc.learning.calibration import fit_metrics
from aria_dvc.pipeline.report import with_task_kind, with_winnable
from aria_dvc.pipeline.worth import with_worth
from aria_dvc.players.scripted import scripted_player
from aria_dvc.players.strategies import STRATEGIES
from aria_dvc.records.names import PLAYABLE
from aria_dvc.report import figures
from aria_dvc.report.evaluation import adjust, evaluation_metrics, leaderboard, rates, with_holm
from aria_dvc.report.intervals import (
    clustered_interval,
    design_effect,
    doubt,
    games_needed,
    holm,
    is_shown,
    mcnemar,
    mean_interval,
    mean_rate,
    paired_difference,
    rate,
    share_of_turns,
)
from aria_dvc.report.metrics import (
    brief_evaluation,
    brief_learning,
    credit_metrics,
    gradient_ratio,
    log_failures,
    refused_per_turn,
)
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


@pytest.mark.parametrize(("wins", "n"), [(0, 5), (3, 10), (10, 10)])
def test_games_of_their_own_configurations_have_the_plain_wilson_interval(wins, n):
    assert rate(np.arange(n) < wins, np.arange(n)) == rate(np.arange(n) < wins)


def test_games_that_go_together_count_by_their_design_effect():
    wins, clusters = np.repeat([1, 1, 0, 0], 3).astype(bool), np.repeat(list("dcba"), 3)
    effect = 4 / 3 * (4 * 1.5**2) / (12 * 0.25)
    assert design_effect(wins, clusters) == pytest.approx(effect)
    found = rate(wins, clusters)
    low, high = wilson(6 / effect, 12 / effect, z=3.182446305284263)
    assert (found["rate"], found["low"], found["high"]) == pytest.approx((0.5, low, high))
    assert found["episodes"] == 12
    mixed = np.tile([True, False, True], 4)
    assert design_effect(mixed, clusters) == 1.0  # alike in all clusters
    assert rate(mixed, clusters)["high"] > rate(mixed)["high"]


def test_where_nothing_varies_every_cluster_counts_once():
    clusters = np.repeat(np.arange(6), 4)
    for value, wins in ((0.0, np.zeros(24, bool)), (1.0, np.ones(24, bool))):
        found = rate(wins, clusters)
        low, high = wilson(6 * value, 6, z=2.5705818356363146)
        assert (found["low"], found["high"]) == pytest.approx((low, high))
        assert found["low"] <= value <= found["high"]
    alone = rate(np.arange(24) < 12, np.zeros(24))
    assert (alone["low"], alone["high"]) == pytest.approx(wilson(0.5, 1))


@pytest.mark.parametrize("chance", [0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("related", [0.0, 0.3, 0.7])
def test_the_interval_of_a_rate_covers_the_truth_whatever_goes_together(chance, related):
    rng = np.random.default_rng(0)
    spread = (1 - related) / related if related else np.inf
    clusters, covered = np.repeat(np.arange(24), 4), np.zeros(2)
    for _ in range(600):
        own = rng.beta(chance * spread, (1 - chance) * spread, 24) if related else chance
        wins = (rng.random((4, 24)) < own).T.ravel()
        for place, found in enumerate((rate(wins, clusters), rate(wins))):
            covered[place] += found["low"] <= chance <= found["high"]
    assert covered[0] / 600 > 0.92
    assert related == 0 or covered[1] / 600 < 0.9


def test_nothing_played_has_no_rate():
    assert rate(np.zeros(0, bool))["rate"] is None


def test_pairs_of_their_own_configurations_have_the_paired_t_interval():
    after, before = np.array([1, 1, 0, 1, 1], bool), np.array([0, 1, 0, 0, 1], bool)
    result = paired_difference(after, before, np.arange(5))
    difference = after.astype(float) - before
    error = difference.std(ddof=1) / math.sqrt(5)
    assert result["mean"] == pytest.approx(0.4)
    assert result["low"] == pytest.approx(0.4 - 2.7764451052 * error)
    assert result["high"] == pytest.approx(0.4 + 2.7764451052 * error)


def test_a_few_equal_differences_are_undecided():
    assert paired_difference(np.ones(3, bool), np.zeros(3, bool), np.arange(3)) == {
        "pairs": 3,
        "clusters": 3,
        "mean": 1.0,
        "low": pytest.approx(1 - math.sqrt(2) * (1 - 0.43850), abs=1e-4),  # Wilson of 3 in 3
        "high": 1.0,
        "gained": 3,
        "lost": 0,
        "p": 0.25,
        "undecided": True,
        "games_needed": 6,  # of fewer p cannot be below 0.05
    }


def test_no_pairs_have_no_difference():
    result = paired_difference(np.zeros(0, bool), np.zeros(0, bool), np.zeros(0, str))
    assert (result["pairs"], result["clusters"], result["undecided"]) == (0, 0, True)
    assert {result[key] for key in ("mean", "low", "high", "p", "games_needed")} == {None}


def test_clusters_of_one_size_have_the_t_interval_over_their_means():
    values = np.random.default_rng(0).integers(-1, 2, (7, 6))
    clusters = np.repeat(list("gfedcba"), 6)
    found = clustered_interval(values.ravel(), clusters)
    means = mean_interval(values.mean(axis=1))
    assert found["clusters"] == means["count"] == 7
    for key in ("mean", "low", "high"):
        assert found[key] == pytest.approx(means[key])
    order = np.random.default_rng(1).permutation(42)
    assert clustered_interval(values.ravel()[order], clusters[order]) == found


def test_values_that_only_rounding_tells_apart_have_no_interval():
    found = mean_interval(np.array([0.3 - 0.2, 0.4 - 0.3]))  # p would be 2e-16
    assert (found["low"], found["high"], found["p"]) == (None, None, None)
    assert found["mean"] == pytest.approx(0.1)


def test_clusters_of_several_sizes_have_the_sandwich_of_the_mean():
    values, clusters = np.array([1, 1, 0, -1, 1, 0, 0]), np.array([0, 0, 0, 1, 1, 2, 2])
    mean = 2 / 7
    scores = [(2 - 3 * mean), (0 - 2 * mean), (0 - 2 * mean)]
    error = math.sqrt(3 / 2 * sum(score**2 for score in scores)) / 7
    found = clustered_interval(values, clusters)
    half = 4.302652729696142 * error  # t with two degrees of freedom
    assert (found["low"], found["high"]) == pytest.approx((mean - half, mean + half))


def test_configurations_that_agree_exactly_have_no_interval():
    values, clusters = np.array([1, 0, 0] * 4), np.repeat(np.arange(4), 3)
    assert clustered_interval(values, clusters)["low"] is None
    assert clustered_interval(values[:3], clusters[:3])["high"] is None


def simulated(rng, configs, games):
    """Differences of paired games whose true mean is 0.08 and varies between configurations."""
    before = rng.uniform(0.1, 0.5, (configs, 1))
    after = before + rng.normal(0.08, 0.15, (configs, 1)).clip(-0.07, 0.23)
    draw = rng.random((2, configs, games))
    return (draw[0] < after).astype(int) - (draw[1] < before)


@pytest.mark.parametrize(("configs", "games"), [(12, 8), (24, 8), (48, 3)])
def test_the_clustered_interval_covers_the_truth_in_95_of_100_data_sets(configs, games):
    rng = np.random.default_rng(configs)
    clusters, truth = np.repeat(np.arange(configs), games), 0.08
    found = [
        clustered_interval(simulated(rng, configs, games).ravel(), clusters) for _ in range(2000)
    ]
    covered = np.mean([one["low"] <= truth <= one["high"] for one in found])
    assert 0.935 < covered < 0.965


def test_games_of_a_configuration_that_go_together_are_not_taken_as_independent():
    rng = np.random.default_rng(0)
    clusters, covered = np.repeat(np.arange(12), 24), np.zeros(2)
    for _ in range(2000):
        values = simulated(rng, 12, 24).ravel()
        for place, labels in enumerate((clusters, np.arange(len(values)))):
            found = clustered_interval(values, labels)
            covered[place] += found["low"] <= 0.08 <= found["high"]
    clustered, independent = covered / 2000
    assert 0.93 < clustered < 0.965
    assert independent < 0.88


def test_five_discordant_pairs_of_sixteen_are_no_evidence():
    after, before = np.arange(16) < 9, np.arange(16) < 4
    result = paired_difference(after, before, np.arange(16))
    assert result["p"] == pytest.approx(0.0625)
    assert result["low"] > 0  # what the t-test took for p = 0.02
    assert (result["gained"], result["lost"], result["undecided"]) == (5, 0, True)
    assert result["games_needed"] == 24


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (5, 0), (3, 9), (56, 10), (7, 7)])
def test_mcnemar_sums_the_binomial_tails(gained, lost):
    n, least = gained + lost, min(gained, lost)
    tail = sum(math.comb(n, i) for i in range(least + 1)) / 2**n
    assert mcnemar(gained, lost) == pytest.approx(min(1.0, 2 * tail))


def test_the_exact_test_rarely_finds_what_is_not_there():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0, 1, 40)  # configurations of any difficulty, two equal policies
    won = rng.random((2, 2000, 40)) < chance
    gained, lost = (won[0] & ~won[1]).sum(axis=1), (won[1] & ~won[0]).sum(axis=1)
    found = np.mean([mcnemar(a, b) < 0.05 for a, b in zip(gained, lost, strict=True)])
    assert 0 < found < 0.055


@pytest.mark.parametrize("level", [0.05, 0.0125])
@pytest.mark.parametrize(
    ("gained", "lost", "pairs"), [(1, 0, 1), (5, 0, 5), (4, 0, 5), (4, 1, 24), (16, 8, 80)]
)
def test_the_games_needed_give_the_power_that_is_promised(gained, lost, pairs, level):
    needed = games_needed(gained, lost, pairs, level)

    def power(games: int) -> float:
        """How often McNemar's exact test shows the difference in so many games."""
        chances = [gained / pairs, lost / pairs, 1 - (gained + lost) / pairs]
        drawn = np.random.default_rng(0).multinomial(games, chances, 3000)
        return float(np.mean([mcnemar(more, fewer) < level for more, fewer, _ in drawn]))

    assert power(needed) > 0.77
    assert power(needed * 9 // 10 - 1) < 0.8, "many fewer would have done"


def test_equal_numbers_need_no_number_of_games():
    assert games_needed(4, 4, 80) is None


def test_of_many_games_a_normal_approximation_is_told():
    share, difference = 0.11, 0.005
    spread = 1.959963985 * math.sqrt(share) + 0.841621234 * math.sqrt(share - difference**2)
    assert games_needed(115, 105, 2000) == math.ceil(spread**2 / difference**2) > 10_000


@pytest.mark.parametrize(("pairs", "undecided"), [(99, True), (100, False)])
def test_a_hundred_pairs_may_decide(pairs, undecided):
    after, before = np.arange(pairs) < 30, np.arange(pairs) >= pairs - 20
    result = paired_difference(after, before, np.arange(pairs))
    assert result["undecided"] is undecided
    assert (result["games_needed"] is not None) is undecided


@pytest.mark.parametrize(
    ("gained", "configs", "undecided"),
    [
        (12, 24, False),  # p = 0.0005, interval +0.28 to +0.72
        (5, 24, True),  # p = 0.06
        (12, 2, True),  # all of one configuration: its interval holds 0
    ],
)
def test_a_difference_that_is_shown_is_not_undecided(gained, configs, undecided):
    after, clusters = np.arange(24) < gained, np.arange(24) * configs // 24
    result = paired_difference(after, np.zeros(24, bool), clusters)
    assert is_shown(result) is not undecided
    assert result["undecided"] is undecided
    needed = result["games_needed"]
    assert (needed is not None and needed > 24) is (gained == 5)


def test_what_is_shown_alone_is_undecided_as_one_of_many():
    after, before = np.arange(24) < 6, np.zeros(24, bool)
    gains = [paired_difference(after, before, np.arange(24)) for _ in range(4)]
    assert [gain["undecided"] for gain in gains] == [False] * 4
    adjust(gains)
    assert {(gain["undecided"], gain["games_needed"]) for gain in gains} == {(True, 40)}
    assert doubt({**gains[0], "pairs": 100})["undecided"] is False


def test_holm_steps_down():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.01]) == pytest.approx([1.0, None, 0.03])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([None]) == [None]
    assert holm([]) == []


def test_holm_keeps_the_chance_of_any_false_finding(monkeypatch):
    monkeypatch.setattr(gc, "collect", lambda: 0)  # statsmodels collects garbage at every call
    p = stats.norm.sf(np.random.default_rng(0).normal(size=(2000, 10)))
    assert np.mean([min(holm(row)) < 0.05 for row in p.tolist()]) == pytest.approx(0.05, abs=0.015)
    assert np.mean(p.min(axis=1) < 0.05) > 0.35


def played(variant, episode, won, kind="", role="alice", winnable=True):
    return {
        "variant": variant,
        "role": role,
        "opponent": "scripted:fair",
        "episode": episode,
        "config": f"config of {episode}",
        "winnable": winnable,
        "won": won,
        "kind": None,
        "reward": float(won),
        "turns": 4,
        "executed": math.nan,
        "refused": 1,
        "no_deal": kind != "",
        "failure_role": "alice" if kind else "",
        "failure_kind": kind,
    }


@pytest.mark.parametrize("clusters", [2, 3, 5, 30])
def test_means_of_a_few_clusters_have_an_interval_that_covers_the_truth(clusters):
    """Where one over single values does not, nor, below some ten clusters, a bootstrap."""
    rng = np.random.default_rng(0)
    labels, covered = np.repeat(np.arange(clusters), 8), np.zeros(2)
    for _ in range(2000):
        values = np.repeat(rng.normal(0.3, 1.0, clusters), 8) + rng.normal(0, 0.3, 8 * clusters)
        for place, of in enumerate((labels, np.arange(8 * clusters))):
            found = clustered_interval(values, of)
            covered[place] += found["low"] <= 0.3 <= found["high"]
    assert 0.93 < covered[0] / 2000 < 0.97
    assert covered[1] / 2000 < 0.75


def test_what_does_not_vary_between_clusters_has_no_interval():
    assert clustered_interval(np.zeros(0), np.zeros(0))["mean"] is None
    for values, clusters in (([0.1, 0.3], [0, 0]), ([0.1, 0.3, 0.3, 0.1], [0, 0, 1, 1])):
        found = clustered_interval(np.array(values), np.array(clusters))
        assert found["mean"] == pytest.approx(0.2)
        assert (found["low"], found["high"]) == (None, None)


@pytest.mark.parametrize(("after", "before"), [(1, 0), (0, 1)])
def test_a_clean_sweep_is_shown(after, before):
    """Every game gained, or lost: the interval of two rates stands in for that of no spread."""
    won = np.array([after, before], dtype=bool)
    found = paired_difference(*np.repeat(won[:, None], 24, axis=1), np.arange(24))
    wilson = 1.96**2 / (24 + 1.96**2)  # what Wilson leaves of the other outcome
    nearest = 1 - math.sqrt(2) * wilson
    assert min(abs(found["low"]), abs(found["high"])) == pytest.approx(nearest, abs=1e-3)
    assert max(abs(found["low"]), abs(found["high"])) == 1.0
    assert is_shown(found)
    assert not found["undecided"]
    same = paired_difference(*np.repeat(won[:, None], 24, axis=1), np.repeat(0, 24))
    assert (same["low"], same["high"]) == (None, None)  # one configuration tells of no other


def several_games():
    """Two games; `aria` gains eight of ten in the first, `other` and all of the second nothing."""
    return {
        game: evaluation_metrics(
            pd.DataFrame(
                [
                    played(variant, str(number), bool(number < wins), role=f"role{number % 2}")
                    | {"utility": 0.5 - 0.1 * (variant == "aria") + 0.01 * number, "fairness": 1.0}
                    for variant, wins in won.items()
                    for number in range(10)
                ]
            ),
            adversarial=True,
            baselines=["other"],
        )
        for game, won in {
            "first": {"vanilla": 1, "aria": 9, "other": 1},
            "second": {"vanilla": 3, "aria": 3, "other": 4},
        }.items()
    }


def test_differences_are_adjusted_over_all_games_variants_and_baselines():
    found = with_holm(several_games())
    all_of = [
        found[game]["differences"][name]["all"] for game in found for name in ("vanilla", "other")
    ]
    gains = [gain for of in all_of for gain in of.values()]
    assert len(gains) == 6  # `other` and vanilla are compared once
    assert {gain["comparisons"] for gain in gains} == {6}
    assert [gain["p_holm"] for gain in gains] == holm([gain["p"] for gain in gains])
    gain = found["first"]["minus_vanilla"]["aria"]
    assert gain is found["first"]["differences"]["vanilla"]["all"]["aria"]
    assert gain["p"] == pytest.approx(2 / 2**8)
    assert gain["p_holm"] == pytest.approx(6 * gain["p"])
    by_role = found["first"]["differences"]["vanilla"]["by_role"]
    assert {gain["comparisons"] for of in by_role.values() for gain in of.values()} == {12}
    assert set(found["first"]["by_opponent"]) == {"scripted:fair"}


def test_means_and_their_paired_differences_have_intervals():
    found = several_games()["first"]
    utility = found["all"]["vanilla"]["means"]["utility"]
    assert utility["mean"] == pytest.approx(0.545)
    assert utility["low"] < 0.545 < utility["high"]
    assert "efficiency" not in found["all"]["vanilla"]["means"]
    gain = found["minus_vanilla"]["aria"]["utility"]
    assert gain["mean"] == pytest.approx(-0.1)
    assert (gain["low"], gain["high"]) == (None, None)  # the same in every configuration
    assert found["all"]["aria"]["agreement"]["rate"] == 1.0


def test_the_leaderboard_has_the_best_first():
    table = leaderboard(with_holm(several_games()))
    assert table["variant"].tolist()[:1] == ["aria"]
    assert table[table["game"] == "second"]["variant"].tolist()[0] == "other"
    best = table.iloc[0]
    assert (best["rate"], best["utility"]) == (0.9, pytest.approx(0.445))
    assert best["minus_vanilla"] == pytest.approx(0.8)
    assert table["efficiency"].isna().all()
    assert np.isnan(table.set_index(["game", "variant"]).loc[("first", "vanilla"), "p_holm"])


def test_efficiency_and_fairness_are_those_of_the_games():
    rows, wanted = [], []
    for name, config, value in (
        ("bargaining", {"money": 100, "delta_a": 0.9, "delta_b": 0.8}, Fraction(60)),
        ("negotiation", {"seller_value": 0.8, "buyer_value": 1.2, "scale": 100}, Fraction(110)),
        ("negotiation", {"seller_value": 1.2, "buyer_value": 0.8, "scale": 100}, Fraction(110)),
        ("negotiation", {"seller_value": 1.2, "buyer_value": 0.8, "scale": 100}, None),
        ("negotiation", {"seller_value": 1.1, "buyer_value": 1.1, "scale": 100}, Fraction(70)),
        ("negotiation", {"seller_value": 1.1, "buyer_value": 1.1, "scale": 100}, None),
        ("bargaining", {"money": 100, "delta_a": 0.9, "delta_b": 0.8}, None),
    ):
        match = get_game(name).start(config)
        match.offers.append(value)
        own, other = (0.0, 0.0) if value is None else map(float, match.worth(value))
        rows.append((name, json.dumps(config), own, other, value is None, ""))
        wanted.append(match.assess(value))
    columns = ["game", "config", "utility", "opponent_utility", "no_deal", "failure_kind"]
    found = with_worth(pd.DataFrame(rows, columns=columns))
    assert found["efficiency"].tolist() == pytest.approx([one["efficiency"] for one in wanted])
    fair = [one.get("fairness", math.nan) for one in wanted]
    assert found["fairness"].tolist() == pytest.approx(fair, nan_ok=True)
    guessed = pd.DataFrame([("guess_my_city", "{}", None, None, False, "")], columns=columns)
    assert with_worth(guessed)[["efficiency", "fairness"]].isna().all(axis=None)


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"zero_advantages": 1.0},
        {"gradient_variance": 0.0},
        {"gradient_variance_discounted": 0.0},
        {"gradient_variance": None},
    ],
)
def test_a_ratio_of_gradients_that_says_nothing_is_not_shown(changes):
    policy = {
        "steps": 3,
        "zero_advantages": 0.5,
        "gradient_variance": 1.0,
        "gradient_variance_discounted": 2.0,
        "gradient_variance_ratio": 0.5,
    }
    assert gradient_ratio(policy) == 0.5
    assert gradient_ratio(policy | changes) is None
    brief = brief_learning(
        {"reward_model": {}, "progress": {}, "policy": {"aria": policy | changes}}
    )
    assert brief == {"aria": {"gradient_variance_ratio": None}}


def test_games_that_broke_off_are_counted_by_role_and_kind():
    refused = {"failure": {"role": "bob", "kind": "no_offer"}}
    frame = pd.DataFrame(
        [
            {"episode_id": str(number), "role": role, "info": json.dumps(info)}
            for number, info in enumerate([refused, {}, refused])
            for role in ("alice", "bob")
        ]
    )
    assert log_failures(frame) == {"bob: no_offer": 2}


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
    assert alice["aria"]["refused_per_turn"] == 0.25
    assert result["all"]["aria"]["episodes"] == 3
    gain = result["minus_vanilla"]["aria"]
    assert gain["mean"] == pytest.approx(1 / 3)
    assert gain["pairs"] == 3
    assert gain["clusters"] == 2
    assert (gain["gained"], gain["lost"], gain["p"]) == (1, 0, 1.0)
    assert result["winnable"]["minus_vanilla"] == result["minus_vanilla"]
    brief = brief_evaluation(result)
    assert brief["vanilla"] == 0.3333
    assert set(brief) == {"vanilla", "aria", "aria_gain_low", "aria_gain_high"}


def test_refused_moves_of_a_collection_are_counted_by_role_and_own_turns():
    refused = [{"role": "bob", "kind": "empty", "text": ""}] * 3
    players = {"alice": {"name": "policy"}, "bob": {"name": "policy"}}
    infos = [{"players": players, "refused": refused}, {"players": players}, {}]
    turns = pd.DataFrame({"role": ["alice", "bob"] * 6})
    frame = pd.DataFrame(
        [
            {"episode_id": str(number), "role": role, "info": json.dumps(info)}
            for number, info in enumerate(infos)
            for role in players
        ]
    )
    assert refused_per_turn(turns, frame) == {"alice": 0.0, "bob": 0.5}
    assert refused_per_turn(turns, frame[frame["episode_id"] == "2"]) == {}


def test_games_that_the_oracle_broke_off_are_counted_apart():
    """They are nobody's loss: neither of a rate, nor a mean, nor a pair."""
    broken = {"failure_role": "oracle", "failure_kind": "request_refused"}
    own = {"failure_role": "agent", "failure_kind": "no_question"}
    table = pd.DataFrame(
        [
            *(played("vanilla", episode, False, role="agent") for episode in "abcd"),
            played("aria", "a", True, role="agent"),
            played("aria", "b", False, role="agent") | broken,
            played("aria", "c", True, role="agent"),
            played("aria", "d", False, role="agent") | own,
            played("cut", "a", False, role="agent") | broken,
        ]
    )
    found = evaluation_metrics(table, adversarial=False)
    aria = found["all"]["aria"]
    assert (aria["rate"], aria["episodes"]) == (pytest.approx(2 / 3), 3)
    assert aria["mean_reward"] == pytest.approx(2 / 3)
    assert aria["broken_off"] == {"oracle: request_refused": 1}
    assert (aria["failed"], aria["failures"]) == (1, {"agent: no_question": 1})
    assert found["all"]["vanilla"]["broken_off"] == {}
    assert found["winnable"]["all"]["aria"]["episodes"] == 3
    gain = found["minus_vanilla"]["aria"]
    assert (gain["pairs"], gain["mean"]) == (3, pytest.approx(2 / 3))
    alone = found["all"]["cut"]
    assert (alone["rate"], alone["episodes"]) == (None, 0)
    assert alone["broken_off"] == {"oracle: request_refused": 1}
    assert "cut" not in found["minus_vanilla"]
    board = leaderboard({"twenty_questions": found})
    assert board.set_index("variant")["episodes"].to_dict() == {"aria": 3, "vanilla": 4, "cut": 0}
    nothing = evaluation_metrics(table[table["variant"] == "cut"], adversarial=False)
    figures.evaluation(pd.DataFrame(rates({"twenty_questions": nothing})))  # it is drawn


def test_a_game_that_one_variant_lacks_makes_no_pair():
    table = pd.DataFrame(
        [
            played("vanilla", "a", False),
            played("vanilla", "b", False),
            played("aria", "b", True),
            played("aria", "c", False),
        ]
    )
    gain = evaluation_metrics(table, adversarial=True)["minus_vanilla"]["aria"]
    assert (gain["pairs"], gain["gained"], gain["lost"]) == (1, 1, 0)


def test_winnable_games_are_also_counted_alone():
    table = pd.DataFrame(
        [
            played("vanilla", "a", True),
            played("vanilla", "b", False, winnable=False),
            played("aria", "a", True),
            played("aria", "b", False, winnable=False),
            played("vanilla", "a", False, role="bob", winnable=False),
            played("aria", "a", False, role="bob", winnable=False),
        ]
    )
    result = evaluation_metrics(table, adversarial=True)
    found = result["winnable"]
    assert result["all"]["aria"]["rate"] == pytest.approx(1 / 3)
    assert found["all"]["aria"] == rate(np.ones(1, bool))
    assert found["by_role"]["bob"] == dict.fromkeys(("vanilla", "aria"), rate(np.zeros(0, bool)))
    assert found["minus_vanilla"]["aria"]["pairs"] == 1
    assert brief_evaluation(result)["aria"] == 0.3333
    nothing = evaluation_metrics(table.assign(winnable=False), adversarial=True)["winnable"]
    assert nothing["all"]["aria"]["rate"] is None
    assert nothing["minus_vanilla"] == {}


def commands(variant, episode, executed, turns, won, kind):
    row = played(variant, episode, won, role="agent") | {"no_deal": False, "kind": kind}
    return row | {"executed": float(executed), "turns": turns}


def test_commands_carried_out_are_counted_by_variant_and_kind_of_task():
    table = pd.DataFrame(
        [
            commands("vanilla", "a", 1, 4, False, "put"),
            commands("vanilla", "b", 2, 2, True, "look"),
            commands("aria", "a", 3, 3, True, "put"),
            commands("aria", "b", 5, 6, True, "look"),
        ]
    )
    result = evaluation_metrics(table, adversarial=False)
    found = result["all"]["vanilla"]["grounding"]
    assert {name: found[name] for name in ("rate", "turns", "episodes")} == {
        "rate": 0.5,
        "turns": 6,
        "episodes": 2,
    }
    assert (found["low"], found["high"]) == (0.0, 1.0)  # two episodes say next to nothing
    assert list(result["by_kind"]) == ["put", "look"]
    assert result["by_kind"]["put"]["aria"]["grounding"]["rate"] == 1.0
    assert result["by_kind"]["put"]["aria"]["rate"] == 1.0
    assert result["by_kind"]["look"]["vanilla"]["mean_turns"] == 2.0
    brief = brief_evaluation(result)
    assert (brief["vanilla_grounding"], brief["aria_grounding"]) == (0.5, 0.8889)


def test_a_game_without_commands_and_kinds_has_no_figures_of_them():
    table = pd.DataFrame([played("vanilla", "a", True), played("aria", "a", True)])
    result = evaluation_metrics(table, adversarial=False)
    assert "by_kind" not in result
    assert "grounding" not in result["all"]["aria"]


def test_the_share_of_turns_takes_episodes_as_independent():
    rng = np.random.default_rng(0)
    turns = rng.integers(1, 20, 40)
    counted = rng.binomial(turns, rng.beta(4, 2, 40))
    found = share_of_turns(counted, turns)
    share = counted.sum() / turns.sum()
    scores = (counted - share * turns) / turns.sum()
    half = stats.t.ppf(0.975, 39) * math.sqrt(40 / 39 * np.square(scores).sum())
    assert found["rate"] == pytest.approx(share)
    assert (found["low"], found["high"]) == pytest.approx((share - half, share + half))
    assert (found["turns"], found["episodes"]) == (turns.sum(), 40)
    assert share_of_turns(turns, turns)["rate"] == 1.0
    assert share_of_turns(turns, turns)["low"] is None
    assert share_of_turns(turns[:0], turns[:0])["rate"] is None


def test_negotiation_is_winnable_where_a_price_wins_without_the_others_loss():
    game = get_game("negotiation")
    lost = 0
    for seller, buyer in product(FACTORS, FACTORS):
        config = {"seller_value": seller, "buyer_value": buyer, "scale": 100}
        match = game.start(config)
        gains = [match.worth(Fraction(price)) for price in range(301)]
        wins = {
            "alice": any(alice > bob >= 0 for alice, bob in gains),
            "bob": any(bob > alice >= 0 for alice, bob in gains),
        }
        assert wins == {role: game.winnable(config, role) for role in game.roles}
        lost += not wins["alice"]
    assert lost == 10


def careless_text(match, rng):
    """Any price, any acceptance: the move of a player that knows nothing."""
    if match.offers and rng.random() < 0.25:
        return "I accept."
    if len(match.offers) == match.rounds:
        return "I reject."
    return match.say(
        Move("offer", Fraction(rng.randint(40, 260), 100) * match.scale), match.to_move
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_not_winnable_is_never_won_from_scripts(strategy):
    game, script, won = get_game("negotiation"), scripted_player(strategy), {True: 0, False: 0}
    for seed, config in enumerate(game.grids()["glee_full"]):
        role, other = game.roles if seed % 2 else game.roles[::-1]
        match, rng = game.start(config), random.Random(seed)
        while match.to_move:
            own = match.to_move == role
            match.play(careless_text(match, rng) if own else script.text(match, other, seed))
        utilities = match.outcome.utilities
        won[game.winnable(config, role)] += utilities[role] > utilities[other]
    assert won[False] == 0
    assert won[True] > 0


def test_evaluation_tables_are_marked_by_the_rules_of_their_games():
    config = (
        '{"buyer_value":%s,"complete_information":true,"rounds":20,"scale":100,"seller_value":1.0}'
    )
    table = pd.DataFrame(
        {
            "game": ["negotiation", "negotiation", "negotiation", "bargaining", "guess_my_city"],
            "config": [config % 1.2, config % 1.0, config % 0.8, '{"money":100}', "{}"],
            "role": ["alice", "bob", "alice", "bob", "agent"],
        }
    )
    assert with_winnable(table)["winnable"].tolist() == [True, False, False, True, True]
    assert with_winnable(table.iloc[:0])["winnable"].dtype == bool
    assert with_task_kind(table)["kind"].tolist() == [None] * 5
    swept = table[:1].assign(game="household", config='{"kind": "heat"}')
    assert with_task_kind(swept)["kind"].tolist() == ["heat"]
    for name in PLAYABLE:
        if name != "negotiation":
            game = get_game(name)
            configs = game.grids().get("default", [{}])
            assert all(game.winnable(config, role) for config in configs for role in game.roles)


@pytest.mark.parametrize("rounding", [0, 1e-16])
def test_equal_targets_have_no_r2(rounding):
    actual = np.array([0.1, 0.1, 0.1, 0.1 + rounding])
    metrics = fit_metrics(actual, np.array([0.1, 0.1, 0.1, 0.2]), baseline=0.3)
    assert metrics["r2"] is None
    assert metrics["mse_of_baseline"] == pytest.approx(0.04)
    brief = brief_learning({"reward_model": metrics, "progress": {}, "policy": {}})
    assert brief == {"reward_model_r2": None}


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


def test_what_is_said_over_and_over_is_on_the_map():
    vectors = np.random.default_rng(0).normal(size=(600, 1)).astype(np.float32)
    vectors[200:] = vectors[0]
    drawn = [project(vectors, 20, seed)[0] for seed in range(20)]
    assert all(0 in rows for rows in drawn)
    assert all(len(set(rows)) == 20 for rows in drawn)
    assert len({rows.tobytes() for rows in drawn}) == 20
    assert project(vectors, 1000, 0)[0].tolist() == list(range(200))


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.1, 0.7), (0.0, 1.0)])
def test_the_mean_of_rates_has_an_interval_that_covers(rates):
    rng, covered = np.random.default_rng(3), 0
    for _ in range(400):
        found = mean_rate([rate(rng.random(40) < p) for p in rates])
        covered += found["low"] <= np.mean(rates) <= found["high"]
        assert found["episodes"] == 80
        assert 0 <= found["low"] <= found["rate"] <= found["high"] <= 1
    assert covered >= 0.93 * 400


def test_one_rate_is_its_own_mean():
    alone = rate(np.arange(10) < 3)
    assert mean_rate([alone]) == pytest.approx(alone)


def test_differences_by_role_and_opponent_are_those_of_their_games_alone():
    rows = [
        played(variant, str(number), won, role=role)
        | {"opponent": opponent, "utility": -0.2 if won and role == "bob" else 0.1}
        for variant in ("vanilla", "aria")
        for role in ("alice", "bob")
        for opponent in ("scripted:fair", "scripted:conceding")
        for number in range(10)
        for won in [variant == "aria" and (role, opponent) == ("bob", "scripted:fair")]
    ]
    games = pd.DataFrame(rows)
    found = evaluation_metrics(games, adversarial=True)
    pairings = found["differences"]["vanilla"]["by_pairing"]
    assert {name: of["aria"]["mean"] for name, of in pairings.items()} == {
        "alice against scripted:conceding": 0.0,
        "alice against scripted:fair": 0.0,
        "bob against scripted:conceding": 0.0,
        "bob against scripted:fair": 1.0,
    }
    assert pairings["bob against scripted:fair"]["aria"]["pairs"] == 10
    assert found["all"]["aria"]["losing_deals"] == 10
    assert found["all"]["vanilla"]["losing_deals"] == 0
    one = evaluation_metrics(games[games["opponent"] == "scripted:fair"], adversarial=True)
    assert one["differences"]["vanilla"]["by_pairing"] == {}
