"""How far one city lies from a town, the coast or the equator: `within 50 km of`, `closer to`.

Distances are great circles between centres. Near the bound, and where a name is borne by towns
that would be answered differently, nothing is said.
"""

from __future__ import annotations

import math
import re

from aria_dvc.oracles.city.facts import CityFacts
from aria_dvc.oracles.city.gazetteer import distance_km, towns
from aria_dvc.oracles.city.logic import not_
from aria_dvc.oracles.numbers import number

WITHIN = r"within|less than|under|no more than|not more than|at most|closer than|nearer than"
BEYOND = r"more than|over|at least|farther than|further than|beyond"
COUNT = (
    r"(\d[\d.]*|(?:an?|one|two|three|four|five|six|eight|ten|twelve|twenty|thirty|fifty|half an?)"
    r"(?: hundred| thousand)?)"
)
UNIT = r"(kms?|kilomet(?:er|re)s?|mi|miles?|hours?|hrs?|minutes?|mins?|days?|degrees?)"
MEASURED = re.compile(
    r"\b(?:kms?|kilomet(?:er|re)s?|miles?|hours?|minutes?|drive|flight|ride|walk|commute|distance|"
    r"reach|range|radius)\b"
)
_KM = {"k": 1.0, "mi": 1.609}
_HOURS = {"h": 1.0, "min": 1 / 60, "d": 10.0}
_SLOW = 45.0
"""What one covers in an hour at least, in km; `_FASTEST` is what one covers at most."""
_FASTEST = ((re.compile(r"driv|car\b|road|bus"), 130.0), (re.compile(r"train|rail"), 350.0))
_FLYING = 1000.0
_CAPITAL = re.compile(r"^(?:national )?capital(?: city)?(?: of COUNTRY)?$|^COUNTRY capital$")
_COAST = re.compile(r"^(?:nearest )?(?:coast(?:line)?|sea|ocean|seaside|shore|beach)$")
_FROM_SEA = {"yes": (0.0, 5.0), "near": (0.0, 100.0), "no": (10.0, math.inf)}
_KM_PER_DEGREE = 111.2
_SHARE = 0.1
"""A town with less than this share of the people of its largest namesake is not meant."""

Span = tuple[float, float]
"""The least and the greatest distance that a name may mean, in km."""


class Distances:
    """True, False, or None near the bound and for places whose distance is not known."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts
        self._own = frozenset(facts.city.names)

    def within(self, count: str, unit: str, mode: str, place: str) -> bool | None:
        """`within COUNT UNIT (drive) of PLACE`."""
        amount, place = number(count), re.sub(r"^(?:the|city of) ", "", place)
        if amount is None:
            return None
        if unit.startswith("deg"):
            return self._degrees(amount, place)
        span, bounds = self.span(place), _bounds(amount, unit, f"{mode} {place}")
        if span is None:
            return None
        return True if span[1] < bounds[0] else False if span[0] > bounds[1] else None

    def beyond(self, count: str, unit: str, mode: str, place: str) -> bool | None:
        """`more than COUNT UNIT from PLACE`."""
        return not_(self.within(count, unit, mode, place))

    def drivable(self, place: str) -> bool | None:
        """False of what is farther than a long day's drive; otherwise people would disagree."""
        return False if self.within("12", "hours", "driving", place) is False else None

    def span(self, place: str) -> Span | None:
        """How far the place is; None where that is not known."""
        place = re.sub(r"^the | by [a-z ]+$", "", place)
        if place == "equator":
            return (abs(self.facts.latitude) * _KM_PER_DEGREE,) * 2
        if _COAST.match(place):
            return _FROM_SEA.get(self.facts.coast)
        names = self.facts.country.capital if _CAPITAL.match(place) else frozenset({place})
        if names & self._own:
            return None
        spots = [spot for name in names for spot in towns().get(name, ())]
        meant = [spot for spot in spots if spot[2] >= _SHARE * max(each[2] for each in spots)]
        here = (self.facts.latitude, self.facts.longitude)
        away = [distance_km(here, spot[:2]) for spot in meant]
        return (min(away), max(away)) if away else None

    def closer(self, place: str, other: str) -> bool | None:
        """Whether it is closer to one place than to another."""
        first, second = self.span(place), self.span(other)
        if first is None or second is None:
            return None
        if first[1] * 1.1 + 10 < second[0]:
            return True
        return False if second[1] * 1.1 + 10 < first[0] else None

    def nearest(self, places: tuple[str, ...]) -> str:
        """The one that is closer than all others; empty if that is not known."""
        for place in places:
            if all(self.closer(place, other) for other in places if other != place):
                return place
        return ""

    def _degrees(self, amount: float, place: str) -> bool | None:
        away = abs(self.facts.latitude) - amount
        return None if place != "equator" or abs(away) < 0.3 else away < 0


def _bounds(amount: float, unit: str, said: str) -> Span:
    """Up to the first it is surely within that reach, from the second on surely not."""
    for start, km in _KM.items():
        if unit.startswith(start) and not unit.startswith("min"):
            margin = max(15.0, 0.1 * amount * km)
            return amount * km - margin, amount * km + margin
    hours = amount * next(each for start, each in _HOURS.items() if unit.startswith(start))
    fastest = next((speed for mode, speed in _FASTEST if mode.search(said)), _FLYING)
    return hours * _SLOW, hours * fastest
