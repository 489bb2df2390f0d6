"""The objective: one pass per dialogue equals the textbook's turn by turn."""

import numpy as np
import pytest
import torch
from learning_tiny import LORA, made_up_game, tiny_model, tiny_tokenizer

from aria_dvc.chat import Renderer, view
from aria_dvc.learning.examples import frames_examples
from aria_dvc.learning.objective import (
    adapter_off,
    frozen_copy,
    kl_to,
    policy_collate,
    selected_logits,
    weighted_nll,
)
from aria_dvc.models.lora import add_lora

TOKENIZER = tiny_tokenizer()
RENDERER = Renderer(TOKENIZER)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    examples = frames_examples([made_up_game(episodes=4, turns=5)], RENDERER, 2048).items
    return [(e, rng.normal(size=len(e.keys)).astype(np.float32)) for e in examples]


def loss_of(model, data, count=1):
    inputs = policy_collate(TOKENIZER.pad_token_id)(data, count)
    return weighted_nll(selected_logits(model, inputs), inputs)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def turn_by_turn_loss(model, game, weights):
    """The textbook's sum: one forward pass per action, prompt from the player's renderer."""
    total = torch.zeros(())
    prompts = {(p.episode_id, p.role): p.system_prompt for p in game.episodes.itertuples()}
    for episode_id, rows in game.turns.groupby("episode_id", sort=False):
        lines = list(zip(rows["role"], rows["text"], strict=True))
        for position, (role, text) in enumerate(lines):
            chat = view(lines[:position], role, prompts[episode_id, role])
            prompt = RENDERER.prompt_ids(chat)
            action = [*RENDERER.encode(RENDERER.clean(text)), TOKENIZER.eos_token_id]
            ids = torch.tensor([prompt + action])
            logp = model(input_ids=ids).logits[0].log_softmax(-1)
            steps = torch.arange(len(prompt) - 1, ids.shape[1] - 1)
            total -= (
                weights[game.name, episode_id, position] * logp[steps, torch.tensor(action)].sum()
            )
    return total


def test_one_pass_loss_and_gradient_equal_turn_by_turn():
    game = made_up_game(episodes=3, turns=5)
    rng = np.random.default_rng(0)
    weights = {
        (r.game, r.episode_id, r.position): float(rng.normal()) for r in game.turns.itertuples()
    }
    examples = frames_examples([game], RENDERER, 2048).items
    data = [(e, np.array([weights[key] for key in e.keys], dtype=np.float32)) for e in examples]
    model = tiny_model()
    one_pass = loss_of(model, data)
    textbook = turn_by_turn_loss(model, game, weights)
    torch.testing.assert_close(one_pass, textbook, rtol=1e-4, atol=1e-4)
    mine, theirs = gradients(model, one_pass), gradients(model, textbook)
    for name in theirs:
        error = (mine[name] - theirs[name]).norm() / theirs[name].norm()
        assert error < 1e-4, name


def test_unequal_lengths_in_a_batch_give_the_one_by_one_values(data):
    assert len({len(example) for example, _ in data}) > 1
    model = tiny_model()
    together = loss_of(model, data)
    alone = sum(loss_of(model, [pair]) for pair in data)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)
    mine, theirs = gradients(model, together), gradients(model, alone)
    for name in theirs:
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-3, atol=1e-5)


def test_logits_are_computed_only_where_a_loss_is_taken(data):
    model = tiny_model()
    seen = []
    model.lm_head.register_forward_hook(lambda module, args, out: seen.append(args[0].shape))
    loss_of(model, data)
    trained = sum(int((e.action >= 0).sum()) for e, _ in data)
    assert seen == [(trained, model.config.hidden_size)]


def test_weight_zero_contributes_nothing(data):
    model = tiny_model()
    silent = [(e, np.zeros_like(v)) for e, v in data[:1]]
    torch.testing.assert_close(
        loss_of(model, data + silent), loss_of(model, data), rtol=1e-6, atol=1e-6
    )


def test_kl_is_zero_at_the_base_and_positive_away_from_it(data):
    model = add_lora(tiny_model(), LORA, "policy")
    inputs = policy_collate(TOKENIZER.pad_token_id, keep_zero=True)(data, 1)
    start = kl_to(adapter_off(model, inputs), selected_logits(model, inputs), inputs)
    assert abs(float(start)) < 1e-4
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.5)
    logits = selected_logits(model, inputs)
    away = kl_to(adapter_off(model, inputs), logits, inputs)
    by_torch = torch.nn.functional.kl_div(
        adapter_off(model, inputs).log_softmax(-1),
        logits.log_softmax(-1),
        log_target=True,
        reduction="sum",
    )
    assert float(away) > 0.01
    torch.testing.assert_close(away, by_torch, rtol=1e-4, atol=1e-4)


def test_frozen_copy_follows_the_inputs_to_their_device(monkeypatch):
    monkeypatch.setattr(
        "aria_dvc.learning.objective.selected_logits",
        lambda model, inputs: torch.empty(1, device=next(model.parameters()).device),
    )
    elsewhere = {"input_ids": torch.empty(1, device="meta")}
    assert frozen_copy(tiny_model())(None, elsewhere).device.type == "meta"
