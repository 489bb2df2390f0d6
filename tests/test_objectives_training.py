"""Every objective on the project's trainer: it improves a bandit, online it starts every iteration
from the policy of the moment, and two processes take the steps of one."""

import os
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import (
    PACE,
    made_up_game,
    online_params,
    policy_params,
    reward_params,
    save_tiny_base,
)
from objective_games import played
from peft import PeftModel
from safetensors.torch import load_file
from settings import pace
from test_learning_bandit import bandit_games, probability_of_optimum
from test_learning_distributed import TESTS, launch

from aria_dvc.files import read_json
from aria_dvc.learning.examples import LogFrames
from aria_dvc.learning.online import train_online
from aria_dvc.learning.policy import train_policy
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.source import ModelSource
from aria_dvc.records.episodes import Episode, Utterance

# A wide clip: one iteration may raise the better word to the double, no further.
WIDE = {"low": 0.8, "high": 1.0}
BANDIT = {
    "ppo": {"credit": "terminal", "clip": WIDE},
    "grpo": {"clip": WIDE},
    "grpo_quarter": {"method": "grpo", "clip": WIDE, "grpo": {"keep": 0.25}, "epochs": 9},
    "gigpo": {"clip": WIDE},
    "igpo": {"clip": WIDE},
    # Imitates winners of both arms, 82 to 18: slow, and not held to a base that knows no word.
    "spag": {"clip": WIDE, "epochs": 18, "spag": {"decay": 0.8, "beta": 0.0, "sft": 0.5}},
    "trajectory_dpo": {"batch_size": 4},
    "step_dpo": {"batch_size": 4},
}


def grouped(log: LogFrames, size: int) -> LogFrames:
    """The same games, so many in a row to a group, and the mean of all as every action's value."""
    ids = log.episodes["episode_id"].drop_duplicates().tolist()
    group = {episode: f"g{number // size}" for number, episode in enumerate(ids)}
    episodes = log.episodes.assign(group_id=log.episodes["episode_id"].map(group))
    rewards = log.rewards.assign(value=log.rewards["return"].mean())
    return replace(log, episodes=episodes, rewards=rewards)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_base(tmp_path_factory.mktemp("base") / "base")


@pytest.mark.parametrize("name", BANDIT)
def test_the_bandit_improves(base, tmp_path, name):
    params = policy_params(
        **{
            "method": name, "lora": None, "learning_rate": 3e-3, "epochs": 3, "batch_size": 15,
            **BANDIT[name],
        }
    )  # fmt: skip
    metrics = train_policy(
        params, pace(tokens_per_batch=4096, checkpoint_every=1000), [grouped(bandit_games(), 10)],
        base, tmp_path / "p", seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    before = probability_of_optimum(load_model(base))
    after = probability_of_optimum(load_model(ModelSource(tmp_path / "p")))
    assert before < 0.7
    assert after > before + 0.15
    assert metrics == read_json(tmp_path / "p" / "metrics.json")
    if name.endswith("dpo"):
        assert metrics["pairs"] > 10
        assert metrics["preferred"] > 0.5
        assert "clip_share" not in metrics
    else:
        assert 0 < metrics["clip_share"] < 1
        assert 0 <= metrics["zero_advantages"] < 1
    history = pd.read_csv(tmp_path / "p" / "history.csv")
    assert {"clipped", "tokens"}.isdisjoint(history)


def test_what_has_nothing_to_learn_stays_the_base_model(base, tmp_path, caplog):
    even = played(*(("x", ["mine", "yours"], 0.5) for _ in range(4)))
    metrics = train_policy(
        policy_params(method="grpo"), PACE, [even], base, tmp_path / "p", seed=0,
        cache=tmp_path / "cache",
    )  # fmt: skip
    assert metrics["steps"] == 0
    assert metrics["zero_advantages"] == 1.0
    assert metrics["groups_without_spread"] == metrics["groups"] == 2
    assert "grpo finds no group of games with different rewards in bargaining" in caplog.text


def test_the_kl_holds_the_policy_back(base, tmp_path):
    games = [grouped(made_up_game(episodes=8), 4)]
    moved = {}
    for kl in (0.0, 5.0):
        params = policy_params(method="grpo", kl=kl, epochs=6, learning_rate=1e-2)
        found = train_policy(
            params, PACE, games, base, tmp_path / str(kl), seed=0, cache=tmp_path / "cache"
        )  # fmt: skip
        moved[kl] = found["kl_per_action"]
        assert ("kl_estimate" in found) == (kl > 0)
    assert moved[5.0] < 0.5 * moved[0.0]


SCRIPT = """
import sys
from pathlib import Path
from test_objectives_training import train_on_groups
from aria_dvc.learning.trainer import world

train_on_groups(Path(sys.argv[1]), sys.argv[2], "two")
(Path(sys.argv[1]) / f"rank{world()[1]}-of-{world()[0]}").touch()
"""


def train_on_groups(folder, method, out):
    credit = "terminal" if method == "ppo" else "aria"
    params = policy_params(method=method, credit=credit, batch_size=8, learning_rate=3e-3)
    games = [grouped(made_up_game(episodes=12, turns=3), 4)]
    train_policy(
        params, pace(tokens_per_batch=500), games, ModelSource(folder / "base"), folder / out,
        seed=0, cache=folder / f"cache-{out}",
    )  # fmt: skip


@pytest.mark.parametrize("method", ["ppo", "trajectory_dpo"])
def test_two_processes_take_the_steps_of_one(tmp_path, method):
    save_tiny_base(tmp_path / "base")
    train_on_groups(tmp_path, method, "one")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{TESTS.parent / 'src'}{os.pathsep}{TESTS}",
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
    }
    command = launch(script, "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
    result = subprocess.run(
        [*command, str(tmp_path), method],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    assert (tmp_path / "rank1-of-2").exists()
    one, two = (pd.read_csv(tmp_path / run / "history.csv") for run in ("one", "two"))
    assert list(one) == list(two)
    np.testing.assert_allclose(one["loss"], two["loss"], rtol=1e-3, atol=1e-5)
    weights = [load_file(tmp_path / r / "adapter_model.safetensors") for r in ("one", "two")]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-4)


class Rollouts:
    """Groups of four games of one word, worth 1 if it is long; it may be killed."""

    def __init__(self, base, dies_at=None):
        self.base = base
        self.dies_at = dies_at

    def __call__(self, policy, iteration, seed):
        if iteration == self.dies_at:
            raise KeyboardInterrupt
        model = PeftModel.from_pretrained(load_model(self.base), str(policy)).eval()
        tokenizer = load_tokenizer(self.base)
        torch.manual_seed(seed)
        prompt = torch.tensor([tokenizer.encode("say")] * 8)
        said = model.generate(input_ids=prompt, do_sample=True, max_new_tokens=6)
        texts = [tokenizer.decode(row[prompt.shape[1] :].tolist()) for row in said]
        order = sorted(texts, key=len)
        return [
            Episode(
                episode_id=str(i),
                game="bargaining",
                utterances=[Utterance("alice", text), Utterance("bob", "ok")],
                rewards={"alice": order.index(text) / 8, "bob": 0.5},
                info={"group_id": f"g{i // 4}"},
            )
            for i, text in enumerate(texts)
        ]


def aggregate(turns, credit):
    tables = {}
    for game, rows in turns.items():
        table = rows.loc[rows["is_action"], ["episode_id", "position", "role", "turn", "reward"]]
        tables[game] = table.assign(value=0.5, cell_size=1, **{"return": table["reward"]})
    return tables


def online(base, folder, method, cache, dies_at=None):
    credit = "terminal" if method == "ppo" else "aria"
    params = policy_params(method=method, credit=credit, clip={"low": 0.01, "high": 0.01})
    settings = online_params(iterations=3, games=8, repeats=4, updates=2, learning_rate=5e-3)
    if not (folder / "policy").exists():
        games = [grouped(made_up_game(episodes=8), 4)]
        train_policy(params, PACE, games, base, folder / "policy", seed=0, cache=folder / "c")
    return train_online(
        params, settings, reward_params(), PACE, base, folder / "policy", folder / "rm",
        folder / f"out-{cache}", rollout=Rollouts(base, dies_at), aggregate=aggregate, seed=0,
        cache=folder / cache,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["ppo", "grpo", "trajectory_dpo"])
def test_online_every_iteration_starts_from_its_own_policy_and_survives_a_kill(
    base, tmp_path, method
):
    metrics = online(base, tmp_path, method, "a")
    assert metrics["iterations"] == 3
    assert metrics["updates"] == 6
    with pytest.raises(KeyboardInterrupt):
        online(base, tmp_path, method, "b", dies_at=2)
    online(base, tmp_path, method, "b")
    whole, resumed = (
        load_file(tmp_path / f"out-{name}" / "adapter_model.safetensors") for name in "ab"
    )
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=1e-5, atol=1e-6)
    course = pd.read_csv(tmp_path / "out-a" / "online.csv")
    if method == "trajectory_dpo":
        assert (course["pairs"] > 0).all()
    else:  # of two steps the first is at ratio 1; a stale start would clip there too
        assert (course["clip_share"] <= 0.5).all()
        assert course["clip_share"].max() > 0
