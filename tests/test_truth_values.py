"""Q, V and A from returns: by hand, with gaps, and without bias."""

from __future__ import annotations

import numpy as np
import pytest

from aria_dvc.truth.values import mean_and_error, values_of

NAN = np.nan


def test_by_hand():
    own = np.array([[1.0, 0.0, 1.0, 1.0]])
    drawn = np.array([[[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0.5, 0.5]]])  # means 0.5, 0, 1, 0.5
    found = values_of(own, drawn)
    assert (found.q, found.v, found.advantage) == (0.75, 0.5, 0.25)
    assert found.se_q == pytest.approx(np.std([1, 0, 1, 1], ddof=1) / 2)
    assert found.se_v == pytest.approx(np.std([0.5, 0, 1, 0.5], ddof=1) / 2)
    assert found.se_advantage == pytest.approx(np.hypot(found.se_q, found.se_v))
    assert found.first == pytest.approx(1 - 0.75)  # continuations 0 and 2, draws 0 and 2
    assert found.second == pytest.approx(0.5 - 0.25)


def test_equal_values_have_exactly_no_error():
    value = 0.95**3
    mean, error = mean_and_error(np.full((2, 7), value))
    assert (mean == value).all()
    assert (error == 0).all()


def test_what_says_nothing_is_left_out():
    mean, error = mean_and_error(np.array([[1.0, NAN, 0.0], [NAN, 0.5, NAN], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(mean, [0.5, 0.5, NAN])
    np.testing.assert_array_equal(error, [0.5, NAN, NAN])
    drawn = np.array([[[NAN, NAN], [1.0, NAN], [0.0, 0.0], [0.0, 1.0]]])
    found = values_of(np.array([[1.0, NAN, 1.0, 0.0]]), drawn)
    assert found.v == pytest.approx((1 + 0 + 0.5) / 3)
    assert found.q == pytest.approx(2 / 3)
    assert np.isfinite(list(vars(found).values())).all()
    nothing = values_of(np.array([[1.0, NAN, 1.0, NAN]]), drawn)
    assert np.isnan(nothing.second).all()


def simulated(turns: int, rng: np.random.Generator, continuations: int = 6, draws: int = 4):
    """Values and true advantages of states with two actions, of which a policy takes one."""
    chance = rng.random(turns)  # of the first action
    worth = rng.random((turns, 2))
    taken = (rng.random(turns) > chance).astype(int)
    own = rng.random((turns, continuations)) < worth[np.arange(turns), taken][:, None]
    others = (rng.random((turns, draws)) > chance[:, None]).astype(int)
    drawn = rng.random((turns, draws)) < np.take_along_axis(worth, others, axis=1)
    value = chance * worth[:, 0] + (1 - chance) * worth[:, 1]
    true = worth[np.arange(turns), taken] - value
    return values_of(own.astype(float), drawn[..., None].astype(float)), true, value


def test_values_and_errors_are_unbiased():
    found, true, value = simulated(40_000, np.random.default_rng(0))
    for estimate, right, se in (
        (found.v, value, found.se_v),
        (found.advantage, true, found.se_advantage),
    ):
        error = estimate - right
        assert abs(error.mean()) < 4 * error.std() / 200
        assert (error**2).mean() == pytest.approx((se**2).mean(), rel=0.03)
    slope = np.polyfit(true, found.advantage, 1)[0]
    assert slope == pytest.approx(1, abs=0.02)  # with the action among K + 1 draws: 4 / 5


def test_the_halves_share_no_noise():
    found, true, _ = simulated(40_000, np.random.default_rng(1))
    noise = np.corrcoef(found.first - true, found.second - true)[0, 1]
    assert abs(noise) < 4 / 200
    np.testing.assert_allclose((found.first + found.second) / 2, found.advantage, atol=1e-12)
