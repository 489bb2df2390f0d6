"""The benchmark of credits against the truth: its gradients, and its tables in small."""

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks import truth
from learning_tiny import LORA, made_up_game, save_tiny_base

from aria_dvc.chat import Renderer
from aria_dvc.learning.examples import frames_examples, with_values
from aria_dvc.learning.objective import policy_collate, selected_logits, weighted_nll
from aria_dvc.models.loading import load_tokenizer
from aria_dvc.params import load_params


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The folder of a random model; texts are embedded at random, and the cache is empty."""
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path / "cache"))

    def embedded(texts, *given):
        distinct, at = np.unique(texts, return_inverse=True)
        return np.random.default_rng(0).normal(size=(len(distinct), 8)).astype(np.float32)[at]

    monkeypatch.setattr(truth, "embed_texts", embedded)
    return save_tiny_base(tmp_path / "base")


def float32_params():
    params = load_params(truth.PARAMS)
    changed = {
        "pace": params.pace.model_copy(update={"precision": "float32"}),
        "policy": params.policy.model_copy(update={"lora": LORA}),
    }
    return params.model_copy(update=changed)


def test_products_are_those_of_the_gradient_that_training_takes(tiny):
    params, frames = float32_params(), made_up_game()
    rows = frames.rewards.itertuples()
    keys = [(frames.name, row.episode_id, row.position) for row in rows][::2]
    products = truth.gradient_products(str(tiny), frames, keys, params)
    credit = np.random.default_rng(1).normal(size=len(keys))

    policy, weights = truth.fresh_policy(str(tiny), params)
    tokenizer = load_tokenizer(tiny)
    examples = frames_examples([frames], Renderer(tokenizer), 512).items
    given = dict(zip(keys, credit.tolist(), strict=True))
    batch = policy_collate(tokenizer.pad_token_id)(with_values(examples, given), 1)
    parts = torch.autograd.grad(weighted_nll(selected_logits(policy, batch), batch), weights)
    length = sum(float((part**2).sum()) for part in parts)
    assert length > 0
    assert credit @ products @ credit == pytest.approx(length, rel=1e-4)


def test_returns_less_the_true_value_are_advantages_and_luck():
    rng, n = np.random.default_rng(3), 20_000
    value, advantage, luck = rng.normal(0.0, [[2.0], [0.5], [1.0]], (3, n))
    q = value + advantage + rng.normal(0.0, 0.6, (2, n))  # measured by halves
    v = value + rng.normal(0.0, 0.4, (2, n))
    first, second = q - v
    measured = {"advantage": (first + second) / 2, "first": first, "second": second}
    bob = rng.random(n) < 0.5
    turns = pd.DataFrame(
        {"role": np.where(bob, "bob", "alice"), "v": v.mean(axis=0), "se_v": 0.4 / np.sqrt(2)}
    ).assign(**measured)
    returns = value + advantage + luck + 10.0 * bob
    found = truth.Measured("bargaining", turns, {truth.PLAIN: returns}, None)
    share = truth.best_of_returns(found, np.ones(n, bool))
    assert share == pytest.approx(0.5 / np.sqrt(0.5**2 + 1.0**2), abs=0.02)


def test_the_measured_advantage_itself_points_as_far_as_noise_allows():
    """Halves on either side of it, beside a credit that is the same for all."""
    advantage, half = np.array([1.0, -1.0, 2.0, 0.5]), np.array([0.5, 0.5, 0.0, -0.5])
    weight = np.column_stack([np.ones(4), advantage])
    sample = {"advantage": advantage, "first": advantage + half, "second": advantage - half}
    found = truth.directions({**sample, "weight": weight, "at": np.arange(4)}, 0, np.eye(4))
    reachable, plain = np.sqrt((6.25 - 0.75) / 6.25), 2.5 / np.sqrt(6.25 * 4)
    assert found["cosine"] == pytest.approx([plain, 1])
    assert found["reachable"] == pytest.approx(reachable)
    assert found["cosine_share"] == pytest.approx([plain / reachable, 1 / reachable])
    assert found["cosine_over_plain"] == pytest.approx([0, 1 - plain])
    assert found["cosine_times"] == pytest.approx([1, 1 / plain])


ADVERSARIAL = ["bargaining, alice", "bargaining, bob", "bargaining, all"]
GUESSING = ["twenty_questions, agent"]


@pytest.mark.parametrize(
    ("game", "tables", "further"),
    [
        ("bargaining", ADVERSARIAL, ("gigpo", "value")),
        pytest.param("twenty_questions", GUESSING, ("belief", "value"), marks=pytest.mark.slow),
    ],
)
def test_quick_prints_a_table_a_role(tiny, tmp_path, capsys, monkeypatch, game, tables, further):
    """With those credits alone that are fitted at once."""
    monkeypatch.setattr(truth, "method_names", lambda: ["constant", "aria", "gigpo", "belief"])
    out = tmp_path / "table.md"
    truth.main(["--quick", "--model", str(tiny), "--games", game, "--out", str(out)])
    text = out.read_text("utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    assert [line.split(":")[0] for line in text.splitlines() if " turns, " in line] == tables
    credits = [tuple(line[2:].split(" | ")[0].split(", ")) for line in text.splitlines()]
    for credit in (("aria", "group"), ("discounted", "return"), further):
        assert credits.count(credit) == len(tables)
    assert text.count("Targets, ") == 1
