"""What can be wrong with the players of params.yaml beside their names; `params` reports it.

All of it is found before the first game, not when evaluation comes, after hours of training.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from aria_dvc.player_specs import specs_of, strategies_of, weights_of
from aria_dvc.records.names import (
    ENVIRONMENTS,
    GAME_ROLES,
    GAME_STRATEGIES,
    STRATEGY_NAMES,
    is_trained,
)
from aria_dvc.settings.dialogues import LogSource
from aria_dvc.settings.evaluation import EvaluateParams, GameEvaluation
from aria_dvc.suggestions import did_you_mean


def pool_problems(
    logs: Mapping[str, LogSource], evaluate: EvaluateParams, trained: Collection[str]
) -> Iterator[str]:
    """Pools that cannot be drawn from, that teach nothing, or that give evaluation away.

    trained: kinds of player whose utterances get credit (`prepare.players`).
    """
    for name, log in logs.items():
        if log.is_played and log.players:
            yield from _weight_problems(name, log)
            specs = specs_of(log.players)
            if not any(is_trained(spec, trained) for spec in specs):
                kinds = ", ".join(trained)
                yield f"logs.{name}.players: nobody is of the kinds in prepare.players ({kinds})"
            if name in evaluate.games and not evaluate.allow_training_opponents:
                yield from _shared_strategies(name, evaluate.games[name], specs)


def _weight_problems(name: str, log: LogSource) -> Iterator[str]:
    for role, pool in log.players.items():
        weights = weights_of(pool).values()
        if not weights or min(weights) < 0:
            yield f"logs.{name}.players.{role}: weights must be 0 or more, and one above 0"


def _shared_strategies(name: str, game: GameEvaluation, training: list[str]) -> Iterator[str]:
    """Strategies by which a policy is judged though it has been trained against them.

    Only scripted opponents count: the embedded oracle of a guessing game is its world.
    """
    judges = [spec for role in game.opponents for spec in game.facing(role)]
    if shared := sorted(strategies_of(judges) & strategies_of(training)):
        yield (
            f"evaluate.games.{name}.opponents: {', '.join(shared)} would judge, but also plays in "
            f"logs.{name}.players, itself or in a mixture: name another, or set "
            "evaluate.allow_training_opponents: true"
        )


def seat_problems(logs: Mapping[str, LogSource], evaluate: EvaluateParams) -> Iterator[str]:
    """Roles that nobody plays or that there are not, and players who cannot have theirs."""
    for game, log in logs.items():
        if log.is_played and game in GAME_ROLES:
            seated = {role: list(weights_of(pool)) for role, pool in log.players.items()}
            yield from _seated(f"logs.{game}.players", game, seated, _parties(game))
    for game, wanted in evaluate.games.items():
        if game in GAME_ROLES:
            where = f"evaluate.games.{game}.opponents"
            facing = {role: wanted.facing(role) for role in wanted.opponents}
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
