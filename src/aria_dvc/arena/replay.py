"""A match as it stood after the first lines of a game that was played."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from aria_dvc.arena.assignments import Assignment
from aria_dvc.chat import Line
from aria_dvc.errors import AriaError
from aria_dvc.games.base import Config, Game, IllegalMove, Match


def replayed(game: Game, config: Config, reward: str, lines: Sequence[Line]) -> Match:
    """A fresh match in which `lines` have been said.

    What the match adds of itself, such as the last answer of a guessing game, is not played but
    compared; after the last line it may have added more.

    Raises:
        AriaError: the game as it is now does not take the lines as they stand.
    """
    match = game.start(config, reward)
    while len(match.lines) < len(lines):
        role, text = lines[len(match.lines)]
        said = len(match.lines)
        if match.to_move != role:
            raise unlike(game, said, f"{role} cannot move there")
        try:
            match.play(text)
        except IllegalMove as error:
            raise unlike(game, said, f"no legal move ({error.kind})") from None
    if match.lines[: len(lines)] != list(lines):
        raise unlike(game, _first_difference(match.lines, lines), "the game now says otherwise")
    return match


@dataclass
class Beginnings:
    """Matches as they stand when a game begins, fresh or after the lines of its assignment.

    Lines are replayed once for all assignments in a row that begin alike.
    """

    game: Game
    reward: str
    _last: tuple[Config, tuple[Line, ...], Match] | None = None

    def match(self, assignment: Assignment) -> Match:
        """A match that only this call's caller has.

        Raises:
            AriaError: see `replayed`.
        """
        config, lines = assignment.config, assignment.lines
        if not lines:
            return self.game.start(config, self.reward)
        if self._last is None or self._last[:2] != (config, lines):
            self._last = (config, lines, replayed(self.game, config, self.reward, lines))
        return copy.deepcopy(self._last[2])


def _first_difference(found: Sequence[Line], wanted: Sequence[Line]) -> int:
    pairs = enumerate(zip(found, wanted, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(found), len(wanted)))


def unlike(game: Game, position: int, problem: str) -> AriaError:
    """What to raise of a game that cannot be taken up again at that utterance."""
    return AriaError(
        f"{game.name}: utterance {position} of a game that was played cannot be replayed: "
        f"{problem}: play the games anew with the present rules"
    )
