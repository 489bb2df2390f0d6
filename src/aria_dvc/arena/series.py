"""Games to play: which episodes of which game, by whom, by which rules, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aria_dvc.arena.assignments import Assignment
from aria_dvc.arena.journal import Journal
from aria_dvc.games.base import Game
from aria_dvc.players.base import Player
from aria_dvc.records.episodes import Episode
from aria_dvc.settings.dialogues import PlaySettings


@dataclass(frozen=True)
class Series:
    """Games to play, of one kind and by one reward rule.

    Args:
        players: one for every role of the game and its environment, or for every name that the
            assignments give; they may be the same.
        reward: the game's reward rule.
        journal: finished episodes are taken from it, new ones are added to it.
        trim: gives what of a finished episode is journalled and returned; None: all of it.
    """

    game: Game
    assignments: Sequence[Assignment]
    players: Mapping[str, Player]
    settings: PlaySettings
    reward: str = "win"
    journal: Journal | None = None
    trim: Callable[[Assignment, Episode], Episode] | None = None

    def cast(self, assignment: Assignment) -> dict[str, Player]:
        """Who has each role of an episode, the environment's included."""
        roles = [role for role in (*self.game.roles, self.game.environment) if role]
        return {role: self.players[assignment.players.get(role, role)] for role in roles}
