"""Figures with intervals of two runs, and which of them moved beyond what their noise allows.

A new value outside the old interval is no news: with nothing changed that happens to one figure in
six. Compared is therefore the difference: its interval follows from both intervals.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

VALUES = ("rate", "mean", "value")  # what an interval `low`, `high` stands beside in metrics/
ALPHA = 0.05
NOT_TOLD = ("all", "by_role", "by_opponent", "means", "minus_vanilla")  # of a figure's place
SPLIT = ("by_role", "by_opponent")
Place = tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """A figure of two runs; one side is None where only the other run has it."""

    place: Place
    before: Estimate | None
    after: Estimate | None

    @property
    def difference(self) -> Estimate | None:
        """After minus before, with its interval from both runs' (MOVER, Zou and Donner 2008).

        For two Wilson intervals it is Newcombe's. Runs count as independent; where they share
        games that is cautious.
        """
        if self.before is None or self.after is None:
            return None
        one, other = self.before, self.after
        change = other.value - one.value
        below = math.hypot(other.value - other.low, one.high - one.value)
        above = math.hypot(other.high - other.value, one.value - one.low)
        return Estimate(change, change - below, change + above)

    @property
    def is_moved(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        found = self.difference
        return found is not None and (found.low > 0 or found.high < 0)

    @property
    def surprise(self) -> float:
        """The difference in half-widths of its interval."""
        found = self.difference
        if found is None or found.value == 0:
            return 0.0
        half = (found.high - found.low) / 2
        return abs(found.value) / half if half else math.inf


def changes(before: Any, after: Any) -> list[Change]:
    """Every figure with an interval of two runs' JSON values, the general ones first.

    Left out is what says the same again, with the same numbers: winnable games where all are, a
    game's only role or opponent, the difference to vanilla among all differences.
    """
    old, new = dict(_estimates(before)), dict(_estimates(after))
    places = sorted({*old, *new}, key=lambda place: (len(place), place))
    lone = _lone(places)
    found: dict[tuple[object, ...], Change] = {}
    for place in places:
        change = Change(place, old.get(place), new.get(place))
        found.setdefault((_subject(place, lone), change.before, change.after), change)
    return list(found.values())


def _lone(places: Sequence[Place]) -> set[Place]:
    """Places of roles and opponents that have no other beside them."""
    beside: dict[Place, set[str]] = defaultdict(set)
    for place in places:
        for at, part in enumerate(place[:-1]):
            if part in SPLIT:
                beside[place[: at + 1]].add(place[at + 1])
    return {(*by, *names) for by, names in beside.items() if len(names) == 1}


def _subject(place: Place, lone: Set[Place]) -> Place:
    """What a figure is of, whichever of the ways to say so its place takes."""
    left: list[str] = []
    for at, part in enumerate(place):
        if part == "vanilla" and place[at - 1 : at] == ("differences",):
            left.append("minus_vanilla")
        elif part not in ("all", "winnable", "differences") and not (
            place[: at + 1] in lone or place[: at + 2] in lone
        ):
            left.append(part)
    return tuple(left)


def moved(found: list[Change]) -> list[Change]:
    """What moved beyond its interval: general figures first, then by how far."""
    return sorted(
        (change for change in found if change.is_moved),
        key=lambda change: (len(change.place), -change.surprise),
    )


def by_chance(found: list[Change]) -> float:
    """How many of the compared figures would seem to have moved with nothing changed, at most."""
    return ALPHA * sum(change.difference is not None for change in found)


def name(place: Place) -> str:
    """`bargaining, alice: aria` or `bargaining: aria minus vanilla`."""
    parts, suffix = list(place), " minus vanilla" if "minus_vanilla" in place else ""
    if "differences" in parts[:-2]:  # the name of the baseline follows
        at = parts.index("differences")
        _, baseline = parts[at : at + 2]
        del parts[at : at + 2]
        suffix = f" minus {baseline}"
    *where, what = [part for part in parts if part not in NOT_TOLD] or parts
    return f"{', '.join(where)}: {what}{suffix}" if where else f"{what}{suffix}"


def _estimates(value: Any, place: Place = ()) -> Iterator[tuple[Place, Estimate]]:
    if not isinstance(value, Mapping):
        return
    middle = next((key for key in VALUES if key in value), None)
    numbers: list[Any] = [value.get(key) for key in (middle, "low", "high")] if middle else []
    if numbers and all(_is_number(number) for number in numbers):
        yield place, Estimate(*numbers)
    for key, inner in value.items():
        yield from _estimates(inner, (*place, str(key)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
