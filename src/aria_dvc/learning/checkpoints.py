"""Checkpoints outside the stages' outputs, keyed by what goes into the training.

`.aria_cache/<stage>/<key>/` holds `checkpoint-N/` folders while a run is under way and `result/`
when it is done. A run with the same key goes on where the last whole checkpoint stands, or copies
the result. The key covers data, parameters, base weights, our training code and the libraries
that compute, so a changed input never meets an old result.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import torch
from accelerate import PartialState
from transformers import TrainerCallback

from aria_dvc.cache import cache_folder
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, written_aside
from aria_dvc.fingerprints import code_hash
from aria_dvc.memory import give_back_memory, is_out_of_memory

COMPLETE = "complete"
LIBRARIES = ("torch", "transformers", "peft", "accelerate")


def run_key(stage: str, data_hash: str, base_hash: str, settings: Any) -> str:
    """A name for everything that decides how a training ends, its code included.

    Args:
        stage: the module of this package that trains.
        data_hash: hash of the training sequences and their values.
        base_hash: hash of the initial weights.
        settings: JSON-able parameters.
    """
    state = hashlib.sha256((data_hash + base_hash).encode())
    state.update(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))
    for name in LIBRARIES:
        state.update(f"{name} {importlib.metadata.version(name)}".encode())
    state.update(code_hash(f"aria_dvc.learning.{stage}").encode())
    return state.hexdigest()[:24]


def process_state() -> PartialState:
    """Which of the processes of this training we are."""
    return PartialState(cpu=not torch.cuda.is_available())


class RunFolder:
    """The cache folder of one training run."""

    def __init__(self, stage: str, key: str, cache: Path | None = None) -> None:
        self.path = (cache or cache_folder()) / stage / key

    @property
    def result(self) -> Path:
        return self.path / "result"

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A folder for the result; it counts as finished once the block ends without an error.

        Only the first process keeps what it writes; the others get a folder to throw away.
        """
        state = process_state()
        target = self.result if state.is_main_process else self.path / f"rank{state.process_index}"
        with written_aside(target) as aside:
            aside.mkdir(parents=True)
            yield aside
        if not state.is_main_process:
            shutil.rmtree(target)
        state.wait_for_everyone()

    def last_checkpoint(self) -> str | None:
        """The newest whole checkpoint; the first process removes half-written ones."""
        first = process_state().is_main_process
        whole: dict[int, Path] = {}
        for folder in self.path.glob("checkpoint-*"):
            if (folder / COMPLETE).is_file():
                whole[int(folder.name.rpartition("-")[2])] = folder
            elif first:
                shutil.rmtree(folder)
        return str(whole[max(whole)]) if whole else None


def deliver(run: RunFolder, out_dir: str | Path) -> dict[str, Any]:
    """Copy a finished result to `out_dir`, drop the run's checkpoints; returns its metrics."""
    metrics: dict[str, Any] = read_json(run.result / "metrics.json")
    if process_state().is_main_process:
        with written_aside(out_dir) as aside:
            shutil.copytree(run.result, aside)
        for checkpoint in run.path.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
    return metrics


class MarkComplete(TrainerCallback):
    """Marks a checkpoint whose every file is written; one cut short by a kill has no mark."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            (folder / COMPLETE).touch()


@contextmanager
def training_errors(stage: str) -> Iterator[None]:
    """Turns what ends a training into one line; the last whole checkpoint stays.

    The training's memory goes back to the system either way.

    Raises:
        AriaError: disk full, or out of memory.
    """
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise AriaError(_out_of_memory(stage)) from None
        if _is_full_disk(error):
            raise AriaError(
                f"{stage}: the disk is full: free some space and run again; training goes on "
                "from the last checkpoint"
            ) from None
        raise
    finally:
        give_back_memory()


def _out_of_memory(stage: str) -> str:
    block = {"base_model": "base_model.warm_start_settings", "online": "policy"}.get(stage, stage)
    return (
        f"{stage}: out of memory: lower pace.tokens_per_batch or {block}.max_tokens and run "
        "again; the last checkpoint is kept"
    )


def _is_full_disk(error: BaseException) -> bool:
    """Full disks reach us as OSError, or as text inside other libraries' errors."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    text = str(error)
    return "No space left on device" in text or "os error 28" in text
