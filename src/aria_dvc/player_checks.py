"""What can be wrong with the players of params.yaml beside their names; `params` reports it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from aria_dvc.player_specs import specs_of, strategies_of, weights_of
from aria_dvc.records.names import is_trained
from aria_dvc.settings.dialogues import LogSource
from aria_dvc.settings.evaluation import EvaluateParams, GameEvaluation


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
