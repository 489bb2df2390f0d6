"""What is known of a game by name alone, by which params.yaml is checked, is so."""

from __future__ import annotations

import pytest

from aria_dvc.games.registry import get_game
from aria_dvc.players.base import PlayerFailure
from aria_dvc.players.scripted import scripted_player
from aria_dvc.records.names import (
    ENVIRONMENTS,
    GAME_ROLES,
    GAME_STRATEGIES,
    GRIDS,
    PLAYABLE,
    STRATEGY_NAMES,
)


@pytest.mark.parametrize("name", PLAYABLE)
def test_roles_environments_and_grids(name):
    game = get_game(name)
    assert (GAME_ROLES[name], ENVIRONMENTS.get(name)) == (game.roles, game.environment)
    assert set(GRIDS.get(name, ())) == set(game.grids())


@pytest.mark.parametrize("name", GRIDS)
def test_strategies_play_their_games_and_no_other(name):
    match = get_game(name).start(get_game(name).grid("default")[0])
    for strategy in STRATEGY_NAMES:
        try:
            scripted_player(strategy).text(match, GAME_ROLES[name][0], 0)
            plays = True
        except PlayerFailure:
            plays = False
        assert plays == (strategy in GAME_STRATEGIES[name]), strategy
