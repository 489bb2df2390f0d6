"""The real commands on the real DAG, with a tiny random model and two small logs.

The tests share one workspace and run in order: each starts from what the one before left.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from dag import Workspace, guessing_log, stages_in
from learning_tiny import save_tiny_base

GAMES = ("twenty_questions", "guess_my_city")
PER_GAME = ("collect", "prepare", "embed", "cluster", "select_k", "aggregate", "evaluate")
CATEGORIES = ("adversarial", "single_agent")
UP_TO_AGGREGATE = ("raw", "turns", "episodes", "embeddings", "labels", "selected_k", "k_curve")
UP_TO_AGGREGATE += ("rewards", "base_model", "credit_quality")


def instances(*stages: str, games: tuple[str, ...] = GAMES) -> set[str]:
    return {f"{stage}@{game}" for stage in stages for game in games}


LEARNING = {
    f"{stage}@{category}" for stage in ("reward_model", "policy") for category in CATEGORIES
}
EVERYTHING = instances(*PER_GAME) | LEARNING | {"base_model", "report"}


def prepare(folder: Path, model: Path, logs: Path) -> Workspace:
    workspace = Workspace.copy_of_project(folder)
    workspace.set_params(
        {
            "games": list(GAMES),
            "base_model.source": str(model),
            "base_model.warm_start": False,
            "collect.twenty_questions.source": str(logs / "twenty_questions.jsonl"),
            "collect.guess_my_city.source": str(logs / "guess_my_city.jsonl"),
            "cluster.k_max": 25,
            "evaluate.twenty_questions.episodes": 2,
            "evaluate.guess_my_city.episodes": 2,
            "evaluate.settings.max_new_tokens": 4,
            "evaluate.settings.max_reasks": 0,
            "policy.epochs": 1,
            "policy.lora.rank": 2,
            "report.umap": False,
        }
    )
    workspace.commit("tiny sizes")
    return workspace


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    save_tiny_base(folder / "model")
    for seed, game in enumerate(GAMES):
        guessing_log(folder / f"{game}.jsonl", 12, seed)
    return folder


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, inputs):
    workspace = prepare(tmp_path_factory.mktemp("dag") / "a", inputs / "model", inputs)
    ran, _ = workspace.repro()
    assert ran == EVERYTHING
    workspace.commit("first run")
    return workspace


def test_metrics_say_what_was_measured(workspace):
    credit = workspace.read_json("metrics/credit.json")
    assert set(credit) == set(GAMES)
    for numbers in credit.values():
        assert numbers["episodes"] == 12
        assert numbers["reward_variance_after"] <= numbers["reward_variance_before"] + 1e-12
        assert 2 <= numbers["selected_k"] <= 25
    learning = workspace.read_json("metrics/learning.json")
    assert set(learning) == {"single_agent"}
    assert np.isfinite(learning["single_agent"]["policy"]["final_loss"])
    evaluation = workspace.read_json("metrics/evaluation.json")
    for game in GAMES:
        for variant in ("vanilla", "aria"):
            numbers = evaluation[game]["agent"][variant]
            assert numbers["episodes"] == 2
            assert numbers["success_rate_low"] <= numbers["success_rate"]
    assert (workspace.folder / "metrics/plots/evaluation.png").stat().st_size > 1000


def test_a_second_repro_runs_nothing(workspace):
    output = workspace.run("dvc", "repro")
    assert stages_in(output) == (set(), set())
    assert "up to date" in output


def test_another_k_skips_embedding_and_clustering_and_auto_comes_back_from_the_cache(workspace):
    before = workspace.hashes()
    ran, _ = stages_in(workspace.run("dvc", "exp", "run", "-S", "k=20"))
    assert ran >= instances("select_k", "aggregate") | {"report"}
    assert not ran & instances("collect", "prepare", "embed", "cluster")
    assert "base_model" not in ran
    assert workspace.read_json("data/selected_k/twenty_questions.json")["selected_k"] == 20
    ran, cached = stages_in(workspace.run("dvc", "exp", "run", "-S", "k=auto"))
    assert ran == {"report"}, "metrics in Git have no run cache; everything else must come from it"
    assert cached >= instances("select_k", "aggregate")
    assert workspace.hashes() == before


def test_one_changed_log_reruns_that_game_and_the_joint_stages(workspace, inputs):
    guessing_log(inputs / "guess_my_city.jsonl", 13, seed=7)
    ran, _ = workspace.repro()
    assert ran >= instances("collect", "prepare", "embed", games=("guess_my_city",))
    assert not ran & instances(
        *("collect", "prepare", "embed", "cluster", "select_k", "aggregate"),
        games=("twenty_questions",),
    )
    assert "report" in ran
    guessing_log(inputs / "guess_my_city.jsonl", 12, seed=1)
    workspace.repro()


def test_two_runs_from_scratch_agree(workspace, inputs, tmp_path):
    """Up to `aggregate` to the byte; the learned weights within 1e-5 absolute."""
    other = prepare(tmp_path / "b", inputs / "model", inputs)
    other.repro()
    ours, theirs = workspace.hashes(), other.hashes()
    exact = [path for path in ours if path.split("/")[1] in UP_TO_AGGREGATE]
    assert len(exact) > 15
    assert {path: ours[path] for path in exact} == {path: theirs[path] for path in exact}
    weights = Path("data/policy/single_agent/adapter_model.safetensors")
    assert_close(workspace.folder / weights, other.folder / weights, tolerance=1e-5)


def assert_close(left: Path, right: Path, tolerance: float) -> None:
    from safetensors.numpy import load_file

    ours, theirs = load_file(left), load_file(right)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], atol=tolerance)


def test_pull_into_a_fresh_clone_leaves_nothing_to_run(workspace, inputs, tmp_path):
    """Only a log outside the repository cannot travel, so here the logs lie inside."""
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    for game in GAMES:
        (workspace.folder / "data/logs" / game / "log.jsonl").write_bytes(
            (inputs / f"{game}.jsonl").read_bytes()
        )
        workspace.run("git", "add", "-f", f"data/logs/{game}/log.jsonl")
        workspace.set_params({f"collect.{game}.source": f"data/logs/{game}/log.jsonl"})
    workspace.repro()
    workspace.run("dvc", "remote", "add", "-f", "-d", "store", str(remote))
    workspace.commit("logs inside")
    workspace.run("dvc", "push")
    workspace.run("git", "clone", "-q", str(workspace.folder), str(clone))
    copy = Workspace(clone)
    copy.run("dvc", "pull")
    output = copy.run("dvc", "repro")
    assert stages_in(output) == (set(), set())
    assert "up to date" in output


def test_a_killed_run_leaves_nothing_half_written_and_the_next_one_finishes(workspace):
    """SIGKILL of the whole process group at a random moment, thrice, on a changed seed."""
    rng = random.Random(time.time_ns())
    workspace.set_params({"seed": 1})
    for _ in range(3):
        moment = rng.uniform(2, 25)
        process = subprocess.Popen(
            ["dvc", "repro"],
            cwd=workspace.folder,
            env=workspace.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert_whole(workspace.folder / "data")
    workspace.repro()
    assert stages_in(workspace.run("dvc", "repro")) == (set(), set())
    assert not list((workspace.folder / "data").rglob("*.aside")), "left-overs of the killed run"


def assert_whole(data: Path) -> None:
    """Every output that has its final name can be read to its end."""
    import orjson
    import pyarrow.parquet as pq
    from safetensors.torch import load_file

    for path in data.rglob("*"):
        if ".aside" in str(path):
            continue
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".json":
            orjson.loads(path.read_bytes())
        elif path.suffix == ".jsonl":
            [orjson.loads(line) for line in path.read_bytes().splitlines()]
        elif path.suffix == ".safetensors":
            load_file(path)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"actions": [', "line 1: broken JSON"),
        (b'{"actions": ["a?"], "obs": ["b", "c", "d"], "reward": 0}', "actions has 1 elements"),
        (b'{"actions": ["a\xff"], "obs": ["b"], "reward": 0}', "not UTF-8"),
        (b"", "no episodes"),
    ],
)
def test_a_bad_log_stops_the_stage_with_one_line(workspace, tmp_path, raw, expected):
    log = tmp_path / "bad.jsonl"
    log.write_bytes(raw)
    kept = (workspace.folder / "params.yaml").read_text()
    target = workspace.folder / "data/raw/twenty_questions.jsonl"
    target.unlink(missing_ok=True)
    workspace.set_params({"collect.twenty_questions.source": str(log)})
    try:
        process = subprocess.run(
            ["python", "stages/collect.py", "twenty_questions"],
            cwd=workspace.folder,
            env={**workspace.env, "PYTHONPATH": "src"},
            text=True,
            capture_output=True,
        )
    finally:
        (workspace.folder / "params.yaml").write_text(kept)
    assert process.returncode == 1
    (line,) = process.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert str(log) in line
    assert expected in line
    assert not target.exists()


def test_a_stage_refuses_another_copy_of_the_code(workspace, tmp_path):
    """What a queued experiment under an editable install would silently do."""
    process = subprocess.run(
        ["python", str(workspace.folder / "stages/prepare.py"), "twenty_questions"],
        cwd=tmp_path,
        env={**workspace.env, "PYTHONPATH": str(workspace.folder / "src")},
        text=True,
        capture_output=True,
    )
    assert process.returncode == 1
    assert "run stages from the repository's root" in process.stderr
