"""Every variant of the policy against the same fixed opponents, on the same seeds.

Paper sec. 4: a win is an own utility strictly above the opponent's; a single-agent game is won by
success. All variants meet the same configurations with the same seeds, so they compare in pairs.
Each role and line-up of opponents has configurations in an order and seeds of its own: had they
the same, a variant would open alike against all of them, and its pairs would not be independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.arena.served import with_adapter
from aria_dvc.arena.sessions import Session
from aria_dvc.arena.side_by_side import play_side_by_side
from aria_dvc.errors import AriaError
from aria_dvc.games.base import Game
from aria_dvc.games.registry import get_game
from aria_dvc.models.source import ModelSource
from aria_dvc.records.episodes import Episode
from aria_dvc.records.outcomes import won
from aria_dvc.records.schemas import EVALUATION
from aria_dvc.records.tables import sorted_json
from aria_dvc.settings.evaluation import GameEvaluation

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.params import Params


def evaluate_category(
    params: Params, variant: str, category: str, policy: Path | None
) -> pd.DataFrame:
    """One row an episode: every role of every game of `category`, played by one policy.

    Args:
        variant: the policy's name, for the column of that name.
        policy: the trained policy: a LoRA folder, or a whole model's; None plays the base model.

    Raises:
        AriaError: no opponent is named for a role, a player cannot be reached, or a server does not
            load the policy.
    """
    import pandas as pd

    games = params.games_of(category)
    if policy is not None and games:  # without games nothing was trained
        params = with_adapter(params, params.evaluate.servers, policy)
    sides = [one for game in games for one in _sessions(params, game, policy)]
    played = play_side_by_side(params, [session for _, session in sides], f"evaluate {variant}")
    rows = [
        _row(episode, variant, role)
        for (role, _), episodes in zip(sides, played, strict=True)
        for episode in episodes
    ]
    return pd.DataFrame(rows, columns=list(EVALUATION.dtypes)).astype(EVALUATION.dtypes)


def seed_purpose(role: str, opponents: Iterable[str]) -> str:
    """What the seeds of a role's games against these opponents are derived from."""
    return " ".join(("evaluate", role, *opponents))


def _sessions(params: Params, name: str, policy: Path | None) -> Iterator[tuple[str, Session]]:
    """(role, its games against one opponent) of every role that the policy plays."""
    game, wanted = get_game(name), params.evaluate.games[name]
    whole = policy is not None and not ModelSource(policy).is_adapter
    for role in game.roles:
        for others in _opponents(game, role, wanted):
            yield (
                role,
                Session(
                    game,
                    {**others, role: "policy"},
                    params.evaluate,
                    wanted.episodes,
                    wanted.grid,
                    adapter=None if whole else policy,
                    own_model=policy if whole else None,
                    reward=params.reward_rule(name),
                    purpose=seed_purpose(role, others.values()),
                    served_by=params.evaluate.servers,
                ),
            )


def _opponents(game: Game, role: str, wanted: GameEvaluation) -> Iterator[dict[str, str]]:
    """Player specs of every other role and of the environment, for each line-up that is asked."""
    others = [r for r in (*game.roles, game.environment) if r and r != role]
    missing = [other for other in others if not wanted.facing(other)]
    if missing:
        raise AriaError(
            f"evaluate.games.{game.name}.opponents: nobody plays {', '.join(missing)}: name a "
            "player"
        )
    for specs in product(*(wanted.facing(other) for other in others)):
        yield dict(zip(others, specs, strict=True))


def _row(episode: Episode, variant: str, role: str) -> dict[str, Any]:
    """A row of EVALUATION."""
    record = episode.record
    own = record.utilities.get(role)
    other = next((value for name, value in record.utilities.items() if name != role), None)
    reward, failure = episode.rewards[role], record.failure
    return {
        "game": episode.game,
        "variant": variant,
        "role": role,
        "episode": episode.episode_id,
        "config": sorted_json(record.config),
        "seed": record.seed,
        "opponent": next(
            (player.name for name, player in record.players.items() if name != role), ""
        ),
        "won": won(episode, role),
        "reward": reward,
        "utility": own,
        "opponent_utility": other,
        "no_deal": own is not None and failure is None and not record.details.get("deal", False),
        "reason": record.reason,
        "failure_role": failure.role if failure else "",
        "failure_kind": failure.kind if failure else "",
        "turns": sum(utterance.role == role for utterance in episode.utterances),
        "executed": sum(record.grounded[role]) if role in record.grounded else None,
        "refused": sum(one.role == role for one in record.refused),
        "completion_tokens": record.tokens[role].completion,
    }
