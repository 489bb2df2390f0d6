"""The online loop: no stale policy, refreshes, and a kill changes nothing."""

import pytest
import torch
from learning_tiny import made_up_game, policy_params, reward_params, save_tiny_base
from peft import PeftModel
from safetensors.torch import load_file

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, read_parquet
from aria_dvc.learning.checkpoints import folder_hash
from aria_dvc.learning.models import load_model, load_tokenizer
from aria_dvc.learning.online import train_online
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.params import OnlineParams
from aria_dvc.records.episodes import Episode, Utterance

ONLINE = OnlineParams(
    iterations=4, games=6, updates=2, batch_size=4, learning_rate=1e-3, refresh_every=4,
    replay=2, rollouts="in_process",
)  # fmt: skip
POLICY = policy_params(online=ONLINE, epochs=1)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    base = save_tiny_base(folder / "base")
    games = [made_up_game(episodes=8)]
    train_policy(POLICY, games, base, folder / "policy", seed=0, cache=folder / "cache")
    train_reward_model(reward_params(), games, base, folder / "rm", seed=0, cache=folder / "cache")
    return folder


class Rollouts:
    """Games sampled from the given policy: one word, worth 1 if it starts with a vowel."""

    def __init__(self, base, dies_at=None):
        self.base = base
        self.dies_at = dies_at
        self.versions = []

    def __call__(self, policy, iteration, seed):
        if iteration == self.dies_at:
            raise KeyboardInterrupt
        self.versions.append(folder_hash(policy))
        model = PeftModel.from_pretrained(load_model(self.base), str(policy)).eval()
        tokenizer = load_tokenizer(self.base)
        torch.manual_seed(seed)
        prompt = torch.tensor([tokenizer.encode("say")] * ONLINE.games)
        said = model.generate(input_ids=prompt, do_sample=True, max_new_tokens=4)
        texts = [tokenizer.decode(row[prompt.shape[1] :].tolist()) for row in said]
        return [
            Episode(
                episode_id=str(i),
                game="bargaining",
                utterances=[Utterance("alice", text), Utterance("bob", "ok")],
                rewards={"alice": float(text[:1] in "aeiou"), "bob": 0.5},
            )
            for i, text in enumerate(texts)
        ]


def aggregate(turns):
    tables = {}
    for game, rows in turns.items():
        actions = rows[rows["is_action"]]
        table = actions[["episode_id", "position", "role", "turn", "reward"]].copy()
        tables[game] = table.assign(cell_size=1, **{"return": table["reward"]})
    return tables


def online(start, out, cache, rollout):
    return train_online(
        POLICY, reward_params(epochs=1), start / "base", start / "policy", start / "rm", out,
        rollout=rollout, aggregate=aggregate, seed=0, cache=cache,
    )  # fmt: skip


def test_loop_plays_with_the_newest_policy_and_survives_a_kill(start, tmp_path):
    rollout = Rollouts(start / "base")
    metrics = online(start, tmp_path / "whole", tmp_path / "a", rollout)
    assert metrics["online"]["iterations"] == 4
    assert metrics["online"]["updates"] == 8
    assert metrics["steps"] == read_json(start / "policy" / "metrics.json")["steps"]
    assert len(set(rollout.versions)) == 4
    assert rollout.versions[0] == folder_hash(start / "policy")

    (run,) = (tmp_path / "a" / "online").iterdir()
    for iteration, version in enumerate(rollout.versions):
        info = read_parquet(run / f"iteration-{iteration}" / "episodes.parquet")["info"]
        assert all(f'"{iteration}:{version[:12]}"' in text for text in info)
    assert {p.name for p in run.glob("reward_model-*")} == {"reward_model-2", "reward_model-4"}

    dying = Rollouts(start / "base", dies_at=2)
    with pytest.raises(KeyboardInterrupt):
        online(start, tmp_path / "resumed", tmp_path / "b", dying)
    assert not (tmp_path / "resumed").exists()
    rest = Rollouts(start / "base")
    again = online(start, tmp_path / "resumed", tmp_path / "b", rest)
    assert len(rest.versions) == 2
    assert dying.versions + rest.versions == rollout.versions
    assert again == metrics
    whole, resumed = (
        load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "resumed")
    )
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=1e-6, atol=1e-7)


def test_final_adapter_is_portable(start, tmp_path):
    online(start, tmp_path / "out", tmp_path / "cache", Rollouts(start / "base"))
    assert read_json(tmp_path / "out" / "adapter_config.json")["base_model_name_or_path"] == "base"
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "history.csv", "metrics.json",
        "online.csv",
    }  # fmt: skip


def test_needs_an_adapter(start, tmp_path):
    with pytest.raises(AriaError, match=r"policy\.lora"):
        train_online(
            policy_params(lora=None), reward_params(), start / "base", start / "policy",
            start / "rm", tmp_path / "out", rollout=Rollouts(start / "base"),
            aggregate=aggregate, seed=0,
        )  # fmt: skip
