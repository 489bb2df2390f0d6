"""Figures with intervals of two runs, and which of them moved beyond what their noise allows.

A new value outside the old interval is no news: with nothing changed that happens to one figure in
six. Compared is therefore the difference: its interval follows from both intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VALUES = ("rate", "mean", "value")  # what an interval `low`, `high` stands beside in metrics/
ALPHA = 0.05
NOT_TOLD = ("all", "by_role", "by_opponent", "means", "minus_vanilla")  # of a figure's place
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

    A figure that repeats another one's numbers of the same variant in both runs (such as the rate
    of winnable games where all are) is left out.
    """
    old, new = dict(_estimates(before)), dict(_estimates(after))
    variants = {*_variants(before), *_variants(after)}
    found: dict[tuple[object, ...], Change] = {}
    for place in sorted({*old, *new}, key=lambda place: (len(place), place)):
        change = Change(place, old.get(place), new.get(place))
        whose = [part for part in place if part in variants][-1:]  # a baseline stands before it
        found.setdefault((place[0], *whose, change.before, change.after), change)
    return list(found.values())


def _variants(run: Any) -> Iterator[str]:
    """Those that were evaluated in any game of a run's JSON value."""
    for game in run.values() if isinstance(run, Mapping) else ():
        if isinstance(game, Mapping) and isinstance(game.get("all"), Mapping):
            yield from game["all"]


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
