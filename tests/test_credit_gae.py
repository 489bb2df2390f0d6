"""Advantages from the values of one turn to the next, against the textbook's sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.credit_dialogues import dialogues

from aria_dvc.credit.methods.base import fit_values
from aria_dvc.credit.methods.critic import CriticCredit
from aria_dvc.credit.methods.gae import GaeCredit
from aria_dvc.credit.methods.units import units_of
from aria_dvc.intentions.log import Log

GAMMA = 0.9


def answered(episodes: int = 150, seed: int = 0) -> Log:
    """A good question (topic 0) is answered on topic 4, and every such answer makes success likely.

    The outcome is drawn: 0 or 1 with a probability of a quarter of the four answers. So the true
    advantage of a question is known, and the return is mostly the luck of the draw.
    """
    data = dialogues(episodes, seed=seed)
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(8, 8))
    asked = np.flatnonzero(data.is_action)
    labels = data.labels.copy()
    labels[asked + 1] = np.where(labels[asked] == 0, 4, 5)
    vectors = (centres[labels] + 0.1 * rng.normal(size=data.vectors.shape)).astype(np.float32)
    text = np.array([f"utterance about topic {label}" for label in labels], dtype=object)
    chance = np.bincount(data.episode, (labels == 4) / 4)
    won = (rng.random(data.episodes) < chance).astype(float)
    final = np.where(data.is_action, won[data.episode], np.nan)
    returns = final * GAMMA ** (4 - data.turn)
    return replace(
        data, labels=labels, vectors=vectors, text=text, final=final, returns=returns, gamma=GAMMA
    )


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_advantages_are_the_textbooks_sum(lam):
    data = answered(30)
    found = GaeCredit(lam).fit(data).fitted()
    units = units_of(data)
    for unit in range(len(units.first)):
        rows = [row for row in units.order if units.unit[row] == unit]
        value = [*found.v[rows], 0.0]
        reward = [0.0] * (len(rows) - 1) + [data.targets[rows[-1]]]
        delta = [r + GAMMA * value[t + 1] - value[t] for t, r in enumerate(reward)]
        for t, row in enumerate(rows):
            ahead = enumerate(delta[t:])
            expected = sum((GAMMA * lam) ** steps * step for steps, step in ahead)
            assert found.advantage[row] == pytest.approx(expected, abs=1e-12)


def test_at_lam_1_the_return_less_the_value():
    data = answered(30)
    found = GaeCredit(1.0).fit(data).fitted()
    np.testing.assert_allclose(found.q, data.targets, atol=1e-12)


def pressed(data: Log) -> Log:
    """The same games whose second own turns are a button without credit."""
    button = data.is_action & (data.turn == 2)
    returns = np.where(button, np.nan, data.returns)
    final = np.where(button, np.nan, data.final)
    return replace(data, is_action=data.is_action & ~button, returns=returns, final=final)


def test_turns_without_credit_are_discounted_too():
    """A sure success in four own turns, of which one or two are no actions: V is perfect."""
    data = answered(30)
    sure = replace(
        data,
        final=np.where(data.is_action, 1.0, np.nan),
        returns=np.where(data.is_action, GAMMA ** (4.0 - data.turn), np.nan),
    )
    last = replace(sure, is_action=sure.is_action & (sure.turn < 4))
    for log in (sure, pressed(sure), last, pressed(last)):
        method = GaeCredit(0.5).fit(log)
        np.testing.assert_allclose(method._advantages(log.targets), 0.0, atol=1e-12)
        following = units_of(log).following()
        known = CriticCredit(epochs=1)
        known.fit(log)
        found = known._transitions(log)
        later = found.discount.numpy() * log.targets[following]
        np.testing.assert_allclose(found.reward.numpy() + later, log.targets, rtol=1e-6)


def test_the_value_does_not_see_the_own_outcome():
    data = answered(30)
    own = data.episode == 3
    other = replace(
        data,
        final=np.where(own, 1 - data.final, data.final),
        returns=np.where(own, (1 - data.final) * GAMMA ** (4 - data.turn), data.returns),
    )
    first, second = (GaeCredit().fit(log).fitted() for log in (data, other))
    rows = own[data.actions]
    np.testing.assert_array_equal(first.v[rows], second.v[rows])
    assert (first.q[rows] != second.q[rows]).any()


def test_it_is_nearer_to_the_truth_than_plain_returns():
    data = answered()
    true = (data.labels == 0)[data.actions] - 0.25
    turn = data.turn[data.actions]
    before = turn < 4  # the last answer comes after the last action's next state
    credits = {
        "plain": data.targets,
        "return less value": GaeCredit(1.0).fit(data).fitted().advantage,
        "gae": fit_values(GaeCredit(0.0), data).advantage,
    }
    near = {
        name: np.corrcoef(credit[before], true[before])[0, 1] for name, credit in credits.items()
    }
    assert near["gae"] > 0.8
    assert near["gae"] > near["return less value"] + 0.3
    assert near["gae"] > near["plain"] + 0.3
