"""Scores of a credit: by hand, and on credits whose share of the truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from aria_dvc.errors import AriaError
from aria_dvc.resampling import groups_drawn
from aria_dvc.truth.scores import (
    all_scores,
    bootstrap,
    credit_scores,
    reachable_signs,
    reliability,
)

NOISE = 0.8  # standard deviation of the measurement's noise; the advantages' is 1


def frames(credit_of, turns=4000, seed=0, noise=NOISE, per_group=4, role="agent"):
    """Truth and credit of turns whose advantages are standard normal."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=turns)
    first, second = (true + rng.normal(size=turns) * noise * np.sqrt(2) for _ in range(2))
    key = {"episode_id": [f"e{n}" for n in range(turns)], "position": 3, "role": role}
    truth = pd.DataFrame(key).assign(
        group_id=[f"g{n // per_group}" for n in range(turns)],
        advantage=(first + second) / 2,
        se_advantage=noise,
        first=first,
        second=second,
    )
    return truth, pd.DataFrame(key).assign(reward=credit_of(true, rng))


def scores_of(credit_of, replicates=0, **more):
    truth, credit = frames(credit_of, **more)
    (found,) = credit_scores(truth, credit, replicates=replicates).values()
    return found


def value(found, name):
    return found[name]["value"]


def test_the_truth_itself_reaches_all_that_can_be_reached():
    found = scores_of(lambda true, rng: true)
    rel = 1 / (1 + NOISE**2)
    assert value(found, "reliability") == pytest.approx(rel, abs=0.02)
    assert value(found, "pearson") == pytest.approx(np.sqrt(rel), abs=0.02)
    for name in ("pearson_share", "spearman_share", "sign_share", "explained_share"):
        assert value(found, name) == pytest.approx(1, abs=0.03), name
    assert value(found, "rmse") == pytest.approx(NOISE, abs=0.02)
    assert value(found, "rmse_true") == pytest.approx(0, abs=0.12)


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("measured", [0.4, 1.2])
def test_a_credit_with_known_noise_has_its_known_share(noise, measured):
    """However noisy the measurement, the share is the correlation with the true advantages."""
    found = scores_of(
        lambda true, rng: 5 + 2 * (true + noise * rng.normal(size=len(true))),
        turns=20_000,
        noise=measured,
    )
    share = 1 / np.sqrt(1 + noise**2)
    assert value(found, "pearson_share") == pytest.approx(share, abs=0.03)
    assert value(found, "spearman_share") == pytest.approx(share, abs=0.04)
    assert value(found, "explained_share") == pytest.approx(share**2, abs=0.04)
    unexplained = np.sqrt(1 - share**2)
    assert value(found, "rmse_true") == pytest.approx(unexplained, abs=0.06)


def test_a_credit_of_noise_has_no_share():
    found = scores_of(lambda true, rng: rng.normal(size=len(true)), replicates=200)
    for name in ("pearson_share", "spearman_share"):
        assert abs(value(found, name)) < 0.06
        assert found[name]["low"] < 0 < found[name]["high"]
    assert value(found, "sign") == pytest.approx(0.5, abs=0.05)
    assert value(found, "explained_share") < 0.01


def test_the_opposite_of_the_truth_is_as_wrong_as_can_be():
    found = scores_of(lambda true, rng: -true)
    assert value(found, "pearson_share") == pytest.approx(-1, abs=0.03)
    assert value(found, "sign") < 0.05
    assert value(found, "explained_share") == pytest.approx(1, abs=0.03)  # an affine map turns it


def sample(credit, advantage, se, halves=None):
    advantage = np.array(advantage, float)
    first, second = (advantage, advantage) if halves is None else halves
    return {
        "credit": np.array(credit, float),
        "advantage": advantage,
        "se": np.full(len(advantage), se),
        "first": np.array(first, float),
        "second": np.array(second, float),
    }


def test_by_hand():
    found = all_scores(sample([1, 2, 3, 6], [0.1, 0.3, 0.2, 0.4], 0.0))
    assert found["pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 6], [1, 3, 2, 4])[0, 1])
    assert found["spearman"] == pytest.approx(0.8)
    assert found["reliability"] == 1
    assert found["pearson_share"] == pytest.approx(found["pearson"])
    credit = np.array([1, 2, 3, 6.0])
    line = np.polyval(np.polyfit(credit, [0.1, 0.3, 0.2, 0.4], 1), credit)
    left = np.sqrt(((line - [0.1, 0.3, 0.2, 0.4]) ** 2).mean())
    assert found["rmse"] == found["rmse_true"] == pytest.approx(left)


def test_signs_are_counted_where_the_advantage_is_clear():
    """Credits less their mean, 3: -2, -1, 0, 3; the third advantage is within two errors."""
    clear = all_scores(sample([1, 2, 3, 6], [-0.5, 0.5, -0.1, 0.5], 0.06))
    assert clear["sign"] == pytest.approx(2 / 3)
    tied = all_scores(sample([1, 2, 3, 6], [-0.5, 0.5, -0.5, 0.5], 0.06))
    assert tied["sign"] == pytest.approx((1 + 0 + 0.5 + 1) / 4)
    none = all_scores(sample([1, 2, 3, 6], [-0.1, 0.1, -0.1, 0.1], 0.06))
    assert np.isnan(none["sign"])
    assert np.isnan(none["sign_share"])


def test_the_reachable_signs_are_those_of_normal_advantages():
    rng = np.random.default_rng(0)
    true, se = rng.normal(size=200_000), 0.7
    measured = true + se * rng.normal(size=len(true))
    for least in (0.0, 1.4):
        some = np.abs(measured) > least
        right = (np.sign(true) == np.sign(measured))[some].mean()
        reached = reachable_signs(measured[some], np.full(some.sum(), se), 1.0)
        assert reached == pytest.approx(right, abs=0.005)
    assert reachable_signs(np.array([0.5, -2.0]), np.zeros(2), 1.0) == 1


def test_reliability_is_stepped_up_from_halves():
    first, second = np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 4, 3])
    assert reliability(first, second) == pytest.approx(2 * 0.6 / 1.6)
    assert np.isnan(reliability(first, -first))
    assert np.isnan(reliability(first, np.ones(4)))


def test_intervals_hold_for_related_turns():
    """Groups whose turns are all alike: as few independent values as there are groups."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 25)

    def means(of):
        return {"mean": float(of["x"].mean())}

    covered, widths = 0, []
    for seed in range(200):
        of = {"x": rng.normal(size=40)[groups]}
        bounds = bootstrap(of, groups, means, 200, seed)["mean"]
        covered += bounds["low"] < 0 < bounds["high"]
        widths.append(bounds["high"] - bounds["low"])
    assert 0.88 < covered / 200 < 0.99
    assert np.mean(widths) == pytest.approx(2 * 1.96 / np.sqrt(40), rel=0.1)


def test_groups_are_drawn_as_they_always_were():
    """Committed intervals stand on this very draw: a group's rows in order, one call a sample."""
    groups, rng = np.array([2, 0, 1, 2, 0, 2]), np.random.default_rng(7)
    members = [np.flatnonzero(groups == group) for group in range(3)]
    expected = [np.concatenate([members[one] for one in rng.integers(3, size=3)]) for _ in "1234"]
    for names in (groups, np.array(["a", "b", "c"])[groups]):
        found = list(groups_drawn(names, 4, seed=7))
        assert [rows.tolist() for rows in found] == [rows.tolist() for rows in expected]


def test_intervals_of_shares_hold():
    """95 % intervals of the share hold the true one, the noise of the reliability included."""
    true_share, covered = 1 / np.sqrt(2), 0
    for seed in range(24):
        found = scores_of(
            lambda true, rng: true + rng.normal(size=len(true)),
            turns=300,
            seed=seed,
            replicates=100,
        )["pearson_share"]
        covered += found["low"] < true_share < found["high"]
    assert covered >= 20


def test_every_role_has_its_own_scores_and_the_seed_decides():
    truth, credit = zip(
        frames(lambda true, rng: true, turns=60, role="alice"),
        frames(lambda true, rng: -true, turns=60, role="bob", seed=1),
        strict=True,
    )
    truth, credit = pd.concat(truth), pd.concat(credit)
    found = credit_scores(truth, credit, replicates=50)
    assert value(found["alice"], "spearman") > 0.5 > -0.5 > value(found["bob"], "spearman")
    assert (found["bob"]["turns"], found["bob"]["groups"]) == (60, 15)
    assert found == credit_scores(truth, credit.sample(frac=1, random_state=0), replicates=50)
    assert found != credit_scores(truth, credit, replicates=50, seed=1)


def test_what_is_not_defined_is_null():
    found = scores_of(lambda true, rng: np.ones(len(true)), turns=20, replicates=20)
    assert value(found, "spearman") is None
    assert found["spearman_share"] == {"value": None, "low": None, "high": None}
    one = scores_of(lambda true, rng: true, turns=20, replicates=20, per_group=20)
    assert (one["groups"], one["pearson"]["low"]) == (1, None)
    assert value(one, "pearson") is not None


def test_plain_advantages_are_judged_apart():
    truth, credit = frames(lambda true, rng: true, turns=100)
    values = ("advantage", "se_advantage", "first", "second")
    truth = truth.assign(**{f"plain_{name}": -truth[name] for name in values[:1] + values[2:]})
    truth["plain_se_advantage"] = truth["se_advantage"]
    by_discount, plain = (
        credit_scores(truth, credit, plain=plain, replicates=0)["agent"] for plain in (False, True)
    )
    assert value(plain, "pearson") == pytest.approx(-value(by_discount, "pearson"))


def test_a_credit_of_other_turns_is_refused():
    truth, credit = frames(lambda true, rng: true, turns=10)
    with pytest.raises(AriaError, match=r"1 of 10 turns .* no credit reward, such as position 3"):
        credit_scores(truth, credit[1:])
    with pytest.raises(AriaError, match="has a turn twice"):
        credit_scores(truth, pd.concat([credit, credit[:1]]))
