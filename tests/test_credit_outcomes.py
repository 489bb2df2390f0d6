"""Credit by outcomes, groups and beliefs, on games whose right credit is known."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.credit_dialogues import dialogues
from tests.leakage import assert_no_leakage

from aria_dvc.credit.methods.answers import (
    answers_of,
    asked_of_all,
    beliefs,
    places_of_targets,
    polarity,
)
from aria_dvc.credit.methods.base import fit_values, out_of_fold
from aria_dvc.credit.methods.belief import BeliefCredit, features_of, informed, names_target
from aria_dvc.credit.methods.critic import CriticCredit
from aria_dvc.credit.methods.gigpo import GigpoCredit, anchors
from aria_dvc.credit.methods.group import GroupCredit
from aria_dvc.credit.methods.information_gain import InformationGainCredit
from aria_dvc.credit.methods.progress import ProgressCredit, objective_rows
from aria_dvc.credit.methods.units import units_of
from aria_dvc.credit.variance import r_squared
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.oracles.city.oracle import oracle, questions, targets
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.tables import turns_table


def summed(episodes: int = 80, seed: int = 0, gamma: float = 1.0) -> Log:
    """R is the share of an episode's four questions that are on topic 0."""
    data = dialogues(episodes, seed=seed)
    right = (data.labels == 0) & data.is_action
    share = np.bincount(data.episode, right)[data.episode] / 4
    final = np.where(data.is_action, share, np.nan)
    return replace(data, final=final, returns=final * gamma ** (4 - data.turn), gamma=gamma)


@pytest.mark.parametrize("objective", ["sum", "spread", "prefix"])
def test_contributions_sum_to_the_outcome(objective):
    data, other = summed(), summed(seed=1)
    method = ProgressCredit(objective).fit(data)
    q, v = method.q(other), method.v(other)
    step = method.contributions(other)
    np.testing.assert_allclose(q - v, step, atol=1e-12)
    first = np.flatnonzero(other.turn[other.actions] == 1)
    np.testing.assert_allclose(v[first], data.outcomes.mean())
    later = np.flatnonzero(other.turn[other.actions] > 1)
    np.testing.assert_allclose(q[later - 1], v[later])
    last = first + 3
    known = 0.5 if objective == "spread" else 0.8  # even contributions are paid for
    assert r_squared(q[last], other.outcomes[last]) > known
    right = other.labels[other.actions] == 0
    gap = step[right].mean() - step[~right].mean()
    assert 0.05 < gap < 0.25 if objective == "spread" else gap == pytest.approx(0.25, abs=0.06)


def test_objectives_against_their_definitions():
    """Squared length of each objective's rows is the objective, written out in loops."""
    rng = np.random.default_rng(0)
    data = dialogues(6, turns=3)
    units = units_of(data)
    features, weights = rng.normal(size=(18, 5)), rng.normal(size=5)
    outcome = np.repeat(rng.normal(size=6), 3)
    steps = (features @ weights).reshape(6, 3)
    missed = [(steps[u].sum() - outcome[3 * u]) ** 2 for u in range(6)]
    spread = [3 * steps[u].var() for u in range(6)]
    prefix = [((steps[u].cumsum() - outcome[3 * u]) ** 2).mean() for u in range(6)]
    wanted = {"sum": 0.0, "spread": sum(spread), "prefix": sum(prefix)}
    for objective, more in wanted.items():
        rows, target, unit = objective_rows(objective, features, outcome, units)
        assert ((rows @ weights - target) ** 2).sum() == pytest.approx(sum(missed) + more)
        assert np.array_equal(np.unique(unit), np.arange(6))


def test_a_group_is_compared_with_its_others():
    data = summed(6)
    grouped = replace(data, group=np.array([0, 0, 0, 1, 1, 2]))
    values = fit_values(GroupCredit(), grouped)
    outcome = data.outcomes[::4]
    others = [
        outcome[[1, 2]].mean(), outcome[[0, 2]].mean(), outcome[[0, 1]].mean(),
        outcome[4], outcome[3], outcome[:5].mean(),
    ]  # fmt: skip
    np.testing.assert_allclose(values.q, np.repeat(outcome, 4))
    np.testing.assert_allclose(values.v, np.repeat(others, 4))
    alone = fit_values(GroupCredit(), data)
    np.testing.assert_allclose(alone.v[:4], outcome[1:].mean())


@pytest.mark.parametrize("anchor", ["observation", "state", "intentions"])
def test_anchored_steps_against_a_dictionary(anchor):
    data = summed(30, gamma=0.9)
    data = replace(data, group=np.arange(30) // 3)
    values = fit_values(GigpoCredit(anchor), data)
    group = fit_values(GroupCredit(), data)
    steps: dict[tuple, list[int]] = {}
    for action, row in enumerate(data.actions):
        past = range(row - data.place[row], row)
        said = {
            "observation": tuple(data.text[past[-1:]]),
            "state": tuple(data.text[past]),
            "intentions": tuple(data.labels[past[-2:]]),
        }[anchor]
        steps.setdefault((data.group[data.episode[row]], said), []).append(action)
    for members in steps.values():
        mean = data.targets[members].mean()
        np.testing.assert_allclose(values.v[members], (group.v[members] + mean) / 2)
    np.testing.assert_allclose(values.q, (group.q + data.targets) / 2)
    assert len(np.unique(anchors(data, anchor))) <= len(steps)


@pytest.mark.parametrize("anchor", ["observation", "state", "intentions"])
def test_no_anchor_leaks(anchor):
    assert_no_leakage(lambda: GigpoCredit(anchor), summed(20), summed(6, seed=1))


def test_the_critic_learns_what_an_action_is_worth():
    """A question on topic 0 adds a quarter to R; 75 episodes are few for networks."""
    data, other = summed(75, gamma=0.95), summed(75, seed=1, gamma=0.95)
    method = CriticCredit().fit(data)
    assert r_squared(method.q(other), other.targets) > 0.2
    right = other.labels[other.actions] == 0
    advantage = method.q(other) - method.v(other)
    assert 0.08 < advantage[right].mean() - advantage[~right].mean() < 0.3


def test_a_critic_of_noise_stays_with_the_turn_index():
    """Networks that learn nothing are not believed: no loss on held-out episodes to speak of."""
    data, other = dialogues(60), dialogues(60, seed=1)
    noise = np.random.default_rng(5).normal(size=(2, 60))
    logs = [
        replace(log, final=np.where(log.is_action, own[log.episode], np.nan), returns=returns)
        for log, own in zip((data, other), noise, strict=True)
        for returns in [np.where(log.is_action, own[log.episode], np.nan)]
    ]
    method = CriticCredit().fit(logs[0])
    found = r_squared(method.q(logs[1]), logs[1].targets)
    assert found > r_squared(method.turn_index_.q(logs[1]), logs[1].targets) - 0.1


@pytest.mark.parametrize("scale", [36.0, 0.01])
def test_the_unit_of_the_reward_changes_nothing_for_the_critic(scale):
    data, other = summed(40, gamma=0.95), summed(20, seed=1, gamma=0.95)
    scaled = replace(data, final=scale * data.final, returns=scale * data.returns)
    found = [CriticCredit().fit(log) for log in (data, scaled)]
    advantage, larger = (method.q(other) - method.v(other) for method in found)
    assert advantage.std() > 0.01
    assert np.corrcoef(advantage, larger)[0, 1] > 0.999
    assert larger.std() == pytest.approx(scale * advantage.std(), rel=0.01)


def test_a_critic_of_equal_returns_knows_no_difference():
    data = summed(20)
    equal = np.where(data.is_action, 0.1, np.nan)
    method = CriticCredit().fit(replace(data, final=equal, returns=equal))
    assert method.unit_ == 1.0
    np.testing.assert_allclose(method.q(data), 0.1, atol=1e-6)


def test_the_critic_is_the_same_again():
    data = summed(40, gamma=0.95)
    values, again = (out_of_fold(CriticCredit(), data, 2) for _ in range(2))
    np.testing.assert_array_equal(values.q, again.q)
    np.testing.assert_array_equal(values.v, again.v)


def test_critics_fitted_side_by_side_are_those_fitted_alone():
    data = summed(40, gamma=0.95)
    alone = CriticCredit().fit(data).q(data)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: CriticCredit().fit(data).q(data), range(3)):
            np.testing.assert_array_equal(found, alone)


def games(count: int, seed: int = 0, turns: int = 6) -> Log:
    """Everyday questions on cities, answered by the oracles; won if at least half are yes."""
    rng, episodes = np.random.default_rng(seed), []
    for number in range(count):
        knows = oracle(str(rng.choice(targets())))
        said, yes = [], 0
        for question in rng.choice(questions(), turns, replace=False).tolist():
            answer = knows.answer(question).text
            yes += polarity(answer) == 1
            said += [Utterance("agent", question), Utterance("oracle", answer)]
        target = {"config": {"target": knows.target}}
        won = {"agent": float(yes > 2)}
        episodes.append(Episode(f"e{number}", "guess_my_city", said, won, info=target))
    return Log.of(turns_table(episodes), None, 0.95)


def test_beliefs_against_bayes_in_loops():
    data = games(4)
    found = beliefs(data)
    for action, row in enumerate(data.actions):
        weight = np.ones(len(targets()))
        for asked in range(row - data.place[row], row, 2):
            heard = polarity(data.text[asked + 1])
            for place, target in enumerate(targets()):
                given = polarity(oracle(target).answer(data.text[asked]).text)
                if heard and given:
                    weight[place] *= 0.9 if given == heard else 0.1
                elif heard:
                    weight[place] *= 0.5
        np.testing.assert_allclose(found[action], weight / weight.sum(), atol=1e-12)


def test_a_named_target_is_the_mass_of_what_is_guessed():
    data = games(3)
    text = data.text.copy()
    text[data.actions[-1]] = "Is it Lima, Peru?"
    guess = features_of(replace(data, text=text))[1][-1, -1]
    assert guess == pytest.approx(beliefs(data)[-1][list(targets()).index("Lima, Peru")])
    assert features_of(data)[1][0, -1] == 0.0


def test_what_was_heard_and_guessed_so_far_is_counted():
    data = games(3)
    text = data.text.copy()
    text[data.actions[1]] = "Is it Lima, Peru?"
    history = features_of(replace(data, text=text)).history[:6]
    heard = [polarity(answer) for answer in data.text[1:12:2]]
    assert history[:, 4].tolist() == [0, 0, 1, 1, 1, 1]
    for column, sign in ((5, 1), (6, -1)):
        assert history[:, column].tolist() == [heard[:turn].count(sign) for turn in range(6)]


def test_who_knows_the_target_knows_what_its_answer_leaves():
    data = games(3)
    own = places_of_targets(data)
    assert [targets()[place] for place in own] == data.target.tolist()
    before, both = informed(features_of(data), data)
    belief = beliefs(data)
    for action, row in enumerate(data.actions):
        target = own[data.episode[row]]
        answer = polarity(data.text[row + 1])
        after = belief[action].copy()
        for place, other in enumerate(targets()):
            given = polarity(oracle(other).answer(data.text[row]).text)
            if answer:
                after[place] *= 0.5 if not given else 0.9 if given == answer else 0.1
        after /= after.sum()
        known = [np.log(belief[action, target]), (belief[action] > belief[action, target]).sum()]
        np.testing.assert_allclose(before[action, -2:], known)
        entropy = -(after * np.log(after)).sum()
        left = [answer, np.log(after[target]), (after > after[target]).sum(), entropy, False, False]
        np.testing.assert_allclose(both[action, -6:], left, atol=1e-9)


@pytest.mark.parametrize(
    ("question", "wins", "names"),
    [
        ("Is it {}?", True, True),
        ("Is your city in the province of {}?", False, True),
        ("Is it Atlantis?", False, False),
    ],
)
def test_who_knows_the_target_knows_a_question_that_names_it(question, wins, names):
    data = games(2)
    text = data.text.copy()
    for row in data.actions:
        text[row] = question.format(data.target[data.episode[row]].split(",")[0])
    last = informed(features_of(data), replace(data, text=text)).both[:, -2:]
    assert last.tolist() == [[wins, names]] * len(last)


def test_a_target_that_was_never_fitted_is_recognised_when_it_is_named():
    """A question that names the target returns 1, others 0; blind, guesses all look alike."""
    data, other = naming(60, seed=0), naming(60, seed=1)
    fitted = np.unique(data.target)
    unseen = ~np.isin(other.target, fitted)[other.episode[other.actions]]
    assert unseen.sum() > 50

    def known(data: Log, other: Log) -> float:
        return r_squared(other.targets[unseen], BeliefCredit().fit(data).q(other)[unseen])

    assert known(data, other) > 0.95
    assert known(replace(data, target=None), replace(other, target=None)) < 0.5


def naming(count: int, seed: int) -> Log:
    """Games in which every other guess is the target."""
    data = games(count, seed)
    right = np.random.default_rng(seed).random(len(data)) < 0.5
    text, named = data.text.copy(), np.array([name.split(",")[0] for name in data.target])
    text[data.actions] = [
        f"Is it {named[data.episode[row]] if right[row] else targets()[row % 100].split(',')[0]}?"
        for row in data.actions
    ]
    return replace(data, text=text, returns=np.where(data.is_action, right.astype(float), np.nan))


def test_episodes_without_a_target_are_judged_as_if_there_were_none():
    data, other = games(30), games(8, seed=1)
    some = other.target.copy()
    some[[2, 5]] = "", "Atlantis"
    mixed = replace(other, target=some)
    without = ~names_target(mixed)
    assert np.unique(mixed.episode[mixed.actions][without]).tolist() == [2, 5]
    method, blind = BeliefCredit().fit(data), BeliefCredit().fit(replace(data, target=None))
    for part in ("q", "v"):
        found = getattr(method, part)(mixed)
        np.testing.assert_array_equal(found[without], getattr(blind, part)(other)[without])
        np.testing.assert_array_equal(found[~without], getattr(method, part)(other)[~without])
    np.testing.assert_array_equal(blind.q(mixed), blind.q(replace(other, target=None)))


def test_folds_side_by_side_read_each_question_once():
    asked = np.array([f"Is it {metres} metres above the sea?" for metres in range(60)])
    before = answers_of.cache_info().misses
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: asked_of_all("guess_my_city", asked)[0], range(4)))
    assert answers_of.cache_info().misses - before == len(asked)
    assert all((each == found[0]).all() for each in found)


def test_beliefs_do_not_leak_and_know_only_guessing_games():
    assert_no_leakage(BeliefCredit, games(24), games(6, seed=1))
    with pytest.raises(AriaError, match="guess_my_city or twenty_questions"):
        BeliefCredit().fit(dialogues(10))


def test_belief_values_are_out_of_fold_and_finite():
    data = games(40)
    values = fit_values(BeliefCredit(), data)
    assert np.isfinite(values.advantage).all()
    changed = data.returns + np.where(data.episode == 3, 7.0, 0.0)
    other = fit_values(BeliefCredit(), data.with_returns(changed))
    own = data.episode[data.actions] == 3
    np.testing.assert_array_equal(values.q[own], other.q[own])


def test_progress_before_an_action_is_that_after_the_one_before():
    """Bit by bit: nothing of the action is added and taken away again."""
    data, other = summed(), summed(12, seed=1)
    method = ProgressCredit().fit(data)
    q, v = method.q(other).reshape(12, 4), method.v(other).reshape(12, 4)
    np.testing.assert_array_equal(v[:, 1:], q[:, :-1])
    np.testing.assert_array_equal(v[:, 0], np.full(12, method.means_["agent"]))


def test_information_gains_against_sums_in_loops():
    data = replace(games(6, turns=4), group=np.array([0, 0, 0, 1, 1, 2]))
    values = fit_values(InformationGainCredit(), data)
    belief, place = beliefs(data), {target: number for number, target in enumerate(targets())}
    wanted = np.zeros((6, 4))
    for game in range(6):
        known = belief[4 * game : 4 * game + 4, place[data.target[game]]]
        wanted[game, 3] = data.outcomes[4 * game]
        for turn in (2, 1, 0):
            gain = known[turn + 1] - known[turn]
            wanted[game, turn] = gain + 0.95 * wanted[game, turn + 1]
    np.testing.assert_allclose(values.q, wanted.ravel())
    others = [[1, 2], [0, 2], [0, 1], [4], [3], [0, 1, 2, 3, 4]]
    means = [wanted[others_of].mean(axis=0) for others_of in others]
    np.testing.assert_allclose(values.v, np.ravel(means))
    assert np.abs(wanted[:, 0] - 0.95**3 * wanted[:, 3]).max() > 0.02  # answers told something


def test_a_turn_that_no_other_reached_is_compared_with_all():
    data = games(3, turns=3)
    longer = data.where((data.episode == 0) | (data.place < 2))
    values = fit_values(InformationGainCredit(), longer)
    assert longer.turn[longer.actions].tolist() == [1, 2, 3, 1, 1]
    assert values.v[1] == pytest.approx(np.delete(values.q, 1).mean())
    assert values.v[3] == pytest.approx(values.q[[0, 4]].mean())


def test_information_gain_does_not_leak_and_asks_for_targets_that_are_known():
    assert_no_leakage(InformationGainCredit, games(24), games(6, seed=1))
    data = games(3)
    spelled = replace(data, target=np.array([name.lower() for name in data.target], object))
    found, same = (fit_values(InformationGainCredit(), log) for log in (spelled, data))
    np.testing.assert_array_equal(found.q, same.q)
    for target in (None, np.array([data.target[0], "Atlantis", ""], object)):
        with pytest.raises(AriaError, match=r"[23] of 3 episodes name no target.*first in e[01]"):
            InformationGainCredit().fit(replace(data, target=target))
    with pytest.raises(AriaError, match="guess_my_city or twenty_questions"):
        InformationGainCredit().fit(dialogues(10))
