"""The benchmark that plays and trains the same games in two checkouts."""

import argparse
import json

import pytest
from benchmarks.same_games import HERE, asked
from learning_tiny import save_tiny_base

from aria_dvc.games.registry import get_game

CONFIG = get_game("bargaining").grids()["default"][0]
LINES = [["alice", "I keep 60%."], ["bob", "I keep 70%."], ["alice", "I accept."]]


def game(name: str, lines: list[list[str]], **config: object) -> dict[str, object]:
    return {
        "episode_id": name,
        "game": "bargaining",
        "config": {**CONFIG, **config},
        "lines": lines,
    }


@pytest.fixture(scope="module")
def args(tmp_path_factory) -> argparse.Namespace:
    base = save_tiny_base(tmp_path_factory.mktemp("base"))
    return argparse.Namespace(model=str(base), threads=1, rounds=2)


def test_only_games_that_end_by_the_rules_count(args, tmp_path):
    file = tmp_path / "games.json"
    unread = [LINES[0], ["bob", "Hm."], LINES[2]]
    games = [
        game("whole", LINES),
        game("unread", unread),
        game("cut", LINES[:2]),
        game("from later rules", LINES, a_rule_of_tomorrow=True),
    ]
    file.write_text(json.dumps(games))
    assert asked(HERE, "readable", file, args) == ["whole", "from later rules"]


def test_what_was_said_is_computed_as_if_it_were_drawn(args, tmp_path):
    file = tmp_path / "games.json"
    file.write_text(json.dumps([game(str(number), LINES) for number in range(3)]))
    played = asked(HERE, "play", file, args)
    replies = [len(text.encode()) + 1 for _, text in LINES]  # the tiny model's tokens are bytes
    assert played["reply_tokens"] == 3 * sum(replies)
    assert played["prompt_tokens"] > 0
    assert len(played["seconds"]) == 2
    trained = asked(HERE, "train", file, args)
    assert trained["actions"] == 3 * len(LINES)
    assert all(seconds > 0 for seconds in trained["seconds"])
