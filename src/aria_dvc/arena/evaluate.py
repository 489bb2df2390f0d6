"""The vanilla and the trained policy against the same fixed opponents, on the same seeds.

Paper sec. 4: a win is an own utility strictly above the opponent's; a single-agent game is won by
success. Both policies meet the same configurations with the same seeds, so they compare in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.arena.sessions import Session
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.params import Params
from aria_dvc.records.episodes import Episode

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "game",
    "variant",
    "role",
    "episode",
    "config",
    "seed",
    "opponent",
    "won",
    "reward",
    "utility",
    "opponent_utility",
    "no_deal",
    "reason",
    "failure_role",
    "failure_kind",
    "turns",
    "completion_tokens",
)


def evaluate_game(params: Params, game: str, base_model: Path, policy: Path) -> pd.DataFrame:
    """One row an episode: every role of `game`, played by the vanilla and the trained policy.

    Args:
        policy: the trained policy: a LoRA folder, or a whole model's.

    Raises:
        AriaError: no opponent is named for a role, or a player cannot be reached.
    """
    import pandas as pd

    rows = [
        _row(episode, variant, role, session.players)
        for variant, role, session in _sessions(params, game, base_model, policy)
        for episode in session.play(params, f"evaluate {game}: {variant} as {role}")
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def empty_evaluation() -> pd.DataFrame:
    """The table of a log that belongs to no game: nothing can be played."""
    import pandas as pd

    return pd.DataFrame(columns=list(COLUMNS))


def _sessions(
    params: Params, name: str, base_model: Path, policy: Path
) -> Iterator[tuple[str, str, Session]]:
    game, wanted = get_game(name), params.evaluate.game(name)
    assert wanted is not None
    whole = not (policy / "adapter_config.json").exists()
    models = {
        "vanilla": (base_model, None),
        "aria": (policy, None) if whole else (base_model, policy),
    }
    for variant, (model, adapter) in models.items():
        for role in game.roles:
            session = Session(
                game,
                {**_opponents(game, role, wanted.opponents), role: "policy"},
                params.evaluate.settings,
                wanted.episodes,
                wanted.grid,
                model,
                adapter,
                purpose="evaluate",
            )
            yield variant, role, session


def _opponents(game: Any, role: str, named: dict[str, str]) -> dict[str, str]:
    """Player specs of every other role and of the environment."""
    others = [r for r in (*game.roles, game.environment) if r and r != role]
    missing = [other for other in others if other not in named]
    if missing:
        raise AriaError(
            f"evaluate.{game.name}.opponents: nobody plays {', '.join(missing)}: name a player"
        )
    return {other: named[other] for other in others}


def _row(
    episode: Episode, variant: str, role: str, players: dict[str, str] | Any
) -> tuple[Any, ...]:
    import orjson

    info = episode.info
    utilities = info["utilities"]
    own = utilities.get(role)
    other = next((value for name, value in utilities.items() if name != role), None)
    reward = episode.rewards[role]
    failure = info["failure"] or {"role": "", "kind": ""}
    return (
        episode.game,
        variant,
        role,
        episode.episode_id,
        orjson.dumps(info["config"], option=orjson.OPT_SORT_KEYS).decode(),
        info["seed"],
        next((spec for name, spec in players.items() if name != role), ""),
        bool(reward == 1.0) if own is None else bool(own > other),
        reward,
        own,
        other,
        own is not None and not info["failure"] and not info["details"].get("deal", False),
        info["reason"],
        failure["role"],
        failure["kind"],
        sum(utterance.role == role for utterance in episode.utterances),
        info["tokens"][role]["completion"],
    )
