"""The state of a household, and the commands that change it, in the manner of ALFWorld.

A command is carried out, and told what came of it, or it is impossible here and changes nothing.
Every object is in one receptacle or in the hand; the one who acts carries one object at the most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from aria_dvc.games.household_rooms import CLOSED, LAMP, TREATED_WITH, type_of

STATES = {"clean": "clean", "heat": "hot", "cool": "cold"}
"""What an object is after a treatment; heat undoes cold and the other way round."""
_OPPOSITE = {"hot": "cold", "cold": "hot"}
_THING = r"([a-z]+ [0-9]{1,2})"
_FORMS = {
    "go": re.compile(f"go to {_THING}"),
    "open": re.compile(f"open {_THING}"),
    "close": re.compile(f"close {_THING}"),
    "take": re.compile(f"take {_THING} from {_THING}"),
    "put": re.compile(f"put {_THING} in/on {_THING}"),
    "clean": re.compile(f"clean {_THING} with {_THING}"),
    "heat": re.compile(f"heat {_THING} with {_THING}"),
    "cool": re.compile(f"cool {_THING} with {_THING}"),
    "use": re.compile(f"use {_THING}"),
    "examine": re.compile(f"examine {_THING}"),
    "look": re.compile("look"),
    "inventory": re.compile("inventory"),
}
_MARKS = " >*_`\"'.!"  # a prompt's arrow, Markdown, quotes, full stops
_IN_OR_ON = re.compile(r"^(put [a-z]+ [0-9]+) (?:in|on) ")


def canonical(text: str) -> str:
    """The command as the admissible ones are spelt: lower case, single blanks, no marks around."""
    spelt = " ".join(text.lower().split()).strip(_MARKS)
    return _IN_OR_ON.sub(r"\1 in/on ", spelt)


def article(name: str) -> str:
    """`a mug 1`, `an apple 2`."""
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def listed(names: Iterable[str]) -> str:
    """The things one after the other; `nothing` where there are none."""
    return ", ".join(map(article, names)) or "nothing"


@dataclass
class World:
    """One room and everything in it.

    contents: by receptacle, what is in or on it, in the order put there. at: the receptacle that
    one stands at. held: what one carries. closed: receptacles with a shut door. states: `clean`,
    `hot`, `cold` by object. lit: lamps that are on. seen: receptacles whose contents were told.
    """

    room: str
    contents: dict[str, list[str]]
    at: str | None = None
    held: str | None = None
    closed: set[str] = field(default_factory=set)
    states: dict[str, set[str]] = field(default_factory=dict)
    lit: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.closed |= {place for place in self.contents if type_of(place) in CLOSED}
        if self.at is not None and self.at not in self.closed:
            self.seen.add(self.at)

    @property
    def here(self) -> list[str]:
        """What is within reach where one stands."""
        return [] if self.at is None or self.at in self.closed else self.contents[self.at]

    def things(self) -> Iterator[str]:
        """Every object, lamps and what is carried included."""
        for inside in self.contents.values():
            yield from inside
        if self.held is not None:
            yield self.held

    def is_(self, thing: str, state: str) -> bool:
        return state in self.states.get(thing, ())

    def command(self, text: str) -> str | None:
        """Carry a command out and tell what came of it; None, and nothing changed, if it is no
        command or impossible here."""
        spelt = canonical(text)
        form = _FORMS.get(spelt.split(" ", 1)[0])
        read = form.fullmatch(spelt) if form else None
        return _DO[spelt.split(" ", 1)[0]](self, *read.groups()) if read else None

    def admissible(self) -> list[str]:
        """Every command that would be carried out now, spelt as `canonical` does."""
        at, held = self.at, self.held
        found = ["look", "inventory"]
        found += [f"go to {place}" for place in self.contents if place != at]
        found += [f"examine {name}" for name in (at, held) if name]
        found += [f"examine {thing}" for thing in self.here]
        if at is None:
            return found
        if type_of(at) in CLOSED:
            found.append(f"open {at}" if at in self.closed else f"close {at}")
        found += [f"use {thing}" for thing in self.here if _is_lamp(thing) and not self._lit(thing)]
        if held is None:
            found += [f"take {thing} from {at}" for thing in self.here if not _is_lamp(thing)]
            return found
        if at not in self.closed:
            found.append(f"put {held} in/on {at}")
        return found + [
            f"{v} {held} with {at}" for v, by in TREATED_WITH.items() if type_of(at) == by
        ]

    def around(self) -> str:
        """Where one is, the receptacles of the room, and what one sees and carries."""
        where = "in the middle of" if self.at is None else f"at the {self.at} in"
        rest = f" {self._inside(self.at)}" if self.at is not None else ""
        carried = f" You carry {article(self.held)}." if self.held else ""
        return (
            f"You are {where} the {self.room}. Around you: {listed(self.contents)}.{rest}{carried}"
        )

    def _lit(self, lamp: str) -> bool:
        return lamp in self.lit

    def _inside(self, place: str) -> str:
        if place in self.closed:
            return "It is closed."
        self.seen.add(place)
        where = "In" if type_of(place) in CLOSED else "On"
        return f"{where} it: {listed(self.contents[place])}."

    def _go(self, place: str) -> str | None:
        if place not in self.contents or place == self.at:
            return None
        self.at = place
        return f"You are at the {place}. {self._inside(place)}"

    def _open(self, place: str) -> str | None:
        if place != self.at or place not in self.closed:
            return None
        self.closed.remove(place)
        return f"You open the {place}. {self._inside(place)}"

    def _close(self, place: str) -> str | None:
        if place != self.at or place in self.closed or type_of(place) not in CLOSED:
            return None
        self.closed.add(place)
        return f"You close the {place}."

    def _take(self, thing: str, place: str) -> str | None:
        if self.held or place != self.at or thing not in self.here or _is_lamp(thing):
            return None
        self.contents[place].remove(thing)
        self.held = thing
        return f"You take the {thing} from the {place}."

    def _put(self, thing: str, place: str) -> str | None:
        if thing != self.held or place != self.at or place in self.closed:
            return None
        self.contents[place].append(thing)
        self.held = None
        return f"You put the {thing} in/on the {place}."

    def _treat(self, verb: str, thing: str, place: str) -> str | None:
        if thing != self.held or place != self.at or type_of(place) != TREATED_WITH[verb]:
            return None
        state = STATES[verb]
        states = self.states.setdefault(thing, set())
        states.discard(_OPPOSITE.get(state, ""))
        states.add(state)
        return f"You {verb} the {thing} with the {place}."

    def _use(self, thing: str) -> str | None:
        if thing not in self.here or not _is_lamp(thing) or self._lit(thing):
            return None
        self.lit.add(thing)
        return f"You switch the {thing} on."

    def _examine(self, thing: str) -> str | None:
        if thing == self.at:
            return f"The {thing}. {self._inside(thing)}"
        if thing != self.held and thing not in self.here:
            return None
        if _is_lamp(thing):
            return f"The {thing} is {'on' if self._lit(thing) else 'off'}."
        states = [state for state in STATES.values() if self.is_(thing, state)]
        return f"The {thing} is {' and '.join(states) or 'as it was'}."

    def _look(self) -> str:
        return self.around()

    def _inventory(self) -> str:
        return f"You carry {article(self.held) if self.held else 'nothing'}."


def _is_lamp(thing: str) -> bool:
    return type_of(thing) == LAMP


_DO: dict[str, Callable[..., str | None]] = {
    "go": World._go,
    "open": World._open,
    "close": World._close,
    "take": World._take,
    "put": World._put,
    **{
        verb: lambda world, thing, place, verb=verb: world._treat(verb, thing, place)
        for verb in TREATED_WITH
    },
    "use": World._use,
    "examine": World._examine,
    "look": World._look,
    "inventory": World._inventory,
}
