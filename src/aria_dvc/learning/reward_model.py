"""The reward model: credit of an action from its text and history, point by point (sec. 5.3).

A causal backbone with a one-output head scores every (history, action) of a dialogue at the
action's last token, its end of turn, in one pass: what follows cannot reach it. Targets are
standardised; the scale is stored beside the weights and undone by the scorer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json
from aria_dvc.learning.batches import Collate, Paired, global_batches, pad
from aria_dvc.learning.calibration import fit_metrics
from aria_dvc.learning.checkpoints import (
    CACHE,
    RunFolder,
    deliver,
    model_hash,
    run_key,
    training_errors,
)
from aria_dvc.learning.examples import (
    Example,
    GameFrames,
    Key,
    digest,
    frames_examples,
    with_values,
)
from aria_dvc.learning.models import add_lora, load_model, load_tokenizer, uses_bfloat16
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    Progress,
    final_loss,
    fit,
    make_deterministic,
    save,
    write_history,
)

if TYPE_CHECKING:
    from aria_dvc.params import RewardModelParams

STAGE = "reward_model"
BASE = "base"
SCALE_FILE = "scale.json"
ADAPTER_FILE = "adapter_config.json"
Tensors = dict[str, torch.Tensor]


def regression_collate(pad_id: int, weights: dict[Key, float], side: str = "right") -> Collate:
    """The collator of (example, standardised targets of its actions).

    Beside the model's inputs (see batches.pad): select (B, L) bool, true at the last token of
    every action with a target; targets and weights (N,) float32 in the order of `select`; count.
    """

    def collate(members: Sequence[Paired], count: int) -> Tensors:
        inputs, action = pad([example for example, _ in members], pad_id, side)
        select = np.zeros(action.shape, dtype=bool)
        targets: list[float] = []
        scale: list[float] = []
        for row, (example, values) in enumerate(members):
            for index, key in enumerate(example.keys):
                if np.isnan(values[index]):
                    continue
                select[row, np.flatnonzero(action[row] == index)[-1]] = True
                targets.append(float(values[index]))
                scale.append(weights.get(key, 1.0))
        inputs["select"] = torch.from_numpy(select)
        inputs["targets"] = torch.tensor(targets, dtype=torch.float32)
        inputs["weights"] = torch.tensor(scale, dtype=torch.float32)
        inputs["count"] = torch.tensor(float(count))
        return inputs

    return collate


@contextmanager
def all_scores(model: Any) -> Iterator[list[torch.Tensor]]:
    """Catch the head's output for every token, (B, L, 1); the model itself returns the last."""
    head = score_head(model)
    caught: list[torch.Tensor] = []
    handle = head.register_forward_hook(lambda module, args, output: caught.append(output))
    try:
        yield caught
    finally:
        handle.remove()


def score_head(model: Any) -> Any:
    """The regression head inside any wrapper.

    Raises:
        AriaError: the backbone's classification head is not called `score`.
    """
    for name, module in model.named_modules():
        if name.rpartition(".")[2] == "score":
            return module
    raise AriaError(
        "reward_model.backbone: its classification head is not a causal one (no module `score`): "
        "choose a decoder model"
    )


def action_scores(model: Any, inputs: Tensors) -> torch.Tensor:
    """Standardised scores (N,) float32 of the selected actions."""
    with all_scores(model) as caught:
        model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            position_ids=inputs["position_ids"],
            use_cache=False,
        )
    return caught[0].squeeze(-1).float()[inputs["select"]]


class RewardTrainer(MicroBatchTrainer):
    """Mean squared error of the standardised credit over the actions of the global batch."""

    def batch_loss(self, model: Any, inputs: Tensors) -> torch.Tensor:
        error = action_scores(model, inputs) - inputs["targets"]
        return (inputs["weights"] * error**2).sum() / inputs["count"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Standardisation of the target: score = (credit - mean) / std."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: np.ndarray) -> Scale:
        return cls(float(values.mean()), float(values.std()) or 1.0)


def read_scale(folder: Path) -> Scale:
    """The scale stored beside a reward model.

    Raises:
        AriaError: the folder holds no reward model.
    """
    if not (folder / SCALE_FILE).is_file():
        raise AriaError(f"{folder} holds no reward model: run the reward_model stage")
    return Scale(**read_json(folder / SCALE_FILE))


def load_scored(
    folder: Path,
    backbone: str | Path | None,
    trust_remote_code: bool,
    *,
    is_trainable: bool = False,
) -> Any:
    """A trained reward model: an adapter on its backbone, or a whole model.

    Args:
        backbone: None takes the one that the adapter names (relative to the repository's root).

    Raises:
        AriaError: the model or its backbone cannot be loaded.
    """
    if not (folder / ADAPTER_FILE).is_file():
        return load_model(folder, head="score", trust_remote_code=trust_remote_code)
    from peft import PeftModel

    named = read_json(folder / ADAPTER_FILE)["base_model_name_or_path"]
    try:
        base = load_model(backbone or named, head="score", trust_remote_code=trust_remote_code)
    except AriaError:
        if backbone:
            raise
        raise AriaError(
            f"{folder} is an adapter on {named}, which cannot be loaded here: pass --base FOLDER"
        ) from None
    tokenizer = load_tokenizer(folder, trust_remote_code=trust_remote_code)
    base.config.pad_token_id = tokenizer.pad_token_id
    model = PeftModel.from_pretrained(base, str(folder), is_trainable=is_trainable)
    # Saving looks the base up, on the network where this names no folder.
    model.peft_config["default"].base_model_name_or_path = str(backbone or named)
    return model


def credits_of(frames: Sequence[GameFrames]) -> tuple[dict[Key, float], dict[Key, float]]:
    """(target, cell size) of every action: the aggregated credit."""
    targets: dict[Key, float] = {}
    sizes: dict[Key, float] = {}
    for game in frames:
        for row in game.rewards.itertuples(index=False):
            key = (game.game, str(row.episode_id), int(row.position))
            targets[key] = float(row.reward)
            sizes[key] = float(row.cell_size)
    return targets, sizes


def split_episodes(
    examples: Sequence[Example], held_out: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """(training, held-out) examples; all of an episode's on one side, both sides of a dialogue.

    Raises:
        AriaError: fewer than two episodes.
    """
    episodes = sorted({(example.game, example.episode_id) for example in examples})
    if len(episodes) < 2:
        raise AriaError(
            f"reward_model needs at least 2 episodes to hold some out, got {len(episodes)}: "
            "collect more"
        )
    order = np.random.default_rng([seed, 29]).permutation(len(episodes))
    count = min(max(1, round(held_out * len(episodes))), len(episodes) - 1)
    held = {episodes[i] for i in order[:count]}
    train = [e for e in examples if (e.game, e.episode_id) not in held]
    return train, [e for e in examples if (e.game, e.episode_id) in held]


@dataclass
class RewardRun:
    """One training of a reward model: its inputs, and what they were turned into."""

    params: RewardModelParams
    backbone: Path
    seed: int
    trust_remote_code: bool
    tokenizer: Any
    train: list[Paired]
    held: list[Paired]
    scale: Scale
    weights: dict[Key, float]
    start: Path | None

    def key(self) -> str:
        both = digest([*self.train, *self.held]).hexdigest()
        settings = {
            "params": self.params.model_dump(),
            "seed": self.seed,
            "start": model_hash(self.start) if self.start else None,
            "weights": sorted(self.weights.items()),
        }
        return run_key(both, model_hash(self.backbone), settings)

    def model(self) -> Any:
        if self.start:
            return load_scored(self.start, self.backbone, self.trust_remote_code, is_trainable=True)
        model = load_model(self.backbone, head="score", trust_remote_code=self.trust_remote_code)
        model.config.pad_token_id = self.tokenizer.pad_token_id
        torch.nn.init.zeros_(score_head(model).weight)  # starts as the mean predictor
        if self.params.lora is None:
            return model
        return add_lora(model, self.params.lora, STAGE)

    def standardised(self) -> list[Paired]:
        scale = self.scale
        return [(example, (v - scale.mean) / scale.std) for example, v in self.train]

    def fit(self, model: Any, run: RunFolder, progress: Progress | None) -> MicroBatchTrainer:
        params = self.params
        settings = FitSettings(
            learning_rate=params.learning_rate,
            seed=self.seed,
            precision=params.precision,
            tokens_per_batch=params.tokens_per_batch,
            schedule="linear",
            checkpoint_every=params.checkpoint_every,
        )
        data = self.standardised()
        return fit(
            RewardTrainer,
            model,
            data,
            global_batches(len(data), self._dialogues_per_step(), params.epochs, self.seed),
            regression_collate(self.tokenizer.pad_token_id, self.weights),
            run.path,
            settings,
            progress=progress,
            resume=run.last_checkpoint(),
        )

    def _dialogues_per_step(self) -> int:
        """`batch_size` counts actions, which come by whole dialogues."""
        actions = sum(len(example.keys) for example, _ in self.train)
        return max(1, round(self.params.batch_size * len(self.train) / actions))


def backbone_of(params: RewardModelParams, base_dir: str | Path) -> Path:
    """The folder (or Hugging Face id) that the reward model is built on."""
    return Path(base_dir) if params.backbone == BASE else Path(params.backbone)


def train_reward_model(
    params: RewardModelParams,
    frames: Sequence[GameFrames],
    base_dir: str | Path,
    out_dir: str | Path,
    *,
    seed: int,
    start: Path | None = None,
    cache: Path = CACHE,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fit the credit of the games' actions and write model, scale and metrics to `out_dir`.

    Resumes and restores like `train_policy`. With `start`, a reward model's folder, training goes
    on from its weights and keeps its scale.

    Returns:
        The metrics on held-out episodes: mse, mse_of_mean (predicting the training mean), r2,
        spearman, calibration (see calibration.py); and steps, final_loss, sizes.

    Raises:
        AriaError: too few episodes, a NaN, a full disk, out of memory.
    """
    backbone = backbone_of(params, base_dir)
    tokenizer = load_tokenizer(backbone, trust_remote_code=trust_remote_code)
    targets, sizes = credits_of(frames)
    examples = frames_examples(frames, Renderer(tokenizer), params.max_tokens).items
    train, held = (
        with_values(side, targets, keep_zero=True)
        for side in split_episodes(examples, params.held_out, seed)
    )
    if not train or not held:
        raise AriaError("reward_model has no action with a credit: run the aggregate stage again")
    task = RewardRun(
        params=params,
        backbone=backbone,
        seed=seed,
        trust_remote_code=trust_remote_code,
        tokenizer=tokenizer,
        train=train,
        held=held,
        scale=read_scale(start) if start else Scale.of(_values(train)),
        weights=_action_weights(params, sizes, train),
        start=start,
    )
    run = RunFolder(STAGE, task.key(), cache)
    with training_errors(STAGE):
        if not run.result.is_dir():
            _train(task, run, progress)
        return deliver(run, out_dir)


def _values(data: Sequence[Paired]) -> np.ndarray:
    values = np.concatenate([v for _, v in data]).astype(np.float64)
    return values[~np.isnan(values)]


def _action_weights(
    params: RewardModelParams, sizes: dict[Key, float], train: Sequence[Paired]
) -> dict[Key, float]:
    """Empty for `none`; for `cell_size` the cell's size over its mean on the training actions."""
    if params.weighting == "none":
        return {}
    keys = [key for example, _ in train for key in example.keys if key in sizes]
    mean = sum(sizes[key] for key in keys) / len(keys)
    return {key: sizes[key] / mean for key in keys}


def _train(task: RewardRun, run: RunFolder, progress: Progress | None) -> None:
    make_deterministic(task.seed)
    model = task.model()
    trainer = task.fit(model, run, progress)
    predicted = predict(
        trainer.model_wrapped,
        task.held,
        task.scale,
        regression_collate(task.tokenizer.pad_token_id, {}),
        tokens_per_batch=task.params.tokens_per_batch,
        bfloat16=uses_bfloat16(task.params.precision),
    )
    metrics = fit_metrics(_values(task.held), predicted, task.scale.mean)
    metrics |= {
        "steps": trainer.state.global_step,
        "final_loss": final_loss(trainer),
        "train_actions": len(_values(task.train)),
        "held_out_actions": len(predicted),
    }
    with run.writing() as folder:
        save(trainer, folder, task.backbone)
        task.tokenizer.save_pretrained(folder)
        write_json(folder / SCALE_FILE, {"mean": task.scale.mean, "std": task.scale.std})
        write_history(trainer, folder)
        write_json(folder / "metrics.json", metrics)


@torch.no_grad()
def predict(
    model: Any,
    data: Sequence[Paired],
    scale: Scale,
    collate: Collate,
    *,
    tokens_per_batch: int,
    bfloat16: bool,
) -> np.ndarray:
    """Credits (N,) float64 of every action with a target, in the order of `data`."""
    model.eval()
    device = next(model.parameters()).device
    parts: dict[int, np.ndarray] = {}
    for batch in sorted_batches([len(example) for example, _ in data], tokens_per_batch):
        inputs = collate([data[i] for i in batch], 1)
        inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
            scores = action_scores(model, inputs).double().cpu().numpy()
        ends = np.cumsum(inputs["select"].sum(dim=1).cpu().numpy())
        for index, part in zip(batch, np.split(scores, ends[:-1]), strict=True):
            parts[index] = part * scale.std + scale.mean
    return np.concatenate([parts[i] for i in range(len(data))])


def sorted_batches(lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
    """All indices, sorted by length and grouped to at most `tokens_per_batch` padded tokens."""
    from aria_dvc.learning.batches import cut_by_tokens

    return cut_by_tokens(range(len(lengths)), np.asarray(lengths), tokens_per_batch)
