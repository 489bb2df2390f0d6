"""What the actions of fresh games are worth: the variant's own credit, or a reward model's scores.

The paper scores with the reward model (sec. 5.3). Here that one is believed only where it predicts
held-out episodes better than their mean does: otherwise training on its scores is training on what
the policy does anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.learning.advantages import AGGREGATED
from aria_dvc.learning.examples import Key, LogFrames, frames_dialogues, keys_of
from aria_dvc.learning.own_actions import learned_by
from aria_dvc.learning.reward_head import trained_length
from aria_dvc.learning.reward_model import backbone_of
from aria_dvc.learning.scorer import RewardScorer
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.models.source import ModelSource
from aria_dvc.settings.machine import IN_PROCESS
from aria_dvc.settings.training import CREDITED

if TYPE_CHECKING:
    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.online import OnlineParams
    from aria_dvc.settings.training import PolicyParams, RewardModelParams

GAMES, REWARD_MODEL = "games", "reward_model"  # whose credit was used
PLAIN = "discounted"  # a return, without aggregation
# (the games' turns, name of a credit or None for that of the aggregate stage) -> rewards tables
Aggregate = Callable[[dict[str, pd.DataFrame], str | None], dict[str, pd.DataFrame]]


@dataclass(frozen=True)
class Verdict:
    """Whose credit was used, why not the reward model's, and whether its quality was unknown."""

    credit: str = GAMES
    refused: str | None = None
    unchecked: bool = False


@dataclass(frozen=True)
class FreshCredit:
    """Credits games; see `train_online` for the arguments."""

    params: PolicyParams
    online: OnlineParams
    reward_params: RewardModelParams
    pace: Pace
    base: ModelSource
    aggregate: Aggregate

    def of(
        self, frames: Sequence[LogFrames], reward_model: Path
    ) -> tuple[list[LogFrames], Verdict]:
        """The same games with a credit for every action that the policy sampled itself.

        An action that came after a re-ask (unless by `ppo`, see `learned_by`), or that is too long
        to be scored, has none.
        """
        live = [log for log in frames if log.turns["is_action"].any()]
        verdict = self.judged(reward_model)
        scored = verdict.credit == REWARD_MODEL
        found = self._scored(live, reward_model) if scored else self._own(live)
        return [learned_by(self.params.method, log) for log in found], verdict

    def judged(self, reward_model: Path) -> Verdict:
        """Whether the reward model's scores are used.

        Raises:
            AriaError: there is no reward model, or its server stays away.
        """
        if self.online.credit == GAMES:
            return Verdict()
        metrics = self._quality(reward_model)
        if metrics is None:
            return Verdict(REWARD_MODEL, unchecked=True)
        reason = refusal(metrics)
        return Verdict(GAMES if reason else REWARD_MODEL, reason)

    def trained_on(self, verdict: Verdict) -> PolicyParams:
        """The policy's settings, with the reward model's scores as the credit where it is used."""
        if verdict.credit != REWARD_MODEL:
            return self.params
        return self.params.model_copy(update={"credit": AGGREGATED})

    def _quality(self, reward_model: Path) -> dict[str, Any] | None:
        if self.online.scorer != IN_PROCESS:
            return self._remote().quality()
        if not (reward_model / "metrics.json").is_file():
            raise AriaError(f"{reward_model} holds no reward model: run the reward_model stage")
        metrics: dict[str, Any] = read_json(reward_model / "metrics.json")
        return metrics

    def _own(self, frames: Sequence[LogFrames]) -> list[LogFrames]:
        """Credited as the variant's offline training was, from these games alone."""
        name = self.params.credit if self.params.method in CREDITED else PLAIN
        tables = self._tables(frames, name)
        return [replace(log, rewards=tables[log.name]) for log in frames]

    def _scored(self, frames: Sequence[LogFrames], reward_model: Path) -> list[LogFrames]:
        scores = self._scorer(reward_model).score_dialogues(frames_dialogues(frames))
        tables = self._tables(frames, PLAIN)
        return [replace(g, rewards=with_scores(tables[g.name], g.name, scores)) for g in frames]

    def _tables(self, frames: Sequence[LogFrames], credit: str) -> dict[str, pd.DataFrame]:
        return self.aggregate({log.name: log.turns for log in frames}, credit)

    def _scorer(self, reward_model: Path) -> RewardScorer | RemoteScorer:
        if self.online.scorer != IN_PROCESS:
            return self._remote()
        return RewardScorer(
            self.base.named(reward_model),
            backbone_of(self.reward_params, self.base),
            max_tokens=trained_length(reward_model),
            tokens_per_batch=self.pace.tokens_per_batch,
            precision=self.pace.precision,
        )

    def _remote(self) -> RemoteScorer:
        key = self.online.scorer_api_key_env
        return RemoteScorer(self.online.scorer, self.pace.deadline_s, key)


def refusal(metrics: dict[str, Any]) -> str | None:
    """Why a reward model with these held-out metrics is not believed; None if it is."""
    if "not_trained" in metrics:
        return f"there is none ({metrics['not_trained']})"
    r2, low, high = (metrics.get(name) for name in ("r2", "r2_low", "r2_high"))
    if r2 is None:
        return "its held-out returns are all equal, so nothing shows that it predicts any"
    if low is None or high is None:
        return f"its R2 of {r2:.3f} is of too few held-out episodes to have an interval"
    if low <= 0:
        return f"its R2 on held-out episodes, {r2:.3f} ({low:.3f} to {high:.3f}), is not above 0"
    return None


def with_scores(rewards: pd.DataFrame, log: str, scores: dict[Key, float]) -> pd.DataFrame:
    """A rewards table with scores as `reward`, without the actions that have none.

    Raises:
        AriaError: a score is NaN or infinite.
    """
    values = [scores.get(key) for key in keys_of(log, rewards)]
    if any(value is not None and not math.isfinite(value) for value in values):
        raise AriaError(
            f"the reward model scores actions of {log} with NaN or infinity: train it anew "
            "with a lower reward_model.learning_rate"
        )
    column = pd.Series(values, index=rewards.index, dtype="float64")
    return (
        rewards.assign(reward=column, value=math.nan).dropna(subset="reward").reset_index(drop=True)
    )
