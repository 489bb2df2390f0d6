"""The plan of micro-batches: everything once an epoch, however it is cut."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_tiny import made_up_game, tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.learning.batches import MicroBatches, global_batches, make_plan
from aria_dvc.learning.examples import Example, frames_examples
from aria_dvc.learning.objective import policy_collate
from aria_dvc.learning.packing import cut_padded

sizes = st.lists(st.integers(0, 60), min_size=1, max_size=25)


def paired(lengths):
    return [
        (
            Example(
                "g", str(i), "a", np.zeros(n, np.int64), np.zeros(n, np.int32), (("g", "", i),)
            ),
            np.ones(1, np.float32),
        )
        for i, n in enumerate(lengths)
    ]


@settings(max_examples=60, deadline=None)
@given(sizes, st.integers(1, 8), st.integers(60, 300), st.integers(1, 3), st.integers(0, 3))
def test_every_sequence_once_an_epoch_within_the_token_budget(
    lengths, batch_size, budget, processes, seed
):
    data = paired(lengths)
    batches = global_batches(len(data), batch_size, 2, seed)
    plan = make_plan(data, batches, budget, cut_padded, processes)
    assert len(plan.micro) == plan.steps
    for step, batch in enumerate(batches):
        micro = plan.micro[step]
        assert len(micro) == plan.accumulation * processes
        with_tokens = [i for i in batch if lengths[i]]
        assert sorted(i for group in micro for i in group) == sorted(with_tokens)
        assert all(len(g) * max(lengths[i] for i in g) <= budget for g in micro if g)
        assert plan.step_actions[step] == len(batch)
    half = len(batches) // 2
    for epoch in (batches[:half], batches[half:]):
        assert sorted(np.concatenate(epoch)) == list(range(len(data)))


@given(st.integers(1, 100), st.integers(1, 20), st.floats(0.1, 4))
def test_fractional_epochs_end_within_a_pass(count, batch_size, epochs):
    batches = global_batches(count, batch_size, epochs, 0)
    per_epoch = math.ceil(count / batch_size)
    assert len(batches) == max(1, math.ceil(per_epoch * epochs - 1e-9))
    assert max(len(b) for b in batches) - min(len(b) for b in batches) <= 1


def test_an_empty_micro_batch_has_no_trained_token():
    renderer = Renderer(tiny_tokenizer())
    examples = frames_examples([made_up_game(episodes=1)], renderer, 512).items
    data = [(e, np.ones(len(e.keys), np.float32)) for e in examples]
    plan = make_plan(data, [np.array([0])], 10, cut_padded, processes=3)
    micro = MicroBatches(data, plan, policy_collate(0))
    trained = [len(micro[i]["targets"]) for i in range(len(micro))]
    assert trained[1:] == [0, 0]
    assert trained[0] == int((examples[0].action >= 0).sum())
