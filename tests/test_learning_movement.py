"""How far a training moved the policy is measured exactly."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import (
    LORA,
    PACE,
    made_up_game,
    policy_params,
    save_tiny_base,
    tiny_model,
    tiny_tokenizer,
)

from aria_dvc.chat import Renderer
from aria_dvc.learning.examples import frames_examples, with_values
from aria_dvc.learning.movement import kl_moved
from aria_dvc.learning.objective import (
    adapter_off,
    entropy_of,
    frozen_copy,
    policy_collate,
    selected_logits,
)
from aria_dvc.learning.policy import train_policy
from aria_dvc.models.lora import add_lora

TOKENIZER = tiny_tokenizer()


@pytest.fixture(scope="module")
def data():
    examples = frames_examples([made_up_game(episodes=6)], Renderer(TOKENIZER), 2048).items
    return with_values(examples, {key: 1.0 for e in examples for key in e.keys})


def by_hand(model, reference, data):
    """(KL, entropy) per action: every token of every dialogue on its own, in double precision."""
    moved = entropy = actions = 0.0
    for example, _ in data:
        ids = torch.tensor(example.input_ids)[None]
        with torch.no_grad():
            p, q = (m(input_ids=ids).logits[0].double().log_softmax(-1) for m in (model, reference))
        places = np.flatnonzero(example.action >= 0) - 1
        moved += float((p[places].exp() * (p[places] - q[places])).sum())
        entropy -= float((p[places].exp() * p[places]).sum())
        actions += len(example.keys)
    return moved / actions, entropy / actions


@pytest.mark.parametrize("budget", [100, 1 << 20])
def test_kl_and_entropy_are_those_of_every_token(data, budget):
    model = add_lora(tiny_model(), LORA, "policy")
    collate = policy_collate(0, model=model)
    more = {"tokens_per_batch": budget, "bfloat16": False}
    assert kl_moved(model, data, collate, adapter_off, **more)["kl_per_action"] == 0.0
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.train()
    found = kl_moved(model, data, collate, adapter_off, **more)
    assert model.training
    assert found == pytest.approx(
        kl_moved(model, data, collate, frozen_copy(tiny_model()), **more), rel=1e-5
    )
    model.eval()
    kl, entropy = by_hand(model, tiny_model(), data)
    assert found["kl_per_action"] == pytest.approx(kl, rel=1e-4)
    assert found["entropy_per_action"] == pytest.approx(entropy, rel=1e-4)
    tree = policy_collate(0, model=model)(data, 1)
    logits = selected_logits(model, tree).detach()
    assert entropy_of(logits, tree, 10) == pytest.approx(float(entropy_of(logits, tree)), rel=0.2)
    assert "kl_per_action" not in kl_moved(model, data, collate, None, **more)


def test_actions_of_value_zero_are_looked_at_and_those_without_one_are_not(data):
    model = add_lora(tiny_model(), LORA, "policy")
    collate, more = policy_collate(0), {"tokens_per_batch": 4096, "bfloat16": False}
    whole = kl_moved(model, data, collate, None, **more)
    zero = [(example, np.zeros_like(values)) for example, values in data]
    assert kl_moved(model, zero, collate, None, **more) == pytest.approx(whole)
    none = [(example, np.full_like(values, np.nan)) for example, values in data]
    assert kl_moved(model, none, collate, None, **more) == {}


def test_more_sequences_than_wanted_are_drawn_by_seed(data):
    model = add_lora(tiny_model(), LORA, "policy")
    more = {"tokens_per_batch": 4096, "bfloat16": False, "sequences": 3}
    first, again, other = (
        kl_moved(model, data, policy_collate(0), None, seed=seed, **more) for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize("trained", [1, 2, 8])
def test_the_entropy_of_a_step_is_of_the_actions_that_have_tokens(tmp_path, trained):
    base, game = save_tiny_base(tmp_path / "base"), made_up_game(episodes=8)
    some = game.rewards.assign(reward=(np.arange(len(game.rewards)) < trained) * 1.0)
    params = policy_params(batch_size=16, epochs=1)
    frames = [replace(game, rewards=some)]
    train_policy(params, PACE, frames, base, tmp_path / "p", seed=0, cache=tmp_path / "cache")
    entropy = pd.read_csv(tmp_path / "p" / "history.csv")["entropy_per_action"]
    known = {("bargaining", r.episode_id, r.position): 1.0 for r in some[:trained].itertuples()}
    pairs = with_values(frames_examples(frames, Renderer(TOKENIZER), 512).items, known)
    own = [(only_known(example, values), values) for example, values in pairs]
    expected = by_hand(tiny_model(), tiny_model(), own)[1] * sum(len(e.keys) for e, _ in own)
    assert entropy[0] == pytest.approx(expected / trained, rel=0.1)


def only_known(example, values):
    """The example without the action tokens of actions that have no value."""
    known = (example.action >= 0) & np.isfinite(values[example.action])
    return replace(example, action=np.where(known, example.action, -1))


@pytest.mark.parametrize("lora", [LORA, None])
def test_every_training_tells_how_far_it_went(tmp_path, lora):
    base, game = save_tiny_base(tmp_path / "base"), made_up_game(episodes=8)
    some = game.rewards.assign(reward=(np.arange(len(game.rewards)) % 4 > 0) * 1.0)
    metrics = train_policy(
        policy_params(lora=lora, learning_rate=1e-2), PACE, [replace(game, rewards=some)], base,
        tmp_path / "p", seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    assert metrics["kl_per_action"] > 0.01
    assert metrics["entropy_per_action"] > 1
    assert metrics["zero_advantages"] == pytest.approx((some["reward"] == 0).mean())
    history = pd.read_csv(tmp_path / "p" / "history.csv")
    assert list(history) == ["step", "loss", "gradient_norm", "entropy_per_action"]
    assert metrics["gradient_norm"] == pytest.approx(history["gradient_norm"].mean())
    assert history.notna().all().all()
