"""What can be wrong with params.yaml, in words: all of it at once, with did-you-mean."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pydantic import ValidationError

from aria_dvc.embedder_specs import embedder_weights
from aria_dvc.errors import AriaError
from aria_dvc.params_errors import told
from aria_dvc.player_checks import judge_problems, pool_problems, seat_problems
from aria_dvc.player_specs import endpoint_name, find_endpoint, parse_spec, specs_of, weights_of
from aria_dvc.policy_checks import estimator_problems, objective_problems
from aria_dvc.records.names import ADVERSARIAL, GRIDS, KNOWLEDGE, PLAYABLE, REWARD_RULES
from aria_dvc.settings.block import Block
from aria_dvc.settings.dialogues import LANGUAGE_MODELS, SENTENCE_MODELS
from aria_dvc.settings.evaluation import TERMS
from aria_dvc.settings.intentions import CreditMethod
from aria_dvc.settings.machine import IN_PROCESS
from aria_dvc.settings.training import VANILLA, Estimated, PlainReturn, PolicyMethod, PolicyParams
from aria_dvc.suggestions import did_you_mean
from aria_dvc.yaml_file import taken_for_numbers

if TYPE_CHECKING:
    from aria_dvc.params import Params

# A variant of one of these names is what the name says.
NAMED_AFTER = {
    name
    for names in (CreditMethod, PlainReturn, Estimated, PolicyMethod)
    for name in get_args(names)
    if name not in ("reinforce", "none")
}
OF_OWN_LOGS = ("agent", "group_by", "outcome", "moves")  # keys of a log that games have no use for
OF_GUESSING_GAMES = ("belief", "information_gain")
_NAME = re.compile(r"[A-Za-z0-9_]+")


def problems_of(params: Params) -> list[str]:
    """Everything that is wrong, block by block."""
    return [
        *_k_problems(params),
        *_log_problems(params),
        *_grid_problems(params),
        *_reward_problems(params),
        *_method_problems(params),
        *_variant_problems(params),
        *_player_problems(params),
        *pool_problems(params.logs, params.prepare.players),
        *judge_problems(params, _trained(params), _taught(params)),
        *_online_problems(params),
        *_rollout_problems(params),
        *_model_problems(params),
    ]


def _trained(params: Params) -> list[str]:
    """The categories in which a policy is trained."""
    return params.categories if params.variants.keys() - {VANILLA} else []


def _taught(params: Params) -> list[str]:
    """The games whose language the warm start teaches."""
    return params.base_model.games if params.base_model.warm_start else []


def _k_problems(params: Params) -> list[str]:
    if params.k == "auto" or 2 <= params.k <= params.cluster.k_max:
        return []
    return [f"k: {params.k} is outside 2..{params.cluster.k_max} (cluster.k_max); or use auto"]


def _log_problems(params: Params) -> list[str]:
    problems = [
        f"{block}: {name!r} is no name: use letters, digits and underscores"
        for block, names in (
            ("logs", params.logs),
            ("variants", params.variants),
            ("categories", params.categories),
        )
        for name in names
        if not _NAME.fullmatch(name)
    ]
    unknown = [
        f"{block}: unknown game {name}{did_you_mean(name, PLAYABLE)}"
        for block, names in (
            ("base_model.games", params.base_model.games),
            (
                "base_model.warm_start_settings.by_game",
                params.base_model.warm_start_settings.by_game,
            ),
            ("evaluate.games", params.evaluate.games),
        )
        for name in names
        if name not in PLAYABLE
    ]
    empty = [
        f"categories: {category} has no log: take it off the list, or give it to a log"
        for category in params.categories
        if not params.logs_of(category)
    ]
    return problems + unknown + empty + [p for n in params.logs for p in _one_log(params, n)]


def _grid_problems(params: Params) -> Iterator[str]:
    warm_start = "base_model.warm_start_settings.by_game"
    named = [
        *((f"logs.{name}", name, log.grid) for name, log in params.logs.items() if log.is_played),
        *((f"evaluate.games.{name}", name, of.grid) for name, of in params.evaluate.games.items()),
        *(
            (f"{warm_start}.{name}", name, own.grid)
            for name, own in params.base_model.warm_start_settings.by_game.items()
        ),
    ]
    for where, game, grid in named:
        if grid not in (known := GRIDS.get(game, (grid,))):
            yield f"{where}.grid: {game} has no grid {grid}{did_you_mean(grid, known)}"


def _reward_problems(params: Params) -> Iterator[str]:
    known = ", ".join(REWARD_RULES)
    for game, rule in params.rewards.items():
        if game not in PLAYABLE:
            yield f"rewards: unknown game {game}{did_you_mean(game, PLAYABLE)}"
        elif PLAYABLE[game] != ADVERSARIAL:
            yield f"rewards.{game}: success is 1 and failure 0 in this game: take it off"
        elif rule not in REWARD_RULES:
            hint = did_you_mean(rule, REWARD_RULES)
            yield f"rewards.{game}: unknown rule {rule}{hint}: use one of {known}"
    played = {*params.base_model.games, *(n for n, log in params.logs.items() if log.is_played)}
    for game in sorted({*played, *params.evaluate.games} - params.rewards.keys()):
        if PLAYABLE.get(game) == ADVERSARIAL:
            yield f"rewards.{game}: say how the end of this game is paid: {known}"


def _one_log(params: Params, name: str) -> Iterator[str]:
    log = params.logs[name]
    if log.is_played and name not in PLAYABLE:
        yield (
            f"logs.{name}.source: there is no game {name} to play"
            f"{did_you_mean(name, PLAYABLE)}; name the path of a log"
        )
    elif log.is_played and log.episodes == 0:
        yield f"logs.{name}.episodes: no game is played; say how many, at least 1"
    elif log.is_played and (own := [key for key in OF_OWN_LOGS if _is_set(log, key)]):
        yield f"logs.{name}: {' and '.join(own)}: for logs of your own: leave out"
    if name in PLAYABLE and log.category in params.categories:
        if log.category != PLAYABLE[name]:
            yield f"logs.{name}.category: {name} is a game of {PLAYABLE[name]}"
        if name not in params.evaluate.games:
            yield f"evaluate.games.{name}: say how this game is evaluated"


def _is_set(block: Block, key: str) -> bool:
    return bool(getattr(block, key) != type(block).model_fields[key].default)


def _method_problems(params: Params) -> Iterator[str]:
    """Credit that asks for known targets, of games that have none."""
    methods = (params.aggregate.method, *params.aggregate.further)
    for method in dict.fromkeys(m for m in methods if m in OF_GUESSING_GAMES):
        for name in (name for c in params.categories for name in params.games_of(c)):
            if name not in KNOWLEDGE:
                yield (
                    f"aggregate: {method} needs a game whose targets are known "
                    f"({' or '.join(KNOWLEDGE)}), which {name} is not: choose another method, or "
                    "take that log off"
                )


def _variant_problems(params: Params) -> Iterator[str]:
    if VANILLA not in params.variants or params.variants.get(VANILLA) != {"method": "none"}:
        yield "variants.vanilla: the base model is always evaluated: keep it, as method: none"
    for name in params.report.baselines:
        if name not in params.variants:
            hint = did_you_mean(name, list(params.variants))
            yield f"report.baselines: no variant {name} to compare with{hint}"
    for name in params.variants:
        try:
            policy = params.variant(name)
        except ValidationError as error:
            yield from told(error, type(params), ("variants", name))
            continue
        says, where = params.variants[name], f"variants.{name}"
        yield from sorted(taken_for_numbers(says, policy.model_dump(), where))
        if params.evaluate.servers and policy.method != "none" and policy.lora is None:
            yield (
                f"evaluate.rollouts: {name} has no lora, and servers load an adapter, not a whole "
                "model: describe one, or use in_process"
            )
        if name != VANILLA:
            yield from _policy_problems(params, name, policy)


def _policy_problems(params: Params, name: str, policy: PolicyParams) -> Iterator[str]:
    """What is wrong with a variant that is trained."""
    known = [params.aggregate.method, *params.aggregate.further, *get_args(PlainReturn)]
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
    goes_on = name in params.online.variants
    by_model = goes_on and params.online.credit == "reward_model"
    yield from objective_problems(name, policy, by_model)
    yield from estimator_problems(name, policy, params.progress.train, goes_on)


def _player_problems(params: Params) -> list[str]:
    """Players and servers that do not exist, wherever one is named that will be used, and players
    who cannot play what they are named for."""
    unknown = [
        f"{where}: {problem}"
        for where, spec in _named_players(params)
        if (problem := _spec_problem(params, spec))
    ]
    return [*unknown, *seat_problems(params.logs, params.evaluate)]


def _named_players(params: Params) -> Iterator[tuple[str, str]]:
    """(where it stands, spec) of the players of the logs that are played, and of servers."""
    for name, log in params.logs.items():
        if log.is_played:
            for role, pool in log.players.items():
                for spec in weights_of(pool):
                    yield f"logs.{name}.players.{role}", spec
        if evaluation := params.evaluate.games.get(name):
            for role in evaluation.opponents:
                for spec in evaluation.facing(role):
                    yield f"evaluate.games.{name}.opponents.{role}", spec
    for spec in params.collect.sampling:
        yield "collect.sampling", spec
    for spec in params.evaluate.sampling:
        yield "evaluate.sampling", spec
    if endpoint_name(params.embed.source) is not None:
        yield "embed.source", params.embed.source
    if params.report.names != TERMS:
        yield "report.names", params.report.names
    for where, rollouts in _rollouts(params):
        yield from ((where, spec) for spec in rollouts if endpoint_name(spec) is not None)


def _spec_problem(params: Params, spec: str) -> str:
    """Why nobody is called `spec`; "" if somebody is."""
    try:
        player = parse_spec(spec)
        if player.kind == "endpoint":
            find_endpoint(player.name, params.endpoints)
    except AriaError as error:
        return str(error)
    return ""


def _online_problems(params: Params) -> Iterator[str]:
    online = params.online
    for name in online.variants:
        if name not in params.variants or name == VANILLA:
            others = [other for other in params.variants if other != VANILLA]
            yield f"online.variants: no variant {name} to train{did_you_mean(name, others)}"
        elif params.variants[name].get("lora", params.policy.lora) is None:
            yield (
                f"online.variants: {name} has no lora: online training reloads an adapter, not "
                "a whole model; describe one, or take it off the list"
            )
    known = {*PLAYABLE.values(), *(log.category for log in params.logs.values())}
    for name in online.by_category.keys() - known:
        yield f"online.by_category: unknown category {name}{did_you_mean(name, known)}"
    names = {*PLAYABLE, *params.logs}
    for name in online.weights.keys() - names:
        yield f"online.weights: no log {name}{did_you_mean(name, names)}"
    for name in [game for c in params.categories for game in params.games_of(c)]:
        log = params.logs[name]
        if online.variants and log.is_played and "policy" not in specs_of(log.players):
            yield f"logs.{name}.players: online training needs `policy` among them"
    if online.variants:
        yield from _course_problems(params)


def _course_problems(params: Params) -> Iterator[str]:
    """Games of online training of which nothing can be learned."""
    online = params.online
    if not params.collect.of("policy").temperature:
        yield (
            "collect.temperature: 0 plays a configuration the same way every time, of which "
            "online training learns nothing: raise it for policy, or set online.variants: []"
        )
    for category in params.categories:
        course, games = online.course_of(category), params.games_of(category)
        counts = course.dealt(games)
        if starved := [game for game in games if not counts[game]]:
            yield (
                f"online.games: {course.games} in groups of {course.repeats} ({category}) leave "
                f"none for {', '.join(starved)}: take more, or smaller groups"
            )


def _rollouts(params: Params) -> Iterator[tuple[str, list[str]]]:
    """(where it stands, who plays the policy) of what is used."""
    named = {"evaluate": params.evaluate.rollouts}
    if params.online.variants:
        named["online"] = params.online.rollouts
    for block, rollouts in named.items():
        yield f"{block}.rollouts", [rollouts] if isinstance(rollouts, str) else rollouts


def _rollout_problems(params: Params) -> Iterator[str]:
    for where, rollouts in _rollouts(params):
        for spec in rollouts:
            if spec != IN_PROCESS and endpoint_name(spec) is None:
                yield f"{where}: {spec} is neither in_process nor endpoint:NAME"
        if not rollouts:
            yield f"{where}: an empty list plays nothing: name endpoints, or in_process"
        elif IN_PROCESS in rollouts and len(rollouts) > 1:
            yield f"{where}: in_process plays nothing beside endpoints: name either"


def _model_problems(params: Params) -> Iterator[str]:
    """Local weights lie where DVC sees them change."""
    sources = (
        ("base_model.source", params.base_model.source, LANGUAGE_MODELS),
        ("reward_model.backbone", params.reward_model.backbone, LANGUAGE_MODELS),
        ("embed.source", embedder_weights(params.embed.source), SENTENCE_MODELS),
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
