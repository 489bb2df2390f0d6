"""Logs in which a role is played now by the policy, now by a script, and some by scripts alone."""

from __future__ import annotations

import numpy as np
import pytest
from tests.credit_dialogues import ANY_GAME

from aria_dvc.credit.chain import credit, labelled
from aria_dvc.credit.methods import critic
from aria_dvc.credit.methods.base import episode_folds, fit_values
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import Aggregate, CreditSettings, SelectK
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.tables import turns_table

TEXTS = ("half each", "I keep 60", "I accept", "I keep 80")
SCRIPT, POLICY = "scripted:varied", "policy"
CASTS = ((POLICY, POLICY), (POLICY, SCRIPT), (SCRIPT, POLICY), (SCRIPT, SCRIPT))


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """What is asked here does not hang on how well the critic's networks are trained."""
    monkeypatch.setattr(critic, "STEPS_AT_LEAST", 50)


def pooled(casts, scripted_reward: float = 0.0, seed: int = 0) -> Log:
    """Games of six turns, one for each of `casts`; random words and rewards."""
    rng = np.random.default_rng(seed)
    episodes = []
    for number, cast in enumerate(casts):
        roles = dict(zip(("alice", "bob"), cast, strict=True))
        said = [Utterance(("alice", "bob")[i % 2], str(rng.choice(TEXTS))) for i in range(6)]
        drawn = {role: float(rng.integers(0, 2)) for role in roles}
        rewards = {r: scripted_reward if roles[r] == SCRIPT else drawn[r] for r in roles}
        info = {"players": {role: {"name": name} for role, name in roles.items()}}
        episodes.append(Episode(f"e{number}", "bargaining", said, rewards, info=info))
    turns = turns_table(episodes, [POLICY])
    centres = np.random.default_rng(9).normal(size=(len(TEXTS), 5)).astype(np.float32)
    vectors = np.stack([centres[TEXTS.index(text)] for text in turns["text"]])
    return Log.of(turns, vectors, gamma=0.9)


def settings(credit: str, **select) -> CreditSettings:
    aggregate = Aggregate(method=credit, gamma=0.9, folds=5)
    return CreditSettings("auto", select_k=SelectK(**select), aggregate=aggregate)


def test_what_is_no_action_has_no_return():
    log = pooled(CASTS * 4)
    assert np.isnan(log.returns[~log.is_action]).all()
    assert np.isfinite(log.targets).all()
    assert (log.episodes, log.acting_episodes) == (16, 12)


@pytest.mark.parametrize("method", ANY_GAME)
@pytest.mark.parametrize("choice", ["silhouette", "cross_validated"])
def test_every_method_credits_the_actions_alone(method, choice):
    log = pooled(CASTS * 5)
    chosen = settings(method, method=choice, per_role=True)
    rewards, quality = credit(labelled(log, chosen), chosen)
    assert len(rewards) == log.is_action.sum() == 20 * 6 // 2
    assert np.isfinite(rewards[["return", "reward"]].to_numpy()).all()
    assert quality["episodes"] == 15
    assert set(rewards["role"]) == {"alice", "bob"}


@pytest.mark.parametrize("method", ANY_GAME)
def test_what_scripts_earn_changes_no_credit(method):
    logs = [pooled(CASTS * 5, scripted_reward=reward) for reward in (0.0, 1.0)]
    told = settings(method)
    both = (credit(labelled(log, told), told)[0] for log in logs)
    first, other = (rewards["reward"].to_numpy() for rewards in both)
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("method", ANY_GAME)
@pytest.mark.parametrize("acting", [1, 2, 4])
def test_a_few_games_with_actions_among_many_without(method, acting):
    casts = [*CASTS[:3], CASTS[0]][:acting] + [CASTS[3]] * 8
    log = pooled(casts)
    assert np.isfinite(fit_values(make_method(method), log).q).all()
    told = settings(method)
    _, quality = credit(labelled(log, told), told)
    assert quality["episodes"] == acting


def test_every_fold_holds_out_actions():
    log = pooled([CASTS[3]] * 20 + list(CASTS[:3]) * 2)
    fold = episode_folds(log, 5, seed=1)
    assert set(fold[log.actions]) == set(range(5))


def test_a_scripted_questioner_is_clustered_as_the_policy_is():
    said = [Utterance("agent", "Is it big?"), Utterance("oracle", "Yes.")] * 2
    games = [
        Episode(f"e{i}", "twenty_questions", said, {"agent": 1.0}, info=info)
        for i, info in enumerate(
            {"players": {"agent": {"name": name}}} for name in (POLICY, "scripted:narrowing")
        )
    ]
    turns = turns_table(games, [POLICY])
    vectors = np.arange(8, dtype=np.float32)[:, None]
    log = Log.of(turns, vectors)
    assert log.clustered.tolist() == [True, False] * 4
    assert log.is_action.tolist() == [True, False] * 2 + [False] * 4
    assert len(find_intentions(log, CreditSettings().cluster).cuts.finest) == 8
