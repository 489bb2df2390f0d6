"""Three-valued logic, and numbers in millions; None stands for what is not known."""

from __future__ import annotations

from enum import Enum
from typing import Final

from aria_dvc.oracles.numbers import number


class Debatable(Enum):
    """What neither yes nor no is right for, unlike None: no other rule need be asked."""

    DEBATABLE = "debatable"


DEBATABLE: Final = Debatable.DEBATABLE

NUMBER = (
    r"(?:about |around |approximately |roughly )?"
    r"([\d.]+|one|two|three|four|five|six|seven|eight|nine|ten|half a|a|twenty|fifty|fifteen|"
    r"twelve)"
    r" ?(million|thousand|billion|hundred thousand)?"
)
"""Two groups: the number and its scale, as `millions` takes them."""
_SCALES = {"million": 1.0, "thousand": 1e-3, "billion": 1e3, "hundred thousand": 0.1, None: 1e-6}


def not_(value: bool | None) -> bool | None:
    """Three-valued negation."""
    return None if value is None else not value


def any_of(values: list[bool | None]) -> bool | None:
    """Three-valued "or" of at least one value."""
    if any(values):
        return True
    return None if None in values or not values else False


def all_of(values: list[bool | None]) -> bool | None:
    """Three-valued "and" of at least one value."""
    if any(value is False for value in values):
        return False
    return None if None in values or not values else True


def between(value: float, low: float, high: float) -> bool | None:
    """True below `low`, False above `high`, None in between."""
    return True if value < low else False if value > high else None


def settled(value: bool | None) -> bool | Debatable:
    """The value, or `DEBATABLE` for None."""
    return DEBATABLE if value is None else value


def millions(count: str, scale: str | None) -> float | None:
    """A number in millions from its words or digits; None for what is no number ("1.2.3")."""
    value = number(count.strip("."))
    return None if value is None else value * _SCALES[scale]
