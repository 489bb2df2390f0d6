"""The update of online training: some optimiser steps on credited games."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aria_dvc.aside import discard
from aria_dvc.learning.batches import Paired, global_batches, trains_nothing
from aria_dvc.learning.checkpoints import process_state
from aria_dvc.learning.examples import LogFrames, with_values
from aria_dvc.learning.fresh_credit import Verdict
from aria_dvc.learning.movement import kl_moved
from aria_dvc.learning.objective import KlPenalty, PolicyCollate, adapter_off, policy_collate
from aria_dvc.learning.online_run import OnlineRun, State
from aria_dvc.learning.own_actions import sampled_examples
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    fit,
    history,
    make_deterministic,
)
from aria_dvc.memory import give_back_memory
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.seeds import derived_seed

SEQUENCES = 16  # at which it is looked how far the policy has moved, in every iteration


def training_data(task: OnlineRun, frames: Sequence[LogFrames], verdict: Verdict) -> list[Paired]:
    weights = task.credit.weights(frames, verdict, task.seed)
    examples = sampled_examples(frames, task.renderer, task.params.max_tokens)
    return with_values(examples.items, weights, keep_zero=task.params.kl > 0)


def update(
    task: OnlineRun, state: State, data: list[Paired]
) -> tuple[int, dict[str, float | None], Path]:
    """`updates` optimiser steps, going on from the last iteration's optimiser and random state.

    Returns:
        All steps so far, what was measured in the new ones, and the folder of the newest policy.
    """
    online, done = task.online, state["steps"]
    if trains_nothing(data):  # every advantage is 0, and so is the gradient
        return done, {"loss": None, "gradient_norm": None}, Path(state["policy"])
    checkpoint = task.run.path / f"checkpoint-{done + online.updates}"
    if process_state().is_main_process and checkpoint.is_dir():  # of an iteration cut short
        discard(checkpoint)
    make_deterministic(task.seed)
    trainer = fit(
        PolicyTrainer,
        task.model,
        data,
        _batches(task, state["iteration"], len(data)),
        _collate(task),
        task.run.path,
        FitSettings(
            learning_rate=online.learning_rate,
            seed=task.seed,
            pace=task.pace.model_copy(update={"checkpoint_every": online.updates}),
        ),
        resume=state["policy"] if done else None,
        done=done,
        penalty=KlPenalty(task.params.kl, adapter_off) if task.params.kl else None,
    )
    measured = _measured(task, trainer, data, done)
    _unwrap(task, trainer)
    del trainer  # its wrapper of the model must be gone before the next one's
    give_back_memory()
    return done + online.updates, measured, checkpoint


def _measured(
    task: OnlineRun, trainer: MicroBatchTrainer, data: list[Paired], done: int
) -> dict[str, float | None]:
    """Means over the steps after the first `done`, and how far the policy is from its base."""
    steps = history(trainer.state)
    new = steps[steps["step"] > done]
    moved = kl_moved(
        trainer.model_wrapped,
        data,
        _collate(task),
        adapter_off,
        tokens_per_batch=task.pace.tokens_per_batch,
        bfloat16=uses_bfloat16(task.pace.precision),
        seed=task.seed,
        sequences=SEQUENCES,
    )
    return {**{name: float(new[name].mean()) for name in ("loss", "gradient_norm")}, **moved}


def _collate(task: OnlineRun) -> PolicyCollate:
    pad = task.renderer.tokenizer.pad_token_id
    return policy_collate(pad, task.params.kl > 0, model=task.model)


def _unwrap(task: OnlineRun, trainer: MicroBatchTrainer) -> None:
    """Leave the model as it was loaded, for the next iteration; a sharded one is loaded anew."""
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        del task.__dict__["model"]
    else:
        trainer.accelerator.unwrap_model(trainer.model_wrapped, keep_fp32_wrapper=False)


def _batches(task: OnlineRun, iteration: int, count: int) -> list[np.ndarray]:
    online = task.online
    per_pass = -(-count // online.batch_size)
    seed = derived_seed(task.seed, "update", iteration)
    return global_batches(count, online.batch_size, online.updates / per_pass, seed)
