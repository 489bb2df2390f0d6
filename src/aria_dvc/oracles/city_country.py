"""Claims about the country of one city: borders, faith, language, government, past rulers."""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re

from aria_dvc.oracles.city_facts import CityFacts
from aria_dvc.oracles.city_lists import BORDER_CITIES, COLONIES, DEEP_INLAND, LANGUAGES
from aria_dvc.oracles.city_logic import NUMBER, any_of, number
from aria_dvc.oracles.city_places import Places, regions, waters


class CountryClaims:
    """True, False, or None where that is not known or debatable."""

    def __init__(self, facts: CityFacts, places: Places) -> None:
        self.facts = facts
        self.places = places

    def border(self, rest: str) -> bool | None:
        rest = re.sub(r"\b(?:the|with|of|to|country|COUNTRY|and)\b", " ", rest)
        names = [part.strip() for part in re.split(r" or |,", rest) if part.strip()]
        if not names or any(
            name
            in {"another", "another country", "any other", "other", "neighboring", "a neighboring"}
            for name in names
        ):
            return True if self.facts.city.name in BORDER_CITIES else None
        results = [self._borders(re.sub(r"\s+", " ", name)) for name in names]
        return any_of(results)

    def _borders(self, name: str) -> bool | None:
        if name in BORDER_CITIES.get(self.facts.city.name, ()):
            return True
        listed = self.facts.country.borders.has(name)
        if listed:
            return False if self.facts.city.name in DEEP_INLAND else None
        return False if name in regions() and name not in self.facts.country.names else None

    def claim(self, rest: str, phrase: str) -> bool | None:
        country = self.facts.country
        rest = re.sub(r"^(?:(?:is|was|has|have|are|once|formerly|previously|ever) )+", "", rest)
        member = re.match(
            r"^(?:a |currently a )?(?:member(?: state)? of|part of|in) (?:the )?(.+)$", rest
        )
        if member:
            clubs = {part.strip() for part in country.text["member"].split("|")}
            known = {
                "european union",
                "eu",
                "nato",
                "g20",
                "g7",
                "asean",
                "brics",
                "commonwealth",
                "african union",
                "arab league",
                "opec",
                "eurozone",
                "schengen area",
                "mercosur",
                "oecd",
            }
            return member[1] in clubs if member[1] in known else self.places.within(member[1])
        if re.search(r"\b(?:monarchy|king|queen|royal family|emperor)\b", rest):
            return "monarchy" in country.text["government"]
        if re.search(r"\blandlocked\b", rest):
            return not country.waters.sure
        border = re.match(
            r"^(?:shares? )?(?:a )?(?:borders?|border with|bordered by|neighbou?rs?)(?: with)? (?:the )?(.+)$",
            rest,
        )
        if border:
            sea = country.waters.has(border[1])
            return (
                sea
                or country.borders.has(border[1])
                or (False if border[1] in regions() or border[1] in waters() else None)
            )
        coast = re.match(r"^(?:a )?coastline (?:along|on|with) (?:the )?(.+)$", rest)
        if coast:
            return country.waters.has(coast[1]) or (False if coast[1] in waters() else None)
        people = re.match(
            rf"^(?:a )?population (?:of )?(over|more than|less than|under) {NUMBER}(?: people)?$",
            rest,
        )
        if people:
            bound = number(people[2], people[3])
            more = country.people > bound
            return more if people[1] in {"over", "more than"} else not more
        faith = re.match(
            r"^(?:predominantly|mostly|mainly|primarily|majority|largely)? ?(muslim|islamic|christian|catholic|hindu|buddhist|orthodox|orthodox christian|jewish)$",
            rest,
        )
        if faith:
            return self.faith(faith[1])
        ruled = re.match(
            r"^(?:once |formerly |previously )?(?:a )?(?:part of |former )?(?:once )?(?:a )?(?:british india|former )?(british|french|spanish|portuguese|dutch|japanese|belgian)? ?(?:india|colony|colonised|colonized|territory)?$",
            rest,
        )
        if ruled and ruled[1]:
            return self.colony(ruled[1])
        return None

    def speaks(self, language: str) -> bool | None:
        language = re.sub(r"^(?:a|an|the|predominantly|primarily|mainly|mostly) ", "", language)
        spoken = {
            word.lower()
            for name in self.facts.languages
            for word in (name, name.split()[0], name.split()[-1])
        }
        if language in spoken:
            return True
        return False if language in LANGUAGES else None

    def faith(self, word: str) -> bool | None:
        names = {
            "muslim": "islam",
            "islamic": "islam",
            "christian": "christianity",
            "catholic": "catholicism",
            "hindu": "hinduism",
            "buddhist": "buddhism",
            "orthodox": "orthodox christianity",
            "orthodox christian": "orthodox christianity",
            "jewish": "judaism",
        }
        faith = names.get(word, word)
        listed = self.facts.country.text["faiths"].split("|")
        if faith in listed:
            return (
                True
                if faith == listed[0] or faith in {"catholicism", "orthodox christianity"}
                else None
            )
        return False

    def colony(self, ruler: str) -> bool | None:
        rulers = {
            "british": "britain",
            "french": "france",
            "spanish": "spain",
            "portuguese": "portugal",
            "dutch": "netherlands",
            "japanese": "japan",
            "belgian": "belgium",
            "german": "germany",
            "italian": "italy",
            "russian": "russia",
        }
        own = COLONIES.get(self.facts.city.name)
        if rulers.get(ruler, ruler) not in rulers.values():
            return None
        past = own if own is not None else frozenset(self.facts.country.text["ruled_by"].split("|"))
        return rulers.get(ruler, ruler) in past
