"""A further game is one file and one line: CONTRIBUTING's example, played as any other game."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.fake_game import CountingGame

import aria_dvc.games
from aria_dvc.errors import AriaError
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.registry import get_game
from aria_dvc.players.base import Request
from aria_dvc.players.dialogues import scripted_dialogues
from aria_dvc.players.scripted import scripted_player
from aria_dvc.records.names import PLAYABLE

EXAMPLES = Path(__file__).parent / "example_games"


@pytest.fixture
def last_stone(monkeypatch):
    """The example's file in the games folder, and its line in the registry."""
    monkeypatch.setattr(aria_dvc.games, "__path__", [*aria_dvc.games.__path__, str(EXAMPLES)])
    monkeypatch.setitem(PLAYABLE, "last_stone", "adversarial")
    return get_game("last_stone")


def test_it_is_unknown_without_its_line():
    with pytest.raises(AriaError, match="unknown game last_stone"):
        get_game("last_stone")


def test_it_is_found_and_played(last_stone):
    assert PLAYABLE["last_stone"] == last_stone.category
    match = last_stone.start(last_stone.grids()["default"][0])
    for text in ("I take 3.", "Fine, I take 2", "take 1", "I take 3."):
        match.play(text)
    assert match.outcome.rewards == {"alice": 0.0, "bob": 1.0}
    assert match.to_move is None
    assert match.messages("bob")[-1] == {"role": "assistant", "content": "I take 3."}


def test_its_parser_is_as_strict_as_the_others(last_stone):
    match = last_stone.start({"stones": 2})
    for text in ("", "I take 3.", "I take 1. I take 2.", "Bob: I take 1", "I take 1e9."):
        with pytest.raises(IllegalMove):
            match.play(text)
    assert (match.lines, match.to_move) == ([], "alice")
    match.forfeit("unreadable", "I take everything")
    assert match.outcome.rewards == {"alice": 0.0, "bob": 0.5}
    with pytest.raises(AriaError, match="use stones"):
        last_stone.start({"stones": "many"})


def test_it_brings_its_own_dialogues(last_stone):
    matches = scripted_dialogues("last_stone", 20, seed=0)
    assert all(match.outcome.reason == "last_stone" for match in matches)
    assert [m.lines for m in matches] == [m.lines for m in scripted_dialogues("last_stone", 20, 0)]
    request = Request("episode", "alice", [], last_stone.start({"stones": 7}), seed=1)
    assert "take 3" in asyncio.run(scripted_player("own").reply(request)).text


def test_a_game_without_own_words_is_left_out_of_the_warm_start(monkeypatch):
    module = SimpleNamespace(GAME=CountingGame())
    monkeypatch.setitem(sys.modules, "aria_dvc.games.counting", module)
    monkeypatch.setitem(PLAYABLE, "counting", "adversarial")
    assert scripted_dialogues("counting", 5, seed=0) == []
