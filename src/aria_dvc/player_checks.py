"""What can be wrong with the players of params.yaml beside their names; `params` reports it.

All of it is found before the first game, not when evaluation comes, after hours of training.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from aria_dvc.player_specs import endpoint_name, specs_of, strategies_of, weights_of
from aria_dvc.records.names import (
    ADVERSARIAL,
    ENVIRONMENTS,
    GAME_ROLES,
    GAME_STRATEGIES,
    PLAYABLE,
    STRATEGY_NAMES,
    WARM_START_CAST,
    is_trained,
)
from aria_dvc.settings.dialogues import LogSource
from aria_dvc.settings.evaluation import EvaluateParams, GameEvaluation
from aria_dvc.settings.machine import Endpoint
from aria_dvc.suggestions import did_you_mean

if TYPE_CHECKING:
    from aria_dvc.params import Params


def pool_problems(logs: Mapping[str, LogSource], trained: Collection[str]) -> Iterator[str]:
    """Pools that cannot be drawn from, or that teach nothing.

    trained: kinds of player whose utterances get credit (`prepare.players`).
    """
    for name, log in logs.items():
        if log.is_played and log.players:
            yield from _weight_problems(name, log)
            specs = specs_of(log.players)
            if not any(is_trained(spec, trained) for spec in specs):
                kinds = ", ".join(trained)
                yield f"logs.{name}.players: nobody is of the kinds in prepare.players ({kinds})"


def _weight_problems(name: str, log: LogSource) -> Iterator[str]:
    for role, pool in log.players.items():
        weights = weights_of(pool).values()
        if not weights or min(weights) < 0:
            yield f"logs.{name}.players.{role}: weights must be 0 or more, and one above 0"


def judge_problems(
    params: Params, trained: Collection[str], taught: Collection[str]
) -> Iterator[str]:
    """Opponents by whom a policy is judged though it has been trained with them.

    A policy learns from all logs of its category. Who answers in a guessing game is its world, and
    no opponent.

    Args:
        trained: categories in which a policy is trained.
        taught: games whose language the warm start teaches.
    """
    logs, evaluate = params.logs, params.evaluate
    for game, wanted in evaluate.games.items():
        known = game in logs and logs[game].category in trained
        if not known or evaluate.allow_training_opponents:
            continue
        judges = _opponents(_facing(wanted), game)
        for where, opponents in _training(logs, logs[game].category, taught):
            served = {_served(spec, params.endpoints) for spec in opponents}
            if shared := sorted(one for one in judges if _served(one, params.endpoints) in served):
                yield (
                    f"evaluate.games.{game}.opponents: {', '.join(shared)} would judge, but also "
                    f"plays in {where}, itself or in a mixture: name another, or set "
                    "evaluate.allow_training_opponents: true"
                )


def _served(spec: str, endpoints: Mapping[str, Endpoint]) -> str | tuple[str, str]:
    """The player; of `endpoint:NAME` its server and model, which may have two names."""
    endpoint = endpoints.get(endpoint_name(spec) or "")
    return (endpoint.base_url.rstrip("/"), endpoint.model) if endpoint else spec


def _training(
    logs: Mapping[str, LogSource], category: str, taught: Collection[str]
) -> Iterator[tuple[str, set[str]]]:
    """(where, its opponents) of all that a policy of the category learns from."""
    for name, log in logs.items():
        if log.category == category and log.is_played:
            yield f"logs.{name}.players", _opponents(_seated_in(log), name)
    if any(PLAYABLE.get(game) == category == ADVERSARIAL for game in taught):
        yield "the dialogues of the warm start", set(WARM_START_CAST)


def _seated_in(log: LogSource) -> dict[str, list[str]]:
    """Who may play each role of a log."""
    return {role: list(weights_of(pool)) for role, pool in log.players.items()}


def _facing(wanted: GameEvaluation) -> dict[str, list[str]]:
    """Whom the policy meets in each role of a game."""
    return {role: wanted.facing(role) for role in wanted.opponents}


def _opponents(seated: Mapping[str, Sequence[str]], game: str) -> set[str]:
    """The strategies of the scripted players, and the models that stay as they are."""
    specs = [spec for role, at in seated.items() if role != ENVIRONMENTS.get(game) for spec in at]
    models = {spec for spec in specs if spec == "base" or endpoint_name(spec) is not None}
    return strategies_of(specs) | models


def seat_problems(logs: Mapping[str, LogSource], evaluate: EvaluateParams) -> Iterator[str]:
    """Roles that nobody plays or that there are not, and players who cannot have theirs."""
    for game, log in logs.items():
        if log.is_played and game in GAME_ROLES:
            where = f"logs.{game}.players"
            yield from _seated(where, game, _seated_in(log), _parties(game))
    for game, wanted in evaluate.games.items():
        if game in GAME_ROLES:
            where = f"evaluate.games.{game}.opponents"
            facing = _facing(wanted)
            # a role that is alone meets nobody of its kind
            needed = _parties(game) if len(GAME_ROLES[game]) > 1 else _parties(game)[1:]
            yield from _seated(where, game, facing, needed)
            yield from _unfit_opponents(where, facing)


def _parties(game: str) -> list[str]:
    return [*GAME_ROLES[game], *([ENVIRONMENTS[game]] if game in ENVIRONMENTS else [])]


def _seated(
    where: str, game: str, players: Mapping[str, Sequence[str]], needed: Sequence[str]
) -> Iterator[str]:
    for role in needed:
        if not players.get(role):
            yield f"{where}: nobody plays {role}: name a player"
    for role, specs in players.items():
        if role not in _parties(game):
            yield f"{where}: {game} has no role {role}{did_you_mean(role, _parties(game))}"
            continue
        for spec in specs:
            if _is_miscast(game, role, spec):
                yield f"{where}.{role}: {spec} cannot play {role} in {game}: name another"


def _is_miscast(game: str, role: str, spec: str) -> bool:
    """Whether a packaged player, who knows some games only, does not know this role."""
    kind, _, strategy = spec.partition(":")
    answers = role == ENVIRONMENTS.get(game)
    if kind == "scripted":
        own = GAME_STRATEGIES.get(game, STRATEGY_NAMES)
        return strategy in STRATEGY_NAMES and (answers or strategy not in own)
    return kind == "embedded" and not answers


def _unfit_opponents(where: str, facing: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for role, specs in facing.items():
        if "policy" in specs:
            yield f"{where}.{role}: policy is what is judged: name who stays as it is, say base"
        for spec in dict.fromkeys(specs):
            if specs.count(spec) > 1:
                yield f"{where}.{role}: {spec} is named {specs.count(spec)} times: once will do"
