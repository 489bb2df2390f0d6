"""Credit methods on dialogues whose right credit is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.credit_dialogues import ANY_GAME, dialogues
from tests.leakage import LeakageError, assert_no_leakage

from aria_dvc.credit.cells import cell_codes
from aria_dvc.credit.methods.aria import AriaCredit, AriaRecentCredit
from aria_dvc.credit.methods.base import episode_folds, fit_values, out_of_fold
from aria_dvc.credit.methods.registry import make_method, method_names
from aria_dvc.credit.methods.shrinkage import WHOLE, ShrinkageCredit
from aria_dvc.credit.methods.similarity import ByView, Described, Similarity
from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log


def test_turn_and_position_count_within_the_episode():
    data = dialogues(2, 3)
    assert data.place.tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert data.turn.tolist() == [1, 1, 2, 2, 3, 3] * 2


@pytest.mark.parametrize(("common", "rare", "full"), [(0.05, 0.05, False), (0.9, 0.004, True)])
def test_products_of_words_have_the_same_bits_however_they_are_made(common, rare, full):
    words = [
        sp.hstack(
            [
                sp.random(rows, count, share, dtype=np.float32, random_state=rows)
                for count, share in ((6, common), (294, rare))
            ],
            format="csr",
        )
        for rows in (40, 70)
    ]
    turn = np.ones(0, np.float32)
    left, right = (
        Described(ByView(lambda _, w=w: w), ByView(lambda _: turn), turn, turn) for w in words
    )
    assert isinstance(right.word_columns["heard"], np.ndarray) == full
    assert not isinstance(right.in_float64().word_columns["heard"], np.ndarray)
    found = Similarity(left, right).words("heard")
    np.testing.assert_array_equal(found, (words[0] @ words[1].T).toarray())


def test_aria_is_the_mean_of_equal_histories_and_the_role_mean_elsewhere():
    data = dialogues(30, 3, topics=2)
    credit = AriaCredit().fit(data).q(data)
    keys = []
    for row in data.actions:
        own = (data.episode == data.episode[row]) & (np.arange(len(data)) <= row)
        keys.append((data.role[row], *data.labels[own].tolist()))
    for key in set(keys):
        members = [i for i, other in enumerate(keys) if other == key]
        assert credit[members] == pytest.approx(data.targets[members].mean(), abs=1e-12)
    unseen = replace(data, labels=np.where(data.is_action, data.labels, 50))
    assert AriaCredit().fit(data).q(unseen)[unseen.turn[unseen.actions] > 1] == pytest.approx(
        data.targets.mean()
    )


@pytest.mark.parametrize("method", [AriaCredit(), AriaRecentCredit(1), AriaRecentCredit(3)])
def test_of_an_action_that_was_never_fitted_after_its_history_only_the_history_is_known(method):
    data = dialogues(40, 3, topics=2)
    new = replace(data, labels=np.where(data.is_action & (data.turn > 2), 50, data.labels))
    fitted = method.fit(data)
    q, v = fitted.q(new), fitted.v(new)
    np.testing.assert_array_equal(
        q[new.labels[new.actions] == 50], v[new.labels[new.actions] == 50]
    )
    np.testing.assert_array_equal(fitted.q(data), fitted.fitted().q)


def test_unseen_histories_beside_a_single_known_cell():
    data = dialogues(3, 1, topics=1)
    credit = AriaCredit().fit(data).q(replace(data, labels=data.labels + 50))
    assert credit == pytest.approx(data.targets.mean())


@pytest.mark.parametrize("history", [1, 2, 3, 100])
def test_recent_cells_are_means_over_equal_last_utterances(history):
    data = dialogues(40, 3, topics=2)
    both = replace(data, is_action=np.arange(len(data)) % 5 > 0, returns=np.arange(len(data)) % 7)
    credit = AriaRecentCredit(history).fit(both).q(both)
    cells: dict[tuple, list[int]] = {}
    for action, row in enumerate(both.actions):
        first = max(row - both.place[row], row - history + 1)
        key = (both.role[row], *both.labels[first : row + 1])
        cells.setdefault(key, []).append(action)
    for members in cells.values():
        assert credit[members] == pytest.approx(both.targets[members].mean(), abs=1e-12)
    assert len(np.unique(cell_codes(both, both.labels, history))) == len(cells)
    if history == 100:
        np.testing.assert_allclose(credit, AriaCredit().fit(both).q(both), atol=1e-12)


def test_recent_cells_hold_at_least_the_action():
    with pytest.raises(AriaError, match="history is -1"):
        AriaRecentCredit(-1)


def test_the_length_of_recent_cells_is_chosen_by_what_predicts():
    """Topic 0 asked raises the own return: the action alone tells it, older words are noise."""
    data = dialogues(60)
    method = AriaRecentCredit(0).fit(data)
    assert method.history_ == 1
    answer = np.r_[False, data.labels[:-1] == 4]
    returns = np.where(data.is_action, answer.astype(float), np.nan)
    assert AriaRecentCredit(0).fit(data.with_returns(returns)).history_ == 2


def test_an_empty_cell_falls_back_to_a_shorter_history():
    data = dialogues(60, topics=2)
    unseen = replace(data, labels=np.where(data.is_action, data.labels, 9))
    found = AriaRecentCredit(3).fit(data).q(unseen)
    later = data.turn[data.actions] > 1  # at the first turn nothing was said before: a known cell
    shortest = AriaRecentCredit(1).fit(data).q(unseen)
    np.testing.assert_allclose(found[later], shortest[later], atol=1e-12)
    assert len(np.unique(found[later].round(9))) == 2


def test_the_advantage_is_of_the_action_not_of_the_state():
    """The return is what the other side said before, plus what the action adds to it."""
    rng = np.random.default_rng(0)
    good, added = rng.integers(0, 2, (2, 400))
    words = np.array([["awful", "lovely"], ["small", "large"]], dtype=object)
    text = np.stack([words[0][good], words[1][added]], axis=1).reshape(-1)
    returns = np.stack([np.full(400, np.nan), 0.5 * good + 0.3 * added], axis=1).reshape(-1)
    returns += rng.normal(0, 0.05, 800)
    vectors = np.stack([text == word for word in words.reshape(-1)], axis=1).astype(np.float32)
    acts = np.arange(800) % 2 == 1
    role = np.where(acts, "bob", "alice")
    data = Log(np.arange(800) // 2, role, acts, text, vectors, np.zeros(800, int), returns)
    credit = fit_values(make_method("regression"), data).advantage
    np.testing.assert_allclose(credit, 0.3 * (added - 0.5), atol=0.05)
    assert np.corrcoef(credit, good)[0, 1] < np.corrcoef(credit, added)[0, 1] / 4


@pytest.mark.parametrize("history", [None, 1, 2, 3])
def test_the_value_of_cells_is_the_mean_over_equal_histories_whatever_the_action(history):
    data = dialogues(40, 3, topics=2)
    method = AriaCredit() if history is None else AriaRecentCredit(history)
    value = method.fit(data).v(data)
    cells: dict[tuple, list[int]] = {}
    for action, row in enumerate(data.actions):
        first = row - data.place[row]
        if history is not None:
            first = max(first, row - history + 1)
        cells.setdefault((data.role[row], *data.labels[first:row]), []).append(action)
    for members in cells.values():
        assert value[members] == pytest.approx(data.targets[members].mean(), abs=1e-12)


@pytest.mark.parametrize("name", ANY_GAME)
def test_no_value_sees_its_action(name):
    """Another action at the end of every episode leaves the value before it as it was."""
    method = make_method(name).fit(dialogues(24, seed=0))
    data = dialogues(8, seed=1)
    data = data.where(data.place < 7)  # the last utterance is an action
    other = np.where(data.place == 6, np.arange(len(data)) - 6, np.arange(len(data)))
    changed = replace(
        data, text=data.text[other], vectors=data.vectors[other], labels=data.labels[other]
    )
    np.testing.assert_allclose(method.v(data), method.v(changed), atol=1e-9)


@pytest.mark.parametrize("name", ["shrinkage", "kernel", "regression"])
def test_the_history_alone_does_not_tell_what_the_action_adds(name):
    """Topic 0 asked raises the return by 1, and nothing before tells that it will be asked."""
    data = dialogues(80)
    values = fit_values(make_method(name), data)
    asked = data.labels[data.actions] == 0
    gap = values.advantage[asked].mean() - values.advantage[~asked].mean()
    assert gap > 0.7
    assert abs(values.v[asked].mean() - values.v[~asked].mean()) < 0.1


def test_a_method_fitted_again_forgets_its_first_value():
    method = make_method("shrinkage").fit(dialogues(20))
    data = dialogues(20, seed=3)
    method.v(data)
    assert method.fit(data.with_returns(data.returns + 5)).v(data).min() > 3


def test_no_shrinkage_is_the_cell_mean_and_full_shrinkage_the_global_mean():
    data = dialogues(60, 3, topics=2)
    none = ShrinkageCredit(strength=0.0, depth=WHOLE).fit(data).q(data)
    np.testing.assert_allclose(none, AriaCredit().fit(data).q(data), atol=1e-12)
    full = ShrinkageCredit(strength=1e12, depth=WHOLE).fit(data).q(data)
    np.testing.assert_allclose(full, data.targets.mean(), atol=1e-6)


def test_shrinkage_finds_the_topic_that_matters():
    data, other = dialogues(seed=0), dialogues(seed=1)
    credit = ShrinkageCredit().fit(data).q(other)
    right = (other.labels[other.actions] == 0).astype(float)
    assert 1 - ((credit - right) ** 2).mean() / right.var() > 0.9


@pytest.mark.parametrize("name", ANY_GAME)
def test_no_method_leaks(name):
    make = lambda: make_method(name)  # noqa: E731
    assert_no_leakage(make, dialogues(24, seed=0), dialogues(8, seed=1))


class PeekingCredit:
    """Plants leaks: reads the named thing of the future."""

    in_sample = uses_labels = uses_vectors = False

    def __init__(self, peek: str) -> None:
        self.peek = peek

    def fit(self, data: Log) -> PeekingCredit:
        return self

    def q(self, data: Log) -> np.ndarray:
        rows = data.actions
        if self.peek == "length":
            return np.bincount(data.episode)[data.episode[rows]].astype(float)
        if self.peek == "outcome":
            return np.nan_to_num(data.targets)
        if self.peek == "other episodes":
            return np.full(len(rows), data.vectors.mean(), float)
        following = np.minimum(rows + 1, len(data) - 1)
        if self.peek == "next text":
            return np.array([float(data.text[row][-1]) for row in following])
        return data.vectors[following, 0].astype(float)

    def v(self, data: Log) -> np.ndarray:
        return self.q(data)


@pytest.mark.parametrize(
    "peek", ["length", "outcome", "other episodes", "next text", "next embedding"]
)
def test_a_planted_leak_is_caught(peek):
    data = dialogues(10, turns=5)
    with pytest.raises(LeakageError, match="though nothing up to it changed"):
        assert_no_leakage(lambda: PeekingCredit(peek), data, dialogues(6, turns=5, seed=2))


OUT_OF_FOLD = [name for name in ANY_GAME if not make_method(name).in_sample]


@pytest.mark.parametrize("name", OUT_OF_FOLD)
def test_out_of_fold_credit_ignores_the_own_episode(name):
    data = dialogues(12)
    before = fit_values(make_method(name), data, folds=3)
    returns = data.returns.copy()
    returns[data.is_action & (data.episode == 5)] += 7.0
    after = fit_values(make_method(name), data.with_returns(returns), folds=3)
    own = data.episode[data.actions] == 5
    for one, other in ((before.q, after.q), (before.v, after.v)):
        np.testing.assert_array_equal(one[own], other[own])
        assert not np.array_equal(one[~own], other[~own])


def test_folds_hold_whole_episodes_of_like_number():
    data = dialogues(23)
    fold = episode_folds(data, 5, seed=3)
    sizes = np.bincount([fold[data.episode == e][0] for e in range(23)])
    assert sizes.max() - sizes.min() <= 1
    assert all(len(set(fold[data.episode == e])) == 1 for e in range(23))
    with pytest.raises(AriaError, match="at least 2 episodes"):
        episode_folds(data.where(data.episode == 0), 5, 0)


@pytest.mark.parametrize("name", ANY_GAME)
@pytest.mark.parametrize("episodes", [2, 10])
def test_equal_rewards_and_few_episodes_give_finite_credit(name, episodes):
    data = dialogues(episodes)
    flat = data.with_returns(np.where(data.is_action, 0.5, np.nan))
    values = fit_values(make_method(name), flat, folds=5)
    np.testing.assert_allclose(values.q, 0.5, atol=1e-6)
    np.testing.assert_allclose(values.v, 0.5, atol=1e-6)
    assert np.isfinite(fit_values(make_method(name), data, folds=5).advantage).all()


@pytest.mark.parametrize("name", OUT_OF_FOLD)
def test_a_single_episode_gets_the_mean_of_each_role(name):
    data = dialogues(1)
    values = fit_values(make_method(name), data)
    assert values.q == pytest.approx(data.targets.mean())
    assert not values.advantage.any()


@pytest.mark.parametrize("name", ["regression", "kernel"])
def test_words_that_are_all_rare(name):
    data = dialogues(30)
    text = np.array([f"word{row}" for row in range(len(data))], dtype=object)
    assert len(data) >= 200
    assert np.isfinite(make_method(name).fit(replace(data, text=text)).q(data)).all()


@pytest.mark.parametrize("name", ANY_GAME)
def test_one_turn_games_and_unseen_roles_get_a_credit(name):
    data = dialogues(10, turns=1)
    data = data.where(data.is_action)
    stranger = replace(data, role=np.full(len(data), "stranger"))
    assert np.isfinite(make_method(name).fit(data).q(stranger)).all()


@pytest.mark.parametrize("name", ANY_GAME)
def test_actions_without_return_are_refused(name):
    data = dialogues(4)
    with pytest.raises(AriaError, match="without return"):
        make_method(name).fit(data.with_returns(np.full(len(data), np.nan)))


@pytest.mark.parametrize("name", ANY_GAME)
def test_both_players_of_a_two_person_dialogue_are_credited(name):
    data = dialogues(20)
    share = np.where(data.role == "agent", data.returns, 0.25)
    both = replace(data, is_action=np.ones(len(data), bool), returns=share)
    values = out_of_fold(make_method(name), both, folds=4)
    assert values.q.shape == values.v.shape == (len(data),)
    assert np.isfinite(values.advantage).all()


def test_an_unknown_method_is_answered_with_the_nearest_name():
    with pytest.raises(AriaError, match="did you mean shrinkage"):
        make_method("shrinkge")


@pytest.mark.parametrize("name", ["aria", "prefix"])
def test_where_one_action_has_a_history_it_has_no_advantage(name):
    """Exactly none, however the returns are rounded: other actions give the comparison."""
    data = dialogues(30, 3)
    values = fit_values(make_method(name), data)
    said = data.labels if name == "aria" else data.text
    history, whole = (
        [tuple(said[row - data.place[row] : row + more]) for row in data.actions] for more in (0, 1)
    )
    alone = np.array(
        [history.count(h) == whole.count(w) for h, w in zip(history, whole, strict=True)]
    )
    assert 0 < alone.sum() < len(alone)
    assert not values.advantage[alone].any()


def test_means_of_cells_do_not_depend_on_the_order_of_the_episodes():
    data = dialogues(50, topics=2)
    order = np.random.default_rng(0).permutation(data.episodes)
    rows = np.concatenate([np.flatnonzero(data.episode == e) for e in order])
    columns = {n: getattr(data, n)[rows] for n in ("text", "vectors", "labels", "returns", "role")}
    place = np.argsort(rows[data.is_action[rows]], kind="stable")
    other = replace(data, is_action=data.is_action[rows], **columns)
    one, again = (
        fit_values(make_method("aria_recent", Aggregate(history=2)), log) for log in (data, other)
    )
    np.testing.assert_array_equal(one.q, again.q[place])
    np.testing.assert_array_equal(one.v, again.v[place])


@pytest.mark.parametrize("name", method_names())
def test_seed_and_folds_reach_the_methods_that_have_them(name):
    """Seed 0 and the packaged folds are what a method has of its own."""
    plain, told = make_method(name), make_method(name, Aggregate(folds=3), seed=7)
    assert getattr(plain, "seed", 0) == 0
    assert getattr(told, "seed", 7) == 7
    own = getattr(plain, "folds", None)
    assert getattr(told, "folds", None) == (3 if own == Aggregate.folds else own)
