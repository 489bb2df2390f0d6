"""The reward model: credit of an action from its text and history, point by point (sec. 5.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import write_json
from aria_dvc.learning.advantages import groups_of
from aria_dvc.learning.batches import Paired, global_batches
from aria_dvc.learning.calibration import fit_metrics
from aria_dvc.learning.checkpoints import RunFolder, finish, run_key, training_errors
from aria_dvc.learning.examples import (
    Example,
    Key,
    LogFrames,
    digest,
    frames_examples,
    keyed_rows,
    with_values,
)
from aria_dvc.learning.reward_head import (
    Scale,
    Tensors,
    action_scores,
    load_scored,
    note_scale,
    predict,
    read_scale,
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
    save,
    write_history,
)
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import add_lora
from aria_dvc.models.source import ModelSource
from aria_dvc.seeds import derived_seed

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.training import RewardModelParams

STAGE: Final = "reward_model"
BASE = "base"
ENOUGH = 5
Episode = tuple[str, str]  # (log, episode_id)


class RewardTrainer(MicroBatchTrainer):
    """Mean squared error of the standardised credit over the actions of the global batch."""

    def batch_loss(self, model: Any, inputs: Tensors) -> torch.Tensor:
        error = action_scores(model, inputs) - inputs["targets"]
        return (inputs["weights"] * error**2).sum() / inputs["count"]


def dealt_as(frames: Sequence[LogFrames]) -> dict[Episode, str]:
    """What is held out as one: an episode's group, or where a log has a single group, itself."""
    found: dict[Episode, str] = {}
    for log in frames:
        groups = groups_of(log.episodes)
        names = {str(one): str(groups.get(one, one)) for one in log.rewards["episode_id"].unique()}
        alone = len(set(names.values())) == 1
        found |= {(log.name, one): one if alone else name for one, name in names.items()}
    return found


def held_out_episodes(frames: Sequence[LogFrames], share: float, seed: int) -> set[Episode]:
    """Whole groups of episodes (see `dealt_as`), at least so many that `share` of all are held out.

    Raises:
        AriaError: fewer than two episodes.
    """
    found = dealt_as(frames)
    dealt = [(log, group) for (log, _), group in found.items()]
    groups = sorted(set(dealt))
    if len(groups) < 2:
        raise AriaError(
            f"reward_model needs at least 2 episodes to hold some out, got {len(found)}: "
            "collect more"
        )
    order = np.random.default_rng(derived_seed(seed, "held out")).permutation(len(groups))
    reached = np.cumsum([dealt.count(groups[place]) for place in order])
    last = int(np.searchsorted(reached, max(1, round(share * len(dealt)))))
    held = {groups[place] for place in order[: min(last + 1, len(groups) - 1)]}
    return {episode for episode, one in zip(found, dealt, strict=True) if one in held}


@dataclass(frozen=True)
class Told:
    """What the tables say of every action.

    targets: its credit, as the training side may know it; expected: by its role and turn alone;
    returns: realised; sizes: of its cell.
    """

    targets: dict[Key, float]
    expected: dict[Key, float]
    returns: dict[Key, float]
    sizes: dict[Key, float]


def told_of(frames: Sequence[LogFrames], held: Set[Episode]) -> Told:
    """The aggregated credit without the outcomes of `held`, and what judges it."""
    told = Told({}, {}, {}, {})
    for log in frames:
        rows = log.rewards.assign(
            target=training_credit(log, held), expected=expected_return(log, held)
        )
        for key, row in keyed_rows(log.name, rows.rename(columns={"return": "realised"})):
            told.targets[key] = float(row.target)
            told.expected[key] = float(row.expected)
            told.returns[key] = float(row.realised)
            told.sizes[key] = float(row.cell_size)
    return told


def training_credit(log: LogFrames, held: Set[Episode]) -> pd.Series:
    """(A,) float64: `reward`, of which a mean over a pool is taken anew without the held-out ones.

    Other credits stay. Those of one's own outcome (group, gigpo, information_gain) hold no other.
    What remains is that a credit out of fold was fitted on held-out episodes too, as were the
    values of gae.
    """
    rewards = log.rewards
    means = _known_returns(log, held).groupby(rewards["pool"]).transform("mean")
    return means.where(rewards["pool"] >= 0, rewards["reward"])


def expected_return(log: LogFrames, held: Set[Episode]) -> pd.Series:
    """(A,) float64: the training side's mean return of the role and own turn, NaN without any.

    The role's alone where that turn has fewer than ENOUGH. Who trains on scores takes this off (see
    advantages.py), so that a model which knows no more teaches nothing.
    """
    known, role, turn = _known_returns(log, held), log.rewards["role"], log.rewards["turn"]
    of_role = known.groupby(role).transform("mean").fillna(known.mean())
    of_turn = known.groupby([role, turn])
    return of_turn.transform("mean").where(of_turn.transform("count") >= ENOUGH, of_role)


def _known_returns(log: LogFrames, held: Set[Episode]) -> pd.Series:
    """(A,) float64 realised returns, NaN on the held-out side."""
    returns = log.rewards["return"]
    return returns.where([(log.name, str(one)) not in held for one in log.rewards["episode_id"]])


@dataclass
class RewardRun:
    """One training of a reward model: its inputs, and what they were turned into.

    train: credits; held: realised returns; expected: of each of these, without what was said;
    groups: what is held out as one.
    """

    params: RewardModelParams
    pace: Pace
    backbone: ModelSource
    seed: int
    tokenizer: Any
    train: list[Paired]
    held: list[Paired]
    expected: np.ndarray
    groups: Mapping[Episode, str]
    scale: Scale
    weights: dict[Key, float]
    start: ModelSource | None
    tracking: Tracking = NOWHERE

    def key(self) -> str:
        both = digest([*self.train, *self.held]).hexdigest()
        settings = {
            "params": self.params.model_dump(),
            "seed": self.seed,
            "start": fingerprint(self.start.folder) if self.start else None,
            "weights": sorted(self.weights.items()),
            "judged": [self.expected.tolist(), sorted(self.groups.items())],
        }
        return run_key(STAGE, both, fingerprint(self.backbone), settings)

    def model(self) -> Any:
        if self.start:
            return load_scored(self.start, self.backbone, trainable=True)
        model = load_model(self.backbone, head="score")
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
            pace=self.pace,
            schedule="linear",
        )
        data = self.standardised()
        return fit(
            RewardTrainer,
            model,
            data,
            global_batches(len(data), self._dialogues_per_step(), params.epochs, self.seed),
            regression_collate(self.tokenizer.pad_token_id, self.weights, model=model),
            run.path,
            settings,
            progress=progress,
            resume=run.last_checkpoint(),
            tracking=self.tracking,
        )

    def _dialogues_per_step(self) -> int:
        """`batch_size` counts actions, which come by whole dialogues."""
        actions = sum(len(example.keys) for example, _ in self.train)
        return max(1, round(self.params.batch_size * len(self.train) / actions))


def backbone_of(params: RewardModelParams, base: ModelSource) -> ModelSource:
    """What the reward model is built on."""
    return base if params.backbone == BASE else base.named(params.backbone)


def train_reward_model(
    params: RewardModelParams,
    pace: Pace,
    frames: Sequence[LogFrames],
    base: ModelSource,
    out_dir: str | Path,
    *,
    seed: int,
    start: Path | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    tracking: Tracking = NOWHERE,
) -> dict[str, Any]:
    """Fit the credit of the logs' actions and write model, scale and metrics to `out_dir`.

    Resumes and restores like `train_policy`. With `start`, a reward model's folder, training goes
    on from its weights and keeps its scale.

    Returns:
        The metrics at the returns of held-out groups of episodes: mse, mse_of_baseline (of
        `expected_return`), r2 with its interval, spearman, calibration (see calibration.py); and
        steps, final_loss, sizes.

    Raises:
        AriaError: too few episodes, a NaN, a full disk, out of memory.
    """
    task = _task(params, pace, frames, base, seed, start, tracking)
    run = RunFolder(STAGE, task.key(), cache, pace.precision)
    with training_errors(STAGE):
        return finish(run, out_dir, lambda: _train(task, run, progress))


def _task(
    params: RewardModelParams,
    pace: Pace,
    frames: Sequence[LogFrames],
    base: ModelSource,
    seed: int,
    start: Path | None,
    tracking: Tracking,
) -> RewardRun:
    backbone = backbone_of(params, base)
    tokenizer = load_tokenizer(backbone)
    out = held_out_episodes(frames, params.held_out, seed)
    told = told_of(frames, out)
    examples = frames_examples(frames, Renderer(tokenizer), params.max_tokens).items
    known = [example for example in examples if episode_of(example) not in out]
    unseen = [example for example in examples if episode_of(example) in out]
    train = with_values(known, told.targets, keep_zero=True)
    held = with_values(unseen, told.returns, keep_zero=True)
    if not train or not held:
        raise AriaError("reward_model has no action with a credit: run the aggregate stage again")
    return RewardRun(
        params=params,
        pace=pace,
        backbone=backbone,
        seed=seed,
        tokenizer=tokenizer,
        train=train,
        held=held,
        expected=_expected(unseen, told),
        groups=dealt_as(frames),
        scale=read_scale(start) if start else Scale.of(_values(train)),
        weights=_action_weights(params, told.sizes, train),
        start=base.named(start) if start else None,
        tracking=tracking,
    )


def _expected(unseen: Sequence[Example], told: Told) -> np.ndarray:
    """(N,) of each of the held-out `_values`; of a log without a training side the mean of all."""
    found = np.array(list(told.expected.values()))
    filled = np.where(np.isnan(found), np.nanmean(found), found).tolist()
    of_key = dict(zip(told.expected, filled, strict=True))
    return _values(with_values(unseen, of_key, keep_zero=True))


def _values(data: Sequence[Paired]) -> np.ndarray:
    values = np.concatenate([v for _, v in data]).astype(np.float64)
    return values[~np.isnan(values)]


def episode_of(example: Example) -> Episode:
    return example.log, example.episode_id


def _groups(data: Sequence[Paired], groups: Mapping[Episode, str]) -> np.ndarray:
    """(N,) str: the group of each of `_values`; both sides of a dialogue are of one."""
    names = [f"{example.log}/{groups[episode_of(example)]}" for example, _ in data]
    return np.repeat(names, [int(np.count_nonzero(~np.isnan(v))) for _, v in data])


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
        regression_collate(task.tokenizer.pad_token_id, {}, model=model),
        tokens_per_batch=task.pace.tokens_per_batch,
        bfloat16=uses_bfloat16(task.pace.precision),
    )
    actual = _values(task.held)
    metrics = fit_metrics(actual, predicted, task.expected, _groups(task.held, task.groups))
    metrics |= fit_figures(trainer) | {
        "train_actions": len(_values(task.train)),
        "held_out_actions": len(predicted),
    }
    with run.writing() as folder:
        save(trainer, folder, task.backbone)
        task.tokenizer.save_pretrained(folder)
        note_scale(folder, task.scale, task.params.max_tokens)
        write_history(trainer, folder)
        write_json(folder / "metrics.json", metrics)
    task.tracking.tell(run.path, RESULT, metrics, trainer.state.global_step)
