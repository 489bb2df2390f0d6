"""The figures that judge a credit, against hand-made cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.credit_dialogues import dialogues

from aria_dvc.credit.k_quality import nested_r2, r2_by_k
from aria_dvc.credit.methods.base import out_of_fold
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.quality import (
    calibration,
    credit_quality,
    effective_sample_size,
    noise_variance,
)
from aria_dvc.credit.settings import Aggregate
from aria_dvc.credit.variance import r_squared


def test_r_squared_against_its_definition():
    returns = np.array([0.0, 0.0, 1.0, 1.0])
    assert r_squared(returns, returns) == 1.0
    assert r_squared(np.full(4, 0.5), returns) == 0.0
    assert r_squared(1 - returns, returns) == pytest.approx(-3.0)
    assert r_squared(returns, np.ones(4)) is None


def test_calibration_has_ten_ordered_groups_and_one_for_a_constant():
    rng = np.random.default_rng(0)
    credit = rng.random(1000)
    table = calibration(credit, credit + 0.01)
    assert [row["actions"] for row in table] == [100] * 10
    assert all(row["return"] - row["credit"] == pytest.approx(0.01) for row in table)
    assert len(calibration(np.ones(50), rng.random(50))) == 1


def test_quality_of_a_known_structure():
    quality = credit_quality(lambda: make_method("shrinkage"), dialogues(80))
    assert quality["r2"]["method"] > 0.8
    assert quality["r2"]["constant"] < 0.01
    assert quality["r2"]["turn_index"] < 0.05
    assert quality["r2"]["cell_means"] < quality["r2"]["method"]
    assert quality["calibration_error"] < 0.1
    assert quality["variance_after"] <= quality["variance_before"]
    assert {row["turn"] for row in quality["by_turn"]} == {1, 2, 3, 4}


def test_effective_sample_size_of_cell_means_is_turns_per_cell():
    data = dialogues(400, 1, topics=5)
    credit = make_method("aria").fit(data).q(data)
    sizes = [
        effective_sample_size(noise_variance(lambda: make_method("aria"), data, credit, seed=seed))
        for seed in range(40)
    ]
    assert 1 / np.mean([1 / size for size in sizes]) == pytest.approx(400 / 5, rel=0.3)


def test_quality_of_equal_returns_is_defined():
    data = dialogues(10)
    flat = data.with_returns(np.where(data.is_action, 0.5, np.nan))
    quality = credit_quality(lambda: make_method("shrinkage"), flat)
    assert quality["r2"]["method"] is None
    assert quality["variance_ratio"] is None


@pytest.mark.parametrize("method", ["aria", "shrinkage"])
def test_r2_by_k_prefers_the_cut_that_shows_the_topic(method):
    data = dialogues(80)
    coarse = np.where(data.role == "agent", 0, 1)
    rng = np.random.default_rng(0)
    columns = np.stack([coarse, data.labels, rng.integers(0, 100, len(data))], axis=1)
    scores = r2_by_k(data, columns.astype(np.uint8), method)[0]
    assert scores.argmax() == 1
    fixed = replace(data, labels=data.labels * 0)
    np.testing.assert_array_equal(scores, r2_by_k(fixed, columns, method)[0])


@pytest.mark.parametrize(
    ("method", "folds", "history"),
    [("aria", 2, 2), ("aria", 5, 2), ("aria_recent", 3, 1), ("aria_recent", 3, 3)],
)
def test_r2_by_k_of_cell_means_is_that_of_their_credit_quality(method, folds, history):
    data = dialogues(60)
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 4, (len(data), 6))
    scores = r2_by_k(data, columns, method, folds=folds, seed=3, history=history)[0]
    for column, score in zip(columns.T, scores, strict=True):
        cut = replace(data, labels=column)
        held = out_of_fold(make_method(method, Aggregate(history=history)), cut, folds, seed=3).q
        assert score == pytest.approx(r_squared(held, data.targets), abs=1e-12)


def test_r2_by_k_of_shrinkage_is_at_its_best_settings():
    """Choosing them on the scored folds is slightly better than choosing them inside each."""
    data = dialogues(60)
    columns = np.random.default_rng(0).integers(0, 4, (len(data), 3))
    columns[:, 1] = data.labels
    for column, score in zip(columns.T, r2_by_k(data, columns, "shrinkage")[0], strict=True):
        nested = out_of_fold(make_method("shrinkage"), replace(data, labels=column)).q
        assert score == pytest.approx(r_squared(nested, data.targets), abs=0.03)
        assert score >= r_squared(nested, data.targets) - 1e-9


def test_r2_by_k_of_the_counted_actions_alone():
    data = dialogues(80)
    rng = np.random.default_rng(1)
    both = replace(
        data,
        is_action=np.ones(len(data), bool),
        returns=np.where(data.role == "agent", data.returns, rng.random(len(data))),
    )
    agent = both.role == "agent"
    masks = np.stack([agent, ~agent])
    scores = r2_by_k(both, data.labels[:, None], "shrinkage", counted=masks)[:, 0]
    assert scores[0] > 0.5 > 0.1 > scores[1]


@pytest.mark.parametrize("method", ["aria", "regression"])
def test_choosing_k_by_noise_shows_in_the_score_of_the_choice_not_in_the_nested_one(method):
    """Permuted labels tell nothing: the best of many cuts is flattered, the nested score is not."""
    data = dialogues(40, seed=5)
    columns = np.random.default_rng(0).integers(0, 3, (len(data), 40))
    best = r2_by_k(data, columns, method)[0].max()
    found, chosen = nested_r2(data, columns, method)
    assert len(chosen) == 5
    assert found < best - 0.01


def test_nested_k_is_the_cut_that_shows_the_topic():
    data = dialogues(80)
    noise = np.random.default_rng(0).integers(0, 4, (len(data), 2))
    columns = np.stack([noise[:, 0], data.labels, noise[:, 1]], axis=1)
    found, chosen = nested_r2(data, columns, "shrinkage")
    assert chosen == [1] * 5
    assert found == pytest.approx(r2_by_k(data, columns, "shrinkage")[0].max(), abs=0.03)


def test_cell_means_are_of_intentions_where_there_are_some():
    """A log that nobody has labelled has no cells: its turn indices are no intentions."""
    data = dialogues(20)
    bare = replace(data, labels=data.labels * 0)
    for log, there in ((data, True), (bare, False)):
        quality = credit_quality(lambda: make_method("turn_index"), log)
        assert ("cell_means" in quality["r2"]) == there
