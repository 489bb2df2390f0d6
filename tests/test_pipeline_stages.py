"""What the stages share: the tables that training is handed, and how they end."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
import stages.prepare
import stages.progress
import stages.reward_model
import torch

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_parquet
from aria_dvc.params import load_params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.frames import category_frames, drawn
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.published import write_log
from aria_dvc.records.schemas import TURNS, read_table
from aria_dvc.records.tables import episodes_table, turns_table
from aria_dvc.report.metrics import brief_learning

ROOT = Path(__file__).parent.parent
PARAMS = load_params(ROOT / "params.yaml")
FILES = files_of(PARAMS, "bargaining")


def write_tables(info: dict, players: list[str] | None = None) -> None:
    """One game of four utterances, Alice and Bob in turn, credited as `aggregate` would."""
    said = [Utterance(role, "half each") for role in ("alice", "bob", "alice", "bob")]
    episode = Episode("e", "bargaining", said, {"alice": 1.0, "bob": 0.0}, info=info)
    turns = turns_table([episode], players)
    write_parquet(FILES.turns, turns)
    write_parquet(FILES.episodes, episodes_table([episode]))
    actions = turns[turns["is_action"]]
    rewards = actions[["episode_id", "position", "role", "turn"]].assign(
        label=0, cell=0, cell_size=len(actions), live=False, pool=-1
    )
    rewards["return"] = actions["reward"]
    rewards = rewards.assign(reward=actions["reward"], value=0.5)
    write_parquet(FILES.rewards, rewards)


def named(alice: str, bob: str, **more) -> dict:
    return {"players": {"alice": {"name": alice}, "bob": {"name": bob}}, **more}


@pytest.mark.parametrize(
    ("info", "credit", "kept"),
    [
        (named("policy", "scripted:fair"), "aria", [0, 2]),
        (named("policy", "policy", reasked=[0, 3]), "aria", [1, 2]),
        (named("policy", "scripted:fair", reasked=[0, 2]), "discounted", []),
        (named("policy", "policy", reworded=[0], reasked=[3]), "aria", [1, 2]),
        ({"players": ["x"], "reasked": "no"}, "aria", [0, 1, 2, 3]),
        ({}, "aria", [0, 1, 2, 3]),
        (named("policy", "policy", reasked=[0]), None, [0, 1, 2, 3]),
        (named("policy", "scripted:fair", reasked=[0]), None, [0, 2]),
    ],
)
def test_the_policy_trains_on_what_it_sampled(tmp_path, monkeypatch, info, credit, kept):
    monkeypatch.chdir(tmp_path)
    write_tables(info, ["policy"])
    params = PARAMS.model_copy(update={"logs": {"bargaining": PARAMS.logs["bargaining"]}})
    (game,) = category_frames(params, "adversarial", None, credit)
    assert game.rewards["position"].tolist() == kept
    assert game.turns["position"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [1, 4, 9, 10, 12, 39, 40, 50])
def test_episodes_are_drawn_by_whole_groups(count):
    groups = {f"e{number}": f"g{number // 4}" for number in range(40)}
    kept = drawn(groups, count, 0)
    assert len(kept) == len(set(kept)) == (count if count < 4 else min(count // 4 * 4, 40))
    sizes = Counter(groups[one] for one in kept)
    assert set(sizes.values()) == {min(count, 4)}
    assert kept == drawn(groups, count, 0)
    if count < 39:
        assert any(kept != drawn(groups, count, seed) for seed in range(1, 5))


def test_of_a_single_group_episodes_are_drawn():
    kept = drawn({f"e{number}": "task" for number in range(9)}, 4, 0)
    assert len(set(kept)) == 4


def test_games_without_a_player_to_train_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = [Utterance(role, "half each") for role in ("alice", "bob")]
    rewards, info = {"alice": 1.0, "bob": 0.0}, named("scripted:fair", "scripted:hard")
    write_log(FILES.raw, [Episode("e", "bargaining", said, rewards, info=info)])
    with pytest.raises(AriaError, match=r"jsonl: nobody of the kinds policy, base, endpoint said"):
        stages.prepare.main(PARAMS, "bargaining")
    prepare = PARAMS.prepare.model_copy(update={"players": ["scripted"]})
    stages.prepare.main(PARAMS.model_copy(update={"prepare": prepare}), "bargaining")
    assert read_table(FILES.turns, TURNS)["is_action"].all()


@pytest.mark.parametrize(
    ("online", "train", "trains"),
    [
        ({"variants": [], "credit": "reward_model"}, "used", False),
        ({"variants": ["aria"], "credit": "games"}, "used", False),
        ({"variants": ["aria"], "credit": "reward_model"}, "used", True),
        ({"variants": [], "credit": "games"}, "always", True),
    ],
)
def test_a_reward_model_is_trained_where_something_uses_it(
    tmp_path, monkeypatch, online, train, trains
):
    monkeypatch.chdir(tmp_path)
    write_tables({})
    calls = []
    monkeypatch.setattr(
        "aria_dvc.learning.reward_model.train_reward_model", lambda *args, **_: calls.append(args)
    )
    update = {
        "logs": {"bargaining": PARAMS.logs["bargaining"]},
        "online": PARAMS.online.model_copy(update=online),
        "reward_model": PARAMS.reward_model.model_copy(update={"train": train}),
    }
    stages.reward_model.main(PARAMS.model_copy(update=update), "adversarial")
    assert len(calls) == trains
    if not trains:
        metrics = read_json(paths.reward_model("adversarial") / "metrics.json")
        assert metrics["not_trained"].startswith("nothing uses it: see online.credit")
        assert brief_learning({"reward_model": metrics, "progress": metrics, "policy": {}}) == {}


@pytest.mark.parametrize("train", [False, True])
def test_the_progress_estimator_is_trained_where_it_is_wanted(tmp_path, monkeypatch, train):
    """On all utterances, and before any of them has a credit."""
    monkeypatch.chdir(tmp_path)
    write_tables({})
    FILES.rewards.unlink()
    calls = []
    monkeypatch.setattr(
        "aria_dvc.learning.progress.train_progress", lambda *args, **_: calls.append(args[3])
    )
    update = {
        "logs": {"bargaining": PARAMS.logs["bargaining"]},
        "progress": PARAMS.progress.model_copy(update={"train": train}),
    }
    stages.progress.main(PARAMS.model_copy(update=update), "adversarial")
    assert [[len(log.turns) for log in frames] for frames in calls] == [[4]] * train
    if not train:
        metrics = read_json(paths.progress("adversarial") / "metrics.json")
        assert metrics == {"not_trained": "progress.train is false in params.yaml"}


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
    ],
)
def test_a_lack_of_memory_ends_a_stage_in_one_line(error, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["stage"])

    def main(params):
        raise error

    with pytest.raises(SystemExit):
        run_stage(main)
    assert capsys.readouterr().err.startswith("error: out of memory: lower the sizes")


def test_other_errors_keep_their_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["stage"])

    def main(params):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        run_stage(main)
