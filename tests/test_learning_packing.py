"""A prefix tree computes what padded rows compute, each shared token once."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_tiny import LORA, made_up_game, tiny_model, tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.learning.examples import Example, SampledAt, frames_examples
from aria_dvc.learning.objective import PolicyCollate, policy_collate, selected_logits, weighted_nll
from aria_dvc.learning.packing import cut_trees, padded_rows, prefix_tree
from aria_dvc.learning.reward_head import RegressionCollate, action_scores
from aria_dvc.learning.tree_attention import TreeReads, tree_attention, use_tree_attention
from aria_dvc.models.lora import add_lora

# Few letters, so that beginnings are shared and some sequences are another's whole beginning.
texts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=8)


def example(ids):
    ids = np.array(ids, dtype=np.int64)
    return Example("g", str(len(ids)), "a", ids, np.zeros(len(ids), np.int32), (("g", "", 0),))


def reads(layout):
    """Which tokens each token reads."""
    total = layout.inputs["input_ids"].numel()
    if "tree_back" not in layout.inputs:  # one path
        return {place: list(range(place + 1)) for place in range(total)}
    tree = TreeReads(**{n: layout.inputs[f"tree_{n}"] for n in TreeReads._fields})
    found = {}
    for place, spot in enumerate(tree.back.tolist()):
        chunk, number = divmod(spot, tree.queries.shape[1])
        assert tree.queries[chunk, number] == place
        found[place] = tree.keys[chunk][tree.sees[chunk, number]].tolist()
    return found


@settings(max_examples=100, deadline=None)
@given(texts)
def test_every_token_sees_its_own_beginning_and_nothing_else(sequences):
    layout = prefix_tree([example(ids) for ids in sequences])
    ids, depth = (layout.inputs[name][0].numpy() for name in ("input_ids", "position_ids"))
    beginnings = {tuple(ids[:end]) for ids in sequences for end in range(1, len(ids) + 1)}
    assert len(ids) == len(beginnings)
    read = reads(layout)
    for sequence, places in zip(sequences, layout.places, strict=True):
        assert ids[places].tolist() == sequence
        assert depth[places].tolist() == list(range(len(sequence)))
        assert all(first < second for first, second in pairwise(places))
        for index, place in enumerate(places):
            assert read[place] == places[: index + 1].tolist()


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(4, 30))
def test_trees_are_cut_to_the_budget(sequences, budget):
    members = [example(ids) for ids in sequences]
    groups = cut_trees(members, budget)
    assert sorted(place for group in groups for place in group) == list(range(len(members)))
    for group in groups:
        size = prefix_tree([members[i] for i in group]).inputs["input_ids"].numel()
        assert size <= budget or len(group) == 1


@pytest.fixture(scope="module")
def data():
    """Games with one prompt a role; some are sampled in another way, one is there twice."""
    examples = frames_examples(
        [made_up_game(episodes=5, turns=4)], Renderer(tiny_tokenizer()), 2048
    ).items
    examples += [replace(examples[0], sampled=SampledAt(0.7, 0.9)), examples[1]]
    rng = np.random.default_rng(0)
    return [(e, rng.normal(size=len(e.keys)).astype(np.float32)) for e in examples]


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("lora", [False, True])
def test_loss_and_gradients_equal_those_of_padded_rows(data, lora):
    model = tiny_model()
    if lora:
        model = add_lora(model, LORA, "policy")
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.1)
    found = []
    assert use_tree_attention(model)
    for packed in (False, True):
        inputs = PolicyCollate(0, packed)(data, 7)
        loss = weighted_nll(selected_logits(model, inputs), inputs)
        found.append((inputs, loss.detach(), gradients(model, loss)))
    (rows, padded, of_rows), (tree, packed, of_tree) = found
    assert tree["input_ids"].numel() < 0.8 * rows["attention_mask"].sum()
    assert len(tree["rows"]) < len(tree["targets"]) == len(rows["targets"])
    torch.testing.assert_close(packed, padded, rtol=1e-5, atol=1e-5)
    for name, gradient in of_rows.items():
        torch.testing.assert_close(of_tree[name], gradient, rtol=1e-4, atol=1e-5)


def test_scores_equal_those_of_padded_rows(data):
    from transformers import LlamaForSequenceClassification

    torch.manual_seed(0)
    config = tiny_model().config
    config.num_labels, config.pad_token_id = 1, 0
    model = LlamaForSequenceClassification(config)
    assert use_tree_attention(model)
    padded, packed = (
        action_scores(model, RegressionCollate(0, packed)(data, 1)) for packed in (False, True)
    )
    assert len(padded) == sum(len(e.keys) for e, _ in data)
    torch.testing.assert_close(packed, padded, rtol=1e-5, atol=1e-5)


def test_only_attention_that_can_be_masked_gets_trees():
    model = tiny_model()
    assert use_tree_attention(model)
    assert use_tree_attention(add_lora(tiny_model(), LORA, "policy"))
    assert policy_collate(0, model=model).packed
    assert not policy_collate(0).packed
    model.config._attn_implementation = "flash_attention_2"
    assert not policy_collate(0, model=model).packed
    windowed = tiny_model()
    windowed.config.layer_types = ["full_attention", "sliding_attention"]
    assert not use_tree_attention(windowed)


def test_both_kernels_attend_alike(data):
    """That of the CPU and that of other devices."""
    layout = prefix_tree([example for example, _ in data]).inputs
    tree = TreeReads(**{n: layout[f"tree_{n}"] for n in TreeReads._fields})
    total = len(tree.back)
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, heads, total, 8) for heads in (4, 2, 2))
    plain, _ = tree_attention(None, query, key, value, None, tree=tree)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aria_dvc.learning.tree_attention._plain_on", ())
        kernel, _ = tree_attention(None, query, key, value, None, tree=tree)
    torch.testing.assert_close(kernel, plain)


def test_a_model_with_tree_attention_attends_to_rows_as_before(data):
    inputs = PolicyCollate(0)(data, 1)
    model = tiny_model()
    before = selected_logits(model, inputs)
    assert use_tree_attention(model)
    torch.testing.assert_close(selected_logits(model, inputs), before)


def test_a_lone_sequence_needs_no_mask(data):
    (example, _) = data[0]
    tree, rows = prefix_tree([example]).inputs, padded_rows([example], 0).inputs
    for name, tensor in rows.items():
        assert torch.equal(tree[name], tensor), name
