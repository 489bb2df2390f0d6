"""What the policy's and the reward model's trainers share, on top of transformers' Trainer.

Launch on several processes with `accelerate launch --config_file configs/accelerate/X.yaml
stages/policy.py VARIANT CATEGORY`: Trainer and accelerate wrap the model for DDP or its kin.
The data is a fixed list of micro-batches (see batches.py), so samplers have no state to restore.
"""

from __future__ import annotations

import math
import os
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from aria_dvc.cores import lanes
from aria_dvc.errors import AriaError
from aria_dvc.files import write_csv
from aria_dvc.learning.batches import Collate, Member, MicroBatches, Plan, WholeSteps, make_plan
from aria_dvc.learning.checkpoints import MarkComplete, process_state
from aria_dvc.learning.lanes import (
    Gradients,
    add_to,
    computes_alone,
    gradients_of,
    side_by_side,
)
from aria_dvc.learning.trackers import NOWHERE, Tracking
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.quiet import quiet_transformers
from aria_dvc.models.saving import tidy
from aria_dvc.models.source import ModelSource

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Pace

Progress = Callable[[int, int], None]
# Columns of history.csv, and what Trainer's log calls them.
LOGGED = {
    "step": "step",
    "loss": "loss",
    "gradient_norm": "grad_norm",
    "entropy_per_action": "entropy_per_action",
    **{name: name for name in ("kl_estimate", "margin", "preferred", "clipped", "tokens")},
}
# Figures of a step that only some objectives have.
OWN_FIGURES = ("clip_share", "kl_estimate", "margin", "preferred")


class MicroBatchTrainer(Trainer, ABC):
    """A Trainer over `MicroBatches`; subclasses define `batch_loss`.

    The loss of a micro-batch is a *sum* divided by the actions of its global batch, so gradients
    add up over accumulation steps. Across processes they are averaged by DDP and its kin, hence
    the factor of the number of processes.
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self, *args: Any, horizon: int | None = None, lanes: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.horizon = horizon
        self.lanes = lanes
        self._noted: dict[str, torch.Tensor] = {}
        self._of_lane = threading.local()

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The learning rate's course over `horizon` steps, of which these may be a part."""
        return super().create_scheduler(self.horizon or num_training_steps, optimizer)

    @classmethod
    def in_turn(cls, extra: Mapping[str, Any]) -> bool:
        """Whether micro-batches must follow one another, since the loss changes the model for a
        while; extra: the arguments that are the class's own."""
        return False

    @abstractmethod
    def batch_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """The micro-batch's share of the global batch's mean loss, a scalar."""

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        loss = self.batch_loss(model, inputs)
        if not torch.isfinite(loss):
            raise AriaError(
                f"the loss became {loss.item()} at step {self.state.global_step + 1}: lower "
                "learning_rate, or set pace.precision: float32; the last checkpoint is kept"
            )
        loss = loss * self.args.world_size
        return (loss, None) if return_outputs else loss

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """A micro-batch, or with lanes all of a step: adds to the gradients, returns the loss."""
        if isinstance(inputs, dict):
            return super().training_step(model, inputs, num_items_in_batch)
        model.train()
        parameters = [one for one in model.parameters() if one.requires_grad]

        def compute(batch: dict[str, torch.Tensor]) -> tuple[Gradients, dict[str, torch.Tensor]]:
            self._of_lane.noted = {}
            loss = self.compute_loss(model, batch)
            return gradients_of(loss, parameters), self._of_lane.noted

        total = 0.0
        for gradients, noted in side_by_side(compute, inputs, self.lanes):
            add_to(parameters, gradients)
            total = total + gradients.loss
            for name, value in noted.items():
                self.note(name, value)
        return total

    def _clip_grad_norm(self, model: Any) -> Any:
        """Checked before the optimiser moves: no checkpoint ever holds a poisoned weight."""
        norm = super()._clip_grad_norm(model)
        if norm is not None and not math.isfinite(float(norm)):
            raise AriaError(
                f"the gradient became {float(norm)} at step {self.state.global_step + 1}: lower "
                "learning_rate, or set pace.precision: float32; the last checkpoint is kept"
            )
        return norm

    def note(self, name: str, value: torch.Tensor) -> None:
        """Add a micro-batch's share of a figure of the step, logged beside its loss."""
        noted = getattr(self._of_lane, "noted", self._noted)
        noted[name] = noted.get(name, 0.0) + value.detach()

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            noted, self._noted = self._noted, {}
            for name, value in noted.items():
                logs[name] = float(self.accelerator.reduce(value, "sum"))
        if "spoken" in logs:
            logs["entropy_per_action"] = logs.pop("entropy") / max(logs.pop("spoken"), 1.0)
        super().log(logs, start_time)

    def floating_point_ops(self, inputs: Any) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How to optimise.

    schedule: "linear" (to 0) or "constant" learning rate.
    horizon: steps until a linear one is 0; these steps and those done before, if not given.
    """

    learning_rate: float
    seed: int
    pace: Pace
    schedule: str = "constant"
    horizon: int | None = None


def fit(
    kind: type[MicroBatchTrainer],
    model: Any,
    data: Sequence[Member],
    batches: Sequence[np.ndarray],
    collate: Collate,
    folder: Path,
    settings: FitSettings,
    *,
    progress: Progress | None = None,
    resume: str | None = None,
    done: int = 0,
    tracking: Tracking = NOWHERE,
    **extra: Any,
) -> MicroBatchTrainer:
    """Train `model` on `batches` (indices into `data`), one optimiser step each.

    Args:
        folder: where checkpoints and the live loss curve go.
        resume: a checkpoint to go on from. If `done` is 0 it stands within these batches,
            otherwise it ends the `done` steps that came before them.
        tracking: who is told of every step's figures.
        extra: further arguments of the trainer class.

    Returns:
        The trainer after its last step.
    """
    side = 1 if kind.in_turn(extra) else _lanes(model, settings.pace)
    budget = settings.pace.tokens_per_batch
    plan = make_plan(data, batches, budget, collate.cut, world()[0], side)
    trainer = kind(
        model=model,
        args=_arguments(folder, plan, settings, done, tracking),
        train_dataset=(WholeSteps if side > 1 else MicroBatches)(data, plan, collate),
        data_collator=take_whole,
        lanes=side,
        callbacks=[LiveLoss(folder / "live"), MarkComplete(), *tracking.callbacks(folder)],
        horizon=settings.horizon,
        **extra,
    )
    trainer.remove_callback(PrinterCallback)
    if progress:
        trainer.add_callback(ReportProgress(progress))
    with quiet_transformers(), _resuming(resume):
        trainer.train(resume_from_checkpoint=resume)
    return trainer


@contextmanager
def _resuming(checkpoint: str | None) -> Iterator[None]:
    """Trainer reads its optimizer.pt, scheduler.pt and rng_state.pth as weights only.

    They are our own files, whose sums are compared before; a foreign one runs no code, but fails.
    """
    try:
        yield
    except pickle.UnpicklingError:
        raise AriaError(
            f"the checkpoint {checkpoint} holds more than weights, which no training here wrote: "
            "delete that folder and run again"
        ) from None


def _lanes(model: Any, pace: Pace) -> int:
    """Micro-batches that are computed side by side: on the CPU, by the one process there is."""
    if torch.cuda.is_available() or world()[0] > 1 or computes_alone(model):
        return 1
    return lanes(pace.processes)


def _arguments(
    folder: Path, plan: Plan, settings: FitSettings, done: int, tracking: Tracking
) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=plan.accumulation,
        max_steps=done + plan.steps,
        ignore_data_skip=done > 0,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        weight_decay=0.0,
        max_grad_norm=1.0,
        seed=settings.seed,
        bf16=uses_bfloat16(settings.pace.precision),
        **_checkpointing(settings.pace),
        use_cpu=not torch.cuda.is_available(),
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        accelerator_config={"even_batches": False},
        ddp_find_unused_parameters=False,
        save_strategy="steps",
        save_steps=settings.pace.checkpoint_every,
        save_total_limit=2,
        logging_steps=1,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        **tracking.arguments(folder),
    )
    # On several visible GPUs Trainer would take nn.DataParallel, which our hooks do not survive.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def _checkpointing(pace: Pace) -> dict[str, Any]:
    """Arguments of transformers, which has had other names for them; FSDP has a way of its own,
    which it is told by the environment, and refuses the other."""
    if not pace.gradient_checkpointing:
        return {}
    if os.environ.get("ACCELERATE_USE_FSDP") == "true":
        os.environ["FSDP_ACTIVATION_CHECKPOINTING"] = "true"
        return {}
    kwargs = {"use_reentrant": False}
    return {"activation_checkpointing": True, "activation_checkpointing_kwargs": kwargs}


def save(trainer: MicroBatchTrainer, folder: Path, base: ModelSource) -> None:
    """Weights as safetensors, gathered from all processes; none of the trainer's own files."""
    with quiet_transformers():
        trainer.save_model(str(folder))
    if trainer.args.should_save:
        (folder / "training_args.bin").unlink(missing_ok=True)
        tidy(folder, base)


def write_history(trainer: MicroBatchTrainer, folder: Path) -> None:
    """`history.csv`: step, loss, gradient_norm, the policy's entropy in nats per action that has
    trained tokens, and of some objectives clip_share (of the tokens), kl_estimate (per action),
    margin and preferred (of the pairs)."""
    write_csv(folder / "history.csv", history(trainer.state))


def history(state: Any) -> pd.DataFrame:
    """One row per optimiser step, those before a resume included (see `write_history`)."""
    steps = [row for row in state.log_history if "loss" in row]
    columns = {name: [row.get(key) for row in steps] for name, key in LOGGED.items()}
    found = pd.DataFrame(columns).dropna(axis="columns", how="all")
    if "clipped" not in found:
        return found
    share = found["clipped"] / found["tokens"].clip(lower=1)
    return found.drop(columns=["clipped", "tokens"]).assign(clip_share=share)


def own_figures(steps: pd.DataFrame) -> dict[str, float]:
    """Means over rows of `history` of the figures that only some objectives have."""
    return {name: float(steps[name].mean()) for name in OWN_FIGURES if name in steps}


def fit_figures(trainer: MicroBatchTrainer) -> dict[str, Any]:
    """Metrics of every training: steps, final_loss and the mean gradient_norm before clipping."""
    figures: dict[str, Any] = {
        "final_loss": final_loss(trainer),
        "steps": trainer.state.global_step,
    }
    steps = history(trainer.state)
    if "gradient_norm" in steps:
        figures["gradient_norm"] = float(steps["gradient_norm"].mean())
    return figures | own_figures(steps)


def final_loss(trainer: MicroBatchTrainer) -> float:
    """Mean loss of the last tenth of the steps (one at least)."""
    values = [loss for _, loss in losses(trainer.state)]
    tail = values[-max(1, len(values) // 10) :]
    return sum(tail) / len(tail)


def take_whole(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The collator of ready-made micro-batches."""
    return items[0]


class ReportProgress(TrainerCallback):
    """Tells `progress(done, total)` after every optimiser step."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.progress(state.global_step, state.max_steps)


class LiveLoss(TrainerCallback):
    """The loss curve as it grows, as a DVCLive log: `folder/plots/metrics/loss.tsv`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        from dvclive import Live

        self.live = Live(str(self.folder), dvcyaml=None, save_dvc_exp=False, report=None)
        for step, loss in losses(state):  # of the run that is resumed
            self._log(step, loss)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.live is not None and "loss" in kwargs["logs"]:
            self._log(state.global_step, kwargs["logs"]["loss"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.live is not None:
            self.live.end()

    def _log(self, step: int, loss: float) -> None:
        self.live.step = step
        self.live.log_metric("loss", loss)


def losses(state: Any) -> list[tuple[int, float]]:
    """(step, loss) of every optimiser step, steps before a resume included."""
    return [(row["step"], row["loss"]) for row in state.log_history if "loss" in row]


def world() -> tuple[int, int]:
    """(number of processes, this process's rank)."""
    state = process_state()
    return state.num_processes, state.process_index


def make_deterministic(seed: int) -> None:
    """Seed everything; on CPUs refuse kernels whose sums depend on timing (on GPUs many do)."""
    from transformers import set_seed

    set_seed(seed)
    if not torch.cuda.is_available():
        torch.use_deterministic_algorithms(True)
        # Writing NaN into fresh memory finds bugs in kernels; here it only costs bandwidth.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
