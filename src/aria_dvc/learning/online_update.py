"""The update of online training: some optimiser steps on credited games."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aria_dvc.aside import discard
from aria_dvc.learning.batches import Paired, global_batches, trains_nothing, zero_share
from aria_dvc.learning.checkpoints import process_state
from aria_dvc.learning.examples import LogFrames
from aria_dvc.learning.fresh_credit import Verdict
from aria_dvc.learning.movement import kl_moved
from aria_dvc.learning.objective import KlPenalty, adapter_off, policy_collate
from aria_dvc.learning.objectives.base import Material, Objective
from aria_dvc.learning.objectives.registry import objective_of
from aria_dvc.learning.objectives.scoring import Scorer
from aria_dvc.learning.online_run import OnlineRun, State
from aria_dvc.learning.own_actions import sampled_examples
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    fit,
    history,
    make_deterministic,
    own_figures,
)
from aria_dvc.memory import give_back_memory
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.lora import wear
from aria_dvc.seeds import derived_seed

SEQUENCES = 16  # at which it is looked how far the policy has moved, in every iteration


class Lesson(NamedTuple):
    """What an iteration trains: an objective, and its material from the fresh games."""

    objective: Objective
    material: Material


def lesson_of(task: OnlineRun, frames: Sequence[LogFrames], verdict: Verdict) -> Lesson:
    """What the games of an iteration teach."""
    objective = objective_of(task.credit.trained_on(verdict))
    examples = sampled_examples(frames, task.renderer, task.params.max_tokens)
    return Lesson(objective, objective.material(frames, examples.items, task.seed))


def update(
    task: OnlineRun, state: State, lesson: Lesson
) -> tuple[int, dict[str, float | None], Path]:
    """`updates` optimiser steps, going on from the last iteration's optimiser and random state.

    Returns:
        All steps so far, what was measured in the new ones, and the folder of the newest policy.
    """
    online, done, objective = task.online, state["steps"], lesson.objective
    if not trains_nothing(lesson.material.data):
        lesson = Lesson(objective, _ready(task, state, lesson))
    data = lesson.material.data
    figures = {**lesson.material.figures, "zero_advantages": zero_share(objective.sequences(data))}
    if trains_nothing(data):  # every advantage is 0, and so is the gradient
        return done, {"loss": None, "gradient_norm": None, **figures}, Path(state["policy"])
    checkpoint = task.run.path / f"checkpoint-{done + online.updates}"
    if process_state().is_main_process and checkpoint.is_dir():  # of an iteration cut short
        discard(checkpoint)
    make_deterministic(task.seed)
    trainer = fit(
        PolicyTrainer,
        task.model,
        data,
        _batches(task, state["iteration"], len(data)),
        objective.collate(_pad(task), task.model),
        task.run.path,
        FitSettings(
            learning_rate=task.params.online_learning_rate or online.learning_rate,
            seed=task.seed,
            pace=task.pace.model_copy(update={"checkpoint_every": online.updates}),
            schedule=online.schedule,
            # to the run's end, whatever iterations before had nothing to train
            horizon=done + (online.iterations - state["iteration"]) * online.updates,
        ),
        resume=state["policy"] if done else None,
        done=done,
        tracking=task.tracking,
        objective=objective,
        penalty=_penalty(objective),
    )
    measured = _measured(task, trainer, objective.sequences(data), done)
    _unwrap(task, trainer)
    del trainer  # its wrapper of the model must be gone before the next one's
    give_back_memory()
    return done + online.updates, {**measured, **figures}, checkpoint


def _ready(task: OnlineRun, state: State, lesson: Lesson) -> Material:
    """The material as the policy that played sees it: the newest one, whatever `task.model` is."""
    if not lesson.objective.scores_first:
        return lesson.material
    wear(task.model, Path(state["policy"]))
    scorer = Scorer(
        task.model,
        policy_collate(_pad(task), model=task.model),
        task.pace.tokens_per_batch,
        uses_bfloat16(task.pace.precision),
        adapter_off,
    )
    return lesson.objective.ready(lesson.material, scorer)


def _penalty(objective: Objective) -> KlPenalty | None:
    weight = objective.params.kl if objective.exact_kl else 0.0
    return KlPenalty(weight, adapter_off) if weight else None


def _measured(
    task: OnlineRun, trainer: MicroBatchTrainer, data: list[Paired], done: int
) -> dict[str, float | None]:
    """Means over the steps after the first `done`, and how far the policy is from its base."""
    steps = history(trainer.state)
    new = steps[steps["step"] > done]
    moved = kl_moved(
        trainer.model_wrapped,
        data,
        policy_collate(_pad(task), model=task.model),
        adapter_off,
        tokens_per_batch=task.pace.tokens_per_batch,
        bfloat16=uses_bfloat16(task.pace.precision),
        seed=task.seed,
        sequences=SEQUENCES,
    )
    means: dict[str, float | None] = {
        name: float(new[name].mean()) for name in ("loss", "gradient_norm")
    }
    return {**means, **own_figures(new), **moved}


def _pad(task: OnlineRun) -> int:
    pad: int = task.renderer.tokenizer.pad_token_id
    return pad


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
