"""Checkpoints outside the stages' outputs, keyed by what goes into the training.

`.aria_cache/<stage>/<key>/` holds `checkpoint-N/` folders while a run is under way and
`result-<precision>/` when it is done, each with a manifest of checksums that is written last. A run
with the same key goes on where the last whole checkpoint stands, or copies the result; what is
damaged is named and computed again. The key covers data, parameters, base weights, our training
code and the libraries that compute, so a changed input never meets an old result. One process at a
time trains in a folder.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import orjson
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from aria_dvc.aside import discard, written_aside
from aria_dvc.cache.folder import LAYOUT, cache_folder, note_use
from aria_dvc.cache.locks import FolderLock
from aria_dvc.cache.sums import (
    MANIFEST,
    damage_of,
    differing,
    has_manifest,
    read_mark,
    write_manifest,
)
from aria_dvc.errors import AriaError
from aria_dvc.failures import one_line
from aria_dvc.files import read_json
from aria_dvc.fingerprints import code_hash
from aria_dvc.memory import give_back_memory, is_out_of_memory
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.libraries import GENERATING, library_versions

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Precision

logger = logging.getLogger(__name__)
T = TypeVar("T")


def run_key(stage: str, data_hash: str, base_hash: str, settings: Any) -> str:
    """A name for everything that decides how a training ends, its code included.

    Args:
        stage: the module of this package that trains.
        data_hash: hash of the training sequences and their values.
        base_hash: hash of the initial weights.
        settings: JSON-able parameters.
    """
    state = hashlib.sha256(f"{LAYOUT} {data_hash}{base_hash}".encode())
    state.update(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))
    state.update(library_versions(GENERATING).encode())
    state.update(code_hash(f"aria_dvc.learning.{stage}").encode())
    return state.hexdigest()[:24]


def process_state() -> PartialState:
    """Which of the processes of this training we are."""
    return PartialState(cpu=not torch.cuda.is_available())


def first_says(look: Callable[[], T]) -> T:
    """What the first process finds, told to all, so that they agree; only the first one looks."""
    found = [look() if process_state().is_main_process else None]
    return cast(T, broadcast_object_list(found)[0])


class RunFolder:
    """The cache folder of one training run.

    precision: `pace.precision`. Checkpoints are gone on from in any, since a run that failed in one
        may be finished in another; a result counts only for the one it was asked in.
    """

    def __init__(
        self, stage: str, key: str, cache: Path | None = None, precision: Precision = "auto"
    ) -> None:
        self.path = (cache or cache_folder()) / stage / key
        self.result = self.path / f"result-{'bfloat16' if uses_bfloat16(precision) else 'float32'}"
        self._lock = FolderLock(self.path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """The right to write here; the first process takes it for all of a launch.

        Raises:
            AriaError: another process trains the same.
        """
        with self._lock.held() if process_state().is_main_process else nullcontext():
            yield

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the result from being pruned while it is read; nobody is waited for.

        Checkpoints that are still here are of a run that was killed once its result was whole.
        """
        mine = False
        with suppress(OSError):  # a cache that may only be read
            mine = self._lock.take()
            if mine:
                self.drop_checkpoints()
        try:
            yield
        finally:
            if mine:
                self._lock.let_go()

    def is_finished(self) -> bool:
        """Whether a whole result is here; a damaged one is named."""
        return first_says(self._is_finished)

    def _is_finished(self) -> bool:
        if not has_manifest(self.result):
            return False
        note_use(self.path)
        damaged = damage_of(self.result / MANIFEST)
        if damaged:
            logger.warning("%s: %s damaged: it is computed again", self.result, ", ".join(damaged))
        return not damaged

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A folder for the result; it counts as finished once the block ends without an error.

        Only the first process keeps what it writes; the others get a folder to throw away.
        """
        state = process_state()
        if state.is_main_process:
            if self.result.exists():  # damaged
                discard(self.result)
            with written_aside(self.result) as aside:
                aside.mkdir(parents=True)
                yield aside
                write_manifest(aside)
        else:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder)
        state.wait_for_everyone()

    def last_checkpoint(self) -> str | None:
        """The newest whole checkpoint; what is half-written or damaged is removed, the latter with
        a line on standard error."""
        return first_says(self._last_checkpoint)

    def _last_checkpoint(self) -> str | None:
        for folder in sorted(self.path.glob("checkpoint-*"), key=_step, reverse=True):
            if not has_manifest(folder):
                discard(folder)
                continue
            damaged = damage_of(folder / MANIFEST)
            if not damaged:
                return str(folder)
            logger.warning(
                "%s: %s damaged: training goes on from the checkpoint before, if there is one",
                *(folder, ", ".join(damaged)),
            )
            discard(folder)
        return None

    def drop_checkpoints(self) -> None:
        """Remove the checkpoints of a run that is finished."""
        if process_state().is_main_process:
            for checkpoint in self.path.glob("checkpoint-*"):
                discard(checkpoint)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def finish(run: RunFolder, out_dir: str | Path, work: Callable[[], None]) -> dict[str, Any]:
    """Have `work` leave its result in `run` if no whole one is there, and copy it to `out_dir`.

    A finished result is only read: nobody waits for it and nobody is kept from it.

    Returns:
        The result's metrics.

    Raises:
        AriaError: another process trains the same, or the result cannot be copied unchanged.
    """
    if not run.is_finished():
        with run.held():
            if not run.is_finished():
                work()
            run.drop_checkpoints()
    return _deliver(run, out_dir)


def _deliver(run: RunFolder, out_dir: str | Path) -> dict[str, Any]:
    metrics: dict[str, Any] = read_json(run.result / "metrics.json")
    if process_state().is_main_process:
        with run.kept(), written_aside(out_dir) as aside:
            shutil.copytree(run.result, aside, ignore=shutil.ignore_patterns(MANIFEST))
            wrong = differing(aside, read_mark(run.result / MANIFEST)["sums"])
            if wrong:
                raise AriaError(
                    f"{out_dir}: {wrong[0]} was not copied from {run.result} as it was written: "
                    "see the disk, and run again"
                )
    return metrics


class MarkComplete(TrainerCallback):
    """Gives a checkpoint its manifest once all processes have written their files of it."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        process_state().wait_for_everyone()
        if state.is_world_process_zero:
            write_manifest(Path(args.output_dir) / f"checkpoint-{state.global_step}")


@contextmanager
def training_errors(stage: str) -> Iterator[None]:
    """Turns what ends a training into one line; the last whole checkpoint stays.

    The training's memory goes back to the system either way.

    Raises:
        AriaError: out of memory, a full disk or another of the failures that have one line.
    """
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise AriaError(_out_of_memory(stage)) from None
        failed = None if isinstance(error, AriaError) else one_line(error)
        if failed:
            raise AriaError(
                f"{stage}: {failed}; training goes on from its last checkpoint"
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
