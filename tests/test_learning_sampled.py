"""Training scores the distribution that the actions were drawn from."""

from dataclasses import replace

import numpy as np
import orjson
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from learning_tiny import made_up_game, tiny_model, tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.learning.examples import SampledAt, frames_examples, sampling_of, with_values
from aria_dvc.learning.objective import (
    policy_collate,
    selected_logits,
    token_logprobs,
    weighted_nll,
)
from aria_dvc.models.nucleus import nuclei
from aria_dvc.players.sampling import choose

RENDERER = Renderer(tiny_tokenizer())
VOCABULARY = 3000  # more than are sorted at first


def made_up_logits(rows, spread, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(rows, VOCABULARY, generator=generator)


def tokens(targets, temperature, top_p):
    """One trained token per row of logits."""
    count = len(targets)
    return {
        "at": torch.arange(count),
        "targets": torch.as_tensor(targets),
        "temperature": torch.full((count,), temperature),
        "top_p": torch.full((count,), top_p),
    }


def nucleus_of(row, temperature, top_p):
    """The tokens of the nucleus of one row (1, vocabulary)."""
    (found,) = nuclei(row, torch.tensor([temperature]), torch.tensor([top_p]))
    return found.tokens[found.kept]


def slow_logprob(logits, target, temperature, top_p):
    """By the definition: sort everything, cut, keep the target, renormalise."""
    p = (logits.double() / temperature).softmax(-1)
    order = p.argsort(descending=True)
    size = int((p[order].cumsum(0) < top_p).sum()) + 1 if top_p < 1 else len(p)
    kept = set(order[:size].tolist()) | {int(target)}
    return float((p[target] / p[sorted(kept)].sum()).log())


@pytest.mark.parametrize("spread", [0.5, 2.0, 6.0])
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 0.95), (0.7, 0.95), (0.5, 1.0), (2, 0.3)])
def test_log_probabilities_are_those_of_the_definition(spread, temperature, top_p):
    logits = made_up_logits(6, spread)
    targets = [int(row.argsort(descending=True)[place]) for row, place in zip(
        logits, [0, 1, 5, 50, 500, VOCABULARY - 1], strict=True
    )]  # fmt: skip
    found = token_logprobs(logits, tokens(targets, float(temperature), top_p))
    slow = [
        slow_logprob(row, target, temperature, top_p)
        for row, target in zip(logits, targets, strict=True)
    ]
    np.testing.assert_allclose(found, slow, rtol=1e-4, atol=1e-4)


def test_rows_that_are_cut_and_rows_that_are_not_go_together():
    logits, top_p = made_up_logits(6, 2.0), torch.tensor([1.0, 0.95, 1.0, 0.3, 1.0, 0.9])
    inputs = {**tokens(range(6), 0.7, 1.0), "top_p": top_p}
    slow = [slow_logprob(row, at, 0.7, float(top_p[at])) for at, row in enumerate(logits)]
    np.testing.assert_allclose(token_logprobs(logits, inputs), slow, rtol=1e-4, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 1.0, exclude_max=True), st.floats(0.3, 8.0), st.integers(0, 5))
@example(0.99999, 2.5, 2)
def test_the_sampler_draws_from_the_nucleus_that_training_scores(top_p, spread, seed):
    row = made_up_logits(1, spread, seed)
    uniform = [i / 50 for i in range(50)] + [1 - 1e-7]
    count = len(uniform)
    drawn = choose(row.expand(count, -1), [1.0] * count, [top_p] * count, uniform)
    nucleus = nucleus_of(row, 1.0, top_p)
    assert set(drawn.tolist()) <= set(nucleus.tolist())
    probability = row.softmax(-1)[0, nucleus]
    assert probability.sum() >= top_p - 1e-4
    assert len(nucleus) == 1 or probability.sum() - probability.min() < top_p + 1e-4


def test_the_score_of_a_drawn_token_is_zero_on_average():
    """Sum over tokens of pi grad log pi = 0: what REINFORCE needs of the distribution."""
    logits = made_up_logits(1, 2.0).requires_grad_()
    kept = nucleus_of(logits.detach(), 0.7, 0.95)
    inputs = {**tokens(kept, 0.7, 0.95), "at": torch.zeros_like(kept)}
    inputs |= {name: inputs[name][:1] for name in ("temperature", "top_p")}
    logp = token_logprobs(logits, inputs)
    assert float(logp.exp().sum()) == pytest.approx(1, abs=1e-5)
    (logp.detach().exp() * logp).sum().backward()
    assert float(logits.grad.abs().max()) < 1e-6


def with_sampling(game, recorded):
    info = orjson.dumps({"sampling": recorded}).decode()
    return replace(game, episodes=game.episodes.assign(info=info))


def test_settings_come_from_the_record_by_role():
    game = with_sampling(made_up_game(), {"alice": {"temperature": 0.7, "top_p": 0.95}})
    examples = frames_examples([game], RENDERER, 512).items
    assert {e.sampled for e in examples if e.role == "alice"} == {SampledAt(0.7, 0.95)}
    assert {e.sampled for e in examples if e.role == "bob"} == {SampledAt()}
    kept = with_values(examples, {key: 1.0 for e in examples for key in e.keys})
    assert {e.sampled for e, _ in kept if e.role == "alice"} == {SampledAt(0.7, 0.95)}


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        "greedy",
        {"alice": {"temperature": 0, "top_p": 1}},
        {"alice": {"temperature": "hot"}},
        {"alice": {"top_p": 1.5}},
        {"alice": 3},
    ],
)
def test_greedy_and_foreign_records_are_scored_plainly(recorded):
    assert sampling_of({"sampling": recorded}) == {}


def test_a_record_may_give_one_setting():
    assert sampling_of({"sampling": {"a": {"temperature": 0.5}}}) == {"a": SampledAt(0.5, 1.0)}
    assert sampling_of({}) == {}


def test_plain_sampling_costs_no_tensor_and_settings_reach_the_loss():
    game = made_up_game(episodes=4)
    model, collate = tiny_model(), policy_collate(0)
    losses = []
    for recorded in ({}, {r: {"temperature": 0.5, "top_p": 0.8} for r in ("alice", "bob")}):
        examples = frames_examples([with_sampling(game, recorded)], RENDERER, 512).items
        inputs = collate([(e, np.ones(len(e.keys), np.float32)) for e in examples], 1)
        assert ("top_p" in inputs) == bool(recorded)
        logits = selected_logits(model, inputs).detach()
        losses.append(float(weighted_nll(logits, inputs)))
        slow = [
            slow_logprob(logits[at], target, 0.5 if recorded else 1, 0.8 if recorded else 1)
            for at, target in zip(inputs["at"], inputs["targets"], strict=True)
        ]
        assert losses[-1] == pytest.approx(-sum(slow), rel=1e-4)
    assert losses[0] != losses[1]
