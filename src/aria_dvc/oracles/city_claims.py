"""Yes/no claims about one city: location, size, capital status, country, topics.

`Claims.truth` takes the plain text after the verb ("located in asia", "the capital of COUNTRY",
"known for its beaches") and returns True, False, or None where that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from aria_dvc.oracles.city_facts import CityFacts
from aria_dvc.oracles.city_places import Places, ranges, regions, towns, waters
from aria_dvc.oracles.city_topics import Topics

_LOCATED = r"(?:(?:\w+ly )?(?:located|situated|found|based|set|positioned|lying|nestled|built) )?"
_HEDGE = re.compile(
    r"\b(?:also|actually|currently|generally|considered|considered to be|typically|primarily|"
    r"mainly|mostly|specifically|perhaps|maybe|possibly|directly|officially|indeed|in fact|"
    r"by any chance|geographically|right|just|internationally|especially|particularly|widely|"
    r"commonly|often|well|very|really|today|nowadays|more|still)\b"
)
_NUMBER = r"(?:about |around |approximately |roughly )?([\d.]+|one|two|three|four|five|six|seven|eight|nine|ten|half a|a|twenty|fifty|fifteen|twelve) ?(million|thousand|billion|hundred thousand)?"
_WORD_NUMBERS = {
    "one": 1, "a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "half a": 0.5, "twelve": 12, "fifteen": 15, "twenty": 20,
    "fifty": 50,
}  # fmt: skip
_SCALES = {"million": 1.0, "thousand": 1e-3, "billion": 1e3, "hundred thousand": 0.1, None: 1e-6}
_ORDINALS = {
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "sixth": 6,
}
_DIR = r"(?:north|south|east|west|central|northeast|northwest|southeast|southwest)(?:ern)?(?:most)?"


class Claims:
    """Truth of statements about one city."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts
        self.places = Places(facts)
        self.topics = Topics(facts)
        self.rules: list[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool | None]]] = [
            (topic, re.compile(pattern), check) for topic, pattern, check in self._rules()
        ]

    def truth(self, claim: str) -> tuple[bool | None, str]:
        """Truth and topic of a claim in plain form."""
        claim = re.sub(r"\s+", " ", _HEDGE.sub("", claim)).strip(" ,")
        for topic, pattern, check in self.rules:
            match = pattern.match(claim)
            if match:
                result = check(match)
                if result is not None or topic in {"in", "capital", "population"}:
                    return result, topic
        return self._split(claim)

    def _split(self, claim: str) -> tuple[bool | None, str]:
        """Claims of several parts: `A or B` holds if one does, `A and B` if both do."""
        return self.topics.truth(claim), "topic"

    # -- rules: topic, pattern of the whole claim, check ---------------------------------------

    def _rules(self) -> list[tuple[str, str, Callable[[re.Match[str]], bool | None]]]:
        coast = r"(?:a |the )?(?:coast(?:al)?(?:line)?(?: (?:area|region|city|town|line|location))?|sea(?:side|shore)?|ocean(?:front)?|beach)"
        return [
            ("coast", rf"^{_LOCATED}(?:directly )?(?:on|in|along|at|by|right on) {coast}$", lambda m: self.coastal()),
            ("coast", rf"^(?:a |an )?(?:major )?(?:coastal|seaside)(?: (?:city|town|location|area|region))?$", lambda m: self.coastal()),
            ("coast", r"^(?:have )?(?:a |any )?(?:coastline|coast|access to the (?:sea|ocean)|sea access|seafront|shoreline)$", lambda m: self.coastal()),
            ("coast", rf"^{_LOCATED}(?:near|close to|by) {coast}$", lambda m: self.facts.coast in {"yes", "near"}),
            ("coast", rf"^{_LOCATED}(?:(?:in )?(?:a )?)?(?:inland|landlocked|in the interior)(?: (?:city|area|region|location|town))?$", lambda m: not_(self.coastal())),
            ("coast", rf"^{_LOCATED}on (?:the |a )?({_DIR}) coast(?:line)? of (?:the )?(.+)$", lambda m: self.coast_part(m[1], m[2])),
            ("coast", rf"^{_LOCATED}on (?:the )?({_DIR}) coast(?:line)?$", lambda m: self.coast_part(m[1], "COUNTRY")),
            ("coast", rf"^{_LOCATED}(?:on|along) the coast(?:line)? of (?:the )?(.+)$", lambda m: self.coast_of(m[1])),
            ("coast", rf"^{_LOCATED}(?:on|along) (?:the )?(?:({_DIR}) )?([a-z ]+?) (?:coast|coastline)(?: of (.+))?$", lambda m: self.named_coast(m[1], m[2], m[3])),
            ("water", rf"^{_LOCATED}(?:on|along|at|by|in|near|close to|next to) (?:the )?(?:(?:{_DIR}) )?(?:banks?|shores?|shoreline|edge|mouth|side)? ?(?:of|to)? ?(?:a|any|the)? ?(?:major |large |big |famous |significant |main |well known |important )*(river|lake|ocean|sea|body of water|bodies of water|waterway|canal|bay|gulf|river or lake|lake or river|river or body of water|rivers or bodies of water|river or coastline|rivers|lakes|coast or (?:a )?(?:major )?body of water|coastline or (?:a )?(?:major )?body of water|coast or body of water)s?$", lambda m: self.any_water(m[1])),
            ("water", rf"^{_LOCATED}(on|along|at|by|in|near|close to|next to|across|adjacent to|beside|bordering|facing) (?:the )?(?:{_DIR} )?(?:banks?|shores?|shoreline|edge|mouth|side|bank)? ?(?:of )?(?:the )?(.+)$", lambda m: self.named_water(m[1], m[2])),
            ("island", rf"^{_LOCATED}(?:on|in) (?:an|one of the|its own) islands?(?: nation| country| city)?$|^(?:an )?island(?: city| nation)?$", lambda m: self.on_island()),
            ("island", rf"^{_LOCATED}(?:on|in) (?:a )?(?:group of islands|archipelago|island (?:nation|country))$", lambda m: self.facts.country.name in ISLAND_COUNTRIES or None),
            ("equator", rf"^{_LOCATED}(?:near|close to|on|along) the equator$", lambda m: between(abs(self.facts.latitude), 7, 13)),
            ("hemisphere", rf"^{_LOCATED}(?:in|within) the (north|south|east|west)(?:ern)? hemisphere$", lambda m: self.hemisphere(m[1])),
            ("tropics", rf"^{_LOCATED}in (?:the tropics|a tropical (?:region|area|zone|country))$", lambda m: between(abs(self.facts.latitude), 22.6, 24.5)),
            ("altitude", rf"^{_LOCATED}(?:at|in|on) (?:a |an )?(?:very |relatively )?(?:high|higher|significant)(?: altitude| elevation| altitude above sea level| elevation above sea level)$|^have a (?:high|higher) (?:altitude|elevation)$", lambda m: not_(between(self.facts.elevation, 500, 850))),
            ("altitude", rf"^{_LOCATED}(?:at|near|below) sea level$", lambda m: between(self.facts.elevation, 26, 60)),
            ("border", rf"^{_LOCATED}(?:near|close to|on|at|along) (?:the |a |any )?(?:{_DIR} )?(?:international )?borders?(?: (?:with|of|to|between|shared with))? ?(.*)$", lambda m: self.border(m[1])),
            ("mountain", rf"^{_LOCATED}(?:in|near|at|on|close to|along|at the foot of|within|by|surrounded by|next to)(?: the)? (?:foot of |foothills of |base of |slopes of )?(?:the |a )?(.+)$", lambda m: self.places.near_mountain(m[1]) if m[1] in ranges() else None),
            ("in", rf"^{_LOCATED}(?:in|within|inside|on|part of|from|at) (?:the )?(?:same )?(?:continent of |country of |main island of |island of |subcontinent of )?(.+)$", lambda m: self.within(m[1])),
            ("in", r"^(?:a |an )?(?:city |town |part |place |located )+(?:in|of|within) (?:the )?(.+)$", lambda m: self.within(m[1])),
            ("in", r"^(?:an? )?([a-z]+) (?:city|town)$", lambda m: self.adjective(m[1])),
            ("near", rf"^{_LOCATED}(?:near|close to|next to|nearby|in (?:the vicinity of|close proximity to)|adjacent to|in the proximity of|within (?:a )?(?:short|driving) distance (?:of|from)|not far from|just outside) (?:the )?(.+)$", lambda m: self.near(m[1])),
            ("capital", r"^(?:a |the )?(?:current )?(?:national )?capital(?: city)?(?: (?:of|for|in) (?:the |its |a |their )?(?:own )?(.+))?$", lambda m: self.capital(m[1])),
            ("capital", r"^(?:a |the |its )?(?:provincial|state|regional|prefectural|departmental) capital(?: (?:city )?(?:of|in) (?:the |its )?(.+))?$", lambda m: self.capital(m[1] or "province")),
            ("capital", r"^(.+?)s? capital(?: city)?$", lambda m: self.capital(m[1]) if m[1] in regions() else None),
            ("population", rf"^(?:have )?(?:a |its |the )?(?:total |current |large )?population(?: size)? (?:of |that is )?(?:is )?(over|more than|greater than|larger than|above|exceeding|at least|higher than|bigger than|of over|of more than|less than|under|below|fewer than|smaller than|lower than|at most) {_NUMBER}(?: people| inhabitants| residents)?$", lambda m: self.population(m[1], m[2], m[3])),
            ("population", rf"^(?:have )?(over|more than|at least|less than|under|below|fewer than) {_NUMBER} (?:people|inhabitants|residents)?$", lambda m: self.population(m[1], m[2], m[3])),
            ("population", rf"^population ?(?:size )?(over|more than|greater than|larger than|above|exceed|exceeding|at least|less than|under|below|fewer than) {_NUMBER}(?: people| inhabitants| residents)?$", lambda m: self.population(m[1], m[2], m[3])),
            ("population", r"^(?:have )?(?:a |an )?(?:very |relatively |particularly )?(large|big|high|small|low|dense)(?: and dense| and diverse)? ?population(?: density| size)?$|^(?:very |a )?(densely|highly|sparsely)(?: |-)populated(?: city| area)?$", lambda m: self.big(m[1] or m[2])),
            ("size", r"^(?:a |the )?(?:very )?(large|big|major|huge|small|tiny|medium sized|mid sized|metropolitan|populous|mega)(?: ?city| town| metropolis| village| metropolitan (?:city|area)| urban (?:center|area))?$", lambda m: self.big(m[1])),
            ("size", r"^(?:a )?(metropolis|megacity|mega city|village|small town|rural area|town)$", lambda m: self.big(m[1])),
            ("rank", r"^(?:the )?(?:(second|third|fourth|fifth|sixth|2nd|3rd|4th) )?(?:largest|most populous|biggest|most populated)(?: and most populous)?(?: city| metropolis| urban area| metropolitan area)?(?: (?:in|of) (?:terms of population in )?(?:the )?(.+?))?(?: (?:by|in terms of) population)?$", lambda m: self.rank(m[1], m[2])),
            ("rank", r"^one of (?:the )?(?:largest|biggest|most populous|most populated|largest and most populous|major)(?: and most \w+)? (?:cities|metropolitan areas|urban areas|metropolises)(?: (?:in|of) (?:the )?(.+))?$", lambda m: self.among(m[1])),
            ("language", r"^(?:in )?(?:a |an )?(.+?)[ -]speaking(?: country| city| region| nation| area)?$", lambda m: self.speaks(m[1])),
        ]  # fmt: skip

    # -- coast and water ---------------------------------------------------------------------

    def coastal(self) -> bool | None:
        return {"yes": True, "no": False, "near": None, "lake": None}[self.facts.coast]

    def coast_part(self, direction: str, scope: str) -> bool | None:
        if self.facts.coast in {"no", "lake"}:
            return False
        inside = True if scope == "COUNTRY" else self.places.within(scope)
        if not inside:
            return inside
        part = self.places.within(f"{direction} part of {scope}")
        return part if self.facts.coast == "yes" or part is False else None

    def coast_of(self, name: str) -> bool | None:
        water = self.places.on_water(name, near=False)
        if water is not None and (name in waters()):
            return water and (True if self.facts.coast == "yes" else None)
        inside = self.places.within(name)
        return self.coastal() if inside else inside

    def named_coast(self, direction: str | None, name: str, scope: str | None) -> bool | None:
        sea = {"mediterranean", "caribbean", "black sea", "aegean", "pacific", "atlantic",
               "baltic", "gulf", "java sea", "adriatic", "yellow sea", "red sea"}  # fmt: skip
        if self.facts.coast in {"no", "lake"}:
            return False
        if name in sea or name in waters():
            on = any(
                self.places.on_water(form, near=False)
                for form in (name, f"{name} sea", f"{name} ocean")
            )
            if not on:
                return False if name != "gulf" else None
            inside = self.places.within(scope) if scope else True
            return (True if self.facts.coast == "yes" else None) if inside else inside
        inside = self.places.within(name)
        if not inside or not direction:
            return self.coastal() if inside else inside
        return self.coast_part(direction, name)

    def any_water(self, kind: str) -> bool | None:
        facts = self.facts
        sea, lake, river = facts.coast != "no", bool(facts.lakes.sure), bool(facts.rivers.sure)
        if "bod" in kind or "coast" in kind or "waterway" in kind:
            return True if sea or lake or river else None
        if "river" in kind and "lake" in kind:
            return True if river or lake else None
        if kind in {"ocean", "sea", "bay", "gulf"}:
            return {"yes": True, "no": False}.get(facts.coast)
        if kind == "river" or kind == "rivers":
            return True if river else None
        return True if kind.startswith("lake") and (lake or facts.coast == "lake") else None

    def named_water(self, relation: str, name: str) -> bool | None:
        name = re.sub(r"^(?:the )?(?:coast of |banks of |shores of |mouth of )?(?:the )?", "", name)
        name = re.sub(r"^river (\w+)$", r"\1 river", name) if name not in waters() else name
        near = relation in {"near", "close to", "by", "next to"}
        known = name in waters()
        if known:
            return self.places.on_water(name, near=near)
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
                r"\b(?:a|any|major|large|famous|big|main|significant|beautiful|scenic)\b", name
            )
            return None if generic else False
        return None

    def on_island(self) -> bool | None:
        facts = self.facts
        if facts.country.name in ISLAND_COUNTRIES or facts.city.name in {"Taipei"}:
            return True
        return (
            None
            if facts.city.name in {"Hong Kong", "New York", "Abidjan", "St Petersburg", "London"}
            else False
        )

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

    # -- in and near ---------------------------------------------------------------------------

    def within(self, phrase: str) -> bool | None:
        phrase = re.sub(r" (?:or is it .*|rather than .*|as opposed to .*)$", "", phrase)
        parts = re.split(r" or |,", phrase)
        if len(parts) > 1 and all(self.places.within(p) is not None for p in parts if p.strip()):
            return any_of([self.places.within(p) for p in parts if p.strip()])
        country = re.match(
            r"^(?:a |an )?(?:country|nation)(?: that| which| whose| where| with)? ?(.*)$", phrase
        )
        if country:
            return self.country_claim(country[1], phrase)
        speaking = re.match(r"^(?:a |an )?(.+?) speaking (?:country|region|nation|area)$", phrase)
        if speaking:
            return self.speaks(speaking[1])
        if re.match(r"^(?:a |an )?landlocked (?:country|nation)$", phrase):
            return self.facts.country.waters.sure == frozenset()
        if re.match(r"^(?:a |an )?(?:island|archipelago)(?: (?:country|nation))?$", phrase):
            return self.facts.country.name in ISLAND_COUNTRIES
        return self.places.within(phrase)

    def country_claim(self, rest: str, phrase: str) -> bool | None:
        country = self.facts.country
        rest = re.sub(r"^(?:is|was|has|have|are) ", "", rest)
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
            rf"^(?:a )?population (?:of )?(over|more than|less than|under) {_NUMBER}(?: people)?$",
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

    def adjective(self, word: str) -> bool | None:
        """`a european city`, `an indian city`, `a coastal city`."""
        place = DEMONYMS.get(word)
        return self.places.within(place) if place else None

    def near(self, phrase: str) -> bool | None:
        parts = [part for part in re.split(r" or |,| and ", phrase) if part.strip()]
        return any_of([self._near_one(part.strip()) for part in parts])

    def _near_one(self, name: str) -> bool | None:
        name = re.sub(r"^(?:the|a|any) ", "", name)
        for check in (self.places.near_mountain, self.places.near_town):
            result = check(name)
            if result is not None:
                return result
        water = self.places.on_water(name, near=True)
        if water is not None:
            return water
        head, _, tail = name.rpartition(" ")
        if (
            tail in {"indonesia", "china", "japan", "india", "egypt", "turkey", "brazil"}
            and head in towns()
        ):
            return self.places.near_town(head)
        return self.topics.near(name)

    def hemisphere(self, side: str) -> bool | None:
        value = self.facts.latitude if side in {"north", "south"} else self.facts.longitude
        if abs(value) < 0.3:
            return None
        return (value > 0) == (side in {"north", "east"})

    # -- capital, size ----------------------------------------------------------------------------

    def national(self) -> bool:
        """Whether the city is the capital of its country."""
        return bool(self.places.own & self.facts.country.capital)

    def capital(self, of: str | None) -> bool | None:
        own_country = self.places.country_names | {
            "own country", "country it is in", "a country", "nation", "country it is located in",
            "country COUNTRY", "any country", "its country", "their country", "current country",
        }  # fmt: skip
        if of is None:
            return True if self.national() else None if self.provincial() else False
        of = re.sub(
            r"^(?:its|a|the|any|country of|nation of) |(?: it is located in| where it is located| in which it is located| or region)$",
            "",
            of,
        ).strip(" ,")
        of = re.sub(r"^(?:country of|nation of|state of (?=brazil$))", "", of).strip()
        if of in own_country:
            return self.national()
        if of in self.places.own:
            return self.national() if of in self.facts.country.names else None
        core = re.sub(
            r"^(?:own )?(?:state|province|region|department|prefecture|governorate|island)(?: or \w+)?(?: of (?:the )?)?|(?: province| state| region| department| prefecture| governorate)(?: (?:in|of) .+)?$",
            "",
            of,
        )
        if core.strip() in {"", "COUNTRY", "or region", "or state"}:
            return self.provincial()
        names = {of, core.strip(), f"state of {core.strip()}"}
        if names & self.facts.capital_of:
            return True
        return False if core.strip() in regions() or of in regions() else None

    def provincial(self) -> bool:
        """Whether the city is the capital of its province or state."""
        own = self.facts.capital_of - self.facts.country.names
        return bool(own) and not own <= {"soviet union", "roman empire", "aztec empire"}

    def population(self, comparator: str, digits: str, scale: str | None) -> bool | None:
        bound = number(digits, scale)
        low, high = self.facts.population, self.facts.population * 1.9
        more = True if low > bound else False if high < bound else None
        less_words = {
            "less than",
            "under",
            "below",
            "fewer than",
            "smaller than",
            "lower than",
            "at most",
        }
        return not_(more) if comparator in less_words else more

    def big(self, word: str) -> bool | None:
        people = self.facts.population
        if word in {
            "small",
            "low",
            "tiny",
            "sparsely",
            "village",
            "small town",
            "rural area",
            "town",
        }:
            return False if people >= 0.8 else None
        if word in {"medium sized", "mid sized"}:
            return None if people < 3 else False
        if word in {"megacity", "mega city", "mega", "huge"}:
            return True if people >= 9 else False if people < 4 else None
        return True if people >= 1 else None

    def rank(self, ordinal: str | None, scope: str | None) -> bool | None:
        place = _ORDINALS[ordinal] if ordinal else 1
        scope = re.sub(r"^(?:its|own) ", "", scope or "COUNTRY")
        if scope in self.places.country_names:
            if self.facts.rank is None:
                return False if place <= 3 else None
            return self.facts.rank == place if self.facts.rank <= 3 or place <= 2 else None
        inside = self.places.within(scope)
        if inside is False:
            return False
        listed = LARGEST.get(scope)
        if listed is not None and ordinal is None:
            return listed == self.facts.city.name
        return None

    def among(self, scope: str | None) -> bool | None:
        if scope is None or scope in {"world", "planet"}:
            return (
                True if self.facts.population >= 9 else False if self.facts.population < 2 else None
            )
        inside = self.places.within(scope) if scope not in self.places.country_names else True
        if not inside:
            return inside
        return True if self.facts.population >= 3 or (self.facts.rank or 99) <= 10 else None

    # -- country -------------------------------------------------------------------------------

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
        past = own if own is not None else frozenset(self.facts.country.text["ruled_by"].split("|"))
        return rulers.get(ruler, ruler) in past


ISLAND_COUNTRIES = {"Indonesia", "Japan", "Philippines", "Cuba", "Singapore", "UK"}
BORDER_CITIES: dict[str, tuple[str, ...]] = {
    "Lahore": ("india",),
    "Kinshaha": ("republic of the congo", "republic of congo", "congo brazzaville", "congo"),
    "Singapore": ("malaysia",),
    "Buenos Aires": ("uruguay",),
    "Tashkent": ("kazakhstan",),
}
DEEP_INLAND = {
    "Moscow", "Madrid", "Ankara", "Tehran", "Baghdad", "Wuhan", "Xian", "Delhi", "Bangalore",
    "Hyderabad", "Brasilia", "Belo Horizonte", "Bogota", "Medellin", "Mexico City", "Addis Ababa",
    "Kanpur", "Shanghai", "Nanjing", "Jinan", "Chengdu", "Chongqing", "Zibo", "Taiyuan", "Beijing",
    "Tianjin", "Qingdao", "Madras", "Sydney", "Paris", "Rome", "Lima", "Caracas", "Sao Paulo",
    "Rio de Janeiro", "Salvador", "Fortaleza", "Abidjan", "Casablanca", "Cairo", "Alexandria",
    "Giza", "Chicago", "New York", "Izmir", "Istanbul", "Karachi", "Bangkok", "Bombay", "Ahmedabad",
}  # fmt: skip
LARGEST = {
    "africa": "", "asia": "", "europe": "Istanbul", "south america": "Sao Paulo",
    "north america": "Mexico City", "world": "Tokyo", "latin america": "", "texas": "Houston",
    "california": "Los Angeles", "southeast asia": "", "maharashtra": "Bombay",
    "west bengal": "Calcutta", "tamil nadu": "Madras", "karnataka": "Bangalore",
    "telangana": "Hyderabad", "gujarat": "Ahmedabad", "sindh": "Karachi", "punjab": "Lahore",
    "west java": "Bandung", "east java": "Surabaya", "central java": "Semarang",
    "java": "Jakarta", "sumatra": "Medan", "north sumatra": "Medan", "illinois": "Chicago",
    "ontario": "Toronto", "new south wales": "Sydney", "oceania": "Sydney",
    "antioquia": "Medellin", "valle del cauca": "Cali", "minas gerais": "Belo Horizonte",
    "bahia": "Salvador", "ceara": "Fortaleza", "hubei": "Wuhan", "sichuan": "Chengdu",
    "shaanxi": "Xian", "guangdong": "Guangzhou", "heilongjiang": "Haerbin", "jilin": "Changchun",
    "liaoning": "Shenyang", "shanxi": "Taiyuan", "midwest": "Chicago", "caribbean": "",
    "taiwan": "", "kansai region": "Osaka", "chubu region": "Nagoya", "middle east": "",
}  # fmt: skip
COLONIES: dict[str, frozenset[str]] = {
    "Hong Kong": frozenset({"britain", "japan"}),
    "Taipei": frozenset({"japan"}),
    "Qingdao": frozenset({"germany", "japan"}),
    "Dalian": frozenset({"japan", "russia"}),
    "Shenyang": frozenset({"japan"}),
    "Changchun": frozenset({"japan"}),
    "Haerbin": frozenset({"japan"}),
    "Casablanca": frozenset({"france", "portugal"}),
    "Quezon City": frozenset({"spain", "united states", "japan"}),
    "Los Angeles": frozenset({"spain"}),
    "Houston": frozenset(),
    "Chicago": frozenset({"france", "britain"}),
    "New York": frozenset({"britain", "netherlands"}),
    "Bombay": frozenset({"britain", "portugal"}),
}
LANGUAGES = {
    "english", "spanish", "portuguese", "french", "german", "italian", "russian", "arabic",
    "chinese", "mandarin", "cantonese", "japanese", "korean", "hindi", "urdu", "bengali", "tamil",
    "telugu", "kannada", "marathi", "gujarati", "punjabi", "turkish", "persian", "farsi", "thai",
    "vietnamese", "indonesian", "malay", "javanese", "sundanese", "tagalog", "filipino", "burmese",
    "hungarian", "romanian", "ukrainian", "polish", "dutch", "greek", "hebrew", "swahili",
    "amharic", "uzbek", "kurdish", "pashto", "sindhi", "malayalam", "lingala", "quechua",
}  # fmt: skip
DEMONYMS = {
    "european": "europe", "asian": "asia", "african": "africa", "chinese": "china",
    "indian": "india", "japanese": "japan", "korean": "south korea", "brazilian": "brazil",
    "russian": "russia", "indonesian": "indonesia", "american": "united states",
    "german": "germany", "french": "france", "italian": "italy", "spanish": "spain",
    "turkish": "turkey", "egyptian": "egypt", "iranian": "iran", "iraqi": "iraq",
    "mexican": "mexico", "colombian": "colombia", "canadian": "canada", "british": "uk",
    "australian": "australia", "pakistani": "pakistan", "thai": "thailand",
    "vietnamese": "vietnam", "ukrainian": "ukraine", "romanian": "romania",
    "hungarian": "hungary", "peruvian": "peru", "chilean": "chile", "cuban": "cuba",
    "moroccan": "morocco", "mediterranean": "mediterranean region",
    "scandinavian": "scandinavia", "caribbean": "caribbean",
}  # fmt: skip


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


def number(digits: str, scale: str | None) -> float:
    """A number in millions from its words or digits."""
    value = _WORD_NUMBERS[digits] if digits in _WORD_NUMBERS else float(digits.strip(".") or 0)
    return value * _SCALES[scale]
