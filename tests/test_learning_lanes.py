"""Micro-batches side by side: the same gradients, figures and weights as one after the other."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_tiny import made_up_game, tiny_model, tiny_tokenizer
from settings import pace
from test_learning_batches import paired

from aria_dvc.chat import Renderer
from aria_dvc.learning.batches import WholeSteps, make_plan
from aria_dvc.learning.examples import frames_examples
from aria_dvc.learning.lanes import add_to, computes_alone, gradients_of, side_by_side
from aria_dvc.learning.objective import KlPenalty, adapter_off, policy_collate, selected_logits
from aria_dvc.learning.packing import cut_padded
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.reward_head import action_scores, regression_collate
from aria_dvc.learning.trainer import FitSettings, fit, history, make_deterministic
from aria_dvc.models.hooks import hooked
from aria_dvc.models.lora import add_lora
from aria_dvc.settings.training import Lora

LORA = Lora(rank=4, alpha=8, dropout=0.0, layers=None, target_modules=["q_proj", "v_proj"])


@pytest.fixture(scope="module")
def data():
    examples = frames_examples([made_up_game(episodes=12)], Renderer(tiny_tokenizer()), 512).items
    rng = np.random.default_rng(0)
    return [(e, rng.normal(size=len(e.keys)).astype(np.float32)) for e in examples]


def trained(data, tmp_path, processes, penalty=0.0, dropout=0.0):
    make_deterministic(0)
    model = add_lora(tiny_model(), LORA.model_copy(update={"dropout": dropout}), "policy")
    trainer = fit(
        PolicyTrainer,
        model,
        data,
        [np.arange(len(data)), np.arange(len(data) // 2)],
        policy_collate(0, model=model),
        tmp_path / f"{processes}-{penalty}-{dropout}",
        FitSettings(1e-2, 0, pace(tokens_per_batch=256, precision="float32", processes=processes)),
        penalty=KlPenalty(penalty, adapter_off) if penalty else None,
    )
    return trainer, [p.detach().clone() for p in model.parameters() if p.requires_grad]


def test_a_training_in_lanes_is_that_of_one_after_the_other(data, tmp_path):
    one, weights = trained(data, tmp_path, 1)
    two, others = trained(data, tmp_path, 2)
    assert (one.lanes, two.lanes) == (1, 2)
    assert one.args.gradient_accumulation_steps > 2
    for a, b in zip(weights, others, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    columns = ["step", "loss", "gradient_norm"]
    np.testing.assert_allclose(
        history(one.state)[columns], history(two.state)[columns], rtol=1e-4, atol=1e-6
    )
    # estimated from some tokens of every micro-batch, of which there are not the same
    entropy = [history(run.state)["entropy_per_action"] for run in (one, two)]
    np.testing.assert_allclose(*entropy, rtol=0.05)


def test_lanes_take_the_same_steps_twice_bit_by_bit(data, tmp_path):
    (_, first), (_, again) = (trained(data, tmp_path / name, 3) for name in "ab")
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_what_would_disturb_other_lanes_is_computed_alone(data, tmp_path):
    assert trained(data, tmp_path, 2, penalty=0.1)[0].lanes == 1
    assert trained(data, tmp_path, 2, dropout=0.1)[0].lanes == 1
    assert computes_alone(tiny_model())  # each lane would have a gradient as large as the model
    model = add_lora(tiny_model(), LORA, "policy")
    assert not computes_alone(model)
    model.config.rope_parameters = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    assert computes_alone(model)


def test_hooks_of_one_thread_do_not_see_the_passes_of_another(data):
    model = tiny_model()
    collate = policy_collate(0, model=model)
    batches = [collate([pair], 1) for pair in data]
    alone = [selected_logits(model, inputs) for inputs in batches]
    together = list(side_by_side(lambda inputs: selected_logits(model, inputs), batches, 4))
    assert len({len(logits) for logits in alone}) > 1
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a, b)

    head = torch.nn.Linear(1, 1)
    calls = []
    with hooked(head.register_forward_hook, lambda *given: calls.append(given)):
        other = threading.Thread(target=head, args=(torch.zeros(1),))
        other.start()
        other.join()
        assert not calls
        head(torch.zeros(1))
    head(torch.zeros(1))
    assert len(calls) == 1


def test_scores_of_a_reward_model_are_those_of_their_own_lane(data):
    from transformers import LlamaForSequenceClassification

    config = tiny_model().config
    config.num_labels, config.pad_token_id = 1, 0
    model = LlamaForSequenceClassification(config)
    collate = regression_collate(0, {}, model=model)
    batches = [collate([pair], 1) for pair in data]
    alone = [action_scores(model, inputs) for inputs in batches]
    together = side_by_side(lambda inputs: action_scores(model, inputs), batches, 4)
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_add_up_and_a_shared_one_is_copied():
    a, b, unused = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    for factor in (1.0, 2.0):
        add_to([a, b, unused], gradients_of((factor * (a + b)).sum(), [a, b, unused]))
    assert a.grad.tolist() == b.grad.tolist() == [3.0, 3.0]
    assert unused.grad is None


def test_an_error_in_a_lane_is_the_training_s():
    def fail(batch):
        raise ValueError(batch)

    threads = torch.get_num_threads()
    with pytest.raises(ValueError, match="first"):
        list(side_by_side(fail, ["first", "second", "third"], 2))
    assert torch.get_num_threads() == threads


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=25).filter(any),
    st.integers(60, 300),
    st.integers(2, 4),
    st.integers(1, 4),
)
def test_a_step_s_item_has_every_sequence_once_within_the_budget(lengths, budget, lanes, steps):
    data = paired(lengths)
    batches = np.array_split(np.arange(len(data)), steps)
    plan = make_plan(data, batches, budget, cut_padded, lanes=lanes)
    items = WholeSteps(data, plan, lambda members, count: (members, count))
    assert plan.accumulation == 1
    assert len(items) == steps
    for step, batch in enumerate(batches):
        groups = len(plan.micro[step])
        assert groups < lanes or groups % lanes == 0
        told = items[step]
        assert all(members and count == len(batch) for members, count in told)
        found = [member[0].episode_id for members, _ in told for member in members]
        wanted = [str(i) for i in batch if lengths[i]]
        assert sorted(i for i in found if i in wanted) == sorted(wanted)
        assert all(len(m) * max(len(e) for e, _ in m) <= budget for m, _ in told)
