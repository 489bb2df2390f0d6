"""The online loop: no stale policy, refreshes, and a kill changes nothing."""

import threading
import time
from dataclasses import replace

import pytest
import torch
import uvicorn
from learning_tiny import (
    PACE,
    made_up_game,
    online_params,
    policy_params,
    reward_params,
    save_tiny_base,
    tiny_scorer,
)
from peft import PeftModel
from pydantic import ValidationError
from safetensors.torch import load_file

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, read_parquet, write_json
from aria_dvc.learning import online as online_module
from aria_dvc.learning.examples import frames_dialogues
from aria_dvc.learning.online import train_online
from aria_dvc.learning.played import PlayedGames
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.learning.scorer_server import make_app
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.source import ModelSource
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.settings import OnlineParams

ONLINE = online_params(iterations=4, games=6, refresh_every=4, replay=2)
POLICY = policy_params(epochs=1)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    base = save_tiny_base(folder / "base")
    games = [made_up_game(episodes=8)]
    cached = {"seed": 0, "cache": folder / "cache"}
    train_policy(POLICY, PACE, games, base, folder / "policy", **cached)
    train_reward_model(reward_params(), PACE, games, base, folder / "rm", **cached)
    return folder


def base_of(start):
    return ModelSource(start / "base")


class Rollouts:
    """Games sampled from the given policy: one word, worth 1 if it starts with a vowel."""

    def __init__(self, base, dies_at=None):
        self.base = base
        self.dies_at = dies_at
        self.versions = []

    def __call__(self, policy, iteration, seed):
        if iteration == self.dies_at:
            raise KeyboardInterrupt
        self.versions.append(fingerprint(policy))
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
        POLICY, ONLINE, reward_params(epochs=1), PACE, base_of(start), start / "policy",
        start / "rm", out, rollout=rollout, aggregate=aggregate, seed=0, cache=cache,
    )  # fmt: skip


def test_loop_plays_with_the_newest_policy_and_survives_a_kill(start, tmp_path):
    rollout = Rollouts(base_of(start))
    metrics = online(start, tmp_path / "whole", tmp_path / "a", rollout)
    assert metrics["iterations"] == 4
    assert metrics["updates"] == 8
    assert len(set(rollout.versions)) == 4
    assert rollout.versions[0] == fingerprint(start / "policy")

    (run,) = (tmp_path / "a" / "online").iterdir()
    for iteration, version in enumerate(rollout.versions):
        info = read_parquet(run / f"iteration-{iteration}" / "episodes.parquet")["info"]
        assert all(f'"{iteration}:{version[:12]}"' in text for text in info)
    assert {p.name for p in run.glob("reward_model-*")} == {"reward_model-2", "reward_model-4"}

    dying = Rollouts(base_of(start), dies_at=2)
    with pytest.raises(KeyboardInterrupt):
        online(start, tmp_path / "resumed", tmp_path / "b", dying)
    assert not (tmp_path / "resumed").exists()
    rest = Rollouts(base_of(start))
    again = online(start, tmp_path / "resumed", tmp_path / "b", rest)
    assert len(rest.versions) == 2
    assert dying.versions + rest.versions == rollout.versions
    assert again == metrics
    whole, resumed = (
        load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "resumed")
    )
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=1e-6, atol=1e-7)


def test_what_is_scored_refreshed_and_carried_over(start, tmp_path, monkeypatch):
    """Replay of two iterations, refreshes with all since the last one, one optimiser throughout."""
    scored, refreshed, steps = [], [], []

    def iterations(frames):
        ids = {episode for game in frames for episode in game.turns["episode_id"]}
        return {int(episode.partition("/")[0]) for episode in ids}

    def score(task, frames, model, inner=online_module._score):
        scored.append(iterations(frames))
        return inner(task, frames, model)

    def recording(turns):
        refreshed.append({int(e.partition("/")[0]) for e in turns["bargaining"]["episode_id"]})
        return aggregate(turns)

    def finish(task, inner=online_module._finish):
        state = torch.load(task.run.path / "checkpoint-8" / "optimizer.pt", weights_only=True)
        steps.extend({int(moments["step"]) for moments in state["state"].values()})
        inner(task)

    monkeypatch.setattr(online_module, "_score", score)
    monkeypatch.setattr(online_module, "_finish", finish)
    train_online(
        POLICY, ONLINE, reward_params(epochs=1), PACE, base_of(start), start / "policy",
        start / "rm", tmp_path / "out", rollout=Rollouts(base_of(start)), aggregate=recording,
        seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    assert scored == [{0}, {0, 1}, {1, 2}, {2, 3}]
    assert refreshed == [{0, 1}, {2, 3}]
    assert steps == [8]


def test_scores_that_are_no_numbers_end_in_one_line(start):
    (game,) = [made_up_game(episodes=1)]
    key = ("bargaining", str(game.turns["episode_id"].iloc[0]), 0)
    with pytest.raises(AriaError, match="NaN or infinity"):
        online_module._credited(game, {key: float("nan")})


def test_final_adapter_is_portable(start, tmp_path):
    online(start, tmp_path / "out", tmp_path / "cache", Rollouts(base_of(start)))
    assert read_json(tmp_path / "out" / "adapter_config.json")["base_model_name_or_path"] == "base"
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "metrics.json", "online.csv",
    }  # fmt: skip


def test_the_offline_policy_stays_as_it_is(start, tmp_path):
    before = {file.name: file.read_bytes() for file in (start / "policy").iterdir()}
    metrics = short(start, tmp_path / "out")
    assert {file.name: file.read_bytes() for file in (start / "policy").iterdir()} == before
    assert fingerprint(tmp_path / "out") != fingerprint(start / "policy")
    assert read_json(tmp_path / "out" / "metrics.json") == metrics
    assert set(metrics) == {
        "iterations", "updates", "final_loss", "first_mean_reward", "last_mean_reward",
    }  # fmt: skip


def test_needs_an_adapter(start, tmp_path):
    with pytest.raises(AriaError, match=r"policy\.lora"):
        train_online(
            policy_params(lora=None), ONLINE, reward_params(), PACE, base_of(start),
            start / "policy", start / "rm", tmp_path / "out", rollout=Rollouts(base_of(start)),
            aggregate=aggregate, seed=0,
        )  # fmt: skip


def said(policy, iteration, seed):
    """Two games of fixed words; only Alice's worth differs."""
    return [
        Episode(
            episode_id=str(i),
            game="bargaining",
            utterances=[Utterance("alice", "half each" + "?" * i), Utterance("bob", "deal")],
            rewards={"alice": float(i), "bob": 0.5},
        )
        for i in range(2)
    ]


def short(start, out, rollout=said, model="rm", policy="policy", **changes):
    """One run whose refreshes are due every iteration; returns its metrics."""
    settings = {"iterations": 1, "refresh_every": 2, "replay": 1, **changes}
    backbone = settings.pop("backbone", "base")
    inputs = settings.pop("inputs", None)
    return train_online(
        POLICY, ONLINE.model_copy(update=settings),
        reward_params(epochs=1, backbone=backbone), PACE, base_of(start), start / policy,
        start / model, out, rollout=rollout, aggregate=aggregate, seed=0, inputs=inputs,
        cache=out.parent / "cache",
    )  # fmt: skip


def test_worthless_scores_and_no_offline_step_leave_the_policy_alone(start, tmp_path):
    game = made_up_game(episodes=8)
    nothing = replace(game, rewards=game.rewards.assign(reward=0.0))
    cached = {"seed": 0, "cache": start / "cache"}
    train_policy(POLICY, PACE, [nothing], base_of(start), start / "idle", **cached)
    train_reward_model(reward_params(), PACE, [nothing], base_of(start), start / "zero", **cached)
    idle = short(
        start, tmp_path / "a", policy="idle", model="zero", iterations=2, refresh_every=100
    )
    assert (idle["iterations"], idle["updates"]) == (2, 0)
    assert fingerprint(tmp_path / "a") == fingerprint(start / "idle")
    # The first refresh gives scores that are worth something.
    refreshed = short(start, tmp_path / "b", policy="idle", model="zero", iterations=2)
    assert refreshed["updates"] == 2
    assert fingerprint(tmp_path / "b") != fingerprint(start / "idle")


def test_scores_come_from_the_reward_models_own_backbone(start, tmp_path):
    other = str(save_tiny_base(tmp_path / "other", seed=5))
    train_reward_model(
        reward_params(backbone=other), PACE, [made_up_game(episodes=8)], base_of(start),
        tmp_path / "rm", seed=0, cache=start / "cache",
    )  # fmt: skip
    short(start, tmp_path / "out", model=tmp_path / "rm", backbone=other)
    (run,) = (tmp_path / "cache" / "online").iterdir()
    history = read_json(run / "state.json")["history"]
    frames = PlayedGames(run).last(0, 1)
    scores = tiny_scorer(tmp_path / "rm", ModelSource(other)).score_dialogues(
        frames_dialogues(frames)
    )
    assert history[0]["mean_score"] == pytest.approx(sum(scores.values()) / len(scores), abs=1e-4)


def test_another_way_to_play_or_to_score_is_another_run(start, tmp_path):
    played = []

    def counted(policy, iteration, seed):
        played.append(iteration)
        return said(policy, iteration, seed)

    for inputs in ({"k": 2}, {"k": 2}, {"k": 3}):
        short(start, tmp_path / "out", counted, inputs=inputs)
    assert len(played) == 2
    scale = read_json(start / "rm" / "scale.json")
    write_json(start / "rm" / "scale.json", {**scale, "mean": scale["mean"] + 1})
    short(start, tmp_path / "out", counted, inputs={"k": 2})
    write_json(start / "rm" / "scale.json", scale)
    assert len(played) == 3


def test_an_utterance_that_is_too_long_is_left_out(start, tmp_path):
    def endless(policy, iteration, seed):
        episodes = said(policy, iteration, seed)
        episodes[0].utterances[0].text = "x" * 900
        return episodes

    assert short(start, tmp_path / "out", endless, refresh_every=100)["updates"] == 2


def test_refresh_waits_for_two_episodes_of_a_game(start, tmp_path):
    def one(policy, iteration, seed):
        return said(policy, iteration, seed)[-1:]

    short(start, tmp_path / "out", one, iterations=2)
    (run,) = (tmp_path / "cache" / "online").iterdir()
    assert [p.name for p in run.glob("reward_model-*")] == ["reward_model-2"]


def test_games_of_which_a_kill_left_half_are_played_again(start, tmp_path, monkeypatch):
    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("aria_dvc.learning.played.turns_table", killed)
    with pytest.raises(KeyboardInterrupt):
        short(start, tmp_path / "out")
    assert not list((tmp_path / "cache").rglob("played.json"))
    monkeypatch.undo()
    assert short(start, tmp_path / "out")["iterations"] == 1


@pytest.fixture
def served(start):
    """The address of a scorer server with the start's reward model."""
    scorer = tiny_scorer(start / "rm", base_of(start), max_tokens=512)
    server = uvicorn.Server(
        uvicorn.Config(make_app(scorer.score_chats), port=0, log_level="warning")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


def test_remote_scorer_gives_the_scores_of_the_one_in_process(start, served):
    game = made_up_game(episodes=20)
    turns = game.turns.copy()
    turns.loc[3, "text"] = "x" * 900
    found = frames_dialogues([replace(game, turns=turns)])
    local = tiny_scorer(start / "rm", base_of(start), max_tokens=512)
    expected = local.score_dialogues(found)
    assert 0 < len(expected) < len(turns)
    assert RemoteScorer(served, 60.0).score_dialogues(found) == pytest.approx(expected, abs=1e-5)


def test_online_training_with_a_remote_scorer_refreshes_nothing(start, served, tmp_path):
    assert short(start, tmp_path / "out", scorer=served)["updates"] == 2
    (run,) = (tmp_path / "cache" / "online").iterdir()
    assert not list(run.glob("reward_model-*"))


def test_remote_scorer_says_which_server_is_dead_or_strange(served):
    found = frames_dialogues([made_up_game(episodes=1)])
    with pytest.raises(AriaError, match=r"http://127\.0\.0\.1:9 gave no answer within 0\.1 s"):
        RemoteScorer("http://127.0.0.1:9", 0.1).score_dialogues(found)
    with pytest.raises(AriaError, match=r"/nowhere refuses the request \(HTTP 404"):
        RemoteScorer(f"{served}nowhere", 60.0).score_dialogues(found)
    with pytest.raises(ValidationError, match="scorer"):
        OnlineParams(**{**ONLINE.model_dump(), "scorer": "10.0.0.1:8037"})


def test_only_what_the_newest_policy_said_is_an_action_and_groups_are_an_iterations_own(tmp_path):
    def game(number, alice, bob):
        names = {"alice": {"name": alice}, "bob": {"name": bob}}
        said = [Utterance("alice", "I keep 60"), Utterance("bob", "I accept")]
        info = {"group_id": "g", "players": names}
        return Episode(str(number), "bargaining", said, {"alice": 0.6, "bob": 0.4}, info=info)

    played = PlayedGames(tmp_path)
    pairs = [("policy", "scripted:varied"), ("base", "policy"), ("policy", "policy")]
    for iteration in range(2):
        games = [game(number, *pair) for number, pair in enumerate(pairs)]
        played.keep(iteration, "v", games)
    (log,) = played.last(1, 2)
    assert log.turns["is_action"].tolist() == [True, False, False, True, True, True] * 2
    assert log.turns["group_id"].tolist() == ["0/g"] * 6 + ["1/g"] * 6
    assert set(log.episodes["group_id"]) == {"0/g", "1/g"}
    assert log.turns["episode_id"].iloc[-1] == "1/2"
