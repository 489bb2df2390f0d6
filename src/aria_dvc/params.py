"""params.yaml as typed models: every mistake in it is reported at once, with did-you-mean.

The blocks themselves are in settings.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from aria_dvc.errors import AriaError
from aria_dvc.player_checks import pool_problems
from aria_dvc.player_specs import endpoint_name, find_endpoint, parse_spec, specs_of, weights_of
from aria_dvc.policy_checks import estimator_problems, objective_problems
from aria_dvc.records.names import ADVERSARIAL, PLAYABLE, REWARD_RULES
from aria_dvc.settings import (
    IN_PROCESS,
    LANGUAGE_MODELS,
    SECRET,
    SENTENCE_MODELS,
    TERMS,
    AggregateParams,
    BaseModelParams,
    Block,
    ClusterParams,
    CollectParams,
    CreditMethod,
    EmbedParams,
    Endpoint,
    Estimated,
    EvaluateParams,
    LogSource,
    OnlineParams,
    Pace,
    PlainReturn,
    PolicyMethod,
    PolicyParams,
    PrepareParams,
    ProgressParams,
    ReportParams,
    RewardModelParams,
    SelectKParams,
    Tracker,
    TruthParams,
)
from aria_dvc.suggestions import did_you_mean
from aria_dvc.yaml_file import read_yaml, taken_for_numbers

VANILLA = "vanilla"
# A variant of one of these names is what the name says.
NAMED_AFTER = {
    name
    for names in (CreditMethod, PlainReturn, Estimated, PolicyMethod)
    for name in get_args(names)
    if name not in ("reinforce", "none")
}
_NAME = re.compile(r"[A-Za-z0-9_]+")
_BRIEF = Repr()  # of a wrong value: it may be half of the file
_BRIEF.maxother = _BRIEF.maxstring = 200


class Params(Block):
    """The whole of params.yaml."""

    k: int | Literal["auto"] = Field(
        description="number of intentions: auto = what select_k chooses; an integer "
        "(2..cluster.k_max) overrides it"
    )
    seed: int = Field(ge=0, description="seeds everything that is random")
    categories: list[str] = Field(
        description="each has a reward model and policies of its own, for all of its logs"
    )
    variants: dict[str, dict[str, Any]] = Field(
        description="policies by name, each with what it changes of the block policy"
    )
    logs: dict[str, LogSource] = Field(
        min_length=1, description="dialogues by name: games that are played, logs of your own"
    )
    rewards: dict[str, str] = Field(
        description="final reward by game: win (1, draw or no deal 0.5, 0; the paper's), "
        "strict_win (1 or 0), soft_win (a slope in place of its step), utility, or margin "
        "(0.5 + (own - other) / 2, no deal 0.25); a forfeit is 0"
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
        problems = [
            *self._k_problems(),
            *self._log_problems(),
            *self._reward_problems(),
            *self._variant_problems(),
            *self._player_problems(),
            *pool_problems(self.logs, self.evaluate, self.prepare.players),
            *self._online_problems(),
            *self._model_problems(),
        ]
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

    def _k_problems(self) -> list[str]:
        if self.k == "auto" or 2 <= self.k <= self.cluster.k_max:
            return []
        return [f"k: {self.k} is outside 2..{self.cluster.k_max} (cluster.k_max); or use auto"]

    def _log_problems(self) -> list[str]:
        problems = [
            f"{block}: {name!r} is no name: use letters, digits and underscores"
            for block, names in (
                ("logs", self.logs),
                ("variants", self.variants),
                ("categories", self.categories),
            )
            for name in names
            if not _NAME.fullmatch(name)
        ]
        unknown = [
            f"{block}: unknown game {name}{did_you_mean(name, PLAYABLE)}"
            for block, names in (
                ("base_model.games", self.base_model.games),
                (
                    "base_model.warm_start_settings.by_game",
                    self.base_model.warm_start_settings.by_game,
                ),
                ("evaluate.games", self.evaluate.games),
            )
            for name in names
            if name not in PLAYABLE
        ]
        empty = [
            f"categories: {category} has no log: take it off the list, or give it to a log"
            for category in self.categories
            if not self.logs_of(category)
        ]
        return problems + unknown + empty + [p for n in self.logs for p in self._one_log(n)]

    def _reward_problems(self) -> Iterator[str]:
        known = ", ".join(REWARD_RULES)
        for game, rule in self.rewards.items():
            if game not in PLAYABLE:
                yield f"rewards: unknown game {game}{did_you_mean(game, PLAYABLE)}"
            elif PLAYABLE[game] != ADVERSARIAL:
                yield f"rewards.{game}: success is 1 and failure 0 in this game: take it off"
            elif rule not in REWARD_RULES:
                hint = did_you_mean(rule, REWARD_RULES)
                yield f"rewards.{game}: unknown rule {rule}{hint}: use one of {known}"
        played = {*self.base_model.games, *(n for n, log in self.logs.items() if log.is_played)}
        for game in sorted({*played, *self.evaluate.games} - self.rewards.keys()):
            if PLAYABLE.get(game) == ADVERSARIAL:
                yield f"rewards.{game}: say how the end of this game is paid: {known}"

    def _one_log(self, name: str) -> Iterator[str]:
        log = self.logs[name]
        if log.is_played and name not in PLAYABLE:
            yield (
                f"logs.{name}.source: there is no game {name} to play"
                f"{did_you_mean(name, PLAYABLE)}; name the path of a log"
            )
        elif log.is_played and log.episodes == 0:
            yield f"logs.{name}.episodes: no game is played; say how many, at least 1"
        elif log.is_played and (log.agents or log.group_by):
            yield f"logs.{name}: agent and group_by are for logs of your own: leave them out"
        if name in PLAYABLE and log.category in self.categories:
            if log.category != PLAYABLE[name]:
                yield f"logs.{name}.category: {name} is a game of {PLAYABLE[name]}"
            if name not in self.evaluate.games:
                yield f"evaluate.games.{name}: say how this game is evaluated"

    def _variant_problems(self) -> Iterator[str]:
        if VANILLA not in self.variants or self.variants.get(VANILLA) != {"method": "none"}:
            yield "variants.vanilla: the base model is always evaluated: keep it, as method: none"
        for name in self.report.baselines:
            if name not in self.variants:
                hint = did_you_mean(name, list(self.variants))
                yield f"report.baselines: no variant {name} to compare with{hint}"
        for name in self.variants:
            try:
                policy = self.variant(name)
            except ValidationError as error:
                for item in error.errors():
                    yield _describe({**item, "loc": ("variants", name, *item["loc"])})
                continue
            if name != VANILLA:
                yield from self._policy_problems(name, policy)

    def _policy_problems(self, name: str, policy: PolicyParams) -> Iterator[str]:
        """What is wrong with a variant that is trained."""
        known = [self.aggregate.method, *self.aggregate.further, *get_args(PlainReturn)]
        known += get_args(Estimated)
        trained_on = policy.credit if policy.method == "reinforce" else policy.method
        if policy.method == "none":
            yield f"variants.{name}: method none is vanilla's alone: choose another method"
        elif policy.credit not in known:
            yield (
                f"variants.{name}.credit: {policy.credit} is neither aggregate.method nor among "
                f"aggregate.further (known: {', '.join(known)})"
            )
        elif policy.advantage == "value" and policy.credit in get_args(PlainReturn):
            yield (
                f"variants.{name}.advantage: value is a credit method's, and {policy.credit} is "
                "none: choose another advantage"
            )
        elif policy.placebo and policy.method != "reinforce":
            yield (
                f"variants.{name}.placebo: {policy.method} has no advantages to give to other "
                "actions: use method reinforce"
            )
        elif name in NAMED_AFTER and name != trained_on:
            yield f"variants.{name}: it trains on {trained_on}: give it another name"
        goes_on = name in self.online.variants
        by_model = goes_on and self.online.credit == "reward_model"
        yield from objective_problems(name, policy, by_model)
        yield from estimator_problems(name, policy, self.progress.train, goes_on)

    def _player_problems(self) -> list[str]:
        """Players and servers that do not exist, wherever one is named that will be used."""
        return [
            f"{where}: {problem}"
            for where, spec in self._named_players()
            if (problem := self._spec_problem(spec))
        ]

    def _named_players(self) -> Iterator[tuple[str, str]]:
        """(where it stands, spec) of the players of the logs that are played, and of servers."""
        for name, log in self.logs.items():
            if log.is_played:
                for role, pool in log.players.items():
                    for spec in weights_of(pool):
                        yield f"logs.{name}.players.{role}", spec
            if evaluation := self.evaluate.games.get(name):
                for role in evaluation.opponents:
                    for spec in evaluation.facing(role):
                        yield f"evaluate.games.{name}.opponents.{role}", spec
        for spec in self.collect.sampling:
            yield "collect.sampling", spec
        for spec in self.evaluate.sampling:
            yield "evaluate.sampling", spec
        if endpoint_name(self.embed.source) is not None:
            yield "embed.source", self.embed.source
        if self.report.names != TERMS:
            yield "report.names", self.report.names
        if self.online.variants:
            for spec in self.online.servers:
                if endpoint_name(spec) is not None:
                    yield "online.rollouts", spec

    def _spec_problem(self, spec: str) -> str:
        """Why nobody is called `spec`; "" if somebody is."""
        try:
            player = parse_spec(spec)
            if player.kind == "endpoint":
                find_endpoint(player.name, self.endpoints)
        except AriaError as error:
            return str(error)
        return ""

    def _online_problems(self) -> Iterator[str]:
        online = self.online
        for name in online.variants:
            if name not in self.variants or name == VANILLA:
                others = [other for other in self.variants if other != VANILLA]
                yield f"online.variants: no variant {name} to train{did_you_mean(name, others)}"
            elif self.variants[name].get("lora", self.policy.lora) is None:
                yield (
                    f"online.variants: {name} has no lora: online training reloads an adapter, not "
                    "a whole model; describe one, or take it off the list"
                )
        known = {*PLAYABLE.values(), *(log.category for log in self.logs.values())}
        for name in online.by_category.keys() - known:
            yield f"online.by_category: unknown category {name}{did_you_mean(name, known)}"
        names = {*PLAYABLE, *self.logs}
        for name in online.weights.keys() - names:
            yield f"online.weights: no log {name}{did_you_mean(name, names)}"
        for name in [game for c in self.categories for game in self.games_of(c)]:
            log = self.logs[name]
            if online.variants and log.is_played and "policy" not in specs_of(log.players):
                yield f"logs.{name}.players: online training needs `policy` among them"
        for spec in online.servers:
            if endpoint_name(spec) is None:
                yield f"online.rollouts: {spec} is neither in_process nor endpoint:NAME"
        if not online.servers and online.rollouts != IN_PROCESS:
            yield "online.rollouts: an empty list plays nothing: name endpoints, or in_process"

    def _model_problems(self) -> Iterator[str]:
        """Local weights lie where DVC sees them change."""
        sources = (
            ("base_model.source", self.base_model.source, LANGUAGE_MODELS),
            ("reward_model.backbone", self.reward_model.backbone, LANGUAGE_MODELS),
            ("embed.source", self.embed.source, SENTENCE_MODELS),
        )
        for where, source, watched in sources:
            path = Path(source)
            if os.path.isdir(path) and (not source.startswith(watched) or _has_linked_part(path)):
                yield (
                    f"{where}: {source} is a folder where DVC would not see its weights change: "
                    f"link its files into {watched} (cp -rs {source} {watched}), or copy and "
                    "`dvc add` them there"
                )


def _has_linked_part(path: Path) -> bool:
    """Whether a part of a relative path is a link to a folder, into which DVC does not look."""
    return any(part.is_symlink() for part in (path, *path.parents))


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
        problems = [line for item in error.errors() for line in _describe(item).split("\n")]
    except UnicodeEncodeError:
        problems = ["half of a surrogate pair in a text: write the character itself"]
    if problems:
        raise AriaError(f"{where}: " + "; ".join(problems))
    return params


def _describe(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown key{did_you_mean(item['loc'][-1], _siblings(item['loc']))}"
    if item["type"] == "value_error" and not where:
        return str(item["ctx"]["error"])
    got = "" if item["type"] in ("missing", SECRET) else f" (got {_BRIEF.repr(item['input'])})"
    return f"{where}: {item['msg'][0].lower() + item['msg'][1:]}{got}"


def _siblings(location: tuple[Any, ...]) -> list[str]:
    """Names that are allowed where an unknown key was found."""
    fields = described_fields(location[:-1])
    return list(fields) if fields else []


def described_fields(location: tuple[Any, ...]) -> dict[str, Any] | None:
    """The fields of the block at a place in params.yaml, by name; None where it is no block."""
    model: Any = Params
    for number, part in enumerate(location):
        if location[:number] == ("variants",):
            model = PolicyParams
            continue
        field = model.model_fields.get(part) if _is_model(model) else None
        model = _block_in(field.annotation) if field else _named_block(model)
        if model is None:
            return None
    return model.model_fields if _is_model(model) else None


def _block_in(annotation: Any) -> Any:
    """The block in an annotation like `Lora | None`, or a mapping of named blocks as it is."""
    if _is_model(annotation) or getattr(annotation, "__origin__", None) is dict:
        return annotation
    return next((part for part in get_args(annotation) if _is_model(part)), None)


def _named_block(mapping: Any) -> Any:
    """The block that a mapping holds under every name."""
    values = get_args(mapping)
    return _block_in(values[1]) if len(values) == 2 else None


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)
