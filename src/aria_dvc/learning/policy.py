"""The policy: offline REINFORCE on whole dialogues, with LoRA or on all weights (sec. 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate import PartialState

from aria_dvc.chat import Renderer
from aria_dvc.files import write_json
from aria_dvc.learning.advantages import advantages, policy_weights
from aria_dvc.learning.batches import Paired, global_batches, trains_nothing
from aria_dvc.learning.checkpoints import (
    CACHE,
    RunFolder,
    deliver,
    model_hash,
    run_key,
    training_errors,
)
from aria_dvc.learning.examples import (
    Examples,
    GameFrames,
    Key,
    digest,
    frames_examples,
    with_values,
)
from aria_dvc.learning.gradients import gradient_variances
from aria_dvc.learning.models import add_lora, load_model, load_tokenizer, uses_bfloat16
from aria_dvc.learning.objective import (
    ReferenceLogits,
    adapter_off,
    frozen_copy,
    kl_to,
    policy_collate,
    selected_logits,
    weighted_nll,
)
from aria_dvc.learning.own_actions import without_unsampled_ends
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    Progress,
    final_loss,
    fit,
    make_deterministic,
    save,
    save_weights,
    write_history,
)

if TYPE_CHECKING:
    from aria_dvc.params import PolicyParams

STAGE = "policy"


class PolicyTrainer(MicroBatchTrainer):
    """Maximises sum over t of log pi(a_t | h_t) A_t, minus kl * KL(pi || base)."""

    def __init__(
        self, *args: Any, kl: float = 0.0, reference: ReferenceLogits | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kl = kl
        self.reference = reference

    def batch_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        logits = selected_logits(model, inputs)
        loss = weighted_nll(logits, inputs)
        if self.kl > 0 and self.reference is not None:
            base = self.reference(model, inputs)
            loss = loss + self.kl * kl_to(base, logits, inputs["count"])
        return loss


@dataclass
class PolicyRun:
    """One offline training: its inputs, and what they were turned into."""

    params: PolicyParams
    frames: Sequence[GameFrames]
    base_dir: Path
    seed: int
    trust_remote_code: bool
    tokenizer: Any
    examples: Examples
    data: list[Paired]

    def key(self) -> str:
        settings: dict[str, Any] = {
            "params": self.params.model_dump(exclude={"online"}),
            "seed": self.seed,
        }
        if self.params.gradient_batches:
            settings["compared"] = [
                digest(with_values(self.examples.items, credit, keep_zero=True)).hexdigest()
                for credit in self.compared_credits()
            ]
        return run_key(digest(self.data).hexdigest(), model_hash(self.base_dir), settings)

    def model(self) -> Any:
        """The base model with fresh adapters, or all of it trainable."""
        model = load_model(self.base_dir, trust_remote_code=self.trust_remote_code)
        if self.params.lora is None:
            return model
        return add_lora(model, self.params.lora, STAGE)

    def reference(self) -> ReferenceLogits | None:
        if self.params.kl == 0:
            return None
        if self.params.lora is not None:
            return adapter_off
        return frozen_copy(load_model(self.base_dir, trust_remote_code=self.trust_remote_code))

    def fit(self, model: Any, run: RunFolder, progress: Progress | None) -> MicroBatchTrainer:
        params = self.params
        settings = FitSettings(
            learning_rate=params.learning_rate,
            seed=self.seed,
            precision=params.precision,
            tokens_per_batch=params.tokens_per_batch,
            checkpoint_every=params.checkpoint_every,
        )
        return fit(
            PolicyTrainer,
            model,
            self.data,
            global_batches(len(self.data), params.batch_size, params.epochs, self.seed),
            policy_collate(self.tokenizer.pad_token_id, keep_zero=params.kl > 0),
            run.path,
            settings,
            progress=progress,
            resume=run.last_checkpoint(),
            kl=params.kl,
            reference=self.reference(),
        )

    def compared_credits(self) -> tuple[dict[Key, float], dict[Key, float]]:
        """The advantages with aggregated and with discounted credit."""
        aggregated, discounted = (
            {
                key: value
                for game in self.frames
                for key, value in advantages(game, credit, self.params.advantage).items()
            }
            for credit in ("aggregated", "discounted")
        )
        return aggregated, discounted

    def gradient_variances(self, model: Any) -> dict[str, float]:
        """The gradient's variance under both of `compared_credits`, and their ratio."""
        params = self.params
        if not params.gradient_batches:
            return {}
        first, second = gradient_variances(
            model.to(PartialState(cpu=not torch.cuda.is_available()).device),
            self.examples.items,
            self.compared_credits(),
            policy_collate(self.tokenizer.pad_token_id, keep_zero=True),
            batches=params.gradient_batches,
            seed=self.seed,
            bfloat16=uses_bfloat16(params.precision),
        )
        return {
            "gradient_variance_aggregated": first,
            "gradient_variance_discounted": second,
            "gradient_variance_ratio": first / second if second > 0 else float("nan"),
        }

    def save_tokenizer(self, folder: Path) -> None:
        """A whole model is played from its own folder, an adapter from its base's."""
        if self.params.lora is None:
            self.tokenizer.save_pretrained(folder)

    def sizes(self) -> dict[str, int]:
        return {
            "sequences": len(self.data),
            "actions": sum(int(np.isfinite(values).sum()) for _, values in self.data),
            "tokens": sum(len(example) for example, _ in self.data),
            "actions_cut": self.examples.cut,
            "actions_dropped": self.examples.dropped,
        }


def train_policy(
    params: PolicyParams,
    frames: Sequence[GameFrames],
    base_dir: str | Path,
    out_dir: str | Path,
    *,
    seed: int,
    cache: Path = CACHE,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train a policy on the credit of the games' actions and write it to `out_dir`.

    `out_dir` gets the LoRA adapter (or the whole model and its tokenizer), `metrics.json` and,
    unless there was no step, `history.csv` (step, loss). A run that was killed goes on from its
    last checkpoint; one with the same inputs as a finished one is copied. If every advantage is 0
    the gradient is too: the policy is the base model, and `steps` is 0.

    Returns:
        The metrics: final_loss, steps, sequences, actions, tokens, actions_cut (trained with a
        shortened history), actions_dropped (too long), gradient_variance_aggregated, _discounted
        and their _ratio.

    Raises:
        AriaError: nothing to train on, a NaN, a full disk, out of memory.
    """
    tokenizer = load_tokenizer(base_dir, trust_remote_code=trust_remote_code)
    renderer = Renderer(tokenizer)
    examples = frames_examples(frames, renderer, params.max_tokens)
    examples.items = without_unsampled_ends(examples.items, frames, len(renderer.end_ids()))
    data = with_values(examples.items, policy_weights(frames, params), keep_zero=params.kl > 0)
    task = PolicyRun(
        params, frames, Path(base_dir), seed, trust_remote_code, tokenizer, examples, data
    )
    run = RunFolder(STAGE, task.key(), cache)
    with training_errors(STAGE):
        if not run.result.is_dir():
            _train(task, run, progress)
        return deliver(run, out_dir)


def _train(task: PolicyRun, run: RunFolder, progress: Progress | None) -> None:
    """Train and leave the result in the run's folder."""
    make_deterministic(task.seed)
    model = task.model()
    variances = task.gradient_variances(model)
    if trains_nothing(task.data):
        with run.writing() as folder:
            save_weights(model, folder, task.base_dir)
            task.save_tokenizer(folder)
            metrics = {"final_loss": 0.0, "steps": 0, **variances, **task.sizes()}
            write_json(folder / "metrics.json", metrics)
        return
    make_deterministic(task.seed)
    trainer = task.fit(model, run, progress)
    with run.writing() as folder:
        save(trainer, folder, task.base_dir)
        task.save_tokenizer(folder)
        write_history(trainer, folder)
        metrics = {
            "final_loss": final_loss(trainer),
            "steps": trainer.state.global_step,
            **variances,
            **task.sizes(),
        }
        write_json(folder / "metrics.json", metrics)
