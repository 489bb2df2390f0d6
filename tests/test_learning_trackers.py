"""Trackers are told what the training's own files say, in one run, and nothing by default."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from learning_tiny import (
    PACE,
    made_up_game,
    online_params,
    policy_params,
    reward_params,
    save_tiny_base,
    warm_start_settings,
)

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.learning import trackers
from aria_dvc.learning.base_model import warm_start
from aria_dvc.learning.course import figures_of
from aria_dvc.learning.examples import frames_examples
from aria_dvc.learning.online import train_online
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.learning.trackers import Tracking
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.params import check_params, load_params
from aria_dvc.pipeline import stage
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.yaml_file import read_yaml

TOLD = ("loss", "grad_norm", "entropy_per_action")
ROUND = {
    "bargaining/alice/mean_reward": "mean_reward",
    "kl_per_action": "kl_per_action",
    "entropy_per_action": "entropy_per_action",
}
"""What an iteration is told as -> its column in online.csv."""


@pytest.fixture
def at(tmp_path, monkeypatch):
    """An empty working folder with a tiny base model beside it."""
    base = save_tiny_base(tmp_path / "base")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return SimpleNamespace(
        base=base,
        cache=tmp_path / "cache",
        out=tmp_path / "out",
        told=tmp_path / "told",
        by=lambda name: Tracking([name], "policy-x", tmp_path / "told"),
    )


def policy(at, tracking=trackers.NOWHERE, progress=None):
    options = {"seed": 0, "cache": at.cache, "progress": progress, "tracking": tracking}
    return train_policy(policy_params(), PACE, [made_up_game()], at.base, at.out, **options)


def scalars(folder):
    """tag -> [(step, value)] of a TensorBoard run."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    tags = found.Tags()["scalars"]
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in tags}


def test_nobody_is_told_by_default_and_trackers_train_nothing_anew(at, monkeypatch):
    monkeypatch.setenv("ARIA_CACHE", str(at.cache))
    policy(at)
    policy(at, at.by("dvclive"))  # the same training, which is finished
    assert not at.told.exists()
    assert not (at.cache / trackers.FOLDER).exists()
    assert not list(at.told.parent.glob("work/*"))


def test_tensorboard_has_the_history_and_the_result(at):
    metrics = policy(at, at.by("tensorboard"))
    (run,) = (at.told / "tensorboard").iterdir()
    assert run.name.startswith("policy-x-")
    found, history = scalars(run), pd.read_csv(at.out / "history.csv")
    for name, column in zip(TOLD, ("loss", "gradient_norm", "entropy_per_action"), strict=True):
        steps, values = zip(*found[f"train/{name}"], strict=True)
        assert list(steps) == history["step"].tolist()
        assert values == pytest.approx(history[column].tolist(), rel=1e-5)
    for name in ("kl_per_action", "entropy_per_action", "final_loss"):
        ((step, value),) = found[f"train/result/{name}"]
        assert step == metrics["steps"]
        assert value == pytest.approx(metrics[name], rel=1e-5)


def test_a_killed_training_goes_on_in_its_run_of_tensorboard(at):

    def dies(done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        policy(at, at.by("tensorboard"), dies)
    (run,) = (at.told / "tensorboard").iterdir()
    assert [step for step, _ in scalars(run)["train/loss"]] == [1, 2, 3]
    metrics = policy(at, at.by("tensorboard"))
    (run,) = (at.told / "tensorboard").iterdir()
    steps = [step for step, _ in scalars(run)["train/loss"]]
    assert steps == list(range(1, metrics["steps"] + 1))


def test_dvclive_counts_optimiser_steps_and_touches_nothing_else(at):
    metrics = policy(at, at.by("dvclive"))
    (run,) = (at.told / "dvclive").iterdir()
    told = pd.read_csv(run / "plots" / "metrics" / "loss.tsv", sep="\t")
    history = pd.read_csv(at.out / "history.csv")
    assert told["step"].tolist() == history["step"].tolist()
    assert told["loss"].tolist() == pytest.approx(history["loss"].tolist(), rel=1e-5)
    summary = read_json(run / "metrics.json")
    assert summary["result"]["kl_per_action"] == pytest.approx(metrics["kl_per_action"])
    assert not list(at.told.parent.glob("work/*"))  # no dvc.yaml, no experiment


def test_reward_model_and_warm_start_are_told_of_too(at):
    more = {"seed": 0, "cache": at.cache, "tracking": at.by("dvclive")}
    games = [made_up_game(episodes=8)]
    credited = train_reward_model(reward_params(), PACE, games, at.base, at.out, **more)
    model, tokenizer = load_model(at.base), load_tokenizer(at.base)
    examples = frames_examples(games, Renderer(tokenizer), 2048).items
    out = at.told.parent / "start"
    settings = warm_start_settings()
    started = warm_start(settings, PACE, model, tokenizer, examples, out, base="tiny", **more)
    results = [read_json(run / "metrics.json")["result"] for run in (at.told / "dvclive").iterdir()]
    assert {result["steps"] for result in results} == {credited["steps"], started["steps"]}
    assert [result["mse"] for result in results if "mse" in result] == [credited["mse"]]


def test_wandb_has_one_run_without_a_key_or_a_network(at, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    metrics = policy(at, at.by("wandb"))
    try:
        assert wandb.run.id.startswith("policy-x-")
        assert wandb.run.project == trackers.PROJECT
        told = dict(wandb.run.summary)
        assert told["train/global_step"] == metrics["steps"]
        assert told["train/result/kl_per_action"] == pytest.approx(metrics["kl_per_action"])
    finally:
        wandb.finish()
    assert len(list((at.told / "wandb").glob("offline-run-*"))) == 1


def test_what_wandb_refuses_is_one_line(at, monkeypatch):
    class Refused(Exception):
        pass

    def init(**options):
        raise Refused("No API key configured")

    fake = SimpleNamespace(run=None, Error=Refused, init=init)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    line = r"wandb does not start \(No API key configured\): run `wandb login`, or set WANDB_MODE"
    with pytest.raises(AriaError, match=line):
        at.by("wandb").callbacks(at.cache)


def said(policy, iteration, seed):
    """Six games; those of iteration 1 are worth nothing, and train nothing."""
    worth = float(iteration != 1)
    return [
        Episode(
            episode_id=str(number),
            game="bargaining",
            utterances=[Utterance("alice", f"{number}"), Utterance("bob", "ok")],
            rewards={"alice": number % 2 * worth, "bob": 0.5 * worth},
        )
        for number in range(6)
    ]


def aggregate(turns, credit):
    tables = {}
    for game, rows in turns.items():
        table = rows[["episode_id", "position", "role", "turn", "reward"]]
        tables[game] = table.assign(cell_size=1, pool=-1, **{"return": table["reward"]})
    return tables


def online(at, tracking, iterations):
    return train_online(
        policy_params(epochs=1), online_params(iterations=iterations, games=6), reward_params(),
        PACE, at.base, at.out, at.told.parent / "none", at.told.parent / "online",
        rollout=said, aggregate=aggregate, seed=0, cache=at.cache, tracking=tracking,
    )  # fmt: skip


def test_online_training_is_one_run_with_every_update_and_iteration(at):
    policy(at)
    metrics = online(at, replace(at.by("tensorboard"), title="online-x"), iterations=3)
    (run,) = (at.told / "tensorboard").iterdir()
    found, rows = scalars(run), pd.read_csv(at.told.parent / "online" / "online.csv")
    assert [step for step, _ in found["train/loss"]] == list(range(1, metrics["updates"] + 1))
    alice = rows[rows["role"] == "alice"]
    for name in ("mean_reward", "win_rate", "refused_rate"):
        values = [value for _, value in found[f"train/iteration/bargaining/alice/{name}"]]
        assert values == pytest.approx(alice[name].tolist(), rel=1e-5), name
    for name in ("kl_per_action", "entropy_per_action", "loss", "gradient_norm"):
        values = [value for _, value in found[f"train/iteration/{name}"]]
        assert values == pytest.approx(alice[name].dropna().tolist(), rel=1e-5), name
    assert found["train/iteration/games"] == [(2, 0.0), (2, 6.0), (4, 12.0)]


def test_trackio_has_online_training_as_one_run_on_this_machine(at, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(at.told / "trackio"))
    pytest.importorskip("trackio")
    from trackio.sqlite_storage import SQLiteStorage

    policy(at)
    metrics = online(at, replace(at.by("trackio"), title="online-x"), iterations=3)
    (run,) = SQLiteStorage.get_runs(trackers.PROJECT)
    assert run.startswith("online-x-")
    told = SQLiteStorage.get_logs(trackers.PROJECT, run)
    steps = [row["train/global_step"] for row in told if "train/loss" in row]
    assert steps == list(range(1, metrics["updates"] + 1))
    rows = pd.read_csv(at.told.parent / "online" / "online.csv")
    alice = rows[rows["role"] == "alice"]
    for name, column in ROUND.items():
        values = [
            row[f"train/iteration/{name}"] for row in told if f"train/iteration/{name}" in row
        ]
        assert values == pytest.approx(alice[column].dropna().tolist(), rel=1e-5), name


def test_an_iteration_is_told_by_log_and_role():
    shared = {"iteration": 1, "games": 6, "loss": None, "credit": "games"}
    outcomes = {"win_rate": 0.5, "mean_reward": 0.4, "refused_rate": 0.0}
    rows = [
        {"log": "bargaining", "role": role, "episodes": 3, "tokens": 9, **outcomes, **shared}
        for role in ("alice", "bob")
    ]
    assert figures_of(rows) == {
        **{f"bargaining/{r}/{n}": v for r in ("alice", "bob") for n, v in outcomes.items()},
        "games": 6, "loss": None, "credit": "games",
    }  # fmt: skip


def test_only_the_first_process_tells(at, monkeypatch):
    second = SimpleNamespace(is_main_process=False)
    monkeypatch.setattr(trackers, "process_state", lambda: second)
    tracking = at.by("dvclive")
    assert tracking.callbacks(at.cache) == []
    tracking.tell(at.cache, "result", {"loss": 1.0}, 1)
    assert not at.told.exists()


@pytest.mark.parametrize("found", [None, SimpleNamespace(origin=None)], ids=["none", "a folder"])
def test_a_missing_tracker_is_one_line_before_any_work(found, monkeypatch, capsys, pytestconfig):
    """A folder of that name, as wandb itself leaves behind, is not the package."""
    shipped = load_params(pytestconfig.rootpath / "params.yaml")
    asked = shipped.model_copy(update={"trackers": ["wandb"]})
    monkeypatch.setattr(stage, "load_params", lambda: asked)
    monkeypatch.setattr(stage, "find_spec", lambda name: found)
    monkeypatch.setattr("sys.argv", ["stage"])
    with pytest.raises(SystemExit, match="1"):
        run_stage(lambda params: pytest.fail("it worked"))
    assert capsys.readouterr().err == (
        "error: params.yaml: trackers: wandb is not installed: pip install wandb, or take it off "
        "the list\n"
    )


def test_a_tracker_that_is_installed_stops_no_stage(monkeypatch, pytestconfig):
    shipped, worked = load_params(pytestconfig.rootpath / "params.yaml"), []
    monkeypatch.setattr(
        stage, "load_params", lambda: shipped.model_copy(update={"trackers": ["dvclive"]})
    )
    monkeypatch.setattr("sys.argv", ["stage"])
    run_stage(worked.append)
    assert worked


def test_params_know_the_trackers(pytestconfig):
    shipped = read_yaml(pytestconfig.rootpath / "params.yaml")
    assert check_params(shipped).trackers == []
    with pytest.raises(AriaError, match=r"trackers\.0: .*\(got 'tensorbord'; did you mean tensor"):
        check_params({**shipped, "trackers": ["tensorbord"]})
    del shipped["trackers"]
    assert check_params(shipped).trackers == []
