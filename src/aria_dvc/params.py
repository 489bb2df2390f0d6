"""The whole of params.yaml, typed and checked: the blocks are in settings/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from aria_dvc.errors import AriaError
from aria_dvc.params_checks import problems_of
from aria_dvc.params_errors import told
from aria_dvc.records.names import PLAYABLE, REWARD_RULES
from aria_dvc.settings.block import Block
from aria_dvc.settings.dialogues import BaseModelParams, CollectParams, LogSource, TruthParams
from aria_dvc.settings.evaluation import EvaluateParams, ReportParams
from aria_dvc.settings.intentions import (
    AggregateParams,
    ClusterParams,
    EmbedParams,
    PrepareParams,
    SelectKParams,
)
from aria_dvc.settings.machine import Endpoint, Pace, Tracker
from aria_dvc.settings.online import OnlineParams
from aria_dvc.settings.training import PolicyParams, ProgressParams, RewardModelParams
from aria_dvc.yaml_file import read_yaml, taken_for_numbers


class Params(Block):
    """The whole of params.yaml."""

    k: int | Literal["auto"] = Field(
        description="number of intentions: auto = what select_k chooses; an integer "
        "(2..cluster.k_max) overrides it"
    )
    seed: int = Field(ge=0, lt=2**32, description="seeds everything that is random")
    categories: list[str] = Field(
        description="each has policies of its own, for all of its logs, and a reward model if asked"
    )
    variants: dict[str, dict[str, Any]] = Field(
        description="policies by name, each with what it changes of the block policy"
    )
    logs: dict[str, LogSource] = Field(
        min_length=1, description="dialogues by name: games that are played, logs of your own"
    )
    rewards: dict[str, str] = Field(
        description="final reward by game: win (1, draw or no deal 0.5, 0; the paper's), "
        "strict_win (1 or 0), soft_win (that, and up to 0.25 for a deal that is not won, by how "
        "narrowly), utility, or margin (0.5 + (own - other) / 2, no deal 0.25); a forfeit is 0"
    )
    endpoints: dict[str, Endpoint] = Field(
        description="OpenAI-compatible servers by name, for players, embed.source and report.names"
    )
    trackers: list[Tracker] = Field(
        default_factory=list,
        description="who is told of trainings while they run: tensorboard, wandb, trackio, dvclive "
        "(docs/learning.md); changes no result",
    )
    pace: Pace
    base_model: BaseModelParams
    collect: CollectParams
    truth: TruthParams
    prepare: PrepareParams
    embed: EmbedParams
    cluster: ClusterParams
    select_k: SelectKParams
    aggregate: AggregateParams
    reward_model: RewardModelParams
    progress: ProgressParams
    policy: PolicyParams
    online: OnlineParams
    evaluate: EvaluateParams
    report: ReportParams

    @model_validator(mode="after")
    def _consistent(self) -> Params:
        problems = problems_of(self)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def logs_of(self, category: str) -> list[str]:
        """The logs of one category, in the order of `logs`."""
        return [name for name, log in self.logs.items() if log.category == category]

    def games_of(self, category: str) -> list[str]:
        """Those of the category's logs that are of a game, which can be played."""
        return [name for name in self.logs_of(category) if name in PLAYABLE]

    def variant(self, name: str) -> PolicyParams:
        """The block `policy` with what the variant `name` changes of it."""
        return PolicyParams.model_validate(merged(self.policy.model_dump(), self.variants[name]))

    def reward_rule(self, game: str) -> str:
        """The reward rule of `game`; a game that no rule pays takes none, so any will do."""
        return self.rewards.get(game, REWARD_RULES[0])

    def trains_reward_model(self) -> bool:
        """Whether anything asks for a reward model: online training, or the user."""
        asked = bool(self.online.variants) and self.online.credit == "reward_model"
        return asked or self.reward_model.train == "always"


def merged(base: Any, over: Any) -> Any:
    """`base` with the values of `over`, block by block."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}
    return over


def load_params(path: str | Path = "params.yaml") -> Params:
    """Read and check params.yaml.

    Raises:
        AriaError: the file is missing, is not YAML, or has unknown or ill-typed keys; the message
            lists every problem.
    """
    return check_params(read_yaml(Path(path)), str(path))


def check_params(raw: Any, where: str = "params.yaml") -> Params:
    """Validate an already parsed params.yaml (see `load_params`)."""
    if not isinstance(raw, dict):
        raise AriaError(f"{where} must be a mapping of blocks")
    try:
        params = Params.model_validate(raw, strict=False)
        problems = sorted(taken_for_numbers(raw, params.model_dump()))
    except ValidationError as error:
        problems = list(told(error, Params))
    except UnicodeEncodeError:
        problems = ["half of a surrogate pair in a text: write the character itself"]
    if problems:
        raise AriaError(f"{where}: " + "; ".join(problems))
    return params
