"""What ends a training and what survives it: kills, NaN, a full disk, no memory."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from damage import flip
from learning_tiny import LORA, PACE, made_up_game, policy_params, save_tiny_base
from safetensors.torch import load_file
from settings import pace

from aria_dvc.cache.sums import MANIFEST, damage_of, write_manifest
from aria_dvc.errors import AriaError
from aria_dvc.learning import checkpoints
from aria_dvc.learning.checkpoints import RunFolder, training_errors
from aria_dvc.learning.policy import PolicyTrainer, train_policy
from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params
from aria_dvc.params_errors import described_fields

TESTS = Path(__file__).parent
DROPOUT = LORA.model_copy(update={"dropout": 0.2})  # draws on the restored random state
PARAMS = policy_params(epochs=3, batch_size=4, lora=DROPOUT)

KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from test_learning_checkpoints import GAMES, PACE, PARAMS
from aria_dvc.learning.policy import train_policy
from aria_dvc.models.source import ModelSource

def progress(done, total):
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

folder = Path(sys.argv[1])
train_policy(PARAMS, PACE, GAMES, ModelSource(folder / "base"), folder / "killed", seed=0,
             cache=folder / sys.argv[3], progress=progress)
"""
GAMES = [made_up_game(episodes=8, turns=3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    save_tiny_base(path / "base")
    return path


def train(folder, out, cache="cache", params=PARAMS, games=GAMES, pace=PACE, **extra):
    return train_policy(
        params, pace, games, ModelSource(folder / "base"), out,
        seed=0, cache=folder / cache, **extra,
    )  # fmt: skip


def kill_at(folder, step, cache="cache"):
    command = [sys.executable, "-c", KILLED_RUN, str(folder), str(step), cache]
    return subprocess.run(command, env=environment(), capture_output=True, check=False)


def environment():
    return {**os.environ, "PYTHONPATH": f"src{os.pathsep}{TESTS}"}


def test_killed_run_resumes_and_ends_at_the_same_weights(folder):
    train(folder, folder / "whole", cache="other")
    result = kill_at(folder, 5)
    assert result.returncode == -signal.SIGKILL, result.stderr.decode()
    assert not (folder / "killed").exists()
    started = []
    train(folder, folder / "killed", progress=lambda done, total: started.append(done))
    assert started[0] == 5  # the newest checkpoint is of step 4
    for name, tensor in load_file(folder / "whole" / "adapter_model.safetensors").items():
        resumed = load_file(folder / "killed" / "adapter_model.safetensors")[name]
        torch.testing.assert_close(resumed, tensor, rtol=1e-6, atol=1e-7)
    curves = [pd.read_csv(folder / run / "history.csv") for run in ("whole", "killed")]
    pd.testing.assert_frame_equal(*curves, rtol=1e-5)


def test_finished_result_is_restored_unless_an_input_changed(folder, tmp_path):
    steps: list[int] = []
    train(folder, tmp_path / "a", progress=lambda done, total: steps.append(done))
    before = len(steps)
    train(folder, tmp_path / "b", progress=lambda done, total: steps.append(done))
    assert len(steps) == before
    assert (tmp_path / "a" / "adapter_model.safetensors").read_bytes() == (
        tmp_path / "b" / "adapter_model.safetensors"
    ).read_bytes()
    changed = GAMES[0].rewards.assign(reward=GAMES[0].rewards["reward"] * 0.5)
    games = [replace(GAMES[0], rewards=changed)]
    train(folder, tmp_path / "c", games=games, progress=lambda done, total: steps.append(done))
    assert len(steps) > before


def test_killed_run_may_go_on_at_another_pace(folder):
    def dies(done, total):
        if done == 5:
            raise KeyboardInterrupt

    steady = {"params": policy_params(epochs=3)}  # no dropout, which draws for each micro-batch
    train(folder, folder / "steady", cache="cache-steady", **steady)
    with pytest.raises(KeyboardInterrupt):
        train(folder, folder / "paced", cache="cache-paced", progress=dies, **steady)
    steady["pace"] = pace(tokens_per_batch=300, checkpoint_every=3)
    started = []
    steady["progress"] = lambda done, total: started.append(done)
    train(folder, folder / "paced", cache="cache-paced", **steady)
    assert started[0] == 5
    curves = [pd.read_csv(folder / run / "history.csv") for run in ("steady", "paced")]
    pd.testing.assert_frame_equal(*curves, rtol=1e-3)
    weights = [load_file(folder / run / "adapter_model.safetensors") for run in ("steady", "paced")]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-5)


def test_half_written_checkpoint_is_passed_over(tmp_path, monkeypatch):
    run = RunFolder("policy", "key", tmp_path)
    for step in (2, 4, 10):
        (run.path / f"checkpoint-{step}").mkdir(parents=True)
        if step != 10:
            write_manifest(run.path / f"checkpoint-{step}")
    with monkeypatch.context() as patch:
        second = SimpleNamespace(is_main_process=False)
        patch.setattr("aria_dvc.learning.checkpoints.PartialState", lambda cpu: second)
        run.last_checkpoint()
        run.drop_checkpoints()
    assert (run.path / "checkpoint-10").exists()  # left to the first process
    assert run.last_checkpoint() == str(run.path / "checkpoint-4")
    assert not (run.path / "checkpoint-10").exists()


@pytest.fixture
def failing(monkeypatch):
    """A loss that goes wrong at its fifth optimiser step."""

    def install(kind):
        original = PolicyTrainer.batch_loss

        def loss(self, model, inputs):
            if self.state.global_step < 4:
                return original(self, model, inputs)
            if kind == "nan":
                return original(self, model, inputs) * float("nan")
            if kind == "gradient":
                value = original(self, model, inputs)
                return value + (value - value.detach()).abs().sqrt()
            raise kind

        monkeypatch.setattr(PolicyTrainer, "batch_loss", loss)

    return install


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("nan", "loss became nan at step 5"),
        ("gradient", "gradient became nan at step 5"),
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "out of memory: lower pace.tokens_per_batch or policy.max_tokens",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 1 bytes"), "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk full"),
    ],
)
def test_failures_are_one_line_and_keep_the_last_checkpoint(folder, failing, failure, message):
    cache = folder / "failing"
    shutil.rmtree(cache, ignore_errors=True)
    failing(failure)
    with pytest.raises(AriaError, match=message) as caught:
        train(folder, folder / "failed", cache="failing")
    assert "\n" not in str(caught.value)
    assert not (folder / "failed").exists()
    (checkpoint,) = cache.glob("policy/*/checkpoint-4")
    assert damage_of(checkpoint / MANIFEST) == []
    for tensor in load_file(checkpoint / "adapter_model.safetensors").values():
        assert torch.isfinite(tensor).all()


def test_disk_that_fills_while_a_checkpoint_is_written(folder, monkeypatch):
    def full(self, output_dir=None, _internal_call=False):
        if self.state.global_step > 2:
            raise RuntimeError("PytorchStreamWriter failed: No space left on device")
        return original(self, output_dir, _internal_call)

    original = PolicyTrainer.save_model
    monkeypatch.setattr(PolicyTrainer, "save_model", full)
    with pytest.raises(AriaError, match="disk full"):
        train(folder, folder / "full", cache="cache-full")
    monkeypatch.undo()
    started: list[int] = []
    train(folder, folder / "full", cache="cache-full", progress=lambda d, t: started.append(d))
    assert started[0] == 3


def test_disk_that_fills_while_the_result_is_delivered(folder, monkeypatch):
    def full(source, target, ignore):
        raise shutil.Error([(source, target, "[Errno 28] No space left on device")])

    monkeypatch.setattr(checkpoints.shutil, "copytree", full)
    with pytest.raises(AriaError, match="disk full"):
        train(folder, folder / "delivered", cache="undelivered")
    assert not (folder / "delivered").exists()


@pytest.mark.parametrize("stage", ["base_model", "reward_model", "policy", "online"])
def test_a_lack_of_memory_names_knobs_that_there_are(stage):
    with (
        pytest.raises(AriaError, match=f"^{stage}: out of memory") as caught,
        training_errors(stage),
    ):
        raise MemoryError
    knobs = re.findall(r"[a-z_]+(?:\.[a-z_]+)+", str(caught.value))
    assert knobs[0] == "pace.tokens_per_batch"
    for knob in knobs:
        *block, name = knob.split(".")
        assert name in described_fields(Params, tuple(block)), knob
    assert len(knobs) == 2


@pytest.fixture(scope="module")
def interrupted(folder):
    """The cache of a run that was cut short in its fifth step of six."""

    def dies(done, total):
        if done == 5:
            raise KeyboardInterrupt

    train(folder, folder / "interrupted" / "whole", cache="interrupted-whole")
    with pytest.raises(KeyboardInterrupt):
        train(folder, folder / "out", cache="interrupted/cache", progress=dies)
    return folder / "interrupted" / "cache"


@pytest.mark.parametrize("damage", ["flip", "truncate", "missing"])
@pytest.mark.parametrize("name", ["adapter_model.safetensors", "optimizer.pt", MANIFEST])
def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(
    folder, interrupted, tmp_path, caplog, damage, name
):
    cache = tmp_path / "cache"
    shutil.copytree(interrupted, cache)
    (newest,) = cache.glob("policy/*/checkpoint-4")
    if damage == "flip":
        flip(newest / name)
    elif damage == "truncate":
        os.truncate(newest / name, 10)
    else:
        (newest / name).unlink()
    started = []
    train(folder, tmp_path / "out", cache, progress=lambda done, total: started.append(done))
    assert started[0] == 3
    # without a manifest it was never finished, which is nothing unusual
    named = f"checkpoint-4: {name} damaged: training goes on from the checkpoint before"
    assert (named in caplog.text) == ((name, damage) != (MANIFEST, "missing"))
    whole = load_file(interrupted.parent / "whole" / "adapter_model.safetensors")
    for key, tensor in load_file(tmp_path / "out" / "adapter_model.safetensors").items():
        torch.testing.assert_close(tensor, whole[key], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "metrics.json", "history.csv"])
def test_a_damaged_result_is_named_and_computed_again(folder, tmp_path, caplog, name):
    train(folder, tmp_path / "a", cache=tmp_path / "cache")
    (result,) = (tmp_path / "cache").glob("policy/*/result-*")
    flip(result / name)
    steps = []
    train(folder, tmp_path / "b", tmp_path / "cache", progress=lambda d, t: steps.append(d))
    assert f"{name} damaged: it is computed again" in caplog.text
    assert steps[0] == 1
    assert (tmp_path / "a" / "adapter_model.safetensors").read_bytes() == (
        tmp_path / "b" / "adapter_model.safetensors"
    ).read_bytes()
    assert damage_of(result / MANIFEST) == []
    assert not (tmp_path / "b" / MANIFEST).exists()


def test_what_is_delivered_is_what_was_trained(folder, tmp_path, monkeypatch):
    def damaging(source, target, ignore):
        shutil_copytree(source, target, ignore=ignore)
        flip(Path(target) / "adapter_model.safetensors")

    shutil_copytree = shutil.copytree
    monkeypatch.setattr(checkpoints.shutil, "copytree", damaging)
    with pytest.raises(AriaError, match=r"adapter_model.safetensors was not copied from"):
        train(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_result_counts_for_the_precision_that_it_was_asked_in(folder, tmp_path):
    steps: list[int] = []
    for precision, trained in (("float32", True), ("bfloat16", True), ("float32", False)):
        steps.clear()
        train(
            *(folder, tmp_path / precision, tmp_path / "cache"),
            pace=pace(precision=precision, checkpoint_every=2),
            progress=lambda done, total: steps.append(done),
        )
        assert bool(steps) == trained
    (run,) = (tmp_path / "cache" / "policy").iterdir()
    assert {path.name for path in run.glob("result-*")} == {"result-float32", "result-bfloat16"}


HELD_RUN = KILLED_RUN.replace("os.kill(os.getpid(), signal.SIGKILL)", "print('at', flush=True)\n"
                              "        import time; time.sleep(60)")  # fmt: skip


KILLED_AT_THE_END = KILLED_RUN.replace(
    "folder = Path",
    """
from aria_dvc.learning.checkpoints import RunFolder
RunFolder.drop_checkpoints = lambda self: os.kill(os.getpid(), signal.SIGKILL)
folder = Path""",
    1,
)


def test_a_run_that_is_killed_once_its_result_is_whole_leaves_no_checkpoints(folder):
    command = [sys.executable, "-c", KILLED_AT_THE_END, str(folder), "-1", "cache-end"]
    done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    (run,) = (folder / "cache-end" / "policy").iterdir()
    assert list(run.glob("checkpoint-*"))
    started = []
    train(folder, folder / "end", "cache-end", progress=lambda *step: started.append(step))
    assert started == []
    assert list(run.glob("checkpoint-*")) == []


def test_a_second_process_does_not_train_the_same_and_a_reader_does_not_wait(folder, monkeypatch):
    monkeypatch.setattr("aria_dvc.cache.locks.GRACE_S", 0.2)
    command = [sys.executable, "-c", HELD_RUN, str(folder), "5", "cache-held"]
    first = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE)
    assert first.stdout.readline() == b"at\n"
    (checkpoint,) = (folder / "cache-held").glob("policy/*/checkpoint-4")
    with pytest.raises(AriaError, match=rf"in use by process {first.pid} on .* wait until"):
        train(folder, folder / "second", "cache-held")
    assert damage_of(checkpoint / MANIFEST) == []  # it has removed nothing
    train(folder, folder / "reader", "cache")  # finished before: only read
    with RunFolder("policy", checkpoint.parent.name, folder / "cache")._lock.held():
        train(folder, folder / "reader", "cache")
    first.kill()
    first.wait()
    train(folder, folder / "second", "cache-held")


def test_other_errors_are_not_disguised():
    with pytest.raises(ZeroDivisionError), training_errors("policy"):
        raise ZeroDivisionError


def test_no_pickled_weights_are_written_or_read(folder, tmp_path):
    train(folder, tmp_path / "out")
    names = {p.suffix for p in (tmp_path / "out").iterdir()}
    assert names <= {".safetensors", ".json", ".csv"}
