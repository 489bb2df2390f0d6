"""Games of ALFWorld by path: which count, and that they are played by its own engine."""

from __future__ import annotations

import copy
import hashlib
import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import pytest
from alfworld_problems import GOALS, game

from aria_dvc.errors import AriaError
from aria_dvc.games import alfworld
from aria_dvc.games.commands import AGENT, ENVIRONMENT, NOTHING
from aria_dvc.games.household import HouseholdMatch, complete
from aria_dvc.games.household_tasks import KINDS
from aria_dvc.games.registry import get_game
from aria_dvc.players.housekeeping import expert

GAME = get_game("alfworld")
MISSING = find_spec("alfworld") is None
needs_engine = pytest.mark.skipif(MISSING, reason="needs the extra `alfworld`")


def put(folder: Path, task: str, content: Any, trial: str = "trial_T1") -> Path:
    file = folder / task / trial / "game.tw-pddl"
    file.parent.mkdir(parents=True)
    file.write_bytes(orjson.dumps(content))
    return file


def test_a_grid_is_a_folder_of_the_games_that_alfworld_plays(tmp_path):
    solvable, task = {"solvable": True}, "pick_heat_then_place_in_recep-Egg-None-Fridge-13"
    first = put(tmp_path, task, solvable)
    second = put(tmp_path / "unmovable", "look_at_obj_in_light-Pen-None-DeskLamp-3", solvable)
    put(tmp_path, "pick_two_obj_and_place-Pen-None-Desk-1", {"solvable": False})
    put(tmp_path, "pick_two_obj_and_place-Pen-None-Desk-2", {})
    put(tmp_path, "pick_and_place_with_movable_recep-Pen-Mug-Desk-3", solvable)
    put(tmp_path, "pick_heat_then_place_in_recep-AppleSliced-None-Fridge-1", solvable)
    configs = GAME.grid(str(tmp_path))
    assert [config["file"] for config in configs] == sorted([first.as_posix(), second.as_posix()])
    assert {config["max_steps"] for config in configs} == {40}
    assert {GAME.task_kind(config) for config in configs} == {"heat", "look"}
    assert GAME.task_kind({"file": "mine/game.tw-pddl"}) is None


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("default", "no game there: name the folder of a download"),
        ("unsolvable", "no game there, though 1 that ALFWorld does not play"),
        ("broken", "no game of ALFWorld: download it again"),
        ("listed", "no game of ALFWorld: download it again"),
    ],
)
def test_a_folder_without_games_is_one_line(tmp_path, monkeypatch, grid, said):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "unsolvable", "pick_two_obj_and_place-Pen-None-Desk-1", {"solvable": None})
    put(tmp_path / "broken", "pick_two_obj_and_place-Pen-None-Desk-1", {}).write_text("{")
    put(tmp_path / "listed", "pick_two_obj_and_place-Pen-None-Desk-1", [])
    with pytest.raises(AriaError, match=said):
        GAME.grid(grid)


def test_a_game_that_changed_is_another_configuration(tmp_path):
    file = put(tmp_path, "pick_two_obj_and_place-Pen-None-Desk-1", {"solvable": True})
    (before,) = GAME.grid(str(tmp_path))
    file.write_bytes(file.read_bytes() + b" ")
    alfworld._games.cache_clear()
    (after,) = GAME.grid(str(tmp_path))
    assert before != after
    with pytest.raises(AriaError, match="another game than it was"):
        alfworld.complete(before)
    assert alfworld.complete({"file": file.as_posix()}) == after


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "file is None"),
        ({"file": "nowhere/game.tw-pddl"}, "file is 'nowhere/game.tw-pddl'"),
        ({"file": __file__, "max_steps": 0}, "max_steps is 0"),
        ({"file": __file__, "max_steps": True}, "max_steps is True"),
        ({"file": __file__, "steps": 3}, "steps"),
    ],
)
def test_a_wrong_configuration_is_one_line(config, said):
    with pytest.raises(AriaError, match=said):
        GAME.start(config)


@pytest.mark.skipif(not MISSING, reason="the extra `alfworld` is there")
def test_without_the_engine_the_remedy_is_told():
    with pytest.raises(AriaError, match=r"pip install 'aria-dvc\[alfworld\]'"):
        GAME.start({"file": __file__})


def household(kind: str) -> HouseholdMatch:
    return HouseholdMatch(complete({"split": "train", "kind": kind, "number": 7}))


def commands_of(match: HouseholdMatch) -> list[str]:
    """Those of the expert to the end."""
    while match.outcome is None:
        match.play(expert(match, random.Random(0)))
    return [said for role, said in match.lines if role == AGENT]


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
def test_its_engine_ends_with_the_commands_that_end_ours(tmp_path, kind):
    ours = household(kind)
    file = put(tmp_path, f"{GOALS[kind]}-X-None-Y-1", game(ours.world, ours.task))
    match = GAME.start(GAME.grid(str(tmp_path))[0])
    content = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert match.config == {"file": file.as_posix(), "content": content, "max_steps": 40}
    assert match.lines[0][0] == ENVIRONMENT
    assert ours.task.sentence.removeprefix("Task: ") in match.lines[0][1]
    assert "Welcome" not in match.lines[0][1]
    for said in commands_of(ours):
        assert match.to_move == AGENT
        match.play(said)
    assert match.outcome is not None
    assert (match.outcome.reason, match.outcome.rewards) == ("solved", {AGENT: 1.0})
    assert all(match.grounded[AGENT])


@needs_engine
def test_what_is_impossible_costs_a_step_and_a_copy_goes_on_alike(tmp_path):
    ours = household("heat")
    put(tmp_path, f"{GOALS['heat']}-X-None-Y-1", game(ours.world, ours.task))
    commands = commands_of(ours)
    match = GAME.start({**GAME.grid(str(tmp_path))[0], "max_steps": len(commands) + 1})
    match.play("dance on the table")
    assert match.lines[-1] == (ENVIRONMENT, NOTHING)
    assert match.grounded == {AGENT: [False]}
    for said in commands[:3]:
        match.play(f"  {said.upper()}. ")
    twin = copy.deepcopy(match)
    assert (twin.lines, twin.grounded) == (match.lines, match.grounded)
    for one in (match, twin):
        for said in commands[3:]:
            one.play(said)
        assert one.outcome is not None
        assert one.outcome.details == {"steps": len(commands) + 1, "executed": len(commands)}
    assert twin.lines == match.lines
    short = GAME.start({**match.config, "max_steps": 1})
    short.play("look")
    assert short.outcome is not None
    assert (short.outcome.reason, short.outcome.rewards) == ("turn_limit", {AGENT: 0.0})
    lost = GAME.start(match.config)
    lost.forfeit("server", "go to")
    assert lost.outcome is not None
    assert lost.outcome.failure is not None


@needs_engine
def test_a_file_that_the_engine_cannot_read_is_one_line(tmp_path):
    put(tmp_path, f"{GOALS['put']}-X-None-Y-1", {"solvable": True})
    with pytest.raises(AriaError, match="ALFWorld cannot play it"):
        GAME.start(GAME.grid(str(tmp_path))[0])
