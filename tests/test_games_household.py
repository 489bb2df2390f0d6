"""The household: nothing is lost, what is told is so, and the expert ends every task."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import chain, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aria_dvc.errors import AriaError
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.commands import AGENT, ENVIRONMENT, NOTHING
from aria_dvc.games.household import GAME, HouseholdMatch
from aria_dvc.games.household_rooms import (
    LAMP,
    OBJECTS,
    PLANS,
    ROOMS,
    SPLITS,
    TREATED_WITH,
    UNSEEN_PLANS,
    pairs_of,
    plans,
    plans_of,
    type_of,
)
from aria_dvc.games.household_tasks import KINDS, draw
from aria_dvc.games.household_world import World, canonical
from aria_dvc.players.dialogues import play_out, scripted_dialogues
from aria_dvc.players.housekeeping import expert, noisy_expert
from aria_dvc.players.scripted import ScriptedPlayer

TASKS = st.builds(
    lambda split, kind, number: {"split": split, "kind": kind, "number": number},
    st.sampled_from(SPLITS),
    st.sampled_from(KINDS),
    st.integers(0, 10_000),
)


def kitchen(**changes) -> World:
    contents = {
        "countertop 1": ["mug 1", "egg 1"],
        "drawer 1": ["spoon 1"],
        "fridge 1": [],
        "microwave 1": [],
        "sidetable 1": ["desklamp 1"],
        "sinkbasin 1": ["mug 2"],
    }
    return World("kitchen", contents, **changes)


def done(world: World, *commands: str) -> list[str | None]:
    return [world.command(command) for command in commands]


def every_command(world: World) -> list[str]:
    """All that can be said of the things and receptacles of the room, possible or not."""
    things, places = sorted(world.things()), sorted(world.contents)
    verbs = ("take {} from {}", "put {} in/on {}", *(f"{v} {{}} with {{}}" for v in TREATED_WITH))
    one = ("go to {}", "open {}", "close {}", "examine {}", "use {}")
    pairs = (verb.format(*pair) for verb in verbs for pair in product(things, places))
    singles = (verb.format(name) for verb in one for name in [*things, *places])
    return [*pairs, *singles, "look", "inventory"]


# --- the engine -----------------------------------------------------------------------------------


def test_a_task_word_by_word():
    world = kitchen()
    assert world.around().startswith(
        "You are in the middle of the kitchen. Around you: a counterto"
    )
    assert done(
        world,
        "go to drawer 1",
        "open drawer 1",
        "take spoon 1 from drawer 1",
        "close drawer 1",
        "look",
        "inventory",
        "go to sinkbasin 1",
        "clean spoon 1 with sinkbasin 1",
        "examine spoon 1",
        "go to countertop 1",
        "put spoon 1 in/on countertop 1",
        "examine countertop 1",
        "examine egg 1",
    ) == [
        "You are at the drawer 1. It is closed.",
        "You open the drawer 1. In it: a spoon 1.",
        "You take the spoon 1 from the drawer 1.",
        "You close the drawer 1.",
        "You are at the drawer 1 in the kitchen. Around you: a countertop 1, a drawer 1, a fridge"
        " 1, a microwave 1, a sidetable 1, a sinkbasin 1. It is closed. You carry a spoon 1.",
        "You carry a spoon 1.",
        "You are at the sinkbasin 1. On it: a mug 2.",
        "You clean the spoon 1 with the sinkbasin 1.",
        "The spoon 1 is clean.",
        "You are at the countertop 1. On it: a mug 1, an egg 1.",
        "You put the spoon 1 in/on the countertop 1.",
        "The countertop 1. On it: a mug 1, an egg 1, a spoon 1.",
        "The egg 1 is as it was.",
    ]


def test_heat_undoes_cold_and_not_cleanness():
    world = kitchen(at="sinkbasin 1", held="egg 2")
    done(world, "clean egg 2 with sinkbasin 1", "go to fridge 1", "cool egg 2 with fridge 1")
    assert world.states["egg 2"] == {"clean", "cold"}
    done(world, "go to microwave 1", "heat egg 2 with microwave 1")
    assert world.command("examine egg 2") == "The egg 2 is clean and hot."


@pytest.mark.parametrize(
    "command",
    [
        "go to countertop 1",
        "go to countertop 2",
        "go countertop 1",
        "take mug 2 from sinkbasin 1",
        "take egg 2 from countertop 1",
        "take mug from countertop 1",
        "open countertop 1",
        "close countertop 1",
        "open drawer 1",
        "put mug 1 in/on countertop 1",
        "heat mug 1 with microwave 1",
        "use desklamp 1",
        "examine spoon 1",
        "help",
        "I go to drawer 1",
        "go to drawer 1, then open it",
        "go to drawer 01",
    ],
)
def test_what_is_impossible_changes_nothing(command):
    world = kitchen(at="countertop 1")
    before = copy.deepcopy(world)
    assert world.command(command) is None
    assert world == before


def test_one_thing_is_carried_and_a_lamp_is_not():
    world = kitchen(at="countertop 1", held="pan 1")
    assert world.command("take mug 1 from countertop 1") is None
    assert world.command("go to sidetable 1") is not None
    assert world.command("put pan 1 on sidetable 1") is not None
    assert world.command("take desklamp 1 from sidetable 1") is None
    assert world.command("examine desklamp 1") == "The desklamp 1 is off."
    assert world.command("use desklamp 1") == "You switch the desklamp 1 on."
    assert world.command("use desklamp 1") is None
    assert world.command("examine desklamp 1") == "The desklamp 1 is on."


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Go to  Drawer 1.", "go to drawer 1"),
        ("put mug 1 in drawer 1", "put mug 1 in/on drawer 1"),
        ("put mug 1 on drawer 1", "put mug 1 in/on drawer 1"),
        ("take mug 1 from drawer 1", "take mug 1 from drawer 1"),
        ("> go to drawer 1", "go to drawer 1"),
        ("**open drawer 1**", "open drawer 1"),
        ("`look`", "look"),
        ("Inventory!", "inventory"),
    ],
)
def test_spellings_that_mean_the_same(text, read):
    assert canonical(text) == read == canonical(read)


@given(TASKS, st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_what_is_carried_out_is_what_is_admissible(task, seed):
    """Of all commands there are, at some point of a game that was played at random."""
    world, rng = draw(**task)[0], random.Random(seed)
    for _ in range(rng.randint(0, 12)):
        world.command(rng.choice(world.admissible()))
    admissible = world.admissible()
    assert len(admissible) == len(set(admissible))
    found = set()
    for command in every_command(world):
        changed = copy.deepcopy(world)
        if changed.command(command) is not None:
            found.add(command)
        else:
            assert changed == world
    assert found == set(admissible)


TEXTS = st.one_of(
    st.text(min_size=1, max_size=40),
    st.from_regex(r"(go to|take|put|open|use) [a-z ]{1,12}[0-9]? ?(in|on|with|from)? ?.{0,9}"),
)


@given(TASKS, st.integers(0, 2**32), st.lists(TEXTS, max_size=6))
@settings(max_examples=150, deadline=None)
def test_objects_are_conserved_whatever_is_said(task, seed, texts):
    """Each is in one place; "Nothing happens." exactly where the command is not admissible."""
    match, rng = GAME.start({**task, "max_steps": 1_000}), random.Random(seed)
    before, places = Counter(match.world.things()), list(match.world.contents)
    assert max(before.values()) == 1
    say = [*texts, *(noisy_expert(match, rng) for _ in range(3))]
    while match.to_move and (say or rng.random() < 0.9):
        text = say.pop() if say else rng.choice(every_command(match.world))
        admissible, lines, steps = match.world.admissible(), len(match.lines), match.steps
        try:
            match.play(text)
        except IllegalMove:
            assert (len(match.lines), match.steps) == (lines, steps)
            continue
        role, said = match.lines[-2]
        assert (role, match.lines[-1][0], match.steps) == (AGENT, ENVIRONMENT, steps + 1)
        assert (match.lines[-1][1] == NOTHING) == (canonical(said) not in admissible)
        assert match.grounded[AGENT][-1] == (canonical(said) in admissible)
        assert Counter(match.world.things()) == before
        assert list(match.world.contents) == places
        assert match.world.held not in chain(*match.world.contents.values())


@given(TASKS, st.integers(0, 2**32), st.integers(0, 25))
@settings(max_examples=150, deadline=None)
def test_the_end_is_reached_from_wherever_one_went(task, seed, slips):
    match, rng = GAME.start({**task, "max_steps": 1_000}), random.Random(seed)
    for _ in range(slips):
        if match.to_move:
            match.play(rng.choice(match.world.admissible()))
    left = 0
    while match.to_move:
        match.play(expert(match, rng))
        assert match.grounded[AGENT][-1]
        left += 1
    assert match.outcome.rewards == {AGENT: 1.0}
    assert left < 45


@given(TASKS, st.integers(0, 2**32), st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_the_expert_does_not_know_what_it_was_not_told(task, seed, steps):
    """What nobody looked into yet may hold anything: its command is the same."""
    match, rng = GAME.start({**task, "max_steps": 1_000}), random.Random(seed)
    for _ in range(steps):
        if match.to_move:
            match.play(noisy_expert(match, rng))
    other, contents = copy.deepcopy(match), match.world.contents
    hidden = [place for place in contents if place not in match.world.seen]
    inside = [contents[place] for place in hidden]
    rng.shuffle(inside)
    other.world.contents |= dict(zip(hidden, inside, strict=True))
    if match.to_move:
        assert expert(other, rng) == expert(match, rng)


# --- the tasks ------------------------------------------------------------------------------------


def tasks(split: str, count: int = 1_000) -> list[dict]:
    return [
        {"split": split, "kind": KINDS[number % 6], "number": number // 6}
        for number in range(count)
    ]


@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_solves_a_thousand_tasks_of_a_thousand(split):
    steps = []
    for number, task in enumerate(tasks(split)):
        match = GAME.start(task)
        assert not match.task.is_done(match.world)
        play_out(match, {AGENT: ScriptedPlayer("expert")}, number)
        assert match.outcome.rewards == {AGENT: 1.0}, task
        assert all(match.grounded[AGENT])
        steps.append(match.steps)
    if split == "small":
        assert set(steps) == {2, 3, 4}
    else:
        assert max(steps) <= 25
        assert min(steps) > 2


def test_no_task_is_in_two_grids_or_twice_in_one():
    drawn = [
        draw(config["split"], config["kind"], config["number"])
        for grid in ("train", "unseen", "small", "small_train")
        for config in GAME.grids()[grid]
    ]
    assert len(drawn) == 600 + 134 + 120 + 600
    tasks_of = defaultdict(list)
    for world, task in drawn:
        assert world not in tasks_of[task], (task, world)
        tasks_of[task].append(world)


def test_the_noisy_expert_errs_and_still_solves_most():
    matches = [GAME.start(task) for task in tasks("train", 300)]
    for number, match in enumerate(matches):
        play_out(match, {AGENT: ScriptedPlayer("noisy_expert")}, number)
    grounded = [one for match in matches for one in match.grounded[AGENT]]
    assert 0.85 < sum(grounded) / len(grounded) < 0.95
    assert sum(match.outcome.rewards[AGENT] for match in matches) > 280


def test_unseen_rooms_and_pairs_are_unseen():
    drawn = {split: [draw(**task) for task in tasks(split, 600)] for split in SPLITS}
    pairs = {
        split: {(task.wanted, task.place if task.kind != "look" else LAMP) for _, task in found}
        for split, found in drawn.items()
    }
    rooms = {split: {(w.room, *w.contents) for w, _ in found} for split, found in drawn.items()}
    for other in ("train", "small"):
        assert pairs["unseen"].isdisjoint(pairs[other])
        assert rooms["unseen"].isdisjoint(rooms[other])
    assert pairs_of("unseen").isdisjoint(pairs_of("train"))
    for room in ROOMS:
        assert len(set(plans(room))) == PLANS
        assert len(plans_of("unseen", room)) == UNSEEN_PLANS
        assert {*plans_of("unseen", room), *plans_of("train", room)} == set(plans(room))
    for found in drawn.values():
        assert {task.kind for _, task in found} == set(KINDS)


def test_objects_are_at_home_in_receptacles_that_their_rooms_have():
    for name, kind in OBJECTS.items():
        assert kind.treatments <= TREATED_WITH.keys(), name
        for room, homes in kind.homes.items():
            assert set(homes) <= ROOMS[room].keys(), name


def test_rooms_are_as_their_tables_say():
    for split in SPLITS:
        for task in tasks(split, 200):
            world, _ = draw(**task)
            counts = Counter(map(type_of, world.contents))
            assert all(counts[kind] <= ROOMS[world.room][kind][1] for kind in counts)
            for thing in world.things():
                assert type_of(thing) == LAMP or world.room in OBJECTS[type_of(thing)].homes


def test_the_grids():
    grids = GAME.grids()
    assert grids["default"] == grids["train"]
    assert {name: len(configs) for name, configs in grids.items()} == {
        "default": 600,
        "train": 600,
        "unseen": 134,
        "small": 120,
        "small_train": 600,
    }
    small, others = (
        {(c["kind"], c["number"]) for c in grids[name]} for name in ("small", "small_train")
    )
    assert small.isdisjoint(others)
    for name, configs in grids.items():
        assert {GAME.task_kind(config) for config in configs} == set(KINDS), name
        assert all(GAME.start(config).config == config for config in configs[::17])


def test_a_room_is_the_same_in_every_process():
    code = (
        "from aria_dvc.players.dialogues import scripted_dialogues as d; import hashlib;"
        "t = [m.lines for g in ('train', 'unseen', 'small') for m in d('household', 30, 5, g)];"
        "print(hashlib.sha256(repr(t).encode()).hexdigest())"
    )
    outputs = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "src"}
        run = [sys.executable, "-c", code]
        outputs.add(subprocess.run(run, env=environment, capture_output=True, check=True).stdout)
    assert len(outputs) == 1


# --- the match ------------------------------------------------------------------------------------


def small(kind: str = "put", **changes) -> HouseholdMatch:
    return GAME.start({"split": "small", "kind": kind, "number": 0, **changes})


def test_nonsense_costs_a_step_and_is_no_illegal_move():
    match = small(max_steps=3)
    for _ in range(3):
        match.play("I would rather sing a song.")
    assert [text for role, text in match.lines if role == ENVIRONMENT][1:] == [NOTHING] * 3
    assert match.outcome.reason == "turn_limit"
    assert match.outcome.rewards == {AGENT: 0.0}
    assert match.outcome.details == {"steps": 3, "executed": 0}
    with pytest.raises(ValueError, match="over"):
        match.play("look")


@pytest.mark.parametrize("text", ["", "...", "x" * 600, "user: go on. assistant: look"])
def test_what_is_no_utterance_is_refused_and_leaves_no_trace(text):
    match = small()
    lines = list(match.lines)
    with pytest.raises(IllegalMove):
        match.play(text)
    assert (match.lines, match.steps, match.to_move) == (lines, 0, AGENT)


def test_a_forfeit_is_worth_nothing_and_was_not_carried_out():
    match = small()
    match.play("look")
    match.forfeit("too_long", "x" * 600)
    assert match.lines[-1] == (AGENT, "x" * 500)
    assert match.grounded == {AGENT: [True, False]}
    assert match.outcome.rewards == {AGENT: 0.0}
    assert match.outcome.failure.kind == "too_long"
    silent = small()
    silent.forfeit("no_reply")
    assert silent.grounded == {AGENT: []}


def test_the_policy_sees_the_task_first_and_then_what_its_commands_did():
    match = small("look")
    play_out(match, {AGENT: ScriptedPlayer("expert")}, 0)
    messages = match.messages(AGENT)
    assert [message["role"] for message in messages[:3]] == ["system", "user", "assistant"]
    assert "Task: look at" in messages[1]["content"]
    assert messages[-1]["content"].endswith("on.")
    assert "8 commands" in messages[0]["content"]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, r"split is None: use another \(known: small, train, unseen\)"),
        ({"split": "smal", "kind": "put", "number": 0}, "did you mean small"),
        ({"split": "small", "kind": "wash", "number": 0}, "kind is 'wash'"),
        ({"split": "small", "kind": "put", "number": -1}, "number is -1: use a whole number"),
        ({"split": "small", "kind": "put", "number": True}, "number is True"),
        ({"split": "small", "kind": "put", "number": 0, "max_steps": 0}, "max_steps is 0"),
        ({"split": "small", "kind": "put", "number": 0, "steps": 1}, "unknown key steps"),
    ],
)
def test_a_wrong_configuration_is_named(config, problem):
    with pytest.raises(AriaError, match=problem):
        GAME.start(config)


def test_the_warm_start_is_the_experts():
    matches = scripted_dialogues("household", 24, seed=3, grid="small_train")
    assert all(match.outcome.rewards == {AGENT: 1.0} for match in matches)
    assert len({match.lines[0] for match in matches}) > 20
    assert Counter(match.task.kind for match in matches).keys() == set(KINDS)
