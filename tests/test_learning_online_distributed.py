"""Online training on two processes: the first plays, both train, and the result is that of one."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import torch
from learning_tiny import (
    made_up_game,
    online_params,
    policy_params,
    reward_params,
    save_tiny_base,
)
from safetensors.torch import load_file
from settings import pace
from test_learning_distributed import TESTS, launch
from test_learning_online import Rollouts, aggregate

from aria_dvc.learning import fresh_credit
from aria_dvc.learning.online import train_online
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.learning.trackers import Tracking
from aria_dvc.learning.trainer import world
from aria_dvc.models.source import ModelSource

CREDITS = ("games", "reward_model")
POLICY = policy_params(epochs=1)
PACE = pace(tokens_per_batch=500)
SCRIPT = """
import sys
from pathlib import Path
from test_learning_online_distributed import go_online
go_online(Path(sys.argv[1]), "two")
"""


def go_online(folder, name):
    """Two iterations with each credit; a file tells which process played how often."""
    fresh_credit.refusal = lambda metrics: None
    base = ModelSource(folder / "base")
    for credit in CREDITS:
        rollouts = Rollouts(base)
        settings = online_params(iterations=2, games=6, credit=credit, learning_rate=3e-3)
        train_online(
            POLICY, settings, reward_params(epochs=1), PACE, base, folder / "policy",
            folder / "rm", folder / f"{name}-{credit}", rollout=rollouts, aggregate=aggregate,
            seed=0, cache=folder / f"cache-{name}",
            tracking=Tracking(["dvclive"], credit, folder / f"told-{name}"),
        )  # fmt: skip
        processes, rank = world()
        (folder / f"{name}-{credit}-{rank}-of-{processes}").write_text(str(len(rollouts.versions)))


def test_two_processes_train_online_as_one(tmp_path, monkeypatch):
    monkeypatch.setattr(fresh_credit, "refusal", fresh_credit.refusal)  # put back at the end
    base, games = save_tiny_base(tmp_path / "base"), [made_up_game(episodes=8)]
    cached = {"seed": 0, "cache": tmp_path / "cache"}
    train_policy(POLICY, PACE, games, base, tmp_path / "policy", **cached)
    train_reward_model(reward_params(), PACE, games, base, tmp_path / "rm", **cached)
    go_online(tmp_path, "one")
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
        [*command, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    for credit in CREDITS:
        played = [(tmp_path / f"two-{credit}-{rank}-of-2").read_text() for rank in range(2)]
        assert played == ["2", "0"]
        one, two = (pd.read_csv(tmp_path / f"{n}-{credit}" / "online.csv") for n in ("one", "two"))
        for column in ("iteration", "games", "role", "episodes", "win_rate", "credit"):
            assert one[column].tolist() == two[column].tolist()
        assert set(one["credit"]) == {credit}
        for column in (
            "mean_reward",
            "loss",
            "gradient_norm",
            "kl_per_action",
            "entropy_per_action",
        ):
            np.testing.assert_allclose(one[column], two[column], rtol=1e-3, atol=1e-6)
        weights = [
            load_file(tmp_path / f"{n}-{credit}" / "adapter_model.safetensors")
            for n in ("one", "two")
        ]
        start = load_file(tmp_path / "policy" / "adapter_model.safetensors")
        for name, tensor in weights[0].items():
            torch.testing.assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-5)
        assert any(not torch.equal(start[name], weights[0][name]) for name in start)
        (told,) = (tmp_path / "told-two" / "dvclive").glob(f"{credit}-*")
        losses = pd.read_csv(told / "plots" / "metrics" / "loss.tsv", sep="\t")
        assert losses["step"].tolist() == [1, 2, 3, 4]  # each told by the first process, once


def test_the_first_process_is_not_met_at_a_barrier(tmp_path):
    """Playing may take longer than any collective call waits: the others look for the file."""
    from threading import Timer
    from unittest import mock

    from aria_dvc.cache.sums import vouch
    from aria_dvc.learning import played

    mark, second = tmp_path / "played.json", mock.Mock(is_main_process=False)
    second.wait_for_everyone.side_effect = AssertionError("a barrier")
    vouch(mark, [], version="0:old", result=1)
    Timer(0.2, vouch, (mark, []), {"version": "0:new", "result": 2}).start()
    with mock.patch.object(played, "process_state", return_value=second):
        assert played.first_only(mark, "0:new", lambda: sys.exit("it played")) == 2
