"""The games by name. A further game is one file and one line here."""

from __future__ import annotations

import difflib

from aria_dvc.errors import AriaError
from aria_dvc.games.bargaining import Bargaining
from aria_dvc.games.base import Game
from aria_dvc.games.guess_my_city import GuessMyCity
from aria_dvc.games.negotiation import Negotiation
from aria_dvc.games.twenty_questions import TwentyQuestions

GAMES: dict[str, Game] = {
    "bargaining": Bargaining(),
    "negotiation": Negotiation(),
    "twenty_questions": TwentyQuestions(),
    "guess_my_city": GuessMyCity(),
}


def get_game(name: str) -> Game:
    """The game called `name`.

    Raises:
        AriaError: there is none, with the nearest name.
    """
    if name not in GAMES:
        near = difflib.get_close_matches(name, GAMES, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"use one of {', '.join(GAMES)}"
        raise AriaError(f"unknown game {name}: {remedy}")
    return GAMES[name]
