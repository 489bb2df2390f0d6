"""The benchmark of the credits' bias and noise: its sums, and its logs in small."""

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def spread(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("spread")


def test_bias_and_noise_are_told_apart_and_freed_of_what_they_are_measured_with(spread):
    rng, turns, logs = np.random.default_rng(0), 40_000, 6
    true, bias = rng.normal(0.0, 0.5, turns), rng.normal(0.0, 0.2, turns)
    credits = true + bias + 3.0 + rng.normal(0.0, 0.7, (logs, turns))  # the same for all: no bias
    se = rng.uniform(0.05, 0.4, turns)
    found = spread.errors(credits, true + rng.normal(0.0, se), se)
    assert found == pytest.approx([0.2, 0.7, (0.2**2 + 0.7**2) ** 0.5], abs=0.015)


def test_a_turn_that_some_log_does_not_tell_is_left_out(spread):
    credits = np.array([[0.0, 1.0, np.nan], [0.0, 1.0, 5.0]])
    assert spread.errors(credits, np.array([0.0, 1.0, 2.0]), np.zeros(3)) == (0.0, 0.0, 0.0)


def test_returns_are_unbiased_and_all_before_the_fixed_turns_stays(spread, tmp_path, monkeypatch):
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path))
    args = spread.parse(["--episodes", "24", "--continuations", "16", "--logs", "30"])
    params = spread.settings("negotiation", args)
    fixed = spread.fixed_turns("negotiation", params, args.continuations)
    logs = list(spread.logs_of("negotiation", fixed, params, args.logs))
    returns = np.zeros((args.logs, len(fixed.turns)))
    for number, log in enumerate(logs):
        for at, (turn, game) in enumerate(zip(fixed.turns, log, strict=True)):
            said = [(u.role, u.text) for u in game.utterances]
            assert said[: turn.place + 1] == [*turn.history, (turn.role, turn.text)]
            own = sum(role == turn.role for role, _ in said)
            returns[number, at] = (
                params.aggregate.gamma ** (own - turn.turn) * game.rewards[turn.role]
            )
    assert returns.std(axis=0).max() > 0.1
    off = returns.mean(axis=0) - fixed.truth["q"].to_numpy()
    se = np.hypot(returns.std(axis=0, ddof=1) / args.logs**0.5, fixed.truth["se_q"].to_numpy())
    assert np.abs(off[se > 0] / se[se > 0]).mean() < 1.5
    assert np.abs(off[se == 0]).max(initial=0.0) == 0.0
