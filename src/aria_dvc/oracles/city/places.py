"""Where the hidden city lies: in, on, near, which part of; the answer is True, False or None.

A name that belongs to the gazetteer (countries and their subdivisions, world regions, seas,
rivers, ranges, 34,000 cities) and is not among the city's own places means False; a name that
nobody knows means None.
"""

from __future__ import annotations

import re

from aria_dvc.oracles.city.facts import CityFacts
from aria_dvc.oracles.city.gazetteer import (
    boxes,
    distance_km,
    is_place,
    ranges,
    regions,
    towns,
    waters,
)
from aria_dvc.oracles.city.lists import DIRECTIONS

ADMIN = (
    "states?|provinces?|departments?|prefectures?|governorates?|counties|county|oblast|canton|"
    "autonomous community|municipality|federal state|federal district|emirate"
)
AREA = (
    "regions?|areas?|district|regency|territory|island|islands|peninsula|country|continent|city|"
    "town|nation|metropolitan area|basin|valley|delta|plateau|plain|highlands|archipelago|"
    "subcontinent|division|kingdom|republic|land|zone|belt|mainland"
)
_CUE_FIRST = re.compile(
    rf"^(?:the )?(?:[a-z]+ )?({ADMIN}|{AREA}) (?:of|called|known as) (?:the )?(.+)$"
)
_CUE_LAST = re.compile(rf"^(?:the )?(.+?) ({ADMIN}|{AREA})$")
_CUE = re.compile(rf"^(?:{ADMIN}|{AREA})$")
_CLOSED = re.compile(rf"^(?:{ADMIN})$")
_DIR = "|".join(sorted(DIRECTIONS, key=len, reverse=True))
_PART = r"(?:part|region|half|side|area|section|end|portion|corner|tip|edge|parts|regions|coast)"
_PART_OF = re.compile(
    rf"^(?:the |in )*(?:very |far )?({_DIR})(?:most)?(?: {_PART})?(?: region)? of (?:the )?(.+)$"
)
_PART_OF_OCEAN = re.compile(r"^(north|south)(?:ern)? (atlantic|pacific)(?: ocean)?$")
_PART_X = re.compile(rf"^(?:the )?(?:far )?({_DIR}) (.+)$")

_SIDE = re.compile(r"^(north|south|east|west|northern|southern)(?: part| half| side)?$")


class Places:
    """Statements about where one city lies."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts
        self.own = frozenset(facts.city.names)
        self.around = facts.regions | facts.country.regions
        self.country_names = facts.country.names | {"COUNTRY", "country"}

    # -- in ---------------------------------------------------------------------------------

    def within(self, phrase: str) -> bool | None:
        """Whether the city lies in the named country, region, island, town or part of one."""
        phrase = re.sub(r"^(?:the|a|an|in|its) ", "", phrase.strip(" ,"))
        side = _SIDE.match(phrase)
        if side:
            return self._side(DIRECTIONS[side[1]])
        direct = self._named(phrase)
        if direct is not None:
            return direct
        if self.around.has(phrase) is None:
            return None
        tail = re.match(r"^(.+?) ?(?:,|\bin\b|\bwithin\b)(?: the)? ([a-z ]+)$", phrase)
        if tail and self._named(tail[2]) is not None:
            return self.within(tail[1]) if self._named(tail[2]) else False
        nested = re.match(
            r"^(.+?) (?:,|in|of|which is|within|inside)(?: in)?(?: the)? (.+)$", phrase
        )
        part = self._part(phrase)
        if part is not NotImplemented:
            return part
        if (
            nested
            and not _CUE.match(nested[1])
            and (is_place(nested[2]) or nested[2] in self.country_names)
        ):
            outer, inner = self._named(nested[2]), self.within(nested[1])
            return False if outer is False else inner if outer else None
        return self._cued(phrase)

    def _side(self, direction: str) -> bool | None:
        """`in the south` of its country; "the west" may as well be a part of the world."""
        return None if direction in {"e", "w"} else self._compass(direction)

    def _named(self, name: str) -> bool | None:
        """True, False for names of the gazetteer; None for anything else or the debatable."""
        if name in self.facts.regions.unsure:
            return None
        if name in self.country_names or name in self.own:
            return True
        listed = self.around.has(name)
        if listed is None:
            return None
        if listed:
            return True
        if name in regions():
            return None if _CUE.match(name) else False  # "a delta" is not the state of that name
        if name in towns() and name not in self.facts.capital_of:
            return False
        return None

    def _cued(self, phrase: str) -> bool | None:
        match = _CUE_FIRST.match(phrase)
        cue, core = (match[1], match[2]) if match else ("", "")
        if not match:
            match = _CUE_LAST.match(phrase)
            cue, core = (match[2], match[1]) if match else ("", "")
        if not match:
            return None
        if core in self.own:
            return None
        if self.around.has(f"{core} {cue}") or self.around.has(core):
            return True
        if self.around.has(core) is None or self._like_own(core):
            return None
        if core in regions() or core in towns() or _CLOSED.match(cue):
            return False
        return None

    def _like_own(self, core: str) -> bool:
        """Whether a name may be a spelling variant of one of the city's own regions."""
        import difflib

        return bool(difflib.get_close_matches(core, [*self.around.sure, *self.own], 1, 0.8))

    # -- parts ------------------------------------------------------------------------------

    def _part(self, phrase: str) -> bool | None:
        match = _PART_OF.match(phrase) or _PART_X.match(phrase)
        if not match:
            return NotImplemented
        direction, scope = DIRECTIONS[match[1]], re.sub(r"^the ", "", match[2])
        inside = self.within(scope) if scope not in self.country_names else True
        if not inside:
            return inside
        return self.part_of(direction, scope)

    def part_of(self, direction: str, scope: str) -> bool | None:
        """Whether the city lies in that part (`n`, `se`, `c`, ...) of a place that contains it."""
        if scope in self.country_names:
            return self._compass(direction)
        scope = re.sub(r"^(?:island of |the )|(?: island| province| state| region)$", "", scope)
        return self._box_part(direction, scope)

    def _compass(self, direction: str) -> bool | None:
        sure, unsure = self.facts.compass.sure, self.facts.compass.unsure
        if len(direction) == 1:
            if any(direction in mark for mark in sure):
                return True
            return None if any(direction in mark for mark in unsure) else False
        if direction in sure or all(any(d in mark for mark in sure) for d in direction):
            return True
        possible = sure | unsure
        if all(any(d in mark for mark in possible) for d in direction):
            return None
        return False

    def _box_part(self, direction: str, scope: str) -> bool | None:
        box = boxes().get(scope)
        if box is None:
            return None
        south, west, north, east = box
        up = (self.facts.latitude - south) / (north - south)
        right = (self.facts.longitude - west) / (east - west)
        share = {"n": up, "s": 1 - up, "e": right, "w": 1 - right}
        if direction == "c":
            return True if 0.35 < up < 0.65 and 0.35 < right < 0.65 else None
        values = [share[d] for d in direction]
        if all(value > 0.6 for value in values):
            return True
        return False if any(value < 0.45 for value in values) else None

    # -- waters and mountains ---------------------------------------------------------------

    def on_water(self, name: str, *, near: bool) -> bool | None:
        """Whether the city lies on (or near) the named sea, lake or river."""
        name = re.sub(r"^(?:the|a) ", "", name)
        forms = (name,) if name in regions() else (name, f"{name} ocean", f"{name} sea")
        for group in (self.facts.seas, self.facts.rivers, self.facts.lakes):
            for form in forms:
                listed = group.has(form)
                if listed is not False:
                    return listed
        part = _PART_OF_OCEAN.match(name)
        if part:
            return self._on_half(part[1], part[2], near=near)
        own = self.facts.country.waters
        if near and self.facts.coast != "no" and any(own.has(form) is not False for form in forms):
            return None
        return False if not waters().isdisjoint(forms) else None

    def _on_half(self, half: str, ocean: str, *, near: bool) -> bool | None:
        """Whether the city lies on the northern or southern half of an ocean."""
        value = self.on_water(f"{ocean} ocean", near=near)
        if value and abs(self.facts.latitude) < 7:
            return None
        return value and (self.facts.latitude > 0) == (half == "north")

    def near_mountain(self, name: str) -> bool | None:
        """Whether the named mountain or range rises in or near the city."""
        name = re.sub(r"^(?:the|a) ", "", name)
        for group in (self.facts.mountains, self.facts.regions):
            listed = group.has(name)
            if listed is not False:
                return listed
        return False if name in ranges() else None

    def near_town(self, name: str) -> bool | None:
        """Whether the named town lies within about an hour; None between 70 and 200 km."""
        name = re.sub(r"^(?:the )?(?:city|town|capital city|capital)(?: of)? ", "", name)
        if name in self.own or name not in towns():
            return None
        here = (self.facts.latitude, self.facts.longitude)
        away = min(distance_km(here, spot[:2]) for spot in towns()[name])
        if away < 70:
            return True
        return False if away > 200 else None
