"""A two-turn bandit with a known optimum, in dialogue form.

The agent says x or y twice; the first word decides the odds of winning (0.9 against 0.2), the
second means nothing. Games are sampled uniformly; rewards are 0 or 1.
"""

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import policy_params, save_tiny_base, tiny_tokenizer
from settings import pace

from aria_dvc.chat import Renderer, view
from aria_dvc.learning.advantages import advantages
from aria_dvc.learning.examples import LogFrames, frames_examples
from aria_dvc.learning.gradients import gradient_variances
from aria_dvc.learning.objective import policy_collate
from aria_dvc.learning.policy import train_policy
from aria_dvc.models.loading import load_model
from aria_dvc.models.source import ModelSource

WORDS = ("x", "y")
ODDS = {"x": 0.9, "y": 0.2}
EPISODES = 150
TOKENIZER = tiny_tokenizer()
RENDERER = Renderer(TOKENIZER)


def bandit_games(seed: int = 0) -> LogFrames:
    """Every action's credit averaged over its cell (the words so far), as the paper does."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(EPISODES):
        first, second = rng.choice(WORDS, 2)
        won = float(rng.random() < ODDS[first])
        said = [("oracle", "go"), ("agent", first), ("oracle", "on"), ("agent", second)]
        for position, (role, text) in enumerate(said):
            acts = role == "agent"
            rows.append(
                ("bandit", str(episode), position, role, acts, position // 2 + 1, 2, text,
                 won if acts else np.nan, first + second[: position // 2])
            )  # fmt: skip
    columns = [
        "game", "episode_id", "position", "role", "is_action", "turn", "turns", "text", "reward",
        "cell",
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    rewards = table[table["is_action"]].rename(columns={"reward": "return"})
    rewards["cell_size"] = rewards.groupby(["turn", "cell"])["cell"].transform("count")
    rewards["reward"] = rewards.groupby(["turn", "cell"])["return"].transform("mean")
    ids = table["episode_id"].unique()
    episodes = pd.DataFrame({"episode_id": ids, "role": "agent", "system_prompt": "", "info": "{}"})
    columns = ["episode_id", "position", "role", "turn", "cell", "cell_size", "return", "reward"]
    return LogFrames(
        "bandit", table.drop(columns="cell"), episodes, rewards[columns].reset_index(drop=True)
    )


def probability_of_optimum(model) -> float:
    """P(x) against P(y) for the first word."""
    prompt = RENDERER.prompt_ids(view([("oracle", "go")], "agent", ""))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1]
    pair = logits[[RENDERER.encode(word)[0] for word in WORDS]].softmax(-1)
    return float(pair[0])


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("base") / "base")


@pytest.mark.parametrize("credit", ["terminal", "aria"])
def test_training_approaches_the_optimum(base, tmp_path, credit):
    assert 0.3 < probability_of_optimum(load_model(base)) < 0.7
    params = policy_params(
        credit=credit, advantage="centred", lora=None, learning_rate=3e-3, epochs=3,
        batch_size=15,
    )  # fmt: skip
    train_policy(
        params, pace(tokens_per_batch=4096, checkpoint_every=1000), [bandit_games()], base,
        tmp_path / "p", seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    assert probability_of_optimum(load_model(ModelSource(tmp_path / "p"))) > 0.9


def test_aggregation_lowers_the_gradient_variance(base):
    game = bandit_games()
    credits = tuple(advantages(game, credit, "centred") for credit in ("aria", "terminal"))
    aggregated, terminal = gradient_variances(
        load_model(base), frames_examples([game], RENDERER, 512).items, credits,
        policy_collate(TOKENIZER.pad_token_id, keep_zero=True),
        batches=64, seed=0, bfloat16=False,
    )  # fmt: skip
    assert 0.05 < aggregated / terminal < 0.8
