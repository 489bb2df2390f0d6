"""The benchmark of training: its ways train the same, on ever fewer tokens."""

import pytest
from benchmarks.training import WAYS, games, measure
from learning_tiny import save_tiny_base
from settings import pace

from aria_dvc.models.source import ModelSource


def test_all_ways_take_the_same_loss_and_a_prefix_tree_fewest_tokens(tmp_path):
    base = ModelSource(str(save_tiny_base(tmp_path / "base")))
    found = games(["bargaining"], 6, seed=0, repeats=3)
    report = measure(
        base, found, pace(tokens_per_batch=8192, precision="float32", processes=2), 1, list(WAYS)
    )
    turn, padded, packed, lanes = (report[n] for n in ("turn", "padded", "packed", "lanes"))
    assert turn["sequences"] > padded["sequences"] == packed["sequences"]
    assert turn["computed_tokens"] > padded["computed_tokens"] > 1.5 * packed["computed_tokens"]
    assert turn["loss"] == pytest.approx(packed["loss"], rel=1e-4)
    assert padded["loss"] == pytest.approx(packed["loss"], rel=1e-4)
    assert lanes["loss"] == pytest.approx(packed["loss"], rel=1e-4)
    assert report["packed beside padded"]["times_fewer_tokens"] > 1.5
