"""The benchmark of credits against exact advantages: what it calls exact, and its scores."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def mdps(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("mdps")


def test_advantages_are_those_worked_out_by_hand(mdps):
    recovery = mdps.Exact(mdps.Recovery()).advantages
    assert {action: a for (_, _, action), a in recovery.items()} == pytest.approx(
        {"GOOD": 0.25, "BAD": -0.25, "RECOVER": 0.5, "GIVE UP": -0.5}
    )
    delayed = mdps.Exact(mdps.Delayed()).advantages
    assert delayed[0, "start", "GOOD"] == pytest.approx(0.3)
    assert max(abs(a) for (turn, _, _), a in delayed.items() if turn) < mdps.ZERO
    # of stopping at the last turns: 0; 3 or 0, worth 1.5; 1 or 1.5, 1.25; 2 or 1.25, 1.625
    horizon = mdps.Exact(mdps.Horizon()).advantages
    go_on = [horizon[turn, "alive", "CONTINUE"] for turn in range(4)]
    assert go_on == pytest.approx([0.8125, -0.375, 0.25, -1.5])


def worth(process, logits, turn, state):
    """The expected reward of a softmax policy, by recursion."""
    actions = process.actions(turn, state)
    weights = [math.exp(logits.get((turn, state, action), 0.0)) for action in actions]
    total = 0.0
    for action, weight in zip(actions, weights, strict=True):
        for chance, follows, reward in process.outcomes(turn, state, action):
            later = worth(process, logits, turn + 1, follows) if follows else 0.0
            total += weight / sum(weights) * chance * (reward + later)
    return total


@pytest.mark.parametrize("name", ["delayed", "recovery", "horizon"])
def test_the_exact_gradient_is_the_derivative(mdps, name):
    exact, step = mdps.Exact(mdps.PROCESSES[name]), 1e-5
    for move, place in exact.places.items():
        up, down = (
            worth(exact.process, {move: by}, 0, exact.process.start) for by in (step, -step)
        )
        assert (up - down) / (2 * step) == pytest.approx(exact.gradient[place], abs=1e-7)


@pytest.mark.parametrize("name", ["delayed", "recovery", "horizon"])
def test_exact_credits_give_the_exact_gradient_but_for_chance(mdps, name):
    exact = mdps.Exact(mdps.PROCESSES[name])
    batch = mdps.drawn(exact, 4000, 0)
    true = np.array(list(exact.advantages.values()))[batch.moves]
    # a shift of every state is no gradient on average, and none at all to the centred error
    shift = np.arange(exact.states.max() + 1)[exact.states[batch.moves]] / 4
    states = exact.states[batch.moves]
    assert mdps.scores(true + shift, true, states)[-1] == pytest.approx(0.0, abs=1e-12)
    found = mdps.gradient(batch, exact, true + shift)
    assert found == pytest.approx(exact.gradient, abs=0.1)
    assert mdps.gradient(batch, exact, true) == pytest.approx(exact.gradient, abs=0.03)


def test_outcomes_given_to_every_turn_have_the_published_figures(mdps):
    exact = mdps.Exact(mdps.Delayed(turns=32))
    batch = mdps.drawn(exact, 400, 1)
    outcome = mdps.credits_of(batch, exact, 0, ("group",))["group", "q"]
    true = np.array(list(exact.advantages.values()))[batch.moves]
    assert mdps.scores(outcome, true, exact.states[batch.moves])[3] == pytest.approx(0.96875)
    recovery = mdps.Exact(mdps.Recovery())
    batch = mdps.drawn(recovery, 2000, 1)
    found = mdps.credits_of(batch, recovery, 0, ("group",))
    lines = list(mdps.mended(recovery, [batch], [found]))
    assert "| `exact` | A | -0.25 | +0.50 |" in lines
    assert "| `group` | q | +1.00 | +1.00 |" in lines
    bad, recover = map(float, lines[-2].split("|")[3:5])
    assert bad == recover == pytest.approx(0.25, abs=0.03)


def test_scores_are_those_worked_out_by_hand(mdps):
    credit, true = np.array([1.0, -2.0, 1.0, 0.0]), np.array([0.5, -0.5, 0.0, 0.0])
    rmse, spearman, signs, leakage, centred = mdps.scores(credit, true, np.array([0, 0, 1, 1]))
    assert rmse == pytest.approx(math.sqrt((0.25 + 2.25 + 1.0) / 4))
    assert spearman == pytest.approx(0.833, abs=0.001)
    assert (signs, leakage) == pytest.approx((1.0, 0.25))
    assert centred == pytest.approx(math.sqrt((1.0 + 1.0 + 0.25 + 0.25) / 4))
    cosine, distance, noise = mdps.directions(np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones(2))
    assert (cosine, distance) == pytest.approx((math.sqrt(0.5), math.sqrt(1.25 / 2)))
    assert noise == pytest.approx(0.5 / math.sqrt(2))


def test_the_table_has_every_credit(mdps):
    args = mdps.parse(["--quick", "--processes", "recovery"])
    told = "\n".join(mdps.report("recovery", args, ("group", "aria")))
    assert told.count("| `aria` | q - v |") == 2
    assert "2 batches of 60 episodes" in told
