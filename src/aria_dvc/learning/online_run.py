"""What does not change from iteration to iteration of an online run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aria_dvc.cache.sums import SUFFIX, damage_of, files_of, read_mark, vouch
from aria_dvc.chat import Renderer
from aria_dvc.files import read_json
from aria_dvc.learning.checkpoints import RunFolder, first_says, run_key
from aria_dvc.learning.fresh_credit import REWARD_MODEL, Aggregate, FreshCredit
from aria_dvc.learning.played import PlayedGames
from aria_dvc.learning.reward_model import backbone_of
from aria_dvc.learning.trackers import NOWHERE, Tracking
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.hardware import inference_dtype
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import load_adapter
from aria_dvc.models.source import ModelSource

if TYPE_CHECKING:
    from aria_dvc.records.episodes import Episode
    from aria_dvc.settings.machine import Pace
    from aria_dvc.settings.online import OnlineParams
    from aria_dvc.settings.training import PolicyParams, RewardModelParams

STAGE: Final = "online"
# (adapter folder of the policy that plays, iteration, seed) -> finished games
Rollout = Callable[[Path, int, int], "list[Episode]"]
State = dict[str, Any]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OnlineRun:
    """Settings, folders and models, which are loaded once a process; see `train_online`."""

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
    tracking: Tracking = NOWHERE

    @cached_property
    def run(self) -> RunFolder:
        settings = {
            "policy": self.params.model_dump(),
            # who else goes on, and how games are dealt, which `inputs` has, are no matter here
            "online": self.online.model_dump(exclude={"variants", "weights"}),
            "inputs": self.inputs,
            "seed": self.seed,
            "reward": self._reward_inputs(),
        }
        start = fingerprint(self.policy_dir)
        key = run_key(STAGE, start, fingerprint(self.base), settings)
        return RunFolder(STAGE, key, self.cache, self.pace.precision)

    def _reward_inputs(self) -> Any:
        """What the scores follow from, where scores are asked for."""
        if self.online.credit != REWARD_MODEL:
            return None
        backbone = fingerprint(backbone_of(self.reward_params, self.base))
        quality = self.reward_model_dir / "metrics.json"  # decides whether it is believed
        metrics = read_json(quality) if quality.is_file() else None
        model = fingerprint(self.reward_model_dir)
        return [self.reward_params.model_dump(), backbone, model, metrics]

    @property
    def played(self) -> PlayedGames:
        return PlayedGames(self.run.path)

    @property
    def credit(self) -> FreshCredit:
        return FreshCredit(
            self.params,
            self.online,
            self.reward_params,
            self.pace,
            self.base,
            self.aggregate,
        )

    @cached_property
    def renderer(self) -> Renderer:
        return Renderer(load_tokenizer(self.base))

    @cached_property
    def model(self) -> Any:
        """The offline adapter, in float32, on its base in the precision of play.

        A checkpoint's weights replace it on resume.
        """
        base = load_model(self.base, dtype=inference_dtype(self.pace.precision))
        return load_adapter(base, self.policy_dir, base_name=str(self.base), trainable=True)

    def keep(self, state: State) -> None:
        """Write what a whole iteration has left behind, with the sums of the models that it names.

        The state before stays, as its checkpoint does. Models of this run are named by their place
        in its folder, which may lie elsewhere when it goes on; None is the one that was given.
        """
        places: dict[str, str | None] = {}
        files: list[Path] = []
        for name in self._given:
            folder = Path(state[name])
            made = folder.is_relative_to(self.run.path)
            places[name] = folder.relative_to(self.run.path).as_posix() if made else None
            files += files_of(folder) if made else []
        vouch(self._state_file(state["iteration"]), files, state={**state, **places})
        self._state_file(state["iteration"] - 2).unlink(missing_ok=True)

    @property
    def _given(self) -> dict[str, str]:
        """The models that it starts from, by their names in a state."""
        return {"policy": str(self.policy_dir), "reward_model": str(self.reward_model_dir)}

    def state(self) -> State:
        """What whole iterations have left behind, as the first process finds it.

        iteration: how many; steps: optimiser steps taken; games: played; policy, reward_model:
        folders; verdict: whose credit was used last, and why; history: rows so far. Where the last
        state, or what it names, is damaged, that is named and the last whole one counts.
        """
        return first_says(self._newest)

    def _newest(self) -> State:
        for iteration in range(self.online.iterations, 0, -1):
            file = self._state_file(iteration)
            if file.is_file():
                state = self._whole(file)
                if state is not None:
                    return state
        return {
            "iteration": 0,
            "steps": 0,
            "games": 0,
            **self._given,
            "verdict": {},
            "history": [],
        }

    def _whole(self, file: Path) -> State | None:
        """The state in a file, if that and the models that it names are as they were written."""
        damaged = damage_of(file)
        kept: State = {} if damaged else read_mark(file)["state"]
        damaged += map(str, self.played.damaged(kept.get("iteration", 0)))
        if not damaged:
            made = {name: str(self.run.path / kept[name]) for name in self._given if kept[name]}
            return {**kept, **self._given, **made}
        logger.warning(
            "%s: %s damaged: online training goes on from the last iteration that is whole",
            *(file, ", ".join(damaged)),
        )
        return None

    def _state_file(self, iteration: int) -> Path:
        return self.run.path / f"state-{iteration}{SUFFIX}"
