"""Every objective against a loss and gradient by hand, and what it must leave alone."""

import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from learning_tiny import LORA, policy_params, tiny_model
from objective_games import TOKENIZER, examples_of, own_text, played

from aria_dvc.errors import AriaError
from aria_dvc.learning.advantages import EQUAL, advantages
from aria_dvc.learning.batches import trains_nothing
from aria_dvc.learning.objective import (
    adapter_off,
    policy_collate,
    selected_logits,
    token_logprobs,
)
from aria_dvc.learning.objectives.grpo import most_spread, with_groups
from aria_dvc.learning.objectives.pairs import PairCollate, best_with_worst, only
from aria_dvc.learning.objectives.ppo import gae, gathered, turn_rewards
from aria_dvc.learning.objectives.registry import METHODS, objective_of
from aria_dvc.learning.objectives.scoring import Scorer
from aria_dvc.learning.objectives.spag import decayed, role_weights
from aria_dvc.learning.objectives.value_head import Steps, fitted_values
from aria_dvc.learning.own_actions import learned_by
from aria_dvc.models.lora import add_lora
from aria_dvc.settings.training import CREDITED, PolicyMethod

NAMES = [name for name in METHODS if name not in ("reinforce", "behaviour_cloning")]
PAIRED = ("trajectory_dpo", "step_dpo")
LOGITS = np.array([[1.0, 0.0, -1.0, 0.5], [0.2, 0.1, 0.0, 2.0], [0.0, 3.0, 1.0, -1.0]])
TARGETS = np.array([0, 3, 2])
P = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
LOGP = np.log(P[np.arange(3), TARGETS])
SLOPES = np.eye(4)[TARGETS] - P  # d log pi / d logits


def settings(method, **changes):
    credit = {"ppo": "terminal"}.get(method, "aria")
    return policy_params(**{"method": method, "credit": credit, **changes})


def three_tokens(**tensors):
    """Inputs of three tokens, each at a place of its own, two actions in the batch."""
    given = {name: torch.tensor(np.asarray(values)) for name, values in tensors.items()}
    return {
        "at": torch.arange(3), "targets": torch.tensor(TARGETS), "count": torch.tensor(2.0),
        **{n: t.float() if t.is_floating_point() else t for n, t in given.items()},
    }  # fmt: skip


def loss_and_gradient(objective, inputs):
    logits = torch.tensor(LOGITS, dtype=torch.float32, requires_grad=True)
    noted = {}
    loss = objective.loss(logits, inputs, lambda name, value: noted.update({name: float(value)}))
    (gradient,) = torch.autograd.grad(loss, logits)
    return float(loss), gradient.numpy(), noted


def test_the_table_has_the_methods_that_the_settings_name():
    assert {*METHODS, "none"} == set(PolicyMethod.__args__)
    assert set(METHODS) >= CREDITED
    for name, kind in METHODS.items():
        assert type(objective_of(settings(name))) is kind


@pytest.mark.parametrize("method", ["ppo", "grpo", "gigpo", "igpo"])
def test_the_clipped_ratio_by_hand(method):
    """Ratios 1, 1.5 and 1.5 with advantages 1, 1 and -2: only the second is clipped."""
    ratios, advantages = np.array([1.0, 1.5, 1.5]), np.array([1.0, 1.0, -2.0])
    inputs = three_tokens(weights=advantages, old=LOGP - np.log(ratios))
    loss, gradient, noted = loss_and_gradient(objective_of(settings(method)), inputs)
    assert loss == pytest.approx(-(1.0 + 1.2 - 3.0) / 2, rel=1e-5)
    through = np.array([1.0, 0.0, -3.0])  # ratio x advantage where it is not clipped
    np.testing.assert_allclose(gradient, -through[:, None] * SLOPES / 2, rtol=1e-4, atol=1e-6)
    assert noted == {"tokens": 3.0, "clipped": 1.0}


def test_ratios_that_fall_are_clipped_from_below_and_the_ends_are_settings():
    inputs = three_tokens(weights=[-1.0, -1.0, 1.0], old=LOGP - np.log([0.5, 0.75, 0.5]))
    wide = settings("grpo", clip={"low": 0.4, "high": 0.28})
    loss, gradient, noted = loss_and_gradient(objective_of(wide), inputs)
    assert loss == pytest.approx((0.6 + 0.75 - 0.5) / 2, rel=1e-5)
    through = np.array([0.0, -0.75, 0.5])
    np.testing.assert_allclose(gradient, -through[:, None] * SLOPES / 2, rtol=1e-4, atol=1e-6)
    assert noted["clipped"] == 1.0


def test_the_estimated_kl_by_hand():
    """With d = log pi_ref - log pi: exp(d) - 1 - d, whose slope in log pi is 1 - exp(d)."""
    apart = np.array([0.0, 0.3, -0.4])
    inputs = three_tokens(weights=np.zeros(3), old=LOGP, reference=LOGP + apart)
    loss, gradient, noted = loss_and_gradient(objective_of(settings("grpo", kl=0.5)), inputs)
    kl = np.exp(apart) - 1 - apart
    assert loss == pytest.approx(0.5 * kl.sum() / 2, rel=1e-4)
    slopes = 0.5 * (1 - np.exp(apart))[:, None] * SLOPES / 2
    np.testing.assert_allclose(gradient, slopes, rtol=1e-3, atol=1e-6)
    assert noted["kl_estimate"] == pytest.approx(kl.sum() / 2, rel=1e-4)


def test_spag_by_hand():
    """Two roles, one of them with half the weight; the share of the KL has no gradient itself."""
    moved, balance, shares = np.array([0.1, 0.0, -0.1]), [0.5, 0.5, 2.0], np.array([0.4, 0.6, 1.0])
    inputs = three_tokens(weights=shares, old=LOGP, reference=LOGP - moved, balance=balance)
    loss, gradient, _ = loss_and_gradient(objective_of(settings("spag")), inputs)
    advantages = shares - 0.2 * moved
    assert loss == pytest.approx(-(balance * advantages + 0.5 * LOGP).sum() / 2, rel=1e-4)
    through = np.asarray(balance) * advantages + 0.5
    np.testing.assert_allclose(gradient, -through[:, None] * SLOPES / 2, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", PAIRED)
def test_the_pair_loss_by_hand(method):
    """Two tokens of the better side, one of the worse; a second pair is there but has no value."""
    apart, signs = np.array([0.3, -0.1, -0.4]), np.array([1.0, 1.0, -1.0])
    inputs = three_tokens(
        weights=signs, reference=LOGP - apart, pair=[0, 0, 0], live=[1.0, 0.0]
    )  # fmt: skip
    objective = objective_of(settings(method, dpo={"beta": 0.5}))
    loss, gradient, noted = loss_and_gradient(objective, inputs)
    margin = 0.5 * (apart * signs).sum()
    assert loss == pytest.approx(np.log(1 + np.exp(-margin)) / 2, abs=1e-6)
    through = 0.5 / (1 + np.exp(margin)) * signs
    np.testing.assert_allclose(gradient, -through[:, None] * SLOPES / 2, rtol=1e-4, atol=1e-6)
    assert noted["margin"] == pytest.approx(margin / 2, abs=1e-5)
    assert noted["preferred"] == 0.5


def steps_of(dialogues, rewards, groups=None, states=None):
    keys = [("g", name, i) for i, name in enumerate(dialogues)]
    named = [("g", name, "alice") for name in dialogues]
    shape = np.zeros((len(keys), 1)) if states is None else states
    return Steps(keys, named, groups or list(dialogues), np.array(rewards, float), shape)


def test_gae_by_hand_does_not_cross_dialogues():
    steps = steps_of("aaab", [0.0, 0.5, 1.0, 0.25])
    found = gae(steps, np.array([0.5, 0.25, 0.5, 0.75]), 0.5)
    deltas = [0.25 - 0.5, 0.5 + 0.5 - 0.25, 1.0 - 0.5, 0.25 - 0.75]
    by_hand = [
        deltas[0] + 0.5 * (deltas[1] + 0.5 * deltas[2]),
        deltas[1] + 0.5 * deltas[2],
        deltas[2],
        deltas[3],
    ]
    np.testing.assert_allclose(found, by_hand)
    whole = gae(steps, np.zeros(4), 1.0)  # lambda 1 without values: the rewards to come
    np.testing.assert_allclose(whole, [1.5, 1.5, 1.0, 0.25])


def test_values_are_of_heads_that_have_not_seen_the_group():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(60, 8))
    rewards = states @ rng.normal(size=8) + 0.1 * rng.normal(size=60)
    groups = [f"g{i // 2}" for i in range(60)]
    names = [str(i) for i in range(60)]
    values, r2 = fitted_values(steps_of(names, rewards, groups, states))
    assert r2 > 0.8
    other = rewards.copy()
    other[10:12] += 100.0
    again, _ = fitted_values(steps_of(names, other, groups, states))
    np.testing.assert_array_equal(again[10:12], values[10:12])
    assert not np.allclose(again, values)


@pytest.mark.parametrize(("rewards", "groups"), [([0.5, 0.5], "ab"), ([0.0, 1.0], "aa")])
def test_without_anything_to_learn_a_history_is_worth_the_mean(rewards, groups):
    steps = steps_of("xy", rewards, list(groups), np.random.default_rng(0).normal(size=(2, 3)))
    values, r2 = fitted_values(steps)
    assert values.tolist() == [0.5, 0.5]
    assert r2 == 0.0


def test_a_turn_is_paid_the_outcome_or_its_contribution_and_for_being_carried_out():
    log = played(("g", ["a", "b", "c", "d"], 1.0))
    key = lambda position: ("bargaining", "e0", position)  # noqa: E731
    assert turn_rewards(log, "terminal", 0.0) == {key(0): 0, key(1): 0, key(2): 1, key(3): 0}
    rewards = log.rewards.assign(reward=[0.5, 0.5, 1.0, 0.0], value=[0.25, 0.5, 0.5, 0.5])
    grounded = log.turns.assign(grounded=[1.0, np.nan, 0.0, 1.0])
    contributed = replace(log, rewards=rewards, turns=grounded)
    paid = turn_rewards(contributed, "progress", 0.5)
    assert paid == {key(0): 0.75, key(1): 0.0, key(2): 0.5, key(3): 0.0}
    with pytest.raises(AriaError, match="needs a credit with a value"):
        turn_rewards(replace(log, rewards=rewards.assign(value=np.nan)), "progress", 0.0)


def test_what_untrained_turns_are_paid_is_not_lost():
    """Alice's turns 0, 2 and 4: the last one is too long to train, then the first, then all."""
    log = played(("g", ["a", "b", "c", "d", "e", "f"], 1.0))
    key = lambda position: ("bargaining", "e0", position)  # noqa: E731
    paid = {key(p): float(10**p) for p in range(6)}
    bob = {key(p): paid[key(p)] for p in (1, 3, 5)}
    late = gathered([log], paid, {key(0), key(2), *bob})
    assert late == {key(0): 1.0, key(2): 100.0 + 10000.0, **bob}
    early = gathered([log], paid, {key(2), key(4), *bob})
    assert early == {key(2): 101.0, key(4): 10000.0, **bob}
    assert gathered([log], paid, set(bob)) == bob


def test_ppo_pays_the_outcome_to_the_last_turn_that_is_trained():
    log = played(("g", ["a", "b", "c", "d"], 1.0))
    alice, bob = examples_of([log])
    material = objective_of(settings("ppo")).material([log], [only(alice, [0]), bob], 0)
    assert material.data[0][1].tolist() == [1.0]


def test_ppo_pays_what_a_reasked_turn_brought_to_the_next_one():
    log = played(("g", ["a", "b", "c", "d", "e", "f"], 1.0))
    rewards = log.rewards.assign(reward=[0.1, 0.0, 0.4, 0.0, 0.9, 0.0], value=0.0)
    rewards["value"] = [0.0, 0.0, 0.1, 0.0, 0.4, 0.0]
    asked = log.episodes.assign(info=json.dumps({"players": {}, "reasked": [2]}))
    log = learned_by("ppo", replace(log, rewards=rewards, episodes=asked))
    params = settings("ppo", credit="progress")
    (example, values), _ = objective_of(params).material([log], examples_of([log]), 0).data
    assert example.role == "alice"
    np.testing.assert_allclose(values, [0.1, np.nan, 0.8])
    assert len(learned_by("reinforce", log).rewards) == 5


def test_that_many_actions_are_not_trained_is_said(caplog):
    log = played(("g", ["a", "b", "c", "d", "e", "f"], 1.0))
    for noted, said in (([2], False), ([1, 2], True)):
        info = json.dumps({"players": {}, "reworded": noted})
        learned_by("reinforce", replace(log, episodes=log.episodes.assign(info=info)))
        assert ("2 of 6 actions are not trained" in caplog.text) == said


def test_words_beside_a_button_are_one_message_with_it_and_train_nothing():
    log = played(("g", ["a", "b", "c", "d"], 1.0), ("h", ["a", "b"], 0.0))
    roles = ["alice", "bob", "alice", "alice", "alice", "bob"]
    acts = [True, True, False, True, True, True]
    turns = log.turns.assign(role=roles, is_action=acts)
    log = replace(log, turns=turns, rewards=log.rewards[acts].reset_index(drop=True))
    kept = learned_by("reinforce", log).rewards
    assert list(zip(kept["episode_id"], kept["position"], strict=True)) == [
        ("e0", 0), ("e0", 1), ("e1", 0), ("e1", 1),
    ]  # fmt: skip


def test_a_difference_that_is_rounding_is_no_advantage():
    """0.1 + 0.2 is not 0.3 in float64: equal values must not train."""
    log = played(("g", ["a", "b", "c", "d"], 1.0))
    rewards = log.rewards.assign(reward=[0.1 + 0.2, 0.5, 0.7, 0.4], value=[0.3, 0.5, 0.2, 0.4])
    found = advantages(replace(log, rewards=rewards), "aria", "value")
    assert list(found.values()) == [0.0, 0.0, pytest.approx(0.5), 0.0]


def weights_of(method, *frames, **changes):
    """Key -> value of what an objective of the tables trains."""
    objective = objective_of(settings(method, **changes))
    material = objective.material(frames, examples_of(frames), 0)
    pairs = [pair for e, v in material.data for pair in zip(e.keys, v.tolist(), strict=True)]
    return dict(pairs), material


def test_grpo_is_relative_to_the_group_and_the_role():
    log = played(*((g, ["a", "b"], f) for g, f in zip("xxxy", [1.0, 0.5, 0.0, 0.9], strict=True)))
    weights, material = weights_of("grpo", log)
    spread = np.std([1.0, 0.5, 0.0]) + 1e-6
    alice = [weights[("bargaining", f"e{i}", 0)] for i in range(4)]
    np.testing.assert_allclose(alice, [0.5 / spread, 0.0, -0.5 / spread, 0.0], rtol=1e-6)
    bob = [weights[("bargaining", f"e{i}", 1)] for i in range(4)]
    np.testing.assert_allclose(bob, [-0.5 / spread, 0.0, 0.5 / spread, 0.0], rtol=1e-6)
    assert material.figures == {"groups": 4, "groups_without_spread": 2, "groups_kept": 4}


def test_the_quarter_of_the_groups_with_most_spread_trains():
    finals = {"a": (0.0, 1.0), "b": (0.4, 0.6), "c": (0.5, 0.5), "d": (0.3, 0.7)}
    log = played(*((g, ["a", "b"], f) for g, pair in finals.items() for f in pair))
    weights, material = weights_of("grpo", log, grpo={"keep": 0.25})
    assert {key[1] for key in weights} == {"e0", "e1"}  # both roles of group a: 2 of 8
    assert material.figures == {"groups": 8, "groups_without_spread": 2, "groups_kept": 2}
    table = with_groups(log.rewards.assign(final=log.rewards["reward"], group_id="one"))
    assert len(most_spread(table.drop_duplicates("role"), 0.01)) == 1


@pytest.mark.parametrize("method", ["gigpo", "igpo"])
def test_some_take_the_difference_of_their_credit(method):
    weights, _ = weights_of(method, played(("x", ["a", "b"], 1.0)))
    assert weights == {("bargaining", "e0", 0): 0.75, ("bargaining", "e0", 1): -0.25}


def test_spag_trains_the_winners_turns_alone():
    log = played(("x", ["a", "b", "c", "d", "e", "f"], 1.0), ("x", ["a", "b"], 0.5))
    weights, material = weights_of("spag", log)
    found = [weights.get(("bargaining", "e0", p), 0.0) for p in range(6)]
    np.testing.assert_allclose(found[::2], np.array([0.64, 0.8, 1.0]) / 2.44, rtol=1e-6)
    assert {key[1] for key, value in weights.items() if value == value} == {"e0"}
    assert found[1::2] == [0.0, 0.0, 0.0]
    assert material.figures == {"winners": 1.0}
    assert decayed(2, 0.5).tolist() == pytest.approx([1 / 3, 2 / 3])


def test_spag_balances_winners_however_many_windows_they_are():
    log = played(("x", ["a", "b"], 1.0), ("x", ["a", "b"], 0.0))
    by_role = {(one.episode_id, one.role): one for one in examples_of([log])}
    alice, bob = by_role["e0", "alice"], by_role["e1", "bob"]
    unchanged = SimpleNamespace(scored=lambda examples, *names: examples)
    data = [(one, np.zeros(1)) for one in (alice, alice, bob)]
    found = objective_of(settings("spag")).scored(data, unchanged)
    assert [set(one.scores["balance"].tolist()) for one, _ in found] == [{1.0}] * 3
    assert role_weights([("g", "a"), ("g", "a"), ("g", "b"), ("h", "a")]) == [0.75, 0.75, 1.5, 1.0]


def pairs_of(method, *frames, **changes):
    objective = objective_of(settings(method, **changes))
    material = objective.material(frames, examples_of(frames), 0)
    return [pair for pair, _ in material.data], material.figures


def test_episodes_are_paired_within_group_and_role_alone():
    finals = zip("xxxyyz", [1.0, 0.5, 0.0, 0.5, 0.5, 1.0], strict=True)
    log = played(*((g, ["hi", "ho"], f) for g, f in finals))
    other = played(("x", ["hi", "ho"], 0.2), log="negotiation")
    pairs, figures = pairs_of("trajectory_dpo", log, other)
    found = [(p.better.role, p.better.episode_id, p.worse.episode_id) for p in pairs]
    assert sorted(found) == [("alice", "e0", "e2"), ("bob", "e2", "e0")]
    assert figures == {
        "pairs": 2, "groups": 8, "groups_without_spread": 6, "episodes_in_parts": 0,
    }  # fmt: skip


def test_actions_are_paired_after_equal_histories_alone():
    games = [
        ("x", ["yes", "b", "up"], 1.0),
        ("x", ["no", "b", "up"], 0.0),  # another history than the first, once "no" is said
        ("x", ["yes", "b", "down"], 0.25),
        ("y", ["maybe", "b", "up"], 0.9),
    ]
    pairs, figures = pairs_of("step_dpo", played(*games))
    said = sorted((own_text(pair.better), own_text(pair.worse)) for pair in pairs)
    assert [tuple(text.split("<")[0] for text in pair) for pair in said] == [
        ("up", "down"),
        ("yes", "no"),  # mean credit 0.625 of two games against 0
    ]
    assert figures["histories_met_again"] == 2
    for pair in pairs:
        first = [np.flatnonzero(side.action >= 0)[0] for side in pair.sides]
        assert first[0] == first[1]
        np.testing.assert_array_equal(
            pair.better.input_ids[: first[0]], pair.worse.input_ids[: first[0]]
        )


def test_nothing_is_in_two_pairs_and_equal_ones_are_in_none():
    assert list(best_with_worst([(1.0, "a"), (0.0, "b"), (0.5, "c")], EQUAL)) == [("a", "b")]
    ranked = [(1.0, "a"), (0.0, "b"), (1.0, "c"), (0.0, "d")]
    assert list(best_with_worst(ranked, EQUAL)) == [("a", "d"), ("c", "b")]
    assert list(best_with_worst([(0.5, "a"), (0.5, "b")], EQUAL)) == []


def scorer_of(model, reference=None):
    return Scorer(model, policy_collate(TOKENIZER.pad_token_id, model=model), 512, False, reference)


GAMES = played(
    ("x", ["mine", "yours", "mine too", "never"], 1.0),
    ("x", ["mine", "other", "half", "take it"], 0.0),
    ("x", ["go", "yours", "half", "leave it"], 1.0),
    ("y", ["mine", "yours", "what", "ever"], 0.2),
    ("y", ["half", "other", "well", "no"], 0.7),
)


@pytest.mark.parametrize("method", NAMES)
def test_only_the_speakers_own_tokens_are_trained(method):
    objective = objective_of(settings(method))
    material = objective.material([GAMES], examples_of([GAMES]), 0)
    said = GAMES.turns.groupby(["episode_id", "role"])["text"].agg(list)
    sides = objective.sequences(material.data)
    assert sides
    for example, _ in sides:
        own = set(said[example.episode_id, example.role])
        texts = own_text(example).split("<|im_end|>")[:-1]
        assert texts
        assert {text.strip() for text in texts} <= own


@pytest.mark.parametrize("method", NAMES)
def test_equal_rewards_train_nothing(method, caplog):
    games = [("x", ["mine", str(i), "half", "no"], 0.5) for i in range(3)]
    even = played(*games, ("y", ["mine", "3", "half", "no"], 0.5))
    even = replace(even, rewards=even.rewards.assign(value=0.5))
    objective = objective_of(settings(method))
    with caplog.at_level(logging.WARNING):
        material = objective.material([even], examples_of([even]), 0)
    material = objective.ready(material, scorer_of(tiny_model()))
    assert not material.data or trains_nothing(material.data)
    assert ("finds no pair" in caplog.text) == (method in PAIRED)


def moved_model():
    model = add_lora(tiny_model(), LORA, "policy")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3)
    return model


@pytest.mark.parametrize("cut", [64, 4096])
def test_old_and_reference_are_the_policy_before_and_its_base(cut):
    model = moved_model()
    scorer = replace(scorer_of(model, adapter_off), tokens_per_batch=cut)
    examples = examples_of([GAMES])
    scored = scorer.scored(examples, "old", "reference")
    collate = policy_collate(TOKENIZER.pad_token_id)
    for example, found in zip(examples, scored, strict=True):
        inputs = collate([(example, np.ones(len(example.keys), np.float32))], 1)
        with torch.no_grad():
            now = token_logprobs(selected_logits(model, inputs), inputs)
            base = token_logprobs(adapter_off(model, inputs), inputs)
        own = example.action >= 0
        np.testing.assert_allclose(found.scores["old"][own], now, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.scores["reference"][own], base, rtol=1e-4, atol=1e-4)
        assert not found.scores["old"][~own].any()
    assert np.abs(now.numpy() - base.numpy()).max() > 0.01


def test_a_policy_that_still_is_the_base_is_read_once():
    model = add_lora(tiny_model(), LORA, "policy")
    calls = []
    model.register_forward_hook(lambda *args: calls.append(1))
    (first, *_) = scorer_of(model).scored(examples_of([GAMES])[:1], "old", "reference")
    assert len(calls) == 1
    np.testing.assert_array_equal(first.scores["old"], first.scores["reference"])


def test_the_state_that_is_read_is_the_one_from_which_the_action_begins():
    example = examples_of([GAMES])[0]
    (reading,) = scorer_of(tiny_model()).read([example], hidden=True)
    with torch.no_grad():
        states = (
            tiny_model().model(input_ids=torch.tensor(example.input_ids)[None]).last_hidden_state[0]
        )
    begins = [np.flatnonzero(example.action == place)[0] - 1 for place in range(2)]
    np.testing.assert_allclose(reading.hidden, states[begins].numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", NAMES)
def test_at_the_start_of_an_iteration_nothing_is_clipped_and_everything_moves(method):
    model = moved_model()
    objective = objective_of(settings(method))
    material = objective.material([GAMES], examples_of([GAMES]), 0)
    material = objective.ready(material, scorer_of(model, adapter_off))
    inputs = objective.collate(TOKENIZER.pad_token_id, model)(material.data, 1)
    noted = {}
    logits = selected_logits(model, inputs)
    loss = objective.loss(logits, inputs, lambda name, value: noted.update({name: float(value)}))
    assert torch.isfinite(loss)
    loss.backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    if method in PAIRED:
        assert noted["margin"] != 0.0  # the base model is the reference, and this is not it
    else:
        assert noted["clipped"] == 0.0


@pytest.mark.parametrize("packed", [False, True])
def test_how_pairs_are_cut_changes_no_sum(packed):
    model = tiny_model()
    objective = objective_of(settings("trajectory_dpo"))
    material = objective.material([GAMES], examples_of([GAMES]), 0)
    material = objective.ready(material, scorer_of(model))
    collate = objective.collate(TOKENIZER.pad_token_id, model if packed else None)
    assert isinstance(collate, PairCollate)
    assert collate.packed == packed
    pairs = [pair for pair, _ in material.data]
    assert len(pairs) == 4

    def loss(members):
        inputs = collate(members, len(pairs))
        return objective.loss(selected_logits(model, inputs), inputs, lambda name, value: None)

    together = loss(material.data)
    torch.testing.assert_close(together, torch.tensor(np.log(2.0), dtype=torch.float32))
    cuts = collate.cut(pairs, 1)
    assert sorted(i for group in cuts for i in group) == [0, 1, 2, 3]
    assert max(map(len, cuts)) == 1
    assert len(collate.cut(pairs, 100_000)) == 1
    silent = [(pairs[0].silent(), np.empty(0, np.float32))]
    parts = [loss([material.data[i] for i in group]) for group in cuts]
    torch.testing.assert_close(sum(parts) + loss(silent), together)


def test_what_was_not_sampled_after_its_prompt_is_in_no_pair():
    """Actions without a row in the rewards table (said after a re-ask) train nothing."""
    rewards = GAMES.rewards[GAMES.rewards["position"] != 2]
    pairs, _ = pairs_of("trajectory_dpo", replace(GAMES, rewards=rewards.reset_index(drop=True)))
    assert pairs
    for pair in pairs:
        for side in pair.sides:
            positions = {side.keys[place][2] for place in np.unique(side.action[side.action >= 0])}
            assert 2 not in positions
