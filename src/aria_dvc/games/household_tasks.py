"""Tasks of the household: six kinds, each drawn with its room from a split and a number.

A task of `train` or `unseen` takes place in a whole room, where things have to be looked for. One
of `small` takes two to four commands: few receptacles, and one starts where the object is, or
carries it already.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from aria_dvc.games.household_rooms import (
    CLOSED,
    LAMP,
    LAMP_STANDS,
    OBJECTS,
    ROOMS,
    TREATED_WITH,
    Plan,
    numbered,
    pairs_of,
    plans_of,
    type_of,
)
from aria_dvc.games.household_world import STATES, World, article

KINDS = ("put", "two", "clean", "heat", "cool", "look")
EXTRA = (0, 0, 1)
"""How many more objects of the wanted kind there may be than are needed."""
SMALL_TASKS = 120
"""Of each kind, so many of the first tasks of `small` are all different; of further ones some are
there already."""
_PLURALS = {"knife": "knives", "box": "boxes", "watch": "watches", "tomato": "tomatoes"}
_PLURALS |= {"potato": "potatoes"}


@dataclass(frozen=True)
class Task:
    """What is to be done: objects of the kind `wanted`, brought to a receptacle of kind `place`."""

    kind: str
    wanted: str
    place: str

    @property
    def needed(self) -> int:
        """So many objects have to be there."""
        return 2 if self.kind == "two" else 1

    @property
    def sentence(self) -> str:
        if self.kind == "look":
            return f"Task: look at {article(self.wanted)} under a {LAMP} that is on."
        if self.kind == "two":
            plural = _PLURALS.get(self.wanted, f"{self.wanted}s")
            return f"Task: put two {plural} in/on {article(self.place)}."
        state = STATES.get(self.kind)
        what = article(f"{state} {self.wanted}" if state else self.wanted)
        return f"Task: put {what} in/on {article(self.place)}."

    def is_treated(self, world: World, thing: str) -> bool:
        """Whether nothing has to be done with the object before it is brought to its place."""
        state = STATES.get(self.kind)
        return state is None or world.is_(thing, state)

    def is_settled(self, world: World, thing: str, place: str) -> bool:
        """Whether the object, which is in `place`, counts as brought there."""
        brought = type_of(thing) == self.wanted and type_of(place) == self.place
        return brought and self.is_treated(world, thing)

    def is_done(self, world: World) -> bool:
        if self.kind == "look":
            under_light = any(thing in world.lit for thing in world.here)
            return under_light and world.held is not None and type_of(world.held) == self.wanted
        settled = sum(
            self.is_settled(world, thing, place)
            for place, inside in world.contents.items()
            for thing in inside
        )
        return settled >= self.needed


def draw(split: str, kind: str, number: int) -> tuple[World, Task]:
    """The room and the task with that number; the same in every run and process."""
    rng = _rng(split, kind, number)
    if split == "small":
        times = _small_draws(kind)[number] if number < SMALL_TASKS else 1
        return [_draw_small(kind, rng) for _ in range(times)][-1]
    room, wanted, place, plan = rng.choice(_choices(split, kind))
    task = Task(kind, wanted, place)
    contents: dict[str, list[str]] = {name: [] for name in plan}
    homes = _homes(room, wanted, place, plan)
    things = _Things(contents, rng)
    for _ in range(task.needed + rng.choice(EXTRA)):
        things.put(wanted, rng.choice(homes))
    for name in plan:
        for other in _some(_strangers(room, wanted, name), rng.choice((0, 1, 1, 2)), rng):
            things.put(other, name)
    stands = [name for name in plan if type_of(name) in LAMP_STANDS]
    if stands:
        things.put(LAMP, rng.choice(stands))
    return World(room, contents), task


def _rng(split: str, kind: str, number: int) -> random.Random:
    return random.Random(f"household/{split}/{kind}/{number}")


class _Things:
    """Objects as they are put down, numbered by kind."""

    def __init__(self, contents: dict[str, list[str]], rng: random.Random) -> None:
        self.contents = contents
        self.counts: dict[str, int] = {}
        self.rng = rng

    def name(self, kind: str) -> str:
        """The next object of the kind."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{kind} {self.counts[kind]}"

    def put(self, kind: str, place: str) -> None:
        """One more in `place`, among what is there."""
        inside = self.contents[place]
        inside.insert(self.rng.randint(0, len(inside)), self.name(kind))


def _homes(room: str, wanted: str, place: str, plan: Sequence[str]) -> list[str]:
    """Where the object may lie at first: not where it is to be brought."""
    kinds = OBJECTS[wanted].homes[room]
    return [name for name in plan if type_of(name) in kinds and type_of(name) != place]


def _strangers(room: str, wanted: str, place: str) -> list[str]:
    """Kinds of objects at home in a receptacle of the room, the wanted one left out."""
    kinds = [name for name, kind in OBJECTS.items() if type_of(place) in kind.homes.get(room, ())]
    return [name for name in kinds if name != wanted]


def _some(kinds: list[str], most: int, rng: random.Random) -> list[str]:
    return rng.sample(kinds, min(most, len(kinds)))


@cache
def _choices(split: str, kind: str) -> tuple[tuple[str, str, str, Plan], ...]:
    """(room, object, place, plan) of every task of the kind that the split may ask for."""
    return tuple(
        (room, wanted, place, plan)
        for room, wanted, place in _asked(split, kind)
        for plan in plans_of(split, room)
        if _has(plan, place) and _homes(room, wanted, place, plan)
    )


def _asked(split: str, kind: str) -> list[tuple[str, str, str]]:
    """(room, object, place) that make sense for the kind, in a fixed order."""
    return [
        (room, wanted, place)
        for wanted, place in sorted(pairs_of(split))
        for room in OBJECTS[wanted].homes
        if _makes_sense(kind, room, wanted, place)
    ]


def _makes_sense(kind: str, room: str, wanted: str, place: str) -> bool:
    """Treated objects are not left in what treats them; only what is looked at needs a lamp."""
    if kind == "look":
        return place == LAMP and not ROOMS[room].keys().isdisjoint(LAMP_STANDS)
    treatment = TREATED_WITH.get(kind)
    if treatment and (treatment not in ROOMS[room] or kind not in OBJECTS[wanted].treatments):
        return False
    return place in ROOMS[room] and place != treatment


def _has(plan: Plan, place: str) -> bool:
    kinds = {type_of(name) for name in plan}
    return not kinds.isdisjoint(LAMP_STANDS) if place == LAMP else place in kinds


@cache
def _small_draws(kind: str) -> tuple[int, ...]:
    """How often each of the first tasks is drawn, until it is none of those before it."""
    found: list[tuple[World, Task]] = []
    times = []
    for number in range(SMALL_TASKS):
        rng, draws = _rng("small", kind, number), 1
        while (one := _draw_small(kind, rng)) in found:
            draws += 1
        found.append(one)
        times.append(draws)
    return tuple(times)


def _draw_small(kind: str, rng: random.Random) -> tuple[World, Task]:
    """Two to four commands, of which the last is the one that ends it."""
    room, wanted, place, start = rng.choice(_small_choices(kind))
    task = Task(kind, wanted, place)
    stands = [name for name in LAMP_STANDS if name in ROOMS[room]]
    goal = rng.choice(stands) if kind == "look" else place
    plan = _small_plan(room, kind, goal, start, rng)
    things = _Things({name: [] for name in plan}, rng)
    source = f"{start} 1"
    if kind == "two":
        things.put(wanted, f"{place} 1")
    brought = things.name(wanted)
    for other in _some(_strangers(room, wanted, source), rng.choice((0, 1)), rng):
        things.put(other, source)
    if kind == "look":
        things.put(LAMP, f"{goal} 1")
    if kind not in TREATED_WITH and rng.random() < 0.5:
        things.contents[source].append(brought)
        return World(room, things.contents, at=source), task
    return World(room, things.contents, at=source, held=brought), task


def _small_plan(room: str, kind: str, goal: str, start: str, rng: random.Random) -> Plan:
    """What the task needs, and one receptacle that it does not."""
    needed = {start, goal, TREATED_WITH.get(kind, goal)}
    others = sorted(ROOMS[room].keys() - needed - set(TREATED_WITH.values()))
    return numbered(dict.fromkeys([*needed, rng.choice(others)], 1))


@cache
def _small_choices(kind: str) -> tuple[tuple[str, str, str, str], ...]:
    """(room, object, place, start): one starts at an open receptacle where the object may be.

    What is treated on the way goes to an open place: a door would take a fifth command.
    """
    return tuple(
        (room, wanted, place, start)
        for room, wanted, place in _asked("small", kind)
        for start in OBJECTS[wanted].homes[room]
        if start not in CLOSED | {place, TREATED_WITH.get(kind)}
        and not (kind in TREATED_WITH and place in CLOSED)
        and not (place == LAMP and start in LAMP_STANDS)
    )
