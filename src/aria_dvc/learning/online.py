"""Online training: play, credit the fresh games, update, again and again (sec. 5.3).

Each iteration is a transaction. Its games, their credit, the trainer's checkpoint (weights,
optimiser, random state) and a refreshed reward model are written first; `state-N.sums.json`
last. A run that was killed starts again at the last whole iteration, and in float32 ends where an
uninterrupted one ends (in bfloat16 games depend on which others are played beside them). How games
are played and aggregated is handed in, so this module knows neither.

Launched on several processes (`accelerate launch ... stages/online.py VARIANT CATEGORY`), the first
one plays and credits, the others read its files, and all of them train.
"""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from aria_dvc.cache.sums import SUFFIX
from aria_dvc.errors import AriaError
from aria_dvc.files import write_csv, write_json
from aria_dvc.learning.checkpoints import finish, process_state, training_errors
from aria_dvc.learning.course import COLUMNS, compact, figures_of, role_rows
from aria_dvc.learning.examples import LogFrames
from aria_dvc.learning.fresh_credit import REWARD_MODEL, Aggregate, Verdict
from aria_dvc.learning.online_run import STAGE, OnlineRun, Rollout, State
from aria_dvc.learning.online_update import lesson_of, update
from aria_dvc.learning.played import (
    EPISODES,
    PLAYED,
    TURNS,
    first_only,
    with_rewards,
    write_rewards,
)
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.learning.trackers import NOWHERE, Tracking
from aria_dvc.learning.trainer import Progress
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.saving import tidy
from aria_dvc.models.source import ADAPTER_CONFIG, ADAPTER_WEIGHTS, ModelSource
from aria_dvc.records.episodes import without_broken_off
from aria_dvc.seeds import derived_seed
from aria_dvc.settings.machine import IN_PROCESS

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.online import OnlineParams
    from aria_dvc.settings.training import PolicyParams, RewardModelParams

logger = logging.getLogger(__name__)
MEASURED = ("kl_per_action", "entropy_per_action", "gradient_norm", "zero_advantages")
# In the folder of an iteration.
REWARDS, REFRESH = "rewards.parquet", "refresh.parquet"
CREDITED, REFRESHED = f"credited{SUFFIX}", f"refresh{SUFFIX}"


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
    tracking: Tracking = NOWHERE,
) -> dict[str, Any]:
    """Run `online.iterations` iterations from the adapter in `policy_dir`.

    `out_dir` gets the final adapter, `metrics.json` and `online.csv`; nothing else is written
    outside the cache. A row of the CSV is an iteration, log and trained role: iteration, games
    (played before, all logs together: what the policy had learned from), the columns of
    `role_rows`, credit (see fresh_credit.py), loss and gradient_norm (means over its updates; null
    if every advantage was 0), kl_per_action and entropy_per_action (see movement.py),
    zero_advantages (share of the actions), play_seconds and train_seconds of the iteration,
    policy_version.

    Args:
        rollout: plays `online.games` games with the newest adapter.
        aggregate: credits games anew, for training and for the refresh of the reward model.
        inputs: JSON-able; everything else that decides how games come out and are credited.
        policy_dir: the offline policy as `train_policy` leaves it.
        reward_model_dir: read only if `online.credit` is `reward_model`.
        tracking: who is told of all updates and iterations, as one run; not of refreshes.

    Returns:
        The metrics: iterations, games, updates, final_loss; kl_per_action, entropy_per_action,
        gradient_norm and zero_advantages of the last iteration (null if it trained nothing);
        play_seconds, train_seconds, credit_used (of the last iteration), reward_model_refused (the
        last reason, if it was), reward_model_unchecked (if nobody could tell its quality), and
        curve: log -> role -> first and last win_rate, mean_reward and refused_rate.

    Raises:
        AriaError: the policy is not a LoRA adapter, or training fails.
    """
    if params.lora is None:
        raise AriaError(
            "online training needs policy.lora: rollouts reload an adapter, not a model"
        )
    process_state()  # joins the processes, if there are several
    task = OnlineRun(
        params,
        online,
        reward_params,
        pace,
        base,
        Path(policy_dir),
        Path(reward_model_dir),
        rollout,
        aggregate,
        seed,
        inputs,
        cache,
        tracking,
    )
    with training_errors(STAGE):
        return finish(task.run, out_dir, lambda: _loop(task, progress))


def _loop(task: OnlineRun, progress: Progress | None) -> None:
    state, total, processes = task.state(), task.online.iterations, process_state()
    while state["iteration"] < total:
        following = _iterate(task, state)
        if processes.is_main_process:
            task.keep(following)
            _tell(task, following)
        processes.wait_for_everyone()
        state = task.state()
        if progress:
            progress(state["iteration"], total)
    _finish(task, state)


def _tell(task: OnlineRun, state: State) -> None:
    """Tell the trackers of the last whole iteration, at the steps that end it."""
    rows = [row for row in state["history"] if row["iteration"] == state["iteration"] - 1]
    task.tracking.tell(task.run.path, "iteration", figures_of(rows), state["steps"])


def _iterate(task: OnlineRun, state: State) -> State:
    """One iteration: play, credit, update, perhaps refresh; returns the next state."""
    iteration = state["iteration"]
    version = f"{iteration}:{fingerprint(state['policy'])[:12]}"
    played = _play(task, iteration, Path(state["policy"]), version)
    started = time.monotonic()
    frames, verdict = _credited(task, state, version)
    steps, measured, policy = update(task, state, lesson_of(task, frames, verdict))
    reward_model = _refreshed(task, iteration, version, Path(state["reward_model"]))
    common = {
        "credit": verdict.credit,
        **measured,
        "play_seconds": played["seconds"],
        "train_seconds": time.monotonic() - started,
        "policy_version": version,
    }
    before = {"iteration": iteration, "games": state["games"]}
    return {
        "iteration": iteration + 1,
        "steps": steps,
        "games": state["games"] + played["games"],
        "policy": str(policy),
        "reward_model": str(reward_model),
        "verdict": vars(verdict),
        "history": [*state["history"], *({**before, **row, **common} for row in played["rows"])],
    }


def _play(task: OnlineRun, iteration: int, policy: Path, version: str) -> dict[str, Any]:
    """Play the iteration's games and keep them; their number, seconds and rows (see course.py)."""

    def play() -> dict[str, Any]:
        started = time.monotonic()
        seed = derived_seed(task.seed, "rollout", iteration)
        episodes = without_broken_off(task.rollout(policy, iteration, seed))
        if not episodes:
            raise AriaError(f"online iteration {iteration}: no game was finished: see the players")
        task.played.keep(iteration, version, episodes)
        return {
            "games": len(episodes),
            "seconds": time.monotonic() - started,
            "rows": role_rows(episodes),
        }

    mark = task.played.of(iteration) / PLAYED
    found: dict[str, Any] = first_only(mark, version, play, (EPISODES, TURNS))
    return found


def _credited(task: OnlineRun, state: State, version: str) -> tuple[list[LogFrames], Verdict]:
    """The games of the last `replay` iterations with their credit, and whose it is."""
    iteration, folder = state["iteration"], task.played.of(state["iteration"])
    frames = task.played.last(iteration, task.online.replay)

    def credit() -> dict[str, Any]:
        found, verdict = task.credit.of(frames, Path(state["reward_model"]))
        write_rewards(folder / REWARDS, found)
        _say(verdict, state["verdict"])
        return vars(verdict)

    found = first_only(folder / CREDITED, version, credit, (REWARDS,))
    return with_rewards(folder / REWARDS, frames), Verdict(**found)


def _say(verdict: Verdict, before: dict[str, Any]) -> None:
    """Tell once what is unusual about the credit."""
    if vars(verdict) == before:
        return
    if verdict.refused:
        logger.warning(
            "online.credit: the reward model is not used: %s; the credit is that of the games",
            verdict.refused,
        )
    if verdict.unchecked:
        logger.warning("online.scorer does not tell its R2: its scores are used unchecked")


def _refreshed(task: OnlineRun, iteration: int, version: str, current: Path) -> Path:
    """The reward model for the next iteration, trained further whenever a refresh is due.

    With a scorer on another machine the refresh is that machine's business. A model that was
    refused is refreshed too: fresh games may make it worth using.
    """
    online = task.online
    due = online.credit == REWARD_MODEL and online.scorer == IN_PROCESS
    if not due or not _ends_with_refresh(online, iteration):
        return current
    done = (i for i in reversed(range(iteration)) if _refreshed_after(task, i).exists())
    # no game that an earlier refresh has learned from: it would be held out here
    frames = task.played.since(iteration, iteration - next(done, -1))
    if not frames:
        return current
    folder, mark = _refreshed_after(task, iteration), task.played.of(iteration)

    def credit() -> None:
        rewards = task.aggregate({log.name: log.turns for log in frames}, None)
        found = [replace(log, rewards=rewards[log.name]) for log in frames]
        write_rewards(mark / REFRESH, found)

    first_only(mark / REFRESHED, version, credit, (REFRESH,))
    train_reward_model(
        task.reward_params,
        task.pace,
        with_rewards(mark / REFRESH, frames),
        task.base,
        folder,
        seed=task.seed,
        start=current,
        cache=task.run.path,
    )
    return folder


def _refreshed_after(task: OnlineRun, iteration: int) -> Path:
    """Where the reward model lies that was refreshed after an iteration, if it was."""
    return task.run.path / f"reward_model-{iteration + 1}"


def _ends_with_refresh(online: OnlineParams, iteration: int) -> bool:
    """Whether the updates of an iteration reach the next `refresh_every`."""
    before, after = iteration * online.updates, (iteration + 1) * online.updates
    return before // online.refresh_every != after // online.refresh_every


def _finish(task: OnlineRun, state: State) -> None:
    with task.run.writing() as folder:
        for name in (ADAPTER_WEIGHTS, ADAPTER_CONFIG):
            shutil.copy(Path(state["policy"]) / name, folder / name)
        tidy(folder, task.base)
        history = pd.DataFrame(state["history"])
        history = history[[*COLUMNS, *(name for name in history if name not in COLUMNS)]]
        write_csv(folder / "online.csv", history)
        write_json(folder / "metrics.json", _metrics(state, history))


def _metrics(state: State, history: pd.DataFrame) -> dict[str, Any]:
    """The metrics of a finished run (see `train_online`)."""
    seconds = history.drop_duplicates("iteration")[["play_seconds", "train_seconds"]].sum()
    verdict = Verdict(**state["verdict"])
    known, last = history["loss"].dropna(), history.iloc[-1].reindex(MEASURED)
    return {
        "iterations": state["iteration"],
        "games": state["games"],
        "updates": state["steps"],
        "final_loss": float(known.iloc[-1]) if len(known) else None,
        **{name: None if pd.isna(last[name]) else float(last[name]) for name in MEASURED},
        **seconds.to_dict(),
        "credit_used": verdict.credit,
        **({"reward_model_refused": verdict.refused} if verdict.refused else {}),
        **({"reward_model_unchecked": True} if verdict.unchecked else {}),
        "curve": compact(history),
    }
