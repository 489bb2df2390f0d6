"""Yes/no claims about one city: location, size, capital status, country, topics.

A `Claim` is the plain text after the verb ("located in asia", "the capital of COUNTRY", "known for
its beaches"), read once for all cities; `Claims.truth` says of one city True, False, or None where
that is not known.
"""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from aria_dvc.oracles.city.country import CountryClaims
from aria_dvc.oracles.city.distance import BEYOND, COUNT, MEASURED, UNIT, WITHIN, Distances
from aria_dvc.oracles.city.facts import CityFacts
from aria_dvc.oracles.city.gazetteer import ranges, regions, towns
from aria_dvc.oracles.city.lists import CLUBS, DEMONYMS, LARGEST
from aria_dvc.oracles.city.logic import (
    DEBATABLE,
    NUMBER,
    Debatable,
    all_of,
    any_of,
    between,
    millions,
    not_,
    settled,
)
from aria_dvc.oracles.city.places import Places
from aria_dvc.oracles.city.topics import Phrase, Topics
from aria_dvc.oracles.city.water import WaterClaims

_LOCATED = (
    r"(?:(?:\w+ly )?(?:located|situated|found|based|set|positioned|lying|lie|sit|nestled|built) )?"
)
_HEDGE = re.compile(
    r"\b(?:also|actually|currently|generally|considered|considered to be|typically|primarily|"
    r"mainly|mostly|specifically|perhaps|maybe|possibly|directly|officially|indeed|in fact|"
    r"by any chance|geographically|right|just|internationally|especially|particularly|widely|"
    r"commonly|often|well|very|really|today|nowadays|more(?! than)|still)\b"
)
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

_JOINED = re.compile(
    r"^(.+?)(?: ,)? (and|or) (?:is|are|was|does|do|has) (?:(?:it|CITY|there) )?(?:also )?(?!not\b)(.+)$"
)
_ONCE = r"(?:(?:once|formerly|previously|ever|historically|the former|a former|former|in the past|used to be) )+"
_PAST = re.compile(r"\b(?:former|formerly|previously|used to be)\b")
_STILL = re.compile(r"^once (?!.*\b(?:capital|colony|colonial|territory|protectorate|empire|by)\b)")
_FINAL = frozenset(
    "former in capital population coast hemisphere rank island equator tropics altitude distance".split()
)
"""Topics whose rules understand the whole claim: unknown there is unknown everywhere."""


class Claim:
    """A claim in plain form, the same for every city: read once, when asked for."""

    def __init__(self, said: str) -> None:
        text = re.sub(r"\s+", " ", _HEDGE.sub("", said)).strip(" ,")
        self.text = _STILL.sub("", text)

    @cached_property
    def halves(self) -> tuple[Claim, str, Claim] | None:
        """Two claims and the "and" or "or" between them."""
        joined = _JOINED.match(self.text)
        return (Claim(joined[1]), joined[2], Claim(joined[3])) if joined else None

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """The rules that the claim fits, in their order."""
        found = ((topic, check, pattern.match(self.text)) for topic, pattern, check in _RULES)
        return tuple(Fit(topic, check, match) for topic, check, match in found if match)

    @cached_property
    def phrase(self) -> Phrase:
        """The whole claim as something that a city may be known for."""
        return Phrase(self.text)


class Fit:
    """A claim as one rule reads it; `[1]` is the first group of the rule's pattern."""

    def __init__(self, topic: str, check: Check, match: re.Match[str]) -> None:
        self.topic, self.check, self._match = topic, check, match

    def __getitem__(self, group: int) -> Any:  # as of a match: str, or None where it took no part
        return self._match[group]

    @cached_property
    def phrase(self) -> Phrase:
        """The first group as something that a city may be known for."""
        return Phrase(self[1])

    @cached_property
    def names(self) -> tuple[Phrase, ...]:
        """The places and sights that the first group names, without articles."""
        parts = [part.strip() for part in re.split(r" or |,| and ", self[1]) if part.strip()]
        return tuple(Phrase(re.sub(r"^(?:the|a|any) ", "", part)) for part in parts)


class Claims:
    """Truth of statements about one city."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts
        self.places = Places(facts)
        self.distances = Distances(facts)
        self.topics = Topics(facts)
        self.water = WaterClaims(facts, self.places)
        self.country = CountryClaims(facts, self.places)

    def truth(self, claim: Claim) -> tuple[bool | None, str]:
        """Truth and topic of a claim."""
        if claim.halves:
            first, joint, second = claim.halves
            (value, topic), (other, _) = self.truth(first), self.truth(second)
            return (all_of if joint == "and" else any_of)([value, other]), topic
        for fit in claim.fits:
            result = fit.check(self, fit)
            if result is DEBATABLE:
                return None, fit.topic
            if result is not None or fit.topic in _FINAL:
                return result, fit.topic
        return self.topics.truth(claim.phrase), "topic"

    # -- in and near ---------------------------------------------------------------------------

    def within(self, phrase: str) -> bool | None:
        """Whether the city lies in a place, or in a country of some kind."""
        phrase = re.sub(r" (?:or is it .*|rather than .*|as opposed to .*)$", "", phrase)
        if phrase in CLUBS:
            return self.country.claim(f"in {phrase}")
        if " or " in phrase:
            values = [self.places.within(p) for p in re.split(r" or |,", phrase) if p.strip()]
            if None not in values:
                return any_of(values)
        country = re.match(
            r"^(?:a |an )?(?:country|nation)(?: that| which| whose| where| with)? ?(.*)$", phrase
        )
        if country:
            return self.country.claim(country[1])
        speaking = re.match(r"^(?:a |an )?(.+?) speaking (?:country|region|nation|area)$", phrase)
        if speaking:
            return self.country.speaks(speaking[1])
        kind = re.match(r"^(?:a |an )?(\w+) (?:country|nation)$", phrase)
        if kind:
            return self._country_kind(kind[1])
        if re.match(r"^(?:a |an )?(?:island|archipelago)(?: (?:country|nation))?$", phrase):
            return self.facts.country.islands
        return self.places.within(phrase)

    def _country_kind(self, word: str) -> bool | None:
        if word == "landlocked":
            return self.facts.country.landlocked
        if word == "mediterranean":
            return self.facts.country.waters.has("mediterranean sea")
        if word in {"island", "archipelago"}:
            return self.facts.country.islands
        return self.adjective(word) if word in DEMONYMS else self.country.claim(word)

    def adjective(self, word: str) -> bool | None:
        """`a european city`, `an indian city`, `a coastal city`."""
        place = DEMONYMS.get(word)
        return self.places.within(place) if place else None

    def near(self, names: Sequence[Phrase]) -> bool | None:
        """Whether the city lies near one of the named towns, mountains, waters or sights."""
        return any_of([self._near_one(named) for named in names])

    def _near_one(self, named: Phrase) -> bool | None:
        name = named.text
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
        return self.topics.near(named)

    def hemisphere(self, side: str) -> bool | None:
        """`side` is north, south, east or west."""
        value = self.facts.latitude if side in {"north", "south"} else self.facts.longitude
        if abs(value) < 0.3:
            return None
        return (value > 0) == (side in {"north", "east"})

    def tropical(self, bound: float) -> bool | None:
        """True up to the tropics at 23.44 degrees, False beyond `bound`; towns reach some way."""
        return between(abs(self.facts.latitude), 23.3, bound)

    # -- capital, size ----------------------------------------------------------------------------

    def national(self) -> bool:
        """Whether the city is the capital of its country."""
        return bool(self.places.own & self.facts.country.capital)

    def capital(self, of: str | None) -> bool | None:
        """Whether the city is the capital of a country, state or province; None for "of" nothing."""
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

    def city_state(self) -> bool:
        """Whether the city is a country of its own."""
        return bool(self.places.own & self.facts.country.names)

    def former_capital(self, of: str | None, ended: bool) -> bool | None:
        """Whether the city was or is the capital of a country or state; `ended`: is no longer."""
        past, names = self.facts.former_capital, self.facts.country.names
        if ended and self.national() and (of is None or of in self.places.country_names | names):
            return None if past.sure | past.unsure | (self.facts.capital_of - names) else False
        if of is None or of in self.places.country_names:
            debatable = bool(past.sure | past.unsure)
            return self.national() or bool(past.sure & names) or (None if debatable else False)
        if of in past.sure | self.facts.capital_of:
            return True
        if of in past.unsure:
            return None
        return False if of in regions() else None

    def provincial(self) -> bool:
        """Whether the city is the capital of its province or state."""
        own = self.facts.capital_of - self.facts.country.names
        return bool(own) and not own <= {"soviet union", "roman empire", "aztec empire"}

    def population(self, comparator: str, digits: str, scale: str | None) -> bool | None:
        """Whether the number of inhabitants, with or without suburbs, compares so."""
        bound = millions(digits, scale)
        if bound is None:
            return None
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
        """Whether a word of size ("large", "megacity", "village") fits."""
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
        """Whether the city is the largest, second largest, ... of a place."""
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
        """Whether the city is one of the largest of a place."""
        if scope is None or scope in {"world", "planet"}:
            return (
                True if self.facts.population >= 9 else False if self.facts.population < 2 else None
            )
        inside = self.places.within(scope) if scope not in self.places.country_names else True
        if not inside:
            return inside
        return True if self.facts.population >= 3 or (self.facts.rank or 99) <= 10 else None


# -- rules, tried in order: topic, pattern of the whole claim, check ----------------------------

Check = Callable[[Claims, Fit], "bool | Debatable | None"]
Rule = tuple[str, str, Check]

_COAST = r"(?:a |the )?(?:coast(?:al)?(?:line)?(?: (?:area|region|city|town|line|location))?|sea(?:side|shore)?|ocean(?:front)?|beach)"
_BY_THE_WATER: list[Rule] = [
    ("coast", rf"^{_LOCATED}(?:directly )?(?:on|in|along|at|by|right on) {_COAST}$", lambda c, m: c.water.coastal()),
    ("coast", r"^(?:a |an )?(?:major )?(?:coastal|seaside)(?: (?:city|town|location|area|region))?$", lambda c, m: c.water.coastal()),
    ("coast", r"^(?:have )?(?:a |any )?(?:coastline|coast|access to the (?:sea|ocean)|sea access|seafront|shoreline)$", lambda c, m: c.water.coastal()),
    ("coast", rf"^{_LOCATED}(?:near|close to|by) {_COAST}$", lambda c, m: c.facts.coast in {"yes", "near"}),
    ("coast", rf"^{_LOCATED}(?:(?:in )?(?:a )?)?(?:inland|landlocked|in the interior)(?: (?:city|area|region|location|town))?$", lambda c, m: not_(c.water.coastal())),
    ("coast", rf"^{_LOCATED}on (?:the |a )?(?:far )?({_DIR}) coast(?:line)? of (?:the )?(.+)$", lambda c, m: c.water.coast_part(m[1], m[2])),
    ("coast", rf"^{_LOCATED}on (?:the )?({_DIR}) coast(?:line)?$", lambda c, m: c.water.coast_part(m[1], "COUNTRY")),
    ("coast", rf"^{_LOCATED}(?:on|along) the coast(?:line)? of (?:the )?(.+)$", lambda c, m: c.water.coast_of(m[1])),
    ("coast", rf"^{_LOCATED}(?:on|along) (?:the )?(?:({_DIR}) )?([a-z ]+?) (?:coast|coastline)(?: of (.+))?$", lambda c, m: c.water.named_coast(m[1], m[2], m[3])),
    ("water", rf"^{_LOCATED}(?:on|along|at|by|in|near|close to|next to|border|face|have access to) (?:the )?(?:(?:{_DIR} )?(?:banks?|shores?|shoreline|edge|mouth|side)(?: of| to)? )?(?:an |a |any |the )?(?:major |large |big |famous |significant |main |well known |important )*(river|lake|ocean|sea|body of water|bodies of water|waterway|canal|bay|gulf|river or lake|lake or river|river or body of water|rivers or bodies of water|river or coastline|rivers|lakes|coast or (?:a )?(?:major )?body of water|coastline or (?:a )?(?:major )?body of water|coast or body of water)s?$", lambda c, m: c.water.any_water(m[1])),
    ("water", rf"^{_LOCATED}(on|along|at|by|in|near|close to|next to|across|adjacent to|beside|bordering|facing|border|face) (?:the )?(?:(?:{_DIR} )?(?:banks?|shores?|shoreline|edge|mouth|side)(?: of)? )?(?:the )?(.+)$", lambda c, m: c.water.named_water(m[1], m[2])),
    ("island", rf"^{_LOCATED}(?:on|in) (?:an|one of the|its own) islands?(?: nation| country| city)?$|^(?:an )?island(?: city| nation)?$", lambda c, m: c.water.on_island()),
    ("island", rf"^{_LOCATED}(?:on|in) (?:an? )?(?:group of islands|archipelago|island (?:nation|country))$", lambda c, m: c.facts.country.islands or (False if not c.facts.text.get("island") else None)),
]  # fmt: skip
_AWAY = rf"(?:about |around |approximately |roughly )?{COUNT} ?{UNIT}((?: [a-z]+){{0,3}}?) (?:of|from|to) (?:the )?(.+)$"
_DISTANCES: list[Rule] = [
    ("distance", rf"^{_LOCATED}(?:{WITHIN}) {_AWAY}", lambda c, m: c.distances.within(m[1], m[2], m[3], m[4])),
    ("distance", rf"^{_LOCATED}(?:{BEYOND}) {_AWAY}", lambda c, m: c.distances.beyond(m[1], m[2], m[3], m[4])),
    ("distance", r"^(?:much |located )*(?:closer|nearer) to (?:the )?(.+?) than (?:it is )?(?:to )?(?:the )?(.+)$", lambda c, m: c.distances.closer(m[1], m[2])),
    ("distance", r"^(?:much |located )*(?:closer|nearer|closest|nearest) to .+$", lambda c, m: None),
    ("distance", rf"^{_LOCATED}(?:(?:with)?in (?:the |a |an )?(?:close |immediate |near )?(?:vicinity|proximity)|within (?:a |an )?short distance) (?:of|from|to) (?:the )?(.+)$", lambda c, m: c.near(m.names)),
    ("distance", rf"^{_LOCATED}within (?:a |an )?(?:easy )?(?:driving|commuting) distance (?:of|from|to) (?:the )?(.+)$", lambda c, m: c.near(m.names) or c.distances.drivable(m[1])),
    ("reach", rf"^{_LOCATED}within (.+)$", lambda c, m: DEBATABLE if MEASURED.search(m[1]) else None),
]  # fmt: skip
_IN_PLACES: list[Rule] = [
    ("equator", rf"^{_LOCATED}(?:near|close to|on|along) the equator$", lambda c, m: between(abs(c.facts.latitude), 7, 13)),
    ("hemisphere", rf"^{_LOCATED}(?:in|within) the (north|south|east|west)(?:ern)? hemisphere$", lambda c, m: c.hemisphere(m[1])),
    ("hemisphere", rf"^{_LOCATED}(north|south) of the equator$", lambda c, m: c.hemisphere(m[1])),
    ("climate", rf"^{_LOCATED}in (?:a |an )?((?:\w+ )+climate)(?: zone)?$", lambda c, m: c.topics.truth(m.phrase)),
    ("altitude", rf"^{_LOCATED}(?:at )?(?:an )?(?:elevation |altitude )?(?:of )?(?:above|over|more than|higher than) (\d+) (?:meters|metres|m)(?: above sea level| high)?$", lambda c, m: c.facts.elevation > int(m[1])),
    ("climate", r"^(?:a )?tropical(?: city| place| there)?$", lambda c, m: c.topics.truth(Phrase("tropical climate"))),
    ("tropics", rf"^{_LOCATED}(?:in|within|between) the tropics$", lambda c, m: c.tropical(23.9)),
    ("tropics", rf"^{_LOCATED}in a tropical (?:region|area|zone|country)$", lambda c, m: c.tropical(27)),
    ("altitude", rf"^{_LOCATED}(?:at|in|on) (?:a |an )?(?:very |relatively )?(?:high|higher|significant)(?: altitude| elevation| altitude above sea level| elevation above sea level)$|^have a (?:high|higher) (?:altitude|elevation)$", lambda c, m: not_(between(c.facts.elevation, 500, 850))),
    ("altitude", rf"^{_LOCATED}(?:at|near|below) sea level$", lambda c, m: between(c.facts.elevation, 26, 60)),
    ("border", rf"^{_LOCATED}(?:near|close to|on|at|along) (?:the |a |any )?(?:{_DIR} )?(?:international )?borders?(?: (?:with|of|to|between|shared with))? ?(.*)$", lambda c, m: c.country.border(m[1])),
    ("mountain", rf"^{_LOCATED}(?:in|near|at|on|close to|along|at the foot of|within|by|surrounded by|next to)(?: the)? (?:foot of |foothills of |base of |slopes of )?(?:the |a )?(.+)$", lambda c, m: settled(c.places.near_mountain(m[1])) if m[1] in ranges() else None),
    ("continents", rf"^{_LOCATED}(?:span|spans|straddles?|covers?|lie|connects?|bridges?|spread|spanning|straddling|connecting)? ?(?:on|in|across|over|between)? ?(?:more than one|(?:both of )?(?:two|2|multiple|several)(?: different)?) continents?(?: at once)?$", lambda c, m: "continents" in c.facts.text),
    ("state", r"^(?:an? )?(?:independent |sovereign )?city(?: ?state| and a country| nation)$", lambda c, m: c.city_state()),
    ("in", rf"^{_LOCATED}(?:in|within|inside|on|part of|from|at) (?:the )?(?:same )?(?:continent of |country of |main island of |island of |subcontinent of )?(.+)$", lambda c, m: c.within(m[1])),
    ("in", r"^(?:a |an )?(?:city |town |part |place |located )+(?:in|of|within) (?:the )?(.+)$", lambda c, m: c.within(m[1])),
    ("kind", r"^(?:an? )?([a-z]+) (?:city|town)$", lambda c, m: c.adjective(m[1])),
    ("near", rf"^{_LOCATED}(?:near|close to|next to|nearby|adjacent to|not far from|just outside) (?:the )?(.+)$", lambda c, m: c.near(m.names)),
]  # fmt: skip
_OF_RANK_AND_SIZE: list[Rule] = [
    ("capital", r"^(?:a |the )?(?:current )?(?:national )?capital(?: city)?(?: (?:of|for|in) (?:the |its |a |their )?(?:own )?(.+))?$", lambda c, m: c.capital(m[1])),
    ("capital", r"^(?:a |the |its )?(?:provincial|state|regional|prefectural|departmental) capital(?: (?:city )?(?:of|in) (?:the |its )?(.+))?$", lambda c, m: c.capital(m[1] or "province")),
    ("former", rf"^{_ONCE}(?:the |a )?capital(?: city)?(?: of (?:the )?(.+))?$", lambda c, m: c.former_capital(m[1], _PAST.search(m[0]) is not None)),
    ("capital", r"^(.+?)s? capital(?: city)?$", lambda c, m: c.capital(m[1]) if m[1] in regions() else None),
    ("former", rf"^{_ONCE}(?:a |part of the )?(\w+) (?:colony|colonial city|territory|protectorate|empire)$", lambda c, m: c.country.colony(m[1])),
    ("former", rf"^{_ONCE}(?:colonized|colonised|ruled|occupied|governed) by (?:the )?(\w+?)(?: empire)?$", lambda c, m: c.country.colony(m[1])),
    ("population", rf"^(?:have )?(?:a |its |the )?(?:total |current |large )?population(?: size)? (?:of |that is )?(?:is )?(over|more than|greater than|larger than|above|exceeding|at least|higher than|bigger than|of over|of more than|less than|under|below|fewer than|smaller than|lower than|at most) {NUMBER}(?: people| inhabitants| residents)?$", lambda c, m: c.population(m[1], m[2], m[3])),
    ("population", rf"^(?:have )?(over|more than|at least|less than|under|below|fewer than) {NUMBER} (?:people|inhabitants|residents|citizens)?(?: (?:living |who live )?(?:in (?:CITY|it)|there|here))?$", lambda c, m: c.population(m[1], m[2], m[3])),
    ("population", rf"^population ?(?:size )?(over|more than|greater than|larger than|above|exceed|exceeding|at least|less than|under|below|fewer than) {NUMBER}(?: people| inhabitants| residents)?$", lambda c, m: c.population(m[1], m[2], m[3])),
    ("population", r"^(?:have )?(?:a |an )?(?:very |relatively |particularly )?(large|big|high|small|low|dense)(?: and dense| and diverse)? ?population(?: density| size)?$|^(?:very |a )?(densely|highly|sparsely)(?: |-)populated(?: city| area)?$", lambda c, m: c.big(m[1] or m[2])),
    ("size", r"^(?:a |the )?(?:very )?(large|big|major|huge|small|tiny|medium sized|mid sized|metropolitan|populous|mega)(?: ?city| town| metropolis| village| metropolitan (?:city|area)| urban (?:center|area))?$", lambda c, m: c.big(m[1])),
    ("size", r"^(?:a )?(metropolis|megacity|mega city|village|small town|rural area|town)$", lambda c, m: c.big(m[1])),
    ("rank", r"^(?:the )?(?:(second|third|fourth|fifth|sixth|2nd|3rd|4th) )?(?:largest|most populous|biggest|most populated)(?: and most populous)?(?: city| metropolis| urban area| metropolitan area)?(?: (?:in|of) (?:terms of population in )?(?:the )?(.+?))?(?: (?:by|in terms of) population)?$", lambda c, m: c.rank(m[1], m[2])),
    ("rank", r"^one of (?:the )?(?:largest|biggest|most populous|most populated|largest and most populous|major)(?: and most \w+)? (?:cities|metropolitan areas|urban areas|metropolises)(?: (?:in|of) (?:the )?(.+))?$", lambda c, m: c.among(m[1])),
    ("language", r"^(?:in )?(?:a |an )?(.+?)[ -]speaking(?: country| city| region| nation| area)?$", lambda c, m: c.country.speaks(m[1])),
]  # fmt: skip
_RULES = [
    (topic, re.compile(pattern), check)
    for topic, pattern, check in (*_DISTANCES, *_BY_THE_WATER, *_IN_PLACES, *_OF_RANK_AND_SIZE)
]
