"""The online loop: no stale policy, refreshes, and a kill changes nothing."""

import logging
import re
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import uvicorn
from damage import flip
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
from aria_dvc.learning import fresh_credit, online_run, online_update
from aria_dvc.learning import online as online_module
from aria_dvc.learning.advantages import policy_weights
from aria_dvc.learning.examples import frames_dialogues
from aria_dvc.learning.online import train_online
from aria_dvc.learning.played import PlayedGames, with_rewards
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.source import ModelSource
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.serving.scorer_server import make_app
from aria_dvc.settings.online import OnlineParams

ONLINE = online_params(iterations=4, games=6, refresh_every=4, replay=2)
SCORED = online_params(iterations=4, games=6, refresh_every=4, replay=2, credit="reward_model")
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


@pytest.fixture
def believed(monkeypatch):
    """Every reward model is good enough: these are tests of what follows."""
    monkeypatch.setattr(fresh_credit, "refusal", lambda metrics: None)


def aggregate(turns, credit):
    tables = {}
    for game, rows in turns.items():
        actions = rows[rows["is_action"]]
        table = actions[["episode_id", "position", "role", "turn", "reward"]].copy()
        tables[game] = table.assign(cell_size=1, pool=-1, **{"return": table["reward"]})
    return tables


def online(start, out, cache, rollout, settings=ONLINE, policy=POLICY):
    return train_online(
        policy, settings, reward_params(epochs=1), PACE, base_of(start), start / "policy",
        start / "rm", out, rollout=rollout, aggregate=aggregate, seed=0, cache=cache,
    )  # fmt: skip


def timeless(metrics):
    return {name: value for name, value in metrics.items() if not name.endswith("_seconds")}


@pytest.mark.parametrize("settings", [ONLINE, SCORED], ids=["games", "reward_model"])
def test_loop_plays_with_the_newest_policy_and_survives_a_kill(start, tmp_path, settings, believed):
    rollout = Rollouts(base_of(start))
    metrics = online(start, tmp_path / "whole", tmp_path / "a", rollout, settings)
    assert metrics["iterations"] == 4
    assert metrics["updates"] == 8
    assert metrics["games"] == 24
    assert metrics["credit_used"] == settings.credit
    assert len(set(rollout.versions)) == 4
    assert rollout.versions[0] == fingerprint(start / "policy")

    (run,) = (tmp_path / "a" / "online").iterdir()
    for iteration, version in enumerate(rollout.versions):
        info = read_parquet(run / f"iteration-{iteration}" / "episodes.parquet")["info"]
        assert all(f'"{iteration}:{version[:12]}"' in text for text in info)
    refreshed = {p.name for p in run.glob("reward_model-*")}
    assert refreshed == (set() if settings is ONLINE else {"reward_model-2", "reward_model-4"})

    dying = Rollouts(base_of(start), dies_at=2)
    with pytest.raises(KeyboardInterrupt):
        online(start, tmp_path / "resumed", tmp_path / "b", dying, settings)
    assert not (tmp_path / "resumed").exists()
    rest = Rollouts(base_of(start))
    again = online(start, tmp_path / "resumed", tmp_path / "b", rest, settings)
    assert len(rest.versions) == 2
    assert dying.versions + rest.versions == rollout.versions
    assert timeless(again) == timeless(metrics)
    whole, resumed = (
        load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "resumed")
    )
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("schedule", "own", "shares"),
    [
        ("constant", None, [1, 1, 1, 1]),
        ("linear", None, [1, 0.75, 0.5, 0.25]),
        ("constant", 0.003, [3, 3, 3, 3]),
    ],
)
def test_the_step_size_is_the_policys_own_if_it_has_one_and_falls_over_all_iterations(
    start, tmp_path, monkeypatch, schedule, own, shares
):
    settings = online_params(iterations=2, games=6, updates=2, schedule=schedule)
    policy = POLICY.model_copy(update={"online_learning_rate": own})
    rates = rates_of(start, tmp_path, monkeypatch, Rollouts(base_of(start)), settings, policy)
    assert rates == pytest.approx([share * settings.learning_rate for share in shares])


def rates_of(start, folder, monkeypatch, rollout, settings, policy=POLICY):
    """The learning rate of every step of an online training."""
    rates = []

    def finish(task, state, inner=online_module._finish):
        log = read_json(Path(state["policy"]) / "trainer_state.json")["log_history"]
        rates.extend(row["learning_rate"] for row in log if "loss" in row)
        inner(task, state)

    monkeypatch.setattr(online_module, "_finish", finish)
    online(start, folder / "out", folder / "cache", rollout, settings, policy)
    return rates


@pytest.mark.parametrize("paid", [0.0, 0.7])
def test_games_that_all_pay_the_same_teach_nothing_and_leave_the_step_size_to_the_others(
    start, tmp_path, monkeypatch, paid
):
    rollouts = Rollouts(base_of(start))

    def even_at_first(policy, iteration, seed):
        games = rollouts(policy, iteration, seed)
        for number, game in enumerate(games):
            reward = float(number % 2) if iteration else paid
            game.rewards["alice"] = game.rewards["bob"] = reward
        return games

    settings = online_params(iterations=2, games=6, updates=2, schedule="linear")
    policy = POLICY.model_copy(update={"credit": "discounted", "advantage": "group"})
    rates = rates_of(start, tmp_path, monkeypatch, even_at_first, settings, policy)
    assert rates == pytest.approx([settings.learning_rate, settings.learning_rate / 2])
    assert len(set(rollouts.versions)) == 1


@pytest.mark.parametrize("dies_at", ["credit", "update"])
def test_a_kill_within_an_iteration_keeps_its_games(start, tmp_path, monkeypatch, dies_at):
    def killed(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if dies_at == "credit":
            patch.setattr(fresh_credit.FreshCredit, "of", killed)
        else:
            patch.setattr("aria_dvc.learning.online_update.fit", killed)
        with pytest.raises(KeyboardInterrupt):
            short(start, tmp_path / "out")

    def never(policy, iteration, seed):
        raise AssertionError("played again")

    assert short(start, tmp_path / "out", never)["updates"] == 2
    assert short(start, tmp_path / "whole" / "out")["iterations"] == 1
    assert fingerprint(tmp_path / "out") == fingerprint(tmp_path / "whole" / "out")


def iterations_of(frames):
    ids = {episode for game in frames for episode in game.turns["episode_id"]}
    return {int(episode.partition("/")[0]) for episode in ids}


@pytest.mark.parametrize(("every", "windows"), [(4, [{0, 1}, {2, 3}]), (3, [{0, 1}, {2}])])
def test_what_is_credited_refreshed_and_carried_over(
    start, tmp_path, monkeypatch, believed, every, windows
):
    """Replay of two iterations, refreshes with all since the last one, one optimiser throughout."""
    credited, refreshed, steps = [], [], []

    def of(self, frames, model, inner=fresh_credit.FreshCredit.of):
        credited.append(iterations_of(frames))
        return inner(self, frames, model)

    def recording(turns, credit):
        if credit is None:
            refreshed.append({int(e.partition("/")[0]) for e in turns["bargaining"]["episode_id"]})
        return aggregate(turns, credit)

    def finish(task, state, inner=online_module._finish):
        found = torch.load(task.run.path / "checkpoint-8" / "optimizer.pt", weights_only=True)
        steps.extend({int(moments["step"]) for moments in found["state"].values()})
        inner(task, state)

    monkeypatch.setattr(fresh_credit.FreshCredit, "of", of)
    monkeypatch.setattr(online_module, "_finish", finish)
    scored = SCORED.model_copy(update={"refresh_every": every})
    train_online(
        POLICY, scored, reward_params(epochs=1), PACE, base_of(start), start / "policy",
        start / "rm", tmp_path / "out", rollout=Rollouts(base_of(start)), aggregate=recording,
        seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    assert credited == [{0}, {0, 1}, {1, 2}, {2, 3}]
    assert refreshed == windows
    assert steps == [8]


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"credit": "aria"}, "aria"),
        ({"credit": "shrinkage"}, "shrinkage"),
        ({"credit": "terminal"}, "terminal"),
        ({"method": "behaviour_cloning", "credit": "aria"}, "discounted"),
    ],
)
def test_fresh_games_are_credited_as_the_variant_is(start, tmp_path, changes, asked):
    credits = []

    def recording(turns, credit):
        credits.append(credit)
        tables = aggregate(turns, credit)
        return {game: table.assign(reward=0.25) for game, table in tables.items()}

    params = policy_params(epochs=1, advantage="centred", **changes)
    train_online(
        params, online_params(), reward_params(), PACE, base_of(start), start / "policy",
        start / "absent", tmp_path / "out", rollout=said, aggregate=recording, seed=0,
        cache=tmp_path / "cache",
    )  # fmt: skip
    assert credits == [asked]
    (run,) = (tmp_path / "cache" / "online").iterdir()
    (game,) = with_rewards(run / "iteration-0" / "rewards.parquet", PlayedGames(run).last(0, 1))
    weights = policy_weights([game], params, seed=0)
    expected = {0.25: 0} if asked in ("aria", "shrinkage") else {}
    assert all(value in {0.0, -1.0, 1.0, *expected} for value in weights.values())


def test_the_model_and_its_tokenizer_are_loaded_once(start, tmp_path, monkeypatch):
    loaded = []

    def counted(name, inner):
        def load(*args, **options):
            loaded.append(name)
            return inner(*args, **options)

        return load

    for name in ("load_model", "load_tokenizer"):
        inner = getattr(online_run, name)
        monkeypatch.setattr(online_run, name, counted(name, inner))
    metrics = online(start, tmp_path / "out", tmp_path / "cache", Rollouts(base_of(start)))
    assert metrics["iterations"] == 4
    assert sorted(loaded) == ["load_model", "load_tokenizer"]


def test_a_kept_model_is_wrapped_no_deeper_each_time(start, tmp_path, monkeypatch):
    """bfloat16 puts a wrapper around `forward`: a hundred iterations must not put a hundred."""
    forwards = []

    def recording(task, trainer, inner=online_update._unwrap):
        inner(task, trainer)
        forwards.append(task.model.forward)

    monkeypatch.setattr(online_update, "_unwrap", recording)
    quick = PACE.model_copy(update={"precision": "bfloat16"})
    train_online(
        POLICY, ONLINE, reward_params(), quick, base_of(start), start / "policy", start / "rm",
        tmp_path / "out", rollout=said, aggregate=aggregate, seed=0, cache=tmp_path / "cache",
    )  # fmt: skip
    assert len(forwards) == 4
    assert len(set(forwards)) == 1
    assert not hasattr(forwards[0], "__wrapped__")


def test_scores_that_are_no_numbers_end_in_one_line(start):
    (game,) = [made_up_game(episodes=1)]
    key = ("bargaining", str(game.turns["episode_id"].iloc[0]), 0)
    with pytest.raises(AriaError, match="NaN or infinity"):
        fresh_credit.with_scores(game.rewards, "bargaining", {key: float("nan")})


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
        "iterations", "games", "updates", "final_loss", "kl_per_action", "entropy_per_action",
        "gradient_norm", "zero_advantages", "play_seconds", "train_seconds", "credit_used", "curve",
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
    """One run whose refreshes, if any, are due every iteration; returns its metrics."""
    settings = {"iterations": 1, "refresh_every": 2, "replay": 1, **changes}
    backbone = settings.pop("backbone", "base")
    inputs = settings.pop("inputs", None)
    return train_online(
        POLICY, ONLINE.model_copy(update=settings),
        reward_params(epochs=1, backbone=backbone), PACE, base_of(start), start / policy,
        start / model, out, rollout=rollout, aggregate=aggregate, seed=0, inputs=inputs,
        cache=out.parent / "cache",
    )  # fmt: skip


def test_worthless_scores_and_no_offline_step_leave_the_policy_alone(start, tmp_path, believed):
    game = made_up_game(episodes=8)
    nothing = replace(game, rewards=game.rewards.assign(reward=0.0, pool=-1))
    cached = {"seed": 0, "cache": start / "cache"}
    train_policy(POLICY, PACE, [nothing], base_of(start), start / "idle", **cached)
    train_reward_model(reward_params(), PACE, [nothing], base_of(start), start / "zero", **cached)
    worthless = {"policy": "idle", "model": "zero", "iterations": 2, "credit": "reward_model"}
    idle = short(start, tmp_path / "a", refresh_every=100, **worthless)
    assert (idle["iterations"], idle["updates"], idle["final_loss"]) == (2, 0, None)
    assert (idle["zero_advantages"], idle["gradient_norm"]) == (1.0, None)
    assert fingerprint(tmp_path / "a") == fingerprint(start / "idle")
    # The first refresh gives scores that are worth something.
    refreshed = short(start, tmp_path / "b", **worthless)
    assert refreshed["updates"] == 2
    assert refreshed["zero_advantages"] < 1.0
    assert refreshed["kl_per_action"] > 0.0
    assert fingerprint(tmp_path / "b") != fingerprint(start / "idle")


def test_scores_come_from_the_reward_models_own_backbone(start, tmp_path, believed):
    other = str(save_tiny_base(tmp_path / "other", seed=5))
    train_reward_model(
        reward_params(backbone=other), PACE, [made_up_game(episodes=8)], base_of(start),
        tmp_path / "rm", seed=0, cache=start / "cache",
    )  # fmt: skip
    short(start, tmp_path / "out", model=tmp_path / "rm", backbone=other, credit="reward_model")
    (run,) = (tmp_path / "cache" / "online").iterdir()
    frames = PlayedGames(run).last(0, 1)
    (game,) = with_rewards(run / "iteration-0" / "rewards.parquet", frames)
    scores = tiny_scorer(tmp_path / "rm", ModelSource(other)).score_dialogues(
        frames_dialogues(frames)
    )
    rows = game.rewards.itertuples()
    found = {("bargaining", row.episode_id, row.position): row.reward for row in rows}
    assert found == pytest.approx(scores, abs=1e-4)


GOOD = {"r2": 0.3, "r2_low": 0.1, "r2_high": 0.5}


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        (GOOD, None),
        ({**GOOD, "r2_low": 0.0}, r"its R2 on held-out episodes, 0.300 \(0.000 to 0.500\), is not"),
        ({"r2": 0.3, "r2_low": None, "r2_high": None}, "too few held-out episodes"),
        ({"r2": None, "r2_low": None, "r2_high": None}, "returns are all equal"),
        ({"not_trained": "nothing uses it"}, r"there is none \(nothing uses it\)"),
        ({"r2": 0.9}, "to have an interval"),
    ],
)
def test_a_reward_model_is_believed_if_its_r2_is_above_zero(metrics, reason):
    found = fresh_credit.refusal(metrics)
    assert found is None if reason is None else re.search(reason, found)


def with_quality(start, folder, **quality):
    """The start's reward model with other held-out metrics."""
    shutil.copytree(start / "rm", folder)
    metrics = read_json(folder / "metrics.json")
    write_json(folder / "metrics.json", {**metrics, **quality})
    return folder


def test_a_reward_model_that_knows_nothing_is_replaced_by_the_games(start, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "aria_dvc")
    bad = with_quality(start, tmp_path / "bad", **{**GOOD, "r2_low": -0.1})
    never = {"iterations": 2, "refresh_every": 100}
    metrics = short(start, tmp_path / "a" / "out", model=bad, credit="reward_model", **never)
    assert metrics["credit_used"] == "games"
    assert metrics["reward_model_refused"].startswith("its R2 on held-out episodes, 0.300 (-0.1")
    (said_once,) = [r.getMessage() for r in caplog.records if "online.credit" in r.getMessage()]
    assert said_once.endswith("is not above 0; the credit is that of the games")
    own = short(start, tmp_path / "b" / "out", **never)
    assert "reward_model_refused" not in own
    assert fingerprint(tmp_path / "a" / "out") == fingerprint(tmp_path / "b" / "out")


def test_a_refreshed_reward_model_is_judged_too(start, tmp_path, monkeypatch):
    qualities = {"1": {**GOOD, "r2_low": -1.0}, "2": GOOD, "3": {**GOOD, "r2": None}, "4": GOOD}

    def refreshed(*args, **options):
        folder = args[4]
        with_quality(start, folder, **qualities[folder.name.rpartition("-")[2]])

    monkeypatch.setattr(online_module, "train_reward_model", refreshed)
    good = with_quality(start, tmp_path / "good", **GOOD)
    metrics = short(
        start, tmp_path / "out", model=good, credit="reward_model", iterations=4, refresh_every=2
    )  # fmt: skip
    course = pd.read_csv(tmp_path / "out" / "online.csv").drop_duplicates("iteration")
    assert course["credit"].tolist() == ["reward_model", "games", "reward_model", "games"]
    assert "all equal" in metrics["reward_model_refused"]


def test_another_way_to_play_or_to_score_is_another_run(start, tmp_path):
    played = []

    def counted(policy, iteration, seed):
        played.append(iteration)
        return said(policy, iteration, seed)

    for inputs in ({"k": 2}, {"k": 2}, {"k": 3}):
        short(start, tmp_path / "out", counted, inputs=inputs)
    assert len(played) == 2
    other = with_quality(start, tmp_path / "other")
    scale = read_json(other / "scale.json")
    write_json(other / "scale.json", {**scale, "mean": scale["mean"] + 1})
    short(start, tmp_path / "out", counted, model=other, inputs={"k": 2})
    assert len(played) == 2  # without its scores the reward model does not matter
    scored = {"credit": "reward_model", "refresh_every": 100, "inputs": {"k": 2}}
    better = with_quality(start, tmp_path / "better", **GOOD)
    for model in ("rm", "rm", other, better):
        short(start, tmp_path / "out", counted, model=model, **scored)
    assert len(played) == 5
    for others in (["one"], ["one", "two"]):  # who else goes on is no matter of this variant
        short(start, tmp_path / "out", counted, inputs={"k": 3}, variants=others, weights={"x": 2})
    assert len(played) == 5


@pytest.mark.parametrize("credit", ["games", "reward_model"])
def test_an_utterance_that_is_too_long_is_left_out(start, tmp_path, believed, credit):
    def endless(policy, iteration, seed):
        episodes = said(policy, iteration, seed)
        episodes[0].utterances[0].text = "x" * 900
        return episodes

    settings = {"refresh_every": 100, "credit": credit}
    assert short(start, tmp_path / "out", endless, **settings)["updates"] == 2


def test_refresh_waits_for_two_episodes_of_a_game(start, tmp_path, believed):
    def one(policy, iteration, seed):
        return said(policy, iteration, seed)[-1:]

    short(start, tmp_path / "out", one, iterations=2, credit="reward_model")
    (run,) = (tmp_path / "cache" / "online").iterdir()
    assert [p.name for p in run.glob("reward_model-*")] == ["reward_model-2"]


def test_a_refresh_is_judged_by_no_game_that_the_last_one_has_learned_from(
    start, tmp_path, believed, monkeypatch
):
    """In the second iteration too few are played: they wait for the third."""
    learned = []

    def noted(params, pace, frames, *rest, **options):
        learned.append([own for log in frames for own in log.episodes["episode_id"]])
        return train_reward_model(params, pace, frames, *rest, **options)

    def some(policy, iteration, seed):
        return said(policy, iteration, seed)[-1 if iteration == 1 else 0 :]

    monkeypatch.setattr("aria_dvc.learning.online.train_reward_model", noted)
    short(start, tmp_path / "out", some, iterations=3, credit="reward_model")
    first, second = map(set, learned)
    assert len(first) > 1
    assert len(second) > len(first)
    assert first.isdisjoint(second)


def test_games_of_which_a_kill_left_half_are_played_again(start, tmp_path, monkeypatch):
    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("aria_dvc.learning.played.turns_table", killed)
    with pytest.raises(KeyboardInterrupt):
        short(start, tmp_path / "out")
    assert not list((tmp_path / "cache").rglob("played*.json"))
    monkeypatch.undo()
    assert short(start, tmp_path / "out")["iterations"] == 1


@pytest.fixture
def served(start, request):
    """The address of a scorer server with the start's reward model; its param: what it tells."""
    scorer = tiny_scorer(start / "rm", base_of(start), max_tokens=512)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(scorer.score_chats, getattr(request, "param", None)),
            port=0,
            log_level="warning",
        )
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


@pytest.mark.parametrize("served", [None, GOOD, {**GOOD, "r2_low": -1.0}], indirect=True)
def test_online_training_with_a_remote_scorer(start, served, tmp_path, request, caplog):
    """It refreshes nothing; the server's own metrics decide whether it is believed."""
    caplog.set_level(logging.WARNING, "aria_dvc")
    told = request.node.callspec.params["served"]
    metrics = short(start, tmp_path / "out", scorer=served, credit="reward_model")
    assert metrics["updates"] == 2
    assert metrics["credit_used"] == ("games" if told and told["r2_low"] < 0 else "reward_model")
    assert metrics.get("reward_model_unchecked", False) == (told is None)
    assert ("used unchecked" in caplog.text) == (told is None)
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


@pytest.fixture(scope="module")
def cut_short(start):
    """The cache of a run that was cut short in its third iteration, and where a whole one ends."""
    online(start, start / "whole", start / "whole-cache", Rollouts(base_of(start)))
    with pytest.raises(KeyboardInterrupt):
        online(start, start / "cut", start / "cut-cache", Rollouts(base_of(start), dies_at=2))
    return start / "cut-cache"


@pytest.mark.parametrize(
    ("damaged", "replayed"),
    [
        ("state-2.sums.json", 2),  # the games of the second iteration are still good
        ("checkpoint-4/adapter_model.safetensors", 2),
        ("checkpoint-4/optimizer.pt", 2),
        ("iteration-1/turns.parquet", 3),
        ("iteration-1/played.sums.json", 3),
        ("iteration-0/episodes.parquet", 3),  # the second policy is what it was, so are its games
        ("iteration-0/rewards.parquet", 2),  # never read again
    ],
)
def test_what_is_damaged_of_an_online_run_is_named_and_done_again(
    start, cut_short, tmp_path, caplog, damaged, replayed
):
    shutil.copytree(cut_short, tmp_path / "cache")
    (run,) = (tmp_path / "cache" / "online").iterdir()
    flip(run / damaged)
    rest = Rollouts(base_of(start))
    online(start, tmp_path / "out", tmp_path / "cache", rest)
    if damaged != "iteration-0/rewards.parquet":
        assert f"{Path(damaged).name} damaged" in caplog.text
    assert len(rest.versions) == replayed
    whole, mended = (
        load_file(folder / "adapter_model.safetensors")
        for folder in (start / "whole", tmp_path / "out")
    )
    for name, tensor in whole.items():
        torch.testing.assert_close(mended[name], tensor, rtol=1e-6, atol=1e-7)
