"""Finished dialogues between scripted players: what a small model is warmed up with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from aria_dvc.games.alternating import AlternatingMatch
from aria_dvc.games.base import Config, Match
from aria_dvc.games.commands import AGENT
from aria_dvc.games.guessing import GuessingMatch
from aria_dvc.games.household import HouseholdMatch
from aria_dvc.games.registry import get_game
from aria_dvc.players.scripted import OWN, ScriptedPlayer, SelfPlaying
from aria_dvc.records.names import WARM_START_CAST

AGENTS = ("steady",)
"""A model learns one tree of questions from the fewest dialogues; further habits cost success."""
LONGEST_DEAL = 8
"""Bargaining that takes more lines is played again: it costs most and teaches least."""


def scripted_dialogues(
    game_name: str, n: int, seed: int, grid: str = "default", reward: str = "win"
) -> list[Match]:
    """`n` finished matches of mixed configurations and strategies; the same for the same seed.

    Configurations run over the whole grid, again and again. `reward` is the rule by which they are
    paid, and which their prompts tell. None for a game that no scripted player can play: it is
    learnt by playing alone.

    Raises:
        AriaError: the game has no such grid.
    """
    game = get_game(game_name)
    rng = random.Random(f"{game_name}/{seed}")
    configs = _passes(game.grid(grid), rng)
    dialogues: list[Match] = []
    while len(dialogues) < n:
        match = game.start(next(configs), reward)
        cast = _cast(match, rng)
        if cast is None:
            return []
        play_out(match, cast, seed=rng.getrandbits(32) + len(dialogues))
        if not isinstance(match, AlternatingMatch) or len(match.lines) <= LONGEST_DEAL:
            dialogues.append(match)
    return dialogues


def play_out(match: Match, players: dict[str, ScriptedPlayer], seed: int) -> None:
    """Play a match to its end with a scripted player for every role."""
    while match.to_move is not None:
        role = match.to_move
        match.play(players[role].text(match, role, seed))


def _passes(grid: Sequence[Config], rng: random.Random) -> Iterator[Config]:
    """The configurations in ever new orders, each equally often but for its weight."""
    weighted = [config for config in grid for _ in range(_weight(config))]
    while True:
        rng.shuffle(weighted)
        yield from weighted


def _weight(config: Config) -> int:
    """Negotiations in which a trade helps both sides are rarer in the grid and teach more."""
    if "seller_value" in config and config["buyer_value"] > config["seller_value"]:
        return 6
    return 1


def _cast(match: Match, rng: random.Random) -> dict[str, ScriptedPlayer] | None:
    """A scripted player for every role; None where there is none."""
    if isinstance(match, AlternatingMatch):
        return {role: ScriptedPlayer(rng.choice(WARM_START_CAST)) for role in match.roles}
    if isinstance(match, GuessingMatch):
        return {"agent": ScriptedPlayer(rng.choice(AGENTS)), "oracle": ScriptedPlayer("oracle")}
    if isinstance(match, HouseholdMatch):
        return {AGENT: ScriptedPlayer("expert")}
    if isinstance(match, SelfPlaying):
        environment = get_game(match.game).environment
        roles = [*match.roles, *([environment] if environment else [])]
        return {role: ScriptedPlayer(OWN) for role in roles}
    return None
