"""A game played as params.yaml describes it: players made, journal found, episodes returned."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aria_dvc.arena.collection import assign, check_players, from_journal, play_all
from aria_dvc.arena.journal import JOURNALS, Journal, code_version, content_fingerprint
from aria_dvc.games.registry import get_game
from aria_dvc.params import GameSource
from aria_dvc.players.registry import PlayerContext
from aria_dvc.records.episodes import Episode

# Settings that change what is said; the others only change how fast.
SAID_BY = ("temperature", "top_p", "max_new_tokens", "max_reasks", "record_logprobs", "dtype")


def collect_game(
    name: str,
    source: GameSource,
    context: PlayerContext,
    seed: int,
    journals: Path = JOURNALS,
) -> list[Episode]:
    """Play `source.episodes` episodes of a game, resuming what an earlier run has finished.

    A journal that already holds every episode is simply read: no model is loaded. The journal
    does not depend on the number of episodes, so asking for more plays only the new ones.

    Args:
        source: episodes, grid, reward rule and players of the game.
        context: settings, base model and endpoints; it stays open (`context.close`).
        seed: the run's seed.
        journals: folder of the journals.

    Raises:
        AriaError: an unknown game, grid or player, or a player that cannot be reached.
    """
    game = get_game(name)
    assignments = assign(game, source.episodes, seed, source.grid)
    check_players(game, source.players)
    journal = Journal(journal_inputs(name, source.players, context, seed, source), journals)
    finished = from_journal(journal, assignments)
    if len(finished) == len(assignments):
        return [finished[assignment.episode_id] for assignment in assignments]
    players = {role: context.player(spec) for role, spec in source.players.items()}
    return asyncio.run(
        play_all(
            game,
            assignments,
            players,
            context.settings,
            reward=source.reward,
            journal=journal,
        )
    )


def journal_inputs(
    name: str, players: Mapping[str, str], context: PlayerContext, seed: int, source: GameSource
) -> dict[str, Any]:
    """Everything that the episodes of a game depend on, JSON-able and without secrets."""
    settings = context.settings.model_dump()
    return {
        "game": name,
        "grid": source.grid,
        "reward": source.reward,
        "seed": seed,
        "players": {role: player_identity(spec, context) for role, spec in players.items()},
        "settings": {key: settings[key] for key in SAID_BY},
        "code": code_version(),
    }


def player_identity(spec: str, context: PlayerContext) -> dict[str, Any]:
    """What a player's words depend on besides the settings: model contents, or the server's."""
    kind, _, name = spec.partition(":")
    if spec in ("policy", "base"):
        adapter = (context.adapter or context.settings.adapter) if spec == "policy" else None
        return {
            "spec": spec,
            "model": content_fingerprint(context.base_model),
            "adapter": content_fingerprint(adapter) if adapter else None,
        }
    if kind == "endpoint" and name in context.endpoints:
        endpoint = context.endpoints[name]
        return {"spec": spec, "server": endpoint.base_url, "model": endpoint.model}
    return {"spec": spec}
