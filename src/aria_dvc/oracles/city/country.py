"""Claims about the country of one city: borders, faith, language, government, past rulers."""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from collections.abc import Callable

from aria_dvc.oracles.city.facts import CityFacts
from aria_dvc.oracles.city.gazetteer import regions, waters
from aria_dvc.oracles.city.lists import CLUBS, FAITHS, LANGUAGES, RULERS
from aria_dvc.oracles.city.logic import NUMBER, any_of, millions
from aria_dvc.oracles.city.places import Places


class CountryClaims:
    """True, False, or None where that is not known or debatable."""

    def __init__(self, facts: CityFacts, places: Places) -> None:
        self.facts = facts
        self.places = places
        country = facts.country
        rules: tuple[tuple[str, Callable[[re.Match[str]], bool | None]], ...] = (
            (r"(?:a |currently a )?(?:member(?: state)? of|part of|in) (?:the )?(.+)$", lambda m: self._member(m[1])),
            (r".*\b(?:monarchy|king|queen|royal family|emperor)\b", lambda m: "monarchy" in country.text["government"]),
            (r".*\blandlocked\b", lambda m: country.landlocked),
            (r"(?:shares? )?(?:a )?(?:borders?|border with|bordered by|neighbou?rs?)(?: with)? (?:the )?(.+)$", lambda m: self._touches(m[1])),
            (r"(?:a )?coastline (?:along|on|with) (?:the )?(.+)$", lambda m: country.waters.has(m[1]) or (False if m[1] in waters() else None)),
            (rf"(?:a )?population (?:of )?(over|more than|less than|under) {NUMBER}(?: people)?$", lambda m: self._populous(m[1], m[2], m[3])),
            (r"(?:predominantly|mostly|mainly|primarily|majority|largely)? ?(muslim|islamic|christian|catholic|hindu|buddhist|orthodox|orthodox christian|jewish)$", lambda m: self.faith(m[1])),
            (r"(?:a )?(?:part of |former )?(?:once )?(?:a )?(british|french|spanish|portuguese|dutch|japanese|belgian)(?: (?:india|colony|territory))?$", lambda m: self.colony(m[1])),
        )  # fmt: skip
        self._rules = tuple((re.compile(pattern), check) for pattern, check in rules)

    def border(self, rest: str) -> bool | None:
        """Whether the city lies near the border with one of the named countries."""
        rest = re.sub(r"\b(?:the|with|of|to|country|COUNTRY|and)\b", " ", rest)
        names = [part.strip() for part in re.split(r" or |,", rest) if part.strip()]
        if not names or any(
            name
            in {"another", "another country", "any other", "other", "neighboring", "a neighboring"}
            for name in names
        ):
            return True if self.facts.borders else None
        results = [self._borders(re.sub(r"\s+", " ", name)) for name in names]
        return any_of(results)

    def _borders(self, name: str) -> bool | None:
        if name in self.facts.borders:
            return True
        listed = self.facts.country.borders.has(name)
        if listed:
            return False if self.facts.text.get("border") == "far" else None
        return False if name in regions() and name not in self.facts.country.names else None

    def claim(self, rest: str) -> bool | None:
        """Truth of a statement about the country, such as `a member of the EU`."""
        rest = re.sub(r"^(?:(?:is|was|has|have|are|once|formerly|previously|ever) )+", "", rest)
        for pattern, check in self._rules:
            match = pattern.match(rest)
            if match:
                return check(match)
        return None

    def _member(self, club: str) -> bool | None:
        if club not in CLUBS:
            return self.places.within(club)
        return club in {part.strip() for part in self.facts.country.text["member"].split("|")}

    def _touches(self, name: str) -> bool | None:
        """Whether the country borders a country or a sea."""
        country = self.facts.country
        forms = (name, f"{name} sea", f"{name} ocean")
        if country.borders.has(name) or any(country.waters.has(form) for form in forms):
            return True
        return False if name in regions() or name in waters() else None

    def _populous(self, comparator: str, digits: str, scale: str | None) -> bool | None:
        bound = millions(digits, scale)
        if bound is None:
            return None
        more = self.facts.country.people > bound
        return more if comparator in {"over", "more than"} else not more

    def speaks(self, language: str) -> bool | None:
        """Whether the language is one of those spoken most in the city."""
        language = re.sub(r"^(?:a|an|the|predominantly|primarily|mainly|mostly) ", "", language)
        spoken = {
            word.lower()
            for name in self.facts.languages
            for word in (name, name.split()[0], name.split()[-1])
        }
        if language in spoken:
            return True
        return False if language in LANGUAGES else None

    def mainly_speaks(self, language: str) -> bool | None:
        """Whether the language is the first one of the city; None for one of the others."""
        if language in {
            self.facts.languages[0].lower(),
            self.facts.languages[0].lower().split()[0],
        }:
            return True
        return None if self.speaks(language) else self.speaks(language)

    def faith(self, word: str) -> bool | None:
        """Whether most people of the country have that faith (`muslim`, `buddhism`, ...)."""
        faith = FAITHS.get(word, word)
        listed = self.facts.country.text["faiths"].split("|")
        if faith not in listed:
            return False if faith in FAITHS.values() else None
        sure = faith == listed[0] or faith in {"catholicism", "orthodox christianity"}
        return True if sure else None

    def colony(self, ruler: str) -> bool | None:
        """Whether the city was ruled by that power (`british`, `france`, ...)."""
        power = RULERS.get(ruler, ruler)
        if power not in RULERS.values():
            return None
        return power in self.facts.rulers
