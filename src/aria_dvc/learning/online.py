"""Online training: play, score every action with the reward model, update, refresh (sec. 5.3).

Each iteration is a transaction. Its games, the trainer's checkpoint (weights, optimiser, random
state) and a refreshed reward model are written first; `state.json` is replaced last. A run that
was killed starts again at the last whole iteration and ends where an uninterrupted one ends.
How games are played and aggregated is handed in, so this module knows neither.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_csv, write_json
from aria_dvc.learning.advantages import advantages, shuffled
from aria_dvc.learning.batches import Paired, global_batches, trains_nothing
from aria_dvc.learning.checkpoints import RunFolder, deliver, run_key, training_errors
from aria_dvc.learning.examples import (
    Key,
    LogFrames,
    frames_dialogues,
    frames_examples,
    with_values,
)
from aria_dvc.learning.objective import KlPenalty, adapter_off, policy_collate
from aria_dvc.learning.own_actions import without_reasked, without_unsampled_ends
from aria_dvc.learning.played import PlayedGames, mean_reward
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.reward_model import backbone_of, train_reward_model
from aria_dvc.learning.scorer import RewardScorer
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.learning.trainer import (
    FitSettings,
    Progress,
    fit,
    losses,
    make_deterministic,
    world,
)
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import load_adapter
from aria_dvc.models.saving import tidy
from aria_dvc.models.source import ADAPTER_CONFIG, ADAPTER_WEIGHTS, ModelSource
from aria_dvc.records.episodes import without_broken_off
from aria_dvc.seeds import derived_seed
from aria_dvc.settings import IN_PROCESS

if TYPE_CHECKING:
    from aria_dvc.records.episodes import Episode
    from aria_dvc.settings import OnlineParams, Pace, PolicyParams, RewardModelParams

STAGE = "online"
SCORES = "scores"  # the credit of a game is what the reward model says
# (adapter folder of the policy that plays, iteration, seed) -> finished games
Rollout = Callable[[Path, int, int], "list[Episode]"]
# the games' turns -> their rewards tables, one per game (embedded, clustered and averaged anew)
Aggregate = Callable[[dict[str, pd.DataFrame]], dict[str, pd.DataFrame]]


@dataclass(frozen=True)
class OnlineRun:
    """What does not change from iteration to iteration."""

    params: PolicyParams
    online: OnlineParams
    reward_params: RewardModelParams
    pace: Pace
    base: ModelSource
    policy_dir: Path
    reward_model_dir: Path
    rollout: Rollout
    aggregate: Aggregate
    seed: int
    inputs: Any
    cache: Path | None

    @cached_property
    def run(self) -> RunFolder:
        settings = {
            "policy": self.params.model_dump(),
            "online": self.online.model_dump(),
            "reward": self.reward_params.model_dump(),
            "backbone": fingerprint(backbone_of(self.reward_params, self.base)),
            "inputs": self.inputs,
            "seed": self.seed,
        }
        start = fingerprint(self.policy_dir) + fingerprint(self.reward_model_dir)
        key = run_key(STAGE, start, fingerprint(self.base), settings)
        return RunFolder(STAGE, key, self.cache)

    @property
    def played(self) -> PlayedGames:
        return PlayedGames(self.run.path)

    @property
    def state_file(self) -> Path:
        return self.run.path / "state.json"

    def state(self) -> dict[str, Any]:
        """What whole iterations have left behind.

        iteration: how many; steps: optimiser steps taken; policy, reward_model: folders;
        history: rows so far.
        """
        if self.state_file.is_file():
            state: dict[str, Any] = read_json(self.state_file)
            return state
        return {
            "iteration": 0,
            "steps": 0,
            "policy": str(self.policy_dir),
            "reward_model": str(self.reward_model_dir),
            "history": [],
        }


def train_online(
    params: PolicyParams,
    online: OnlineParams,
    reward_params: RewardModelParams,
    pace: Pace,
    base: ModelSource,
    policy_dir: str | Path,
    reward_model_dir: str | Path,
    out_dir: str | Path,
    *,
    rollout: Rollout,
    aggregate: Aggregate,
    seed: int,
    inputs: Any = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run `online.iterations` iterations from the adapter in `policy_dir`.

    `out_dir` gets the final adapter, `metrics.json` and `online.csv` (iteration, games,
    mean_reward, mean_score, loss, policy_version); nothing else is written outside the cache.

    Args:
        rollout: plays `online.games` games with the newest adapter.
        aggregate: credits games anew for the refresh of the reward model.
        inputs: JSON-able; everything else that decides how games come out and are credited.
        policy_dir: the offline policy as `train_policy` leaves it.

    Returns:
        The metrics: iterations, updates, final_loss, first_mean_reward, last_mean_reward.

    Raises:
        AriaError: the policy is not a LoRA adapter, several processes, or training fails.
    """
    _check(params)
    folders = Path(policy_dir), Path(reward_model_dir)
    settings = params, online, reward_params, pace
    task = OnlineRun(*settings, base, *folders, rollout, aggregate, seed, inputs, cache)
    with training_errors(STAGE):
        if not task.run.result.is_dir():
            _loop(task, progress)
            _finish(task)
        return deliver(task.run, out_dir)


def _check(params: PolicyParams) -> None:
    if world()[0] > 1:
        raise AriaError(
            "online training plays games in one process: start it without accelerate launch"
        )
    if params.lora is None:
        raise AriaError(
            "online training needs policy.lora: rollouts reload an adapter, not a model"
        )


def _loop(task: OnlineRun, progress: Progress | None) -> None:
    state = task.state()
    total = task.online.iterations
    while state["iteration"] < total:
        state = _iterate(task, state)
        write_json(task.state_file, state)
        if progress:
            progress(state["iteration"], total)


def _iterate(task: OnlineRun, state: dict[str, Any]) -> dict[str, Any]:
    """One iteration: play, score, update, perhaps refresh; returns the next state."""
    iteration = state["iteration"]
    version = f"{iteration}:{fingerprint(state['policy'])[:12]}"
    _play(task, iteration, Path(state["policy"]), version)
    frames = task.played.last(iteration, task.online.replay)
    scored = _score(task, frames, Path(state["reward_model"]))
    data = _training_data(task, scored)
    steps, loss, checkpoint = _update(task, state, data)
    newest = task.played.last(iteration, 1)
    row = {
        "iteration": iteration,
        "games": sum(log.turns["episode_id"].nunique() for log in newest),
        "mean_reward": mean_reward(newest),
        "mean_score": float(pd.concat([g.rewards for g in scored])["reward"].mean()),
        "loss": loss,
        "policy_version": version,
    }
    return {
        "iteration": iteration + 1,
        "steps": steps,
        "policy": str(checkpoint),
        "reward_model": str(_refreshed(task, iteration, Path(state["reward_model"]))),
        "history": [*state["history"], row],
    }


def _play(task: OnlineRun, iteration: int, policy: Path, version: str) -> None:
    """Play the iteration's games and keep them, unless this very policy already did."""
    if task.played.holds(iteration, version):
        return
    played = task.rollout(policy, iteration, derived_seed(task.seed, "rollout", iteration))
    episodes = without_broken_off(played)
    if not episodes:
        raise AriaError(f"online iteration {iteration}: no game was finished: see the players")
    task.played.keep(iteration, version, episodes)


def _score(task: OnlineRun, frames: Sequence[LogFrames], reward_model: Path) -> list[LogFrames]:
    """The same games with the reward model's score as every action's credit.

    An action that is too long to be scored, or that came after a re-ask, trains nothing.
    """
    scores = _scorer(task, reward_model).score_dialogues(frames_dialogues(frames))
    return [
        replace(log, rewards=without_reasked(_credited(log, scores), log.episodes))
        for log in frames
    ]


def _scorer(task: OnlineRun, reward_model: Path) -> RewardScorer | RemoteScorer:
    if task.online.scorer != IN_PROCESS:
        return RemoteScorer(task.online.scorer, task.pace.deadline_s)
    return RewardScorer(
        task.base.named(reward_model),
        backbone_of(task.reward_params, task.base),
        max_tokens=task.params.max_tokens,
        tokens_per_batch=task.pace.tokens_per_batch,
        precision=task.pace.precision,
    )


def _credited(log: LogFrames, scores: dict[Key, float]) -> pd.DataFrame:
    actions = log.turns.loc[log.turns["is_action"], ["episode_id", "position", "role", "turn"]]
    keys = zip(actions["episode_id"], actions["position"], strict=True)
    values = [scores.get((log.name, episode, position)) for episode, position in keys]
    if any(value is not None and not math.isfinite(value) for value in values):
        raise AriaError(
            f"the reward model scores actions of {log.name} with NaN or infinity: train it anew "
            "with a lower reward_model.learning_rate"
        )
    rewards = actions.assign(reward=pd.Series(values, index=actions.index, dtype="float64"))
    return rewards.dropna(subset="reward").reset_index(drop=True)


def _training_data(task: OnlineRun, scored: Sequence[LogFrames]) -> list[Paired]:
    weights = {
        key: value
        for log in scored
        for key, value in advantages(log, SCORES, task.params.advantage).items()
    }
    if task.params.placebo:
        weights = shuffled(scored, weights, task.seed)
    renderer = Renderer(load_tokenizer(task.base))
    examples = frames_examples(scored, renderer, task.params.max_tokens).items
    sampled = without_unsampled_ends(examples, scored, len(renderer.end_ids()))
    return with_values(sampled, weights, keep_zero=task.params.kl > 0)


def _update(task: OnlineRun, state: dict[str, Any], data: list[Paired]) -> tuple[int, float, Path]:
    """`updates` optimiser steps, going on from the last iteration's optimiser and random state.

    Returns:
        All steps so far, the mean loss of the new ones, and the folder of the newest policy.
    """
    online, iteration, done = task.online, state["iteration"], state["steps"]
    if trains_nothing(data):  # every advantage is 0, and so is the gradient
        return done, 0.0, Path(state["policy"])
    checkpoint = task.run.path / f"checkpoint-{done + online.updates}"
    if checkpoint.is_dir():  # of an iteration that was cut short
        shutil.rmtree(checkpoint)
    make_deterministic(task.seed)
    model = _trainable_policy(task)
    trainer = fit(
        PolicyTrainer,
        model,
        data,
        _batches(task, iteration, len(data)),
        _collate(task, model),
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
    new = [loss for step, loss in losses(trainer.state) if step > done]
    return done + online.updates, sum(new) / len(new), checkpoint


def _batches(task: OnlineRun, iteration: int, count: int) -> list[np.ndarray]:
    online = task.online
    per_pass = -(-count // online.batch_size)
    seed = derived_seed(task.seed, "update", iteration)
    return global_batches(count, online.batch_size, online.updates / per_pass, seed)


def _collate(task: OnlineRun, model: Any) -> Any:
    tokenizer = load_tokenizer(task.base)
    return policy_collate(tokenizer.pad_token_id, task.params.kl > 0, model=model)


def _trainable_policy(task: OnlineRun) -> Any:
    """The offline adapter on its base; a checkpoint's weights replace it on resume."""
    base = load_model(task.base)
    return load_adapter(base, task.policy_dir, base_name=str(task.base), trainable=True)


def _refreshed(task: OnlineRun, iteration: int, current: Path) -> Path:
    """The reward model for the next iteration, trained further whenever a refresh is due.

    With a scorer on another machine the refresh is that machine's business.
    """
    online = task.online
    before, after = iteration * online.updates, (iteration + 1) * online.updates
    due = before // online.refresh_every != after // online.refresh_every
    if not due or online.scorer != IN_PROCESS:
        return current
    newest = task.played.since(iteration, -(-online.refresh_every // online.updates))
    if not newest:
        return current
    rewards = task.aggregate({log.name: log.turns for log in newest})
    folder = task.run.path / f"reward_model-{iteration + 1}"
    train_reward_model(
        task.reward_params,
        task.pace,
        [replace(log, rewards=rewards[log.name]) for log in newest],
        task.base,
        folder,
        seed=task.seed,
        start=current,
        cache=task.run.path,
    )
    return folder


def _finish(task: OnlineRun) -> None:
    state = task.state()
    with task.run.writing() as folder:
        for name in (ADAPTER_WEIGHTS, ADAPTER_CONFIG):
            shutil.copy(Path(state["policy"]) / name, folder / name)
        tidy(folder, task.base)
        history = pd.DataFrame(state["history"])
        write_csv(folder / "online.csv", history)
        metrics = {
            "iterations": state["iteration"],
            "updates": state["steps"],
            "final_loss": float(history["loss"].iloc[-1]),
            "first_mean_reward": float(history["mean_reward"].iloc[0]),
            "last_mean_reward": float(history["mean_reward"].iloc[-1]),
        }
        write_json(folder / "metrics.json", metrics)
