"""Scores over baselines, on predictions whose scores are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.credit_dialogues import dialogues

from aria_dvc.credit.methods import shared
from aria_dvc.credit.methods.base import Values, all_out_of_fold, as_paid, out_of_fold
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.methods.regression import HISTORY_KERNELS, KERNELS
from aria_dvc.credit.methods.ridge import Design, LandmarkRidge
from aria_dvc.credit.methods.shared import kept
from aria_dvc.credit.quality import credit_quality
from aria_dvc.credit.skill import skill_scores, with_baselines
from aria_dvc.credit.variance import r_squared
from aria_dvc.intentions.log import Log


def two_roles(episodes: int = 60) -> Log:
    """Roles of unlike returns: bob earns 5 more than alice, and nothing else is known of them."""
    data = dialogues(episodes)
    noise = np.random.default_rng(7).normal(size=len(data))
    returns = noise + np.where(data.role == "oracle", 5.0, 0.0)
    return replace(data, is_action=np.ones(len(data), bool), returns=returns)


def test_telling_roles_apart_earns_nothing():
    data = two_roles()
    _, known = with_baselines({}, data, [as_paid])[0]
    scores = skill_scores(Values(known["constant"], known["constant"]), known, data)["all"]
    assert -0.1 < scores["r2"]["value"] <= 0.0
    assert r_squared(known["constant"], data.targets) > 0.5, "pooled over the roles"
    assert scores["action_adds"]["value"] == 0.0
    assert scores["skill"]["value"] <= 0.0


def test_scores_against_their_definitions():
    data = two_roles()
    rng = np.random.default_rng(0)
    q, v, other = (data.targets + s * rng.normal(size=len(data.targets)) for s in (0.3, 0.6, 0.8))
    known = {"constant": np.zeros_like(q), "turn_index": other, "history": other + 1}
    scores = skill_scores(Values(q, v), known, data)
    alice = data.role[data.actions] == "agent"
    y = data.targets[alice]

    def r2(credit: np.ndarray) -> float:
        return 1 - ((y - credit[alice]) ** 2).sum() / ((y - y.mean()) ** 2).sum()

    found = scores["agent"]
    assert found["r2"]["value"] == pytest.approx(r2(q))
    assert found["action_adds"]["value"] == pytest.approx(r2(q) - r2(v))
    assert found["over"] == "turn_index"
    assert found["baselines"]["history"] == pytest.approx(r2(other + 1))
    assert found["skill"]["value"] == pytest.approx(1 - (1 - r2(q)) / (1 - r2(other)))
    for name in ("r2", "value_r2", "action_adds", "skill"):
        one = scores["all"][name]
        assert one["low"] < one["value"] < one["high"]


def test_intervals_cover_and_widen_where_episodes_repeat_each_other():
    """Whole groups are drawn: ten copies of each episode tell no more than one of them."""
    data = dialogues(20)
    credit = out_of_fold(make_method("shrinkage"), data)
    _, known = with_baselines({}, data, [as_paid])[0]
    once = skill_scores(credit, known, data)["all"]["r2"]
    ids = np.tile(np.arange(data.episodes), 10)
    rows = np.concatenate([np.flatnonzero(data.episode == e) for e in ids])
    copies = replace(
        data,
        **{n: getattr(data, n)[rows] for n in ("role", "is_action", "text", "vectors", "labels")},
        returns=data.returns[rows],
        episode=np.repeat(np.arange(len(ids)), np.bincount(data.episode)[ids]),
        group=ids,
    )
    place = np.concatenate([np.arange(len(data.actions))] * 10)
    again = skill_scores(
        Values(credit.q[place], credit.v[place]),
        {name: of[place] for name, of in known.items()},
        copies,
    )["all"]["r2"]
    assert again["value"] == pytest.approx(once["value"])
    width, other = once["high"] - once["low"], again["high"] - again["low"]
    assert other == pytest.approx(width, rel=0.15)


def test_the_clock_is_skill_only_where_returns_are_discounted():
    """The reward is noise: discounted, the turn tells most of it; undiscounted nothing does."""
    data = dialogues(100, turns=6)
    reward = np.random.default_rng(3).random(100)[data.episode]
    final = np.where(data.is_action, reward, np.nan)
    data = replace(data, final=final, returns=final * 0.5 ** (6 - data.turn))
    quality = credit_quality(lambda: make_method("turn_index"), data)
    assert quality["skill"]["all"]["r2"]["value"] > 0.5
    assert abs(quality["skill"]["all"]["skill"]["value"]) < 0.02
    assert quality["undiscounted_skill"]["all"]["r2"]["value"] < 0.02


def test_without_discount_there_is_one_set_of_scores():
    data = dialogues(20)
    assert not data.is_discounted
    assert data.undiscounted() is data
    quality = credit_quality(lambda: make_method("constant"), data)
    assert quality["undiscounted_skill"] is None


def test_equal_returns_have_no_score():
    data = dialogues(10)
    flat = data.with_returns(np.where(data.is_action, 0.5, np.nan))
    found = credit_quality(lambda: make_method("shrinkage"), flat)["skill"]
    assert found["all"]["r2"] == {"value": None, "low": None, "high": None}
    assert found["all"]["baselines"]["constant"] is None


def test_outcomes_are_the_last_return_where_nothing_else_is_known():
    data = dialogues(5, turns=3)
    last = data.targets.reshape(5, 3)[:, -1]
    np.testing.assert_array_equal(data.outcomes, np.repeat(last, 3))
    final = np.where(data.is_action, 1.5, np.nan)
    assert (replace(data, final=final).outcomes == 1.5).all()


def test_passes_under_two_payments_are_those_made_apart(monkeypatch):
    data, made = dialogues(24), []
    final = np.where(data.is_action, np.nan_to_num(data.returns) * 2 + data.turn, np.nan)
    data = replace(data, final=final)
    methods = {name: make_method(name) for name in ("regression", "shrinkage", "gae")}
    apart = [with_baselines(methods, log, [as_paid], 3)[0] for log in (data, data.undiscounted())]
    design = Design.__init__

    def counted(self, *args):
        made.append(self)
        design(self, *args)

    monkeypatch.setattr(Design, "__init__", counted)
    together = with_baselines(methods, data, [as_paid, Log.undiscounted], 3)
    for (held, known), (held_apart, known_apart) in zip(together, apart, strict=True):
        for name in methods:
            np.testing.assert_allclose(held[name].q, held_apart[name].q, rtol=0, atol=1e-9)
            np.testing.assert_allclose(held[name].v, held_apart[name].v, rtol=0, atol=1e-9)
        for name in known_apart:
            np.testing.assert_allclose(known[name], known_apart[name], rtol=0, atol=1e-9)
    assert len(made) == 3 * (len(KERNELS) + 2 * len(HISTORY_KERNELS)), "once for both payments"


SHARING = ["kernel", "regression", "progress", "shrinkage", "aria", "group"]


@pytest.mark.parametrize("order", [SHARING, SHARING[::-1]])
def test_methods_that_share_give_what_each_gives_alone(order):
    data = dialogues(24)
    held = all_out_of_fold({name: make_method(name) for name in order}, data, 3, valued=order[:4])
    for name in order:
        alone = out_of_fold(make_method(name), data, 3, with_value=name in order[:4])
        np.testing.assert_allclose(held[name].q, alone.q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(held[name].v, alone.v, rtol=0, atol=1e-9)


def test_folds_side_by_side_give_what_they_give_one_after_the_other(monkeypatch):
    data, found = dialogues(24), []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(all_out_of_fold({name: make_method(name) for name in SHARING}, data, 5))
    alone, together = found
    for name in SHARING:
        np.testing.assert_array_equal(together[name].q, alone[name].q)
        np.testing.assert_array_equal(together[name].v, alone[name].v)


def test_what_is_shared_is_made_once_a_fold_and_forgotten(monkeypatch):
    made: list[str] = []
    fit = LandmarkRidge.fit

    def counted(self, *args):
        made.append(self.kernel.__name__)
        return fit(self, *args)

    monkeypatch.setattr(LandmarkRidge, "fit", counted)
    methods = {name: make_method(name) for name in ("kernel", "regression")}
    with_baselines(methods, dialogues(12), [as_paid], 2)
    kernels = (*KERNELS, *HISTORY_KERNELS, *HISTORY_KERNELS)  # the baseline's are of its own
    assert sorted(made) == sorted(2 * [kernel.__name__ for kernel in kernels])
    assert not shared._KEPT
    data = dialogues(4)
    assert kept(data, "outside", lambda: 1) + kept(data, "outside", lambda: 2) == 3
