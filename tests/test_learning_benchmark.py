"""The benchmark's claim in tokens, and that both of its sides train the same thing."""

import pytest
from benchmarks.training import epoch_cost, made_up_dialogues, one_turn_each
from learning_tiny import save_tiny_base, tiny_tokenizer
from settings import pace

from aria_dvc.chat import Renderer
from aria_dvc.learning.examples import build_examples


def test_sixteen_turns_need_a_quarter_of_the_tokens(tmp_path):
    base = save_tiny_base(tmp_path / "base")
    tokenizer = tiny_tokenizer()
    whole = build_examples(made_up_dialogues(2, 16, 0), Renderer(tokenizer), 1 << 20).items
    single = one_turn_each(whole)
    costs = [
        epoch_cost(base, examples, tokenizer.pad_token_id, pace(tokens_per_batch=8192))
        for examples in (whole, single)
    ]
    assert len(single) == 32
    assert costs[1].tokens >= 4 * costs[0].tokens
    assert costs[0].loss == pytest.approx(costs[1].loss, rel=1e-4)
