"""Our rooms and tasks as ALFWorld's PDDL problems, with its own names for things."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from aria_dvc.games.alfworld import KINDS
from aria_dvc.games.household_rooms import CLOSED, LAMP, type_of
from aria_dvc.games.household_tasks import Task
from aria_dvc.games.household_world import World

GOALS = {ours: theirs for theirs, ours in KINDS.items()}


def game(world: World, task: Task) -> dict[str, Any]:
    """What a `game.tw-pddl` holds: the domain and the grammar are those of the package."""
    import alfworld

    data = Path(alfworld.__file__).parent / "data"
    domain = (data / "alfred.pddl").read_text("utf-8")
    grammar = (data / "alfred.twl2").read_text("utf-8")
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL", task.sentence.removeprefix("Task: ")),
        "pddl_problem": problem(world, task, domain),
        "solvable": True,
        "walkthrough": None,
    }


def problem(world: World, task: Task, domain: str) -> str:
    """The room and the task in ALFWorld's PDDL; everything may be carried, treated and put
    anywhere, as here."""
    places, things = list(world.contents), list(world.things())
    types = {"rtype": {type_of(p) for p in places}, "otype": {type_of(t) for t in things}}
    facts = [f"(atLocation agent1 {_at(world.at)})"]
    for place in places:
        where = _at(place)
        facts += [f"(receptacleAtLocation {_id(place)} {where})"]
        facts += [f"(receptacleType {_id(place)} {type_of(place)}Type)"]
        facts += [f"(openable {_id(place)})"] if type_of(place) in CLOSED else []
        facts += [] if place in world.closed else [f"(opened {_id(place)})"]
        for thing in world.contents[place]:
            facts += [f"(inReceptacle {_id(thing)} {_id(place)})"]
            facts += [f"(objectAtLocation {_id(thing)} {where})"]
    for thing in things:
        facts += [f"(objectType {_id(thing)} {type_of(thing)}Type)"]
        able = ("toggleable",) if type_of(thing) == LAMP else ("pickupable", "cleanable")
        able += () if type_of(thing) == LAMP else ("heatable", "coolable")
        facts += [f"({what} {_id(thing)})" for what in able]
    facts += [f"(canContain {r}Type {o}Type)" for r in types["rtype"] for o in types["otype"]]
    if world.held:
        facts += [f"(holds agent1 {_id(world.held)})", "(holdsAny agent1)"]
    objects = {
        "agent": ["agent1"],
        "location": [_at(place) for place in dict.fromkeys([*places, world.at, None])],
        "receptacle": [_id(place) for place in places],
        "object": [_id(thing) for thing in things],
        # the domain and the goal speak of types that a room need not have
        **{kind: [f"{name}Type" for name in names] for kind, names in types.items()},
    }
    named = {name.lower() for name in re.findall(r"\w+Type\b(?=[ )])", domain + goal(task))}
    known = {name.lower() for name in objects["rtype"] + objects["otype"]}
    knives = {"knifetype", "butterknifetype"}
    for name in sorted(named - known - {"receptacletype", "objecttype"}):
        objects["otype" if name in knives | {f"{task.wanted}type"} else "rtype"].append(name)
    listed = "\n".join(f"{' '.join(sorted(names))} - {kind}" for kind, names in objects.items())
    head = f"(define (problem room) (:domain alfred)\n(:objects {listed})\n"
    return f"{head}(:init (= (total-cost) 0)\n{chr(10).join(facts)})\n{goal(task)}"


def goal(task: Task) -> str:
    """ALFWorld's own goal of the kind of task."""
    from alfworld.gen.goal_library import gdict

    text = gdict[GOALS[task.kind]]["pddl"].replace("#", "-")
    return str(text.format(obj=task.wanted, recep=task.place, toggle=LAMP))


def _at(place: str | None) -> str:
    return f"at_{_id(place) if place else 'none'}"


def _id(name: str) -> str:
    """Such that ALFWorld calls it by this name: it numbers the things of a kind from the last id
    down, and tells basins by the word."""
    kind, number = name.split(" ")
    end = "_bar_basin" if kind.endswith("basin") else ""
    return f"{kind.removesuffix('basin')}_bar_{99 - int(number)}{end}"
