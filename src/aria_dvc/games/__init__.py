"""Texts come in, a game's state and in the end its rewards go out.

Start with `base` (Game, Match); `registry.get_game` finds a game by its name. A new game is one
file: see CONTRIBUTING.md.
"""
