"""The games by name. A further game is one file here and one line in `records/names.py`."""

from __future__ import annotations

from importlib import import_module

from aria_dvc.errors import AriaError
from aria_dvc.games.base import Game
from aria_dvc.records.names import PLAYABLE
from aria_dvc.suggestions import did_you_mean


def get_game(name: str) -> Game:
    """The game called `name`: the `GAME` of the module of that name in this folder.

    Raises:
        AriaError: there is none, with the nearest name.
    """
    if name not in PLAYABLE:
        raise AriaError(f"unknown game {name}{did_you_mean(name, PLAYABLE)}")
    game: Game = import_module(f"aria_dvc.games.{name}").GAME
    return game
