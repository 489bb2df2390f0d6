"""What the rooms of the household hold: receptacles, objects, and which of them nobody trains on.

Thirty rooms of each kind (`plans`) differ in their receptacles. The last six of them, and a quarter
of all pairs of an object and its place, are kept for the split `unseen`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

SPLITS = ("train", "unseen", "small")
PLANS = 30
UNSEEN_PLANS = 6
UNSEEN_SHARE = 4
"""One in so many pairs of an object and its place is unseen."""
SIZES = range(6, 10)
"""How many receptacles a room has."""

CLOSED = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
"""Receptacles with a door; all others are open to everybody."""
LAMP = "desklamp"
LAMP_STANDS = ("desk", "sidetable", "dresser")
# What an object is treated with, and how it is called then.
TREATED_WITH = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}

# Receptacles by kind of room: the fewest and the most that there are.
ROOMS: dict[str, dict[str, tuple[int, int]]] = {
    "kitchen": {
        "cabinet": (1, 2),
        "countertop": (1, 2),
        "diningtable": (0, 1),
        "drawer": (0, 2),
        "fridge": (1, 1),
        "garbagecan": (0, 1),
        "microwave": (1, 1),
        "shelf": (0, 1),
        "sinkbasin": (1, 1),
        "stoveburner": (0, 1),
    },
    "bathroom": {
        "bathtub": (0, 1),
        "cabinet": (1, 2),
        "countertop": (1, 1),
        "drawer": (0, 2),
        "garbagecan": (0, 1),
        "shelf": (0, 2),
        "sinkbasin": (1, 1),
        "toilet": (1, 1),
        "towelholder": (0, 1),
    },
    "bedroom": {
        "armchair": (0, 1),
        "bed": (1, 1),
        "desk": (1, 1),
        "drawer": (1, 3),
        "dresser": (0, 1),
        "garbagecan": (0, 1),
        "safe": (0, 1),
        "shelf": (0, 2),
        "sidetable": (0, 1),
    },
    "living room": {
        "armchair": (0, 2),
        "cabinet": (0, 1),
        "coffeetable": (1, 1),
        "drawer": (0, 2),
        "garbagecan": (0, 1),
        "shelf": (0, 2),
        "sidetable": (1, 2),
        "sofa": (1, 1),
        "tvstand": (0, 1),
    },
}


@dataclass(frozen=True)
class Kind:
    """A kind of object: what may be done with it, and where it lies at first, by kind of room."""

    treatments: frozenset[str]
    homes: dict[str, tuple[str, ...]]


_DISHES = ("cabinet", "countertop", "diningtable", "shelf", "sinkbasin")
_CUTLERY = ("countertop", "diningtable", "drawer", "sinkbasin")
_FOOD = ("countertop", "diningtable", "fridge", "garbagecan")
_SPICES = ("cabinet", "countertop", "diningtable", "drawer", "shelf")
_BATH = ("cabinet", "countertop", "drawer", "garbagecan", "shelf", "toilet")
_BEDROOM = ("bed", "desk", "drawer", "dresser", "shelf", "sidetable")
_LIVING = ("armchair", "coffeetable", "drawer", "sidetable", "sofa", "tvstand")


def _kind(treatments: str, **homes: tuple[str, ...]) -> Kind:
    return Kind(
        frozenset(treatments.split()),
        {room.replace("_", " "): places for room, places in homes.items()},
    )


OBJECTS: dict[str, Kind] = {
    "mug": _kind("clean heat cool", kitchen=_DISHES, bedroom=("desk", "shelf", "sidetable")),
    "cup": _kind("clean heat cool", kitchen=_DISHES),
    "plate": _kind("clean heat cool", kitchen=_DISHES, living_room=("coffeetable", "sidetable")),
    "bowl": _kind("clean cool", kitchen=_DISHES, bedroom=("desk", "shelf")),
    "pan": _kind("clean cool", kitchen=("cabinet", "countertop", "sinkbasin", "stoveburner")),
    "pot": _kind("clean cool", kitchen=("cabinet", "countertop", "shelf", "stoveburner")),
    "fork": _kind("clean", kitchen=_CUTLERY),
    "knife": _kind("clean", kitchen=_CUTLERY),
    "spoon": _kind("clean", kitchen=_CUTLERY),
    "ladle": _kind("clean", kitchen=_CUTLERY),
    "apple": _kind("clean heat cool", kitchen=_FOOD),
    "egg": _kind("clean heat cool", kitchen=_FOOD),
    "potato": _kind("clean heat cool", kitchen=_FOOD),
    "tomato": _kind("clean heat cool", kitchen=_FOOD),
    "lettuce": _kind("clean cool", kitchen=_FOOD),
    "bread": _kind("heat cool", kitchen=_FOOD),
    "saltshaker": _kind("", kitchen=_SPICES),
    "peppershaker": _kind("", kitchen=_SPICES),
    "soapbottle": _kind("", kitchen=_SPICES, bathroom=_BATH),
    "soapbar": _kind("clean", bathroom=(*_BATH, "bathtub")),
    "cloth": _kind("clean", bathroom=(*_BATH, "bathtub")),
    "spraybottle": _kind("", bathroom=_BATH),
    "candle": _kind("", bathroom=_BATH, living_room=("coffeetable", "shelf", "sidetable")),
    "toiletpaper": _kind("", bathroom=_BATH),
    "towel": _kind("", bathroom=("cabinet", "shelf", "towelholder")),
    "alarmclock": _kind("", bedroom=("desk", "dresser", "shelf", "sidetable")),
    "book": _kind("", bedroom=_BEDROOM, living_room=_LIVING),
    "cd": _kind("", bedroom=(*_BEDROOM, "safe")),
    "pen": _kind("", bedroom=_BEDROOM, living_room=_LIVING),
    "pencil": _kind("", bedroom=_BEDROOM),
    "cellphone": _kind("", bedroom=(*_BEDROOM, "safe"), living_room=_LIVING),
    "creditcard": _kind("", bedroom=_BEDROOM, living_room=_LIVING),
    "keychain": _kind("", bedroom=(*_BEDROOM, "safe"), living_room=_LIVING),
    "laptop": _kind("", bedroom=("bed", "desk"), living_room=("coffeetable", "sofa")),
    "pillow": _kind("", bedroom=("armchair", "bed"), living_room=("armchair", "sofa")),
    "box": _kind("", living_room=("armchair", "coffeetable", "sofa")),
    "newspaper": _kind("", living_room=_LIVING),
    "remotecontrol": _kind("", living_room=_LIVING),
    "statue": _kind("", bedroom=("dresser", "shelf"), living_room=("shelf", "tvstand")),
    "vase": _kind("", living_room=("cabinet", "coffeetable", "shelf", "tvstand")),
    "watch": _kind("", bedroom=(*_BEDROOM, "safe"), living_room=_LIVING),
}
# No object is brought to these: they are there to be used.
NO_PLACE = frozenset({"microwave", "stoveburner"})

Plan = tuple[str, ...]  # receptacle names such as "cabinet 1", by kind and number


@cache
def plans(room: str) -> tuple[Plan, ...]:
    """The thirty rooms of a kind, no two with the same receptacles; the last six are unseen."""
    rng, found = random.Random(f"plans of the {room}"), dict[Plan, None]()
    while len(found) < PLANS:
        counts = {kind: rng.randint(*bounds) for kind, bounds in ROOMS[room].items()}
        if sum(counts.values()) in SIZES:
            found[numbered(counts)] = None
    return tuple(found)


def numbered(counts: dict[str, int]) -> Plan:
    """Names of so many receptacles of each kind, in the order of the kinds' names."""
    return tuple(f"{kind} {n + 1}" for kind in sorted(counts) for n in range(counts[kind]))


def plans_of(split: str, room: str) -> tuple[Plan, ...]:
    """The rooms of a kind that a split is played in."""
    seen = PLANS - UNSEEN_PLANS
    return plans(room)[seen:] if split == "unseen" else plans(room)[:seen]


@cache
def unseen_pairs() -> frozenset[tuple[str, str]]:
    """The pairs (object, kind of receptacle) that only the split `unseen` asks for."""
    pairs = {(name, place) for name, kind in OBJECTS.items() for place in _places(kind)}
    shuffled = sorted(pairs)
    random.Random("unseen pairs").shuffle(shuffled)
    return frozenset(shuffled[::UNSEEN_SHARE])


def _places(kind: Kind) -> set[str]:
    """Everything that the object may be brought to, the lamp for looking at it among them."""
    return {LAMP} | {place for room in kind.homes for place in ROOMS[room]} - NO_PLACE


def pairs_of(split: str) -> frozenset[tuple[str, str]]:
    """The pairs of an object and the place for it that a split asks for."""
    everything = {(name, place) for name, kind in OBJECTS.items() for place in _places(kind)}
    unseen = unseen_pairs()
    return unseen if split == "unseen" else frozenset(everything - unseen)


def type_of(name: str) -> str:
    """The kind of a numbered thing: of `mug 2`, mug."""
    return name.rpartition(" ")[0]
