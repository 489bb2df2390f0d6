"""The progress estimator of SPA-RL: a language model says what every action contributes.

A causal model reads an episode as one role saw it, in one pass. A head with one output, computed in
float32, gives the contribution c_t at the last token of the action: what follows cannot reach it.
It is trained so that the contributions of a dialogue add up to what the outcome R is above the
mean of its role. With S_t = c_1 + .. + c_t and r = R less that mean, the loss of a dialogue is

    sum     (S_T - r)^2, the paper's
    spread  the same + T * variance of the c_t
    prefix  the same as sum + mean over t of (S_t - r)^2, as RUDDER

as in credit/methods/progress.py. Cross-fitted: episodes are dealt to folds, whole groups at a time,
and those of a fold are judged by a model that has seen the other folds alone, means included.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import torch

from aria_dvc.aside import written_aside
from aria_dvc.chat import Renderer
from aria_dvc.credit.contributions import contribution_quality
from aria_dvc.files import write_json, write_parquet
from aria_dvc.learning.batches import Paired, global_batches
from aria_dvc.learning.checkpoints import (
    RunFolder,
    finish,
    process_state,
    run_key,
    training_errors,
)
from aria_dvc.learning.examples import Example, Key, LogFrames, digest, with_values
from aria_dvc.learning.progress_data import Outcomes, whole_dialogues
from aria_dvc.learning.reward_head import (
    RegressionCollate,
    Scale,
    Tensors,
    action_scores,
    predict,
    regression_collate,
    score_head,
)
from aria_dvc.learning.trackers import NOWHERE, RESULT, Tracking
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    Progress,
    fit,
    fit_figures,
    make_deterministic,
)
from aria_dvc.learning.tree_attention import use_tree_attention
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource
from aria_dvc.records.schemas import CONTRIBUTIONS, write_table

if TYPE_CHECKING:
    from aria_dvc.records.names import ProgressObjective
    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.training import Lora, ProgressParams

STAGE: Final = "progress"
FOUND = "contributions.parquet"  # of one fold, in the cache


class WholeDialogues(RegressionCollate):
    """The collator of (example, values), where the value of the last action is the target of the
    dialogue and the others are NaN, so that a batch counts dialogues.

    Beside what `RegressionCollate` gives for each of the N actions, its dialogue's target among
    them: dialogue (N,) int64, which of the micro-batch's dialogues it is of.
    """

    def __call__(self, members: Sequence[Paired], count: int) -> Tensors:
        told = [(example, np.repeat(v[-1:], len(example.keys))) for example, v in members]
        lengths = torch.tensor([len(example.keys) for example, _ in members])
        dialogue = torch.arange(len(members)).repeat_interleave(lengths)
        return {**super().__call__(told, count), "dialogue": dialogue}


def objective_loss(
    objective: ProgressObjective,
    scores: torch.Tensor,
    targets: torch.Tensor,
    dialogue: torch.Tensor,
) -> torch.Tensor:
    """The sum of the dialogues' losses (see the module), a scalar.

    Args:
        scores: (N,) float32 c_t, a dialogue's in their order. targets: (N,) r of their dialogues.
        dialogue: (N,) int64.
    """
    same = dialogue[:, None] == dialogue[None, :]
    length = same.sum(1)
    total = (same * scores).sum(1)
    loss = ((total - targets) ** 2 / length).sum()
    if objective == "spread":
        loss = loss + ((scores - total / length) ** 2).sum()
    elif objective == "prefix":
        running = (same.tril() * scores).sum(1)
        loss = loss + ((running - targets) ** 2 / length).sum()
    return loss


class ProgressTrainer(MicroBatchTrainer):
    """The mean of the objective over the dialogues of the global batch."""

    def __init__(self, *args: Any, objective: ProgressObjective, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.objective: ProgressObjective = objective

    def batch_loss(self, model: Any, inputs: Tensors) -> torch.Tensor:
        told = inputs["targets"], inputs["dialogue"]
        return objective_loss(self.objective, action_scores(model, inputs), *told) / inputs["count"]


def in_float32(head: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
    """A hook: the head's output without the rounding of autocast, under which sums would suffer."""
    with torch.autocast(output.device.type, enabled=False):
        exact: torch.Tensor = head.forward(args[0].float())
    return exact


@dataclass
class FoldRun:
    """One training: on the dialogues of the other folds, to judge those of one. std: of r."""

    params: ProgressParams
    lora: Lora | None
    pace: Pace
    base: ModelSource
    seed: int
    tokenizer: Any
    train: list[Paired]
    held: list[Paired]
    std: float
    tracking: Tracking = NOWHERE

    def key(self) -> str:
        both = digest([*self.train, *self.held]).hexdigest()
        settings = {
            "params": self.params.model_dump(exclude={"train", "folds"}),
            "lora": self.lora.model_dump() if self.lora else None,
            "seed": self.seed,
            "std": self.std,
        }
        return run_key(STAGE, both, fingerprint(self.base), settings)

    def model(self) -> Any:
        model = load_model(self.base, head="score")
        model.config.pad_token_id = self.tokenizer.pad_token_id
        torch.nn.init.zeros_(score_head(model).weight)  # starts as the constant predictor
        model = add_lora(model, self.lora, "reward_model") if self.lora else model
        score_head(model).register_forward_hook(in_float32)
        return model

    def fit(self, model: Any, run: RunFolder, progress: Progress | None) -> MicroBatchTrainer:
        params = self.params
        return fit(
            ProgressTrainer,
            model,
            self.train,
            global_batches(len(self.train), params.batch_size, params.epochs, self.seed),
            WholeDialogues(self.tokenizer.pad_token_id, use_tree_attention(model)),
            run.path,
            FitSettings(params.learning_rate, self.seed, self.pace, "linear"),
            progress=progress,
            resume=run.last_checkpoint(),
            tracking=self.tracking,
            objective=params.objective,
        )

    def contributions(self, trainer: MicroBatchTrainer, model: Any) -> pd.DataFrame:
        """Columns of FOUND: log, episode_id, position, contribution of the held-out actions."""
        found = predict(
            trainer.model_wrapped,
            self.held,
            Scale(0.0, self.std),
            regression_collate(self.tokenizer.pad_token_id, {}, model=model),
            tokens_per_batch=self.pace.tokens_per_batch,
            bfloat16=uses_bfloat16(self.pace.precision),
        )
        keys = [key for example, _ in self.held for key in example.keys]
        table = pd.DataFrame(keys, columns=["log", "episode_id", "position"])
        return table.assign(contribution=found)


def train_progress(
    params: ProgressParams,
    lora: Lora | None,
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
    """Have every episode's actions judged by a model that has not seen it; write what they say.

    `out_dir` gets `<log>.parquet` (see CONTRIBUTIONS) for every log, and `metrics.json`. Every
    fold's training resumes and restores like `train_policy`. No model is kept.

    Returns:
        The metrics: logs (see `contribution_quality`), and folds, a list of final_loss, steps,
        gradient_norm, train_dialogues and held_out_dialogues. Only the first process has them.

    Raises:
        AriaError: a single episode, a dialogue above `progress.max_tokens`, a NaN, a full disk, out
            of memory.
    """
    outcomes = [Outcomes.of(log, params.folds, seed) for log in frames]
    tokenizer = load_tokenizer(base)
    examples = whole_dialogues(frames, Renderer(tokenizer), params.max_tokens)
    told: list[dict[str, Any]] = []
    found: dict[Key, float] = {}
    with tempfile.TemporaryDirectory() as folder, training_errors(STAGE):
        for fold in range(max(int(log.fold.max()) for log in outcomes) + 1):
            train, held, std = _split(examples, outcomes, fold)
            task = FoldRun(params, lora, pace, base, seed, tokenizer, train, held, std, tracking)
            run = RunFolder(STAGE, task.key(), cache, pace.precision)
            result = Path(folder, str(fold))
            told.append(finish(run, result, partial(_train, task, run, progress)))
            if process_state().is_main_process:
                found |= _read(result / FOUND)
    return _write(outcomes, found, told, Path(out_dir)) if found else {}


def _split(
    examples: Sequence[Example], outcomes: Sequence[Outcomes], fold: int
) -> tuple[list[Paired], list[Paired], float]:
    """Training and held-out dialogues of a fold, and the standard deviation of the former's r.

    The targets are standardised, one a dialogue; held-out dialogues have none.
    """
    surplus = {key: value for log in outcomes for key, value in log.surplus(fold).items()}
    std = Scale.of(np.array(list(surplus.values()))).std
    targets = {
        example.keys[-1]: surplus[dialogue] / std
        for example in examples
        if (dialogue := (example.log, example.episode_id, example.role)) in surplus
    }
    held = [e for e in examples if e.keys[-1] not in targets]
    return (
        with_values(examples, targets, keep_zero=True),
        [(e, np.zeros(len(e.keys), np.float32)) for e in held],
        std,
    )


def _train(task: FoldRun, run: RunFolder, progress: Progress | None) -> None:
    """Train, judge the held-out dialogues and leave the result in the run's folder."""
    make_deterministic(task.seed)
    model = task.model()
    trainer = task.fit(model, run, progress)
    table = task.contributions(trainer, model)
    metrics = fit_figures(trainer) | {
        "train_dialogues": len(task.train),
        "held_out_dialogues": len(task.held),
    }
    with run.writing() as folder:
        write_parquet(folder / FOUND, table)
        write_json(folder / "metrics.json", metrics)
    task.tracking.tell(run.path, RESULT, metrics, trainer.state.global_step)


def _read(path: Path) -> dict[Key, float]:
    table = pd.read_parquet(path)
    keys = zip(table["log"], table["episode_id"], table["position"], strict=True)
    return dict(zip(keys, table["contribution"], strict=True))


def _write(
    outcomes: Sequence[Outcomes], found: dict[Key, float], folds: list[Any], out: Path
) -> dict[str, Any]:
    """Write the tables and the metrics, which are returned."""
    tables = {log.name: log.table(found) for log in outcomes}
    quality = {
        log.name: contribution_quality(
            tables[log.name]["contribution"].to_numpy(), log.expected(), log.log
        )
        for log in outcomes
    }
    metrics = {"logs": quality, "folds": folds}
    with written_aside(out) as aside:
        aside.mkdir(parents=True)
        for name, table in tables.items():
            write_table(aside / f"{name}.parquet", table, CONTRIBUTIONS)
        write_json(aside / "metrics.json", metrics)
    return metrics
