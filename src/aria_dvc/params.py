"""params.yaml as typed models: every mistake in it is reported at once, with did-you-mean.

Read with ruamel (YAML 1.2), since `dvc exp run -S policy.learning_rate=1e-6` writes `1e-06`,
which YAML 1.1 readers take for a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from aria_dvc.errors import AriaError
from aria_dvc.player_specs import endpoint_name, find_endpoint, parse_spec
from aria_dvc.records.names import LOG_ONLY, PLAYABLE, category_of, game_names
from aria_dvc.suggestions import did_you_mean as did_you_mean

Category = Literal["adversarial", "single_agent"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
PLAY = "play"
IN_PROCESS = "in_process"
SECRET = "may_hold_a_secret"  # the kind of a problem whose value is not shown
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


class Block(BaseModel):
    """A block of params.yaml: unknown keys are refused, values are checked strictly."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


class Endpoint(Block):
    """An OpenAI-compatible server, named under `endpoints`; the key comes from the environment."""

    base_url: str
    model: str
    api_key_env: str | None = None
    max_concurrency: int = Field(16, ge=1)
    timeout_s: float = Field(60.0, gt=0)
    deadline_s: float = Field(600.0, gt=0)
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PydanticCustomError(SECRET, "must look like http://host:port/v1")
        if parts.username or parts.password or parts.query:
            hint = "carries credentials: name an environment variable in api_key_env instead"
            raise PydanticCustomError(SECRET, hint)
        return url

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            hint = "must be the name of an environment variable in capitals, not the key itself"
            raise PydanticCustomError(SECRET, hint)
        return name


Precision = Literal["auto", "float32", "bfloat16"]


class WarmStart(Block):
    episodes: int = Field(ge=1)
    epochs: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    batch_size: int = Field(4, ge=1)
    tokens_per_batch: int = Field(ge=64)
    max_tokens: int = Field(512, ge=16)
    layers: int | None = Field(None, ge=1)
    precision: Precision = "auto"


class BaseModelParams(Block):
    source: str
    trust_remote_code: bool
    warm_start: bool
    warm_start_settings: WarmStart


class SamplingOverride(Block):
    """What one player does otherwise than the settings; empty fields follow them."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    max_new_tokens: int | None = Field(None, ge=1)


class PlaySettings(Block):
    """How language models are sampled and games are run; shared by collect and evaluate.

    `sampling` maps a player's spec (e.g. `base`, `endpoint:local`) to its own sampling.
    """

    in_flight: int = Field(ge=1)
    temperature: float = Field(ge=0)
    top_p: float = Field(gt=0, le=1)
    max_new_tokens: int = Field(ge=1)
    max_reasks: int = Field(ge=0)
    deadline_s: float = Field(gt=0)
    record_logprobs: bool = False
    adapter: str | None = None
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    cache_gib: float = Field(4.0, gt=0)
    sampling: dict[str, SamplingOverride] = Field(default_factory=dict)

    def of(self, spec: str) -> PlaySettings:
        """The settings of the player `spec`."""
        own = self.sampling.get(spec, SamplingOverride())
        return self.model_copy(update=own.model_dump(exclude_none=True))


class GameSource(Block):
    """Where the raw dialogues of one game come from: `play`, or the path of a log."""

    source: str | None
    episodes: int = Field(0, ge=0)
    grid: str = "default"
    reward: Literal["win", "utility"] = "win"
    players: dict[str, str] = Field(default_factory=dict)

    @property
    def log(self) -> str | None:
        """The path of the user's log; None where the game is played."""
        return None if self.source == PLAY else self.source


class CollectParams(BaseModel):
    """`settings`, then one block a game."""

    model_config = ConfigDict(extra="allow", frozen=True)
    settings: PlaySettings
    __pydantic_extra__: dict[str, GameSource]

    @property
    def names(self) -> list[str]:
        """The games that have a block."""
        return list(self.__pydantic_extra__)

    def game(self, name: str) -> GameSource:
        return self.__pydantic_extra__[name]


class PrepareParams(Block):
    max_chars: int = Field(ge=1)


class EmbedParams(Block):
    source: str
    use_log_vectors: bool
    batch_size: int = Field(ge=1)
    normalize: bool


class ClusterParams(Block):
    k_max: int = Field(ge=2, le=100)
    linkage: Literal["ward", "average"]
    exact_limit: int = Field(ge=2)


class SelectKParams(Block):
    method: Literal[
        "silhouette", "calinski_harabasz", "davies_bouldin", "split_score", "cross_validated"
    ]
    per_role: bool
    eps: float = Field(gt=0)
    tau: int = Field(ge=0)


class AggregateParams(Block):
    method: Literal["aria", "shrinkage", "kernel", "regression", "prefix"]
    gamma: float = Field(gt=0, le=1)
    folds: int = Field(ge=2)


class Lora(Block):
    rank: int = Field(ge=1)
    alpha: float = Field(gt=0)
    dropout: float = Field(ge=0, lt=1)
    target_modules: list[str] = Field(min_length=1)
    layers: int | None = Field(None, ge=1)


class RewardModelParams(Block):
    backbone: str
    learning_rate: float = Field(gt=0)
    epochs: float = Field(gt=0)
    max_episodes: int | None = Field(None, ge=1)
    batch_size: int = Field(ge=1)
    max_tokens: int = Field(ge=16)
    tokens_per_batch: int = Field(1024, ge=64)
    precision: Precision = "auto"
    checkpoint_every: int = Field(20, ge=1)
    held_out: float = Field(gt=0, lt=1)
    weighting: Literal["none", "cell_size"]
    lora: Lora | None


class OnlineParams(Block):
    iterations: int = Field(ge=0)
    games: int = Field(ge=1)
    updates: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    refresh_every: int = Field(ge=1)
    replay: int = Field(1, ge=1)
    rollouts: str
    scorer: str = Field(IN_PROCESS, pattern=r"^(in_process|https?://\S+)$")


PlayerKind = Literal["policy", "scripted", "endpoint"]


class PolicyParams(Block):
    method: Literal["reinforce", "behaviour_cloning"]
    credit: Literal["aggregated", "discounted", "terminal"]
    advantage: Literal["return", "centred", "normalised"]
    kl: float = Field(ge=0)
    learning_rate: float = Field(gt=0)
    epochs: float = Field(gt=0)
    max_episodes: int | None = Field(None, ge=1)
    batch_size: int = Field(ge=1)
    tokens_per_batch: int = Field(ge=64)
    max_tokens: int = Field(ge=16)
    checkpoint_every: int = Field(ge=1)
    precision: Precision = "auto"
    gradient_batches: int = Field(16, ge=0)
    players: list[PlayerKind] = Field(["policy", "endpoint"], min_length=1)
    lora: Lora | None
    online: OnlineParams


class GameEvaluation(Block):
    """How one game is evaluated."""

    episodes: int = Field(ge=1)
    grid: str = "default"
    opponents: dict[str, str] = Field(default_factory=dict)


class EvaluateParams(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)
    settings: PlaySettings
    __pydantic_extra__: dict[str, GameEvaluation | None]

    @property
    def names(self) -> list[str]:
        """The games that have a block."""
        return list(self.__pydantic_extra__)

    def game(self, name: str) -> GameEvaluation | None:
        """None for a log without a game, which cannot be played."""
        return self.__pydantic_extra__[name]


class ReportParams(Block):
    umap: bool
    umap_points: int = Field(ge=10)


class Params(Block):
    """The whole of params.yaml."""

    k: int | Literal["auto"]
    seed: int = Field(ge=0)
    games: list[str] = Field(min_length=1)
    endpoints: dict[str, Endpoint]
    base_model: BaseModelParams
    collect: CollectParams
    prepare: PrepareParams
    embed: EmbedParams
    cluster: ClusterParams
    select_k: SelectKParams
    aggregate: AggregateParams
    reward_model: RewardModelParams
    policy: PolicyParams
    evaluate: EvaluateParams
    report: ReportParams

    @model_validator(mode="after")
    def _consistent(self) -> Params:
        problems = [
            *self._k_problems(),
            *self._game_problems(),
            *self._player_problems(),
            *self._online_problems(),
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _k_problems(self) -> list[str]:
        if self.k == "auto" or 2 <= self.k <= self.cluster.k_max:
            return []
        return [f"k: {self.k} is outside 2..{self.cluster.k_max} (cluster.k_max); or use auto"]

    def _game_problems(self) -> list[str]:
        known = game_names()
        blocks = {
            "games": self.games,
            "collect": self.collect.names,
            "evaluate": self.evaluate.names,
        }
        unknown = [
            f"{block}: unknown game {name}{did_you_mean(name, known)}"
            for block, names in blocks.items()
            for name in names
            if name not in known
        ]
        twice = [f"games: {n} is listed twice" for n in set(self.games) if self.games.count(n) > 1]
        listed = [name for name in self.games if name in known]
        return unknown + twice + [p for name in listed for p in self._listed_problems(name)]

    def _listed_problems(self, name: str) -> list[str]:
        """What is wrong with the blocks of one known game that is to run."""
        problems = [
            f"{block}.{name}: missing block for a game listed in games"
            for block, holder in (("collect", self.collect), ("evaluate", self.evaluate))
            if name not in holder.names
        ]
        if problems:
            return problems
        source = self.collect.game(name).source
        if name in LOG_ONLY and source in (None, PLAY):
            problems.append(f"collect.{name}.source: this one cannot be played; name a log file")
        if name in PLAYABLE and source is None:
            problems.append(f"collect.{name}.source: say play, or name a log file")
        if source == PLAY and self.collect.game(name).episodes == 0:
            problems.append(f"collect.{name}.episodes: no game is played; say how many, at least 1")
        if name in PLAYABLE and self.evaluate.game(name) is None:
            problems.append(f"evaluate.{name}: say how this game is evaluated")
        return problems

    def _player_problems(self) -> list[str]:
        """Players and servers that do not exist, wherever one is named that will be used."""
        problems = [
            f"{where}: {problem}"
            for where, spec in self._named_players()
            if (problem := self._spec_problem(spec))
        ]
        if self.evaluate.settings.adapter is not None:
            problems.append(
                "evaluate.settings.adapter: evaluation plays the base model and the policy that "
                "the policy stage trained; leave this key out"
            )
        return problems

    def _named_players(self) -> Iterator[tuple[str, str]]:
        """(where it stands, spec) of the players of the games that run, and of servers."""
        for name in self.games:
            if name in self.collect.names and (source := self.collect.game(name)).log is None:
                for role, spec in source.players.items():
                    yield f"collect.{name}.players.{role}", spec
            if name in self.evaluate.names and (evaluation := self.evaluate.game(name)):
                for role, spec in evaluation.opponents.items():
                    yield f"evaluate.{name}.opponents.{role}", spec
        for spec in self.collect.settings.sampling:
            yield "collect.settings.sampling", spec
        for spec in self.evaluate.settings.sampling:
            yield "evaluate.settings.sampling", spec
        if endpoint_name(self.embed.source) is not None:
            yield "embed.source", self.embed.source
        online = self.policy.online
        if online.iterations and endpoint_name(online.rollouts) is not None:
            yield "policy.online.rollouts", online.rollouts

    def _spec_problem(self, spec: str) -> str:
        """Why nobody is called `spec`; "" if somebody is."""
        try:
            player = parse_spec(spec)
            if player.kind == "endpoint":
                find_endpoint(player.name, self.endpoints)
        except AriaError as error:
            return str(error)
        return ""

    def _online_problems(self) -> list[str]:
        online = self.policy.online
        if online.iterations == 0:
            return []
        problems = []
        if self.policy.lora is None:
            problems.append(
                "policy.lora: online training reloads an adapter, not a whole model; describe one, "
                "or set policy.online.iterations to 0"
            )
        if online.rollouts != IN_PROCESS and endpoint_name(online.rollouts) is None:
            problems.append(
                f"policy.online.rollouts: {online.rollouts} is neither in_process nor endpoint:NAME"
            )
        return problems

    def games_of(self, category: str) -> list[str]:
        """The listed games of one category, in the order of `games`."""
        return [game for game in self.games if category_of(game) == category]


def load_params(path: str | Path = "params.yaml") -> Params:
    """Read and check params.yaml.

    Raises:
        AriaError: the file is missing, is not YAML, or has unknown or ill-typed keys; the message
            lists every problem.
    """
    path = Path(path)
    try:
        raw = YAML(typ="safe", pure=True).load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise AriaError(f"{path} is missing: run from the repository's root") from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise AriaError(f"{path} is not valid YAML: {error}") from None
    return check_params(raw, str(path))


def check_params(raw: Any, where: str = "params.yaml") -> Params:
    """Validate an already parsed params.yaml (see `load_params`)."""
    if not isinstance(raw, dict):
        raise AriaError(f"{where} must be a mapping of blocks")
    try:
        return Params.model_validate(raw, strict=False)
    except ValidationError as error:
        problems = [line for item in error.errors() for line in _describe(item).split("\n")]
        raise AriaError(f"{where}: " + "; ".join(problems)) from None


def _describe(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown key{did_you_mean(item['loc'][-1], _siblings(item['loc']))}"
    if item["type"] == "value_error" and not where:
        return str(item["ctx"]["error"])
    got = "" if item["type"] in ("missing", SECRET) else f" (got {item['input']!r})"
    return f"{where}: {item['msg'][0].lower() + item['msg'][1:]}{got}"


def _siblings(location: tuple[Any, ...]) -> list[str]:
    """Names that are allowed where an unknown key was found."""
    model: Any = Params
    for part in location[:-1]:
        field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
        if field is None:
            model = _extra_model(model)
        else:
            model = next(
                (t for t in (field.annotation, *get_args(field.annotation)) if _is_model(t)), None
            )
        if model is None:
            return []
    return list(model.model_fields)


def _extra_model(model: Any) -> Any:
    return {CollectParams: GameSource, EvaluateParams: GameEvaluation}.get(model)


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)
