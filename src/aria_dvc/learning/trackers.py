"""What a training tells TensorBoard, Weights & Biases, Trackio and DVCLive while it runs.

transformers' own callbacks write, those that `report_to` would take. They are made here because a
run is to be named, found again when a training is resumed, and shared by all updates of online
training, and because DVCLive's callback by itself would write dvc.yaml and save an experiment.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import (
    DVCLiveCallback,
    TensorBoardCallback,
    TrackioCallback,
    WandbCallback,
)

from aria_dvc.cache.folder import cache_folder
from aria_dvc.errors import AriaError
from aria_dvc.learning.checkpoints import process_state

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Tracker

PROJECT = "aria-dvc"
RESULT = "result"  # the group of what metrics.json says in the end
FOLDER = "trackers"  # in the cache, which experiments in temporary folders share


@dataclass(frozen=True)
class Tracking:
    """Who is told of a training, and under which title; by default nobody.

    title: stage, category and variant. The run is called by it and by the key of the training, so
        that one that was killed goes on in its run, and one with other settings has its own.
    folder: where trackers that write files have theirs.
    """

    trackers: Sequence[Tracker] = ()
    title: str = ""
    folder: Path = field(default_factory=lambda: cache_folder() / FOLDER)

    def name(self, run: Path) -> str:
        """What the run of a training is called, by the training's folder in the cache."""
        return f"{self.title}-{run.name[:8]}"

    def callbacks(self, run: Path) -> list[TrainerCallback]:
        """One callback a tracker; none in other processes than the first.

        Raises:
            AriaError: Weights & Biases does not start.
        """
        if not self.trackers or not process_state().is_main_process:
            return []
        self.folder.mkdir(parents=True, exist_ok=True)
        return [CALLBACKS[tracker](self.folder, self.name(run)) for tracker in self.trackers]

    def arguments(self, run: Path) -> dict[str, Any]:
        """What `TrainingArguments` say of the run."""
        return {"report_to": [], "run_name": self.name(run), "project": PROJECT}

    def tell(self, run: Path, group: str, figures: Mapping[str, Any], step: int) -> None:
        """Tell figures that are no optimiser step's own, as `group/name`; numbers alone are told.

        step: how many optimiser steps have been taken.
        """
        logs = {f"{group}/{name}": value for name, value in figures.items() if _is_number(value)}
        callbacks = self.callbacks(run)
        if not callbacks:
            return
        arguments = TrainingArguments(
            output_dir=str(run),
            use_cpu=not torch.cuda.is_available(),
            accelerator_config={"use_configured_state": True},  # leaves the processes as they are
            **self.arguments(run),
        )
        state, control = TrainerState(global_step=step), TrainerControl()
        for callback in callbacks:
            callback.on_log(arguments, state, control, logs=logs)
            callback.on_train_end(arguments, state, control)


NOWHERE = Tracking()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


class _TensorBoard(TensorBoardCallback):
    """Drops what a killed training has written of steps that are now taken again."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.tb_writer = SummaryWriter(self.logging_dir, purge_step=state.global_step + 1)
        super().on_train_begin(args, state, control, **kwargs)


class _DVCLive(DVCLiveCallback):
    """Counts optimiser steps, not logs."""

    live: Any

    def on_log(self, args: Any, state: Any, *others: Any, **kwargs: Any) -> None:
        self.live.step = state.global_step
        super().on_log(args, state, *others, **kwargs)


def _tensorboard(folder: Path, name: str) -> TrainerCallback:
    callback = _TensorBoard()
    callback.logging_dir = str(folder / "tensorboard" / name)
    return callback


def _wandb(folder: Path, name: str) -> TrainerCallback:
    import wandb

    if wandb.run is not None and wandb.run.id != name:
        wandb.finish()
    project = os.environ.get("WANDB_PROJECT", PROJECT)
    try:
        if wandb.run is None:
            wandb.init(project=project, id=name, name=name, dir=str(folder), resume="allow")
    except wandb.Error as error:
        raise AriaError(
            f"trackers: wandb does not start ({error}): run `wandb login`, or set "
            "WANDB_MODE=offline"
        ) from None
    return WandbCallback()


def _trackio(folder: Path, name: str) -> TrainerCallback:
    return TrackioCallback()  # which takes the run's name and project from the arguments


def _dvclive(folder: Path, name: str) -> TrainerCallback:
    from dvclive import Live

    live = Live(str(folder / "dvclive" / name), resume=True, dvcyaml=None, save_dvc_exp=False)
    return _DVCLive(live)


CALLBACKS: dict[Tracker, Callable[[Path, str], TrainerCallback]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "trackio": _trackio,
    "dvclive": _dvclive,
}
