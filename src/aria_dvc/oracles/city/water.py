"""Claims about coasts, rivers, lakes and islands of one city."""

from __future__ import annotations

import re

from aria_dvc.oracles.city.facts import CityFacts
from aria_dvc.oracles.city.gazetteer import regions, waters
from aria_dvc.oracles.city.lists import DIRECTIONS, SEAS
from aria_dvc.oracles.city.logic import DEBATABLE, Debatable, any_of, settled
from aria_dvc.oracles.city.places import Places

_ROUND = ("n", "ne", "e", "se", "s", "sw", "w", "nw")


class WaterClaims:
    """True, False, or None where that is not known or debatable."""

    def __init__(self, facts: CityFacts, places: Places) -> None:
        self.facts = facts
        self.places = places

    def coastal(self) -> bool | None:
        """Whether the city lies on a sea; None for cities near one or on a large lake."""
        return {"yes": True, "no": False, "near": None, "lake": None}[self.facts.coast]

    def coast_part(self, direction: str, scope: str) -> bool | None:
        """Whether the city lies on that coast (`north`, `southeastern`, ...) of a place."""
        if self.facts.coast in {"no", "lake"}:
            return False
        inside = True if scope in {"COUNTRY", "island"} else self.places.within(scope)
        sides = self.facts.text.get("coast_sides", "").split()
        if not inside or not sides:
            return inside and None
        asked = DIRECTIONS[re.sub("(?:ern)?most$", "", direction)]
        if asked in sides:
            return True if self.facts.coast == "yes" else None
        if asked == "c":
            return None
        turns = [abs(_ROUND.index(asked) - _ROUND.index(side)) for side in sides]
        far = 2 if self.facts.coast == "yes" else 1
        return False if all(min(turn, 8 - turn) >= far for turn in turns) else None

    def coast_of(self, name: str) -> bool | None:
        """Whether the city lies on the coast of a sea, a country or a region."""
        water = self.places.on_water(name, near=False)
        if water is not None and (name in waters()):
            return water and (True if self.facts.coast == "yes" else None)
        inside = self.places.within(name)
        return self.coastal() if inside else inside

    def named_coast(self, direction: str | None, name: str, scope: str | None) -> bool | None:
        """Whether the city lies on "the (northern) NAME coast of SCOPE"."""
        if self.facts.coast in {"no", "lake"}:
            return False
        if name in SEAS or name in waters():
            forms = (name, f"{name} sea", f"{name} ocean")
            known = [form for form in forms if form in waters()]
            on = any_of([False, *(self.places.on_water(form, near=False) for form in known)])
            if not on:
                return on if name != "gulf" else None
            inside = self.places.within(scope) if scope else True
            return (True if self.facts.coast == "yes" else None) if inside else inside
        inside = self.places.within(name)
        if not inside or not direction:
            return self.coastal() if inside else inside
        return self.coast_part(direction, name)

    def any_water(self, kind: str) -> bool | Debatable | None:
        """Whether the city lies by some water of that kind."""
        facts = self.facts
        sea, lake = facts.coast != "no", bool(facts.lakes.sure)
        river = bool(facts.rivers.sure) and facts.text.get("river_size") != "minor"
        if "bod" in kind or "coast" in kind or "waterway" in kind:
            return sea or lake or river
        if "river" in kind and "lake" in kind:
            return True if river or lake else None
        if kind == "ocean":
            return self._by_an_ocean()
        if kind in {"bay", "gulf"}:
            return self._by_a_bay()
        if kind == "sea":
            return settled({"yes": True, "no": False}.get(facts.coast))
        if kind == "river" or kind == "rivers":
            return True if river else None
        return True if kind.startswith("lake") and (lake or facts.coast == "lake") else None

    def _by_a_bay(self) -> bool | Debatable:
        """True on a sea that is called one; elsewhere on the coast there may be a small one."""
        if self.facts.coast == "no":
            return False
        named = any(re.search(r"\b(?:bay|gulf)\b", name) for name in self.facts.seas.sure)
        return True if named and self.facts.coast == "yes" else DEBATABLE

    def _by_an_ocean(self) -> bool | None:
        """False far from all coasts; on a sea that is part of an ocean it is debatable."""
        if self.facts.coast in {"no", "lake"}:
            return False
        oceans = any(name.endswith("ocean") for name in self.facts.seas.sure)
        return True if oceans and self.facts.coast == "yes" else None

    def named_water(self, relation: str, name: str) -> bool | Debatable | None:
        """Whether the city lies `relation` (on, near, across, ...) the named water."""
        if relation == "in" and (name in regions() or re.sub("^the ", "", name) in regions()):
            return None
        name = re.sub(r"^(?:the )?(?:coast of |banks of |shores of |mouth of )?(?:the )?", "", name)
        name = re.sub(r"^river (\w+)$", r"\1 river", name) if name not in waters() else name
        near = relation in {"near", "close to", "by", "next to"}
        listed = self.places.on_water(name, near=near)
        if listed is not None or name in waters():
            return settled(listed)
        if (
            re.search(r" (?:river|sea|ocean|bay|gulf|strait|lagoon)$", name)
            and len(name.split()) <= 3
        ):
            core = name.rsplit(" ", 1)[0]
            listed = any(
                core in group.sure or name in group.sure
                for group in (self.facts.rivers, self.facts.seas, self.facts.lakes)
            )
            if listed:
                return True
            generic = re.search(
                r"\b(?:an|a|any|major|large|famous|big|main|significant|beautiful|scenic)\b", name
            )
            return None if generic else False
        return None

    def on_island(self) -> bool | None:
        """Whether the city lies on an island; None where only a part of it does."""
        own = {"wholly": True, "partly": None}
        return own.get(self.facts.text.get("island", ""), self.facts.country.islands)
