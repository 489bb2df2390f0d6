"""Scripted agents of the household: an expert, and one that errs, to explore.

The expert knows what it was told, not what lies behind doors that nobody opened: it looks where
such an object may be, one receptacle after the other in the order of the room's first line. Since
it decides by the state alone, it goes on from wherever another player, or a slip, has led.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from aria_dvc.games.household import HouseholdMatch
from aria_dvc.games.household_rooms import LAMP, LAMP_STANDS, OBJECTS, TREATED_WITH, type_of
from aria_dvc.games.household_tasks import Task
from aria_dvc.games.household_world import World

SLIPS = 0.3
"""Share of its commands that the noisy expert draws at random."""
NONSENSE = 1 / 3
"""Of these, the share that is impossible."""
_WRONG = (
    "take {thing} from {place}",
    "put {thing} in/on {place}",
    "open {place}",
    "go to {place}",
    "clean {thing} with {place}",
    "heat {thing} with {place}",
    "use {thing}",
    "find {thing}",
)

Housekeeper = Callable[[HouseholdMatch, random.Random], str]


def expert(match: HouseholdMatch, rng: random.Random) -> str:
    """The next command of a way to the task's end."""
    world, task = match.world, match.task
    if world.held is None:
        return _fetch(world, task)
    if type_of(world.held) != task.wanted:
        return _put_down(world)
    if task.kind == "look":
        return _to_the_light(world)
    if not task.is_treated(world, world.held):
        appliance = _first(world, TREATED_WITH[task.kind])
        treat = f"{task.kind} {world.held} with {appliance}"
        return treat if world.at == appliance else f"go to {appliance}"
    place = _first(world, task.place)
    return _reach(world, place) or f"put {world.held} in/on {place}"


def noisy_expert(match: HouseholdMatch, rng: random.Random) -> str:
    """The expert's command, but at times any that is possible, or one that is not."""
    if rng.random() >= SLIPS:
        return expert(match, rng)
    possible = match.world.admissible()
    if rng.random() >= NONSENSE:
        return rng.choice(possible)
    things, places = sorted(match.world.things()), sorted(match.world.contents)
    while True:
        wrong = rng.choice(_WRONG).format(thing=rng.choice(things), place=rng.choice(places))
        if wrong not in possible:
            return wrong


HOUSEKEEPERS: dict[str, Housekeeper] = {"expert": expert, "noisy_expert": noisy_expert}


def _fetch(world: World, task: Task) -> str:
    """Take an object that still has to be brought, or look for one."""
    known = [
        (place != world.at, place, thing)
        for place in world.contents
        if place in world.seen
        for thing in world.contents[place]
        if type_of(thing) == task.wanted and not task.is_settled(world, thing, place)
    ]
    if not known:
        homes = OBJECTS[task.wanted].homes.get(world.room, ())
        return _explore(world, [home for home in homes if home != task.place])
    _, place, thing = min(known, key=lambda found: found[0])
    return _reach(world, place) or f"take {thing} from {place}"


def _to_the_light(world: World) -> str:
    """With the object in hand: to the lamp, and switch it on."""
    for place in world.contents:
        if place in world.seen:
            for thing in world.contents[place]:
                if type_of(thing) == LAMP:
                    return _reach(world, place) or f"use {thing}"
    return _explore(world, LAMP_STANDS)


def _explore(world: World, likely: Collection[str]) -> str:
    """The way to the next receptacle that was not looked into, likely ones first."""
    unseen = [place for place in world.contents if place not in world.seen]
    unseen.sort(key=lambda place: (place != world.at, type_of(place) not in likely))
    way = _reach(world, unseen[0])
    assert way is not None  # what is reached is seen
    return way


def _put_down(world: World) -> str:
    """What is in the hand is of no use: put it where one stands, or in the first receptacle."""
    place = world.at or next(iter(world.contents))
    return _reach(world, place) or f"put {world.held} in/on {place}"


def _reach(world: World, place: str) -> str | None:
    """The command that brings one nearer to what is in `place`; None where it is in reach."""
    if world.at != place:
        return f"go to {place}"
    return f"open {place}" if place in world.closed else None


def _first(world: World, kind: str) -> str:
    return next(place for place in world.contents if type_of(place) == kind)
