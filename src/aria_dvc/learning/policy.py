"""The policy: offline training on whole dialogues, with LoRA or on all weights (sec. 3.5).

What it is trained to do is `policy.method`'s business (see objectives/).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from aria_dvc.chat import Renderer
from aria_dvc.files import write_json
from aria_dvc.learning.advantages import AGGREGATED, all_advantages, paid_by_return
from aria_dvc.learning.batches import Paired, global_batches, trains_nothing, zero_share
from aria_dvc.learning.checkpoints import (
    RunFolder,
    finish,
    process_state,
    run_key,
    training_errors,
)
from aria_dvc.learning.examples import (
    Examples,
    Key,
    LogFrames,
    digest,
    with_values,
)
from aria_dvc.learning.gradients import gradient_variances
from aria_dvc.learning.movement import kl_moved
from aria_dvc.learning.objective import (
    KlPenalty,
    ReferenceLogits,
    adapter_off,
    entropy_of,
    frozen_copy,
    policy_collate,
    selected_logits,
    weighted_nll,
)
from aria_dvc.learning.objectives.base import Material, Objective
from aria_dvc.learning.objectives.registry import objective_of
from aria_dvc.learning.objectives.scoring import Scorer
from aria_dvc.learning.own_actions import sampled_examples
from aria_dvc.learning.trackers import NOWHERE, RESULT, Tracking
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    Progress,
    fit,
    fit_figures,
    make_deterministic,
    save,
    write_history,
)
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import inference_dtype, uses_bfloat16
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora, cast_by_autocast
from aria_dvc.models.saving import save_model
from aria_dvc.models.source import ModelSource

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.training import PolicyParams

STAGE: Final = "policy"
DISCOUNTED = "discounted"
ENTROPY_TOKENS = 64  # of a micro-batch, from which the entropy in the history is estimated


class PolicyTrainer(MicroBatchTrainer):
    """Minimises the objective's loss plus the penalty; without an objective
    -sum over t of log pi(a_t | h_t) A_t."""

    def __init__(
        self,
        *args: Any,
        objective: Objective | None = None,
        penalty: KlPenalty | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.objective: Objective | None = objective
        self.penalty: KlPenalty | None = penalty

    @classmethod
    def in_turn(cls, extra: Mapping[str, Any]) -> bool:
        """A penalty takes the adapter off."""
        return extra.get("penalty") is not None

    def batch_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        logits = selected_logits(model, inputs)
        if self.objective is None:
            loss = weighted_nll(logits, inputs)
        else:
            loss = self.objective.loss(logits, inputs, self.note)
        entropy = entropy_of(logits.detach(), inputs, ENTROPY_TOKENS) * inputs["count"]
        self.note("entropy", entropy)
        self.note("spoken", inputs["spoken"])
        return loss + self.penalty(model, inputs, logits) if self.penalty else loss


@dataclass
class PolicyRun:
    """One offline training: its inputs, and what they were turned into."""

    params: PolicyParams
    pace: Pace
    frames: Sequence[LogFrames]
    base: ModelSource
    seed: int
    tokenizer: Any
    examples: Examples
    objective: Objective
    material: Material
    tracking: Tracking = NOWHERE

    @property
    def data(self) -> list[Paired]:
        """The sequences that are trained, with the values of their actions."""
        return self.objective.sequences(self.material.data)

    def key(self) -> str:
        settings: dict[str, Any] = {
            "params": self.params.model_dump(),
            "seed": self.seed,
        }
        if self.material.further is not None:
            settings["further"] = self.material.further
        if self.compares_gradients:
            settings["compared"] = [
                digest(with_values(self.examples.items, credit, keep_zero=True)).hexdigest()
                for credit in self.compared_credits()
            ]
        return run_key(STAGE, digest(self.data).hexdigest(), fingerprint(self.base), settings)

    def model(self) -> Any:
        """The base model, in the precision of play, with fresh adapters in float32; or all of it
        trainable, in float32."""
        if self.params.lora is None:
            return load_model(self.base)
        model = load_model(self.base, dtype=inference_dtype(self.pace.precision))
        return cast_by_autocast(add_lora(model, self.params.lora, STAGE))

    def penalty(self) -> KlPenalty | None:
        weighed = self.params.kl if self.objective.exact_kl else 0.0
        return KlPenalty(weighed, self._reference()) if weighed else None

    def _reference(self) -> ReferenceLogits:
        """The base model's logits."""
        return frozen_copy(load_model(self.base)) if self.params.lora is None else adapter_off

    def ready(self, model: Any) -> Material:
        """The material as the policy sees it before its first step, when it is the base model."""
        if not self.objective.scores_first:
            return self.material
        scorer = Scorer(
            model,
            policy_collate(self.tokenizer.pad_token_id, model=model),
            self.pace.tokens_per_batch,
            uses_bfloat16(self.pace.precision),
        )
        return self.objective.ready(self.material, scorer)

    def fit(self, model: Any, run: RunFolder, progress: Progress | None) -> MicroBatchTrainer:
        params, data = self.params, self.material.data
        settings = FitSettings(
            learning_rate=params.learning_rate,
            seed=self.seed,
            pace=self.pace,
        )
        return fit(
            PolicyTrainer,
            model,
            data,
            global_batches(len(data), params.batch_size, params.epochs, self.seed),
            self.objective.collate(self.tokenizer.pad_token_id, model),
            run.path,
            settings,
            progress=progress,
            resume=run.last_checkpoint(),
            tracking=self.tracking,
            objective=self.objective,
            penalty=self.penalty(),
        )

    @property
    def compares_gradients(self) -> bool:
        """Whether the variance of the gradient is measured: where credit differs from returns."""
        params = self.params
        differs = params.method == "reinforce" and params.credit != DISCOUNTED
        return differs and params.gradient_batches > 0

    def compared_credits(self) -> tuple[dict[Key, float], dict[Key, float]]:
        """The advantages with the credit that is trained on, and with plain discounted returns.

        `policy.advantage: value` takes the same v from both.
        """
        credit, advantage = self.params.credit, self.params.advantage
        returns = [paid_by_return(log) for log in self.frames]
        return (
            all_advantages(self.frames, credit, advantage),
            all_advantages(returns, AGGREGATED, advantage),
        )

    def gradient_variances(self, model: Any) -> dict[str, float]:
        """The gradient's variance under both of `compared_credits`, and their ratio."""
        if not self.compares_gradients:
            return {}
        params = self.params
        first, second = gradient_variances(
            model.to(process_state().device),
            self.examples.items,
            self.compared_credits(),
            policy_collate(self.tokenizer.pad_token_id, keep_zero=True, model=model),
            batches=params.gradient_batches,
            seed=self.seed,
            bfloat16=uses_bfloat16(self.pace.precision),
        )
        return {
            "gradient_variance": first,
            "gradient_variance_discounted": second,
            "gradient_variance_ratio": first / second if second > 0 else float("nan"),
        }

    def save_tokenizer(self, folder: Path) -> None:
        """A whole model is played from its own folder, an adapter from its base's."""
        if self.params.lora is None:
            self.tokenizer.save_pretrained(folder)

    def moved(self, trainer: MicroBatchTrainer) -> dict[str, float]:
        """How far the policy has gone from the base model, on what it was trained on."""
        model = trainer.model_wrapped
        return kl_moved(
            model,
            self.data,
            policy_collate(self.tokenizer.pad_token_id, model=trainer.model),
            self._reference(),
            tokens_per_batch=self.pace.tokens_per_batch,
            bfloat16=uses_bfloat16(self.pace.precision),
            seed=self.seed,
        )

    def sizes(self) -> dict[str, float]:
        data = self.data
        return {
            **self.material.figures,
            "sequences": len(data),
            "actions": sum(int(np.isfinite(values).sum()) for _, values in data),
            "tokens": sum(len(example) for example, _ in data),
            "zero_advantages": zero_share(data),
            "actions_cut": self.examples.cut,
            "actions_dropped": self.examples.dropped,
        }


def train_policy(
    params: PolicyParams,
    pace: Pace,
    frames: Sequence[LogFrames],
    base: ModelSource,
    out_dir: str | Path,
    *,
    seed: int,
    cache: Path | None = None,
    progress: Progress | None = None,
    tracking: Tracking = NOWHERE,
) -> dict[str, Any]:
    """Train a policy on the credit of the logs' actions and write it to `out_dir`.

    `out_dir` gets the LoRA adapter (or the whole model and its tokenizer), `metrics.json` and,
    unless there was no step, `history.csv` (see `write_history`). A run that was killed goes on
    from its last checkpoint; one with the same inputs as a finished one is copied. If every
    advantage is 0 the gradient is too: the policy is the base model, and `steps` is 0.

    Returns:
        The metrics: final_loss, steps, sequences, actions, tokens, actions_cut (trained with a
        shortened history), actions_dropped (too long), gradient_variance, _discounted and
        their _ratio (unless the credit is the discounted return itself), zero_advantages (share of
        the actions), what the objective counts (groups, groups_without_spread, pairs), and after a
        step gradient_norm, what `kl_moved` measures, and means over the steps of the objective's
        own figures (clip_share, kl_estimate, margin, preferred).

    Raises:
        AriaError: nothing to train on, a NaN, a full disk, out of memory.
    """
    tokenizer = load_tokenizer(base)
    examples = sampled_examples(frames, Renderer(tokenizer), params.max_tokens)
    objective = objective_of(params)
    material = objective.material(frames, examples.items, seed)
    task = PolicyRun(
        params, pace, frames, base, seed, tokenizer, examples, objective, material, tracking
    )
    run = RunFolder(STAGE, task.key(), cache, pace.precision)
    with training_errors(STAGE):
        return finish(run, out_dir, lambda: _train(task, run, progress))


def _train(task: PolicyRun, run: RunFolder, progress: Progress | None) -> None:
    """Train and leave the result in the run's folder."""
    make_deterministic(task.seed)
    model = task.model()
    variances = task.gradient_variances(model)
    task.material = task.ready(model)
    if trains_nothing(task.material.data):
        with run.writing() as folder:
            save_model(model, folder, task.base)
            task.save_tokenizer(folder)
            metrics = {"final_loss": 0.0, "steps": 0, **variances, **task.sizes()}
            write_json(folder / "metrics.json", metrics)
        return
    make_deterministic(task.seed)
    trainer = task.fit(model, run, progress)
    moved = task.moved(trainer)
    with run.writing() as folder:
        save(trainer, folder, task.base)
        task.save_tokenizer(folder)
        write_history(trainer, folder)
        metrics = fit_figures(trainer) | moved | variances | task.sizes()
        write_json(folder / "metrics.json", metrics)
    task.tracking.tell(run.path, RESULT, metrics, trainer.state.global_step)
