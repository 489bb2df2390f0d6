"""Returns, cells, R~ and SplitScore against plain dictionaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.intention_data import dialogues, log_of, nested_of, reference_cells, reordered

from aria_dvc.credit.cells import aggregate
from aria_dvc.credit.curves import cell_curves
from aria_dvc.credit.variance import variances
from aria_dvc.errors import AriaError
from aria_dvc.intentions.cuts import NestedLabels, with_fixed_answers
from aria_dvc.records.turns import discounted_returns, own_turns, positions

SEEDS = st.integers(0, 100_000)


def test_last_turn_keeps_the_reward_and_the_first_is_discounted_most():
    returns = discounted_returns(np.array([2.0, 2.0, 2.0, np.nan]), [1, 2, 3, 1], [3, 3, 3, 1], 0.5)
    np.testing.assert_array_equal(returns, [0.5, 1.0, 2.0, np.nan])


def test_returns_check_their_input():
    with pytest.raises(AriaError, match="gamma"):
        discounted_returns(np.ones(1), [1], [1], 1.5)
    with pytest.raises(AriaError, match="own-turn"):
        discounted_returns(np.ones(1), [3], [2], 0.95)


@pytest.mark.parametrize(("value", "count"), [(0.1, 3), (0.3, 11), (0.1, 7)])
def test_equal_returns_have_no_variance(value, count):
    returns = np.full(count, value)
    assert returns.var() > 0, "rounding"
    nearly = returns + np.where(np.arange(count) == 0, 1e-16, 0)
    assert variances(returns, nearly) == (0.0, 0.0)
    labels = NestedLabels(np.array([2]), np.zeros(count, np.uint8), np.zeros((1, 1), np.uint8))
    zeros = np.zeros(count, np.int64)
    data = {"episode": np.arange(count), "role": zeros, "is_action": zeros == 0}
    log = log_of({**data, "returns": returns})
    curves = cell_curves(log, labels)
    assert (curves.variance == 0).all()
    assert (curves.variance_of_returns == 0).all()


def test_a_credit_that_varies_more_than_the_returns_shows():
    returns = np.random.default_rng(0).random(50)
    more = returns + 0.01 * (returns - returns.mean())
    before, after = variances(returns, more)
    assert after == pytest.approx(1.01**2 * before)


def test_own_turns_count_each_speaker():
    turn, turns = own_turns(np.array([0, 0, 0, 1]), np.array([0, 1, 0, 0]))
    assert turn.tolist() == [1, 1, 2, 1]
    assert turns.tolist() == [2, 1, 2, 1]
    assert positions(np.array([3, 5, 3, 3, 5])).tolist() == [0, 0, 1, 2, 1]


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_cells_equal_a_dictionary_of_tuples(seed):
    data = reordered(dialogues(25, 5, 6, seed), seed)
    log = log_of(data)
    for k in (2, 4, 6):
        labels = nested_of(data).at(k)
        keys, means = reference_cells(data, labels)
        found = aggregate(log, labels)
        np.testing.assert_allclose(found.reward, means, atol=1e-12)
        pairs = {(key, int(cell)) for key, cell in zip(keys, found.cell, strict=True)}
        assert len(pairs) == len(set(keys)) == found.cell.max() + 1
        sizes = np.array([keys.count(key) for key in keys])
        np.testing.assert_array_equal(found.size, sizes)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_curves_equal_the_dictionary_at_every_k(seed):
    data = reordered(dialogues(30, 5, 9, seed), seed)
    curves = cell_curves(log_of(data), nested_of(data))
    role = data["role"][data["is_action"]]
    rows = [reference_cells(data, nested_of(data).at(k)) for k in curves.ks]
    for column, some in enumerate([role >= 0, role == 0, role == 1]):
        if not some.any():
            continue
        for j, (keys, means) in enumerate(rows):
            keys = [key for key, take in zip(keys, some, strict=True) if take]
            alone = np.mean([keys.count(key) == 1 for key in keys])
            assert curves.cells[j, column] == len(set(keys))
            assert curves.singletons[j, column] == pytest.approx(alone, abs=1e-12)
            assert curves.live[j, column] == pytest.approx(1 - alone, abs=1e-12)
            assert curves.variance[j, column] == pytest.approx(means[some].var(), abs=1e-12)
            if j + 1 < len(rows):
                want = np.abs(rows[j + 1][1] - means)[some].mean()
                assert curves.split_score[j, column] == pytest.approx(want, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_equal_histories_never_part_and_cost_nothing(seed):
    data = dialogues(40, 4, 6, seed)
    plain = cell_curves(log_of(data), nested_of(data))
    known = cell_curves(log_of(data, known=True), nested_of(data))
    for name in ("cells", "singletons"):
        np.testing.assert_array_equal(getattr(known, name), getattr(plain, name))
    for name in ("variance", "split_score"):
        np.testing.assert_allclose(getattr(known, name), getattr(plain, name), atol=1e-13)
    last = aggregate(log_of(data), nested_of(data).at(6)).cell
    for j, k in enumerate(plain.ks):
        cell = aggregate(log_of(data), nested_of(data).at(k)).cell
        parting = [np.unique(last[cell == c]).size > 1 for c in cell]
        assert known.live[j, 0] == pytest.approx(np.mean(parting), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_aggregation_never_raises_the_variance(seed):
    data = dialogues(40, 4, 8, seed)
    curves = cell_curves(log_of(data), nested_of(data))
    assert (np.diff(curves.variance[:, 0]) >= -1e-12).all()
    assert (curves.variance[:, 0] <= curves.variance_of_returns[0] + 1e-12).all()


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_order_of_episodes_changes_nothing(seed):
    data = dialogues(20, 5, 7, seed)
    rename = np.random.default_rng(seed).permutation(20)
    other = reordered({**data, "episode": rename[data["episode"]]}, seed)
    curves = [cell_curves(log_of(d), nested_of(d)) for d in (data, other)]
    for name in ("cells", "singletons", "live"):
        np.testing.assert_array_equal(getattr(curves[0], name), getattr(curves[1], name))
    np.testing.assert_allclose(curves[0].split_score, curves[1].split_score, atol=1e-13)
    found = [aggregate(log_of(d), nested_of(d).at(7)) for d in (data, other)]
    rows = [np.flatnonzero(d["is_action"]) for d in (data, other)]
    for row, cell, reward in zip(rows[0], found[0].cell, found[0].reward, strict=True):
        at = np.flatnonzero(
            (other["episode"] == rename[data["episode"][row]])
            & (other["position"] == data["position"][row])
        )[0]
        mate = np.flatnonzero(rows[1] == at)[0]
        assert found[1].cell[mate] == cell
        assert found[1].reward[mate] == reward


def test_equal_rewards_have_no_split_score_and_no_variance():
    data = dialogues(30, 5, 9, 1)
    data["returns"] = np.full(data["episode"].size, 0.3)
    curves = cell_curves(log_of(data), nested_of(data))
    assert (curves.split_score[:-1, 0] == 0.0).all()
    assert (curves.variance[:, 0] < 1e-15).all()


def test_one_episode_and_one_turn():
    nested = NestedLabels(np.array([1]), np.zeros(1, np.uint8), np.zeros((1, 1), np.uint8))
    one = {"episode": [0], "role": [0], "is_action": [True], "returns": [1.0]}
    log = log_of({name: np.array(column) for name, column in one.items()})
    curves = cell_curves(log, nested)
    assert curves.cells.tolist() == [[1, 1]]
    assert curves.singletons[0, 0] == 1.0
    assert aggregate(log, nested.at(1)).reward.tolist() == [1.0]


def test_fixed_answers_are_part_of_the_history():
    data = dialogues(40, 6, 6, 4)
    asked = data["position"] % 2 == 0
    questions = NestedLabels(np.arange(2, 7), data["finest"][asked], data["table"])
    both = with_fixed_answers(questions, asked, data["finest"] % 3)
    data["is_action"] = asked
    curves = cell_curves(log_of(data), both)
    for j, k in enumerate(both.ks):
        keys, means = reference_cells(data, both.at(k))
        assert curves.cells[j, 0] == len(set(keys))
        assert curves.variance[j, 0] == pytest.approx(means.var(), abs=1e-12)


@pytest.mark.parametrize(
    "change", [{"returns": np.array([1.0, np.nan])}, {"is_action": [False] * 2}]
)
def test_actions_need_a_return(change):
    data = {"episode": [0, 0], "role": [0, 0], "is_action": [True] * 2, "returns": [1.0, 1.0]}
    log = log_of({name: np.array(column) for name, column in {**data, **change}.items()})
    for count in (lambda: aggregate(log, np.zeros(2, int)), lambda: cell_curves(log, None)):
        with pytest.raises(AriaError, match="return"):
            count()
