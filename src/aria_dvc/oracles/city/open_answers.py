"""Open questions about a city ("What language do people speak?"): short answers from the tables."""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aria_dvc.oracles.city.claims import Claims
from aria_dvc.oracles.city.lists import SIGHT_KINDS, SIGHTS_LEFT_OUT
from aria_dvc.oracles.city.topics import Phrase
from aria_dvc.oracles.text import fold

_ASKS_NAME = re.compile(
    r"\b(?:name of (?:CITY|the city|it)|CITYs? name|(?<!in )CITY called|which city|what city|name CITY|what is CITY$|"
    r"where exactly is CITY|letters?|spell|start with|begins? with)\b"
)
_QUALITY = (
    r"(?:(?:most|more|very|well|world|worlds|largest|biggest|main|major|famous|popular|iconic|known|"
    r"best|notable|important|significant|prominent|recognizable|recognized|historic|historical|"
    r"ancient|old|oldest|local|national|international|central|beautiful|big|large|grand|great|"
    r"tall|tallest|busiest|ornate|traditional|cultural|renowned|visited|primary|landmark|"
    r"public|royal|city|city's|citys|football|soccer|sports|street|shopping|tourist) )*"
)
_PLACE_TAIL = (
    r"(?: (?:that|which) (?:runs|flows|passes|goes|cuts) (?:through|by|along|across)(?: the)?(?: CITY| city| it| center of CITY| middle of CITY)*)?"
    r"(?: (?:in|of|near|within|at|from|located in|that is located in|found in|running through|flowing through|closest to|nearest to|"
    r"that is in|there is in|you have in|that you have in|for|around|through)(?: the)?(?: CITY| it| city| area| heart of CITY| center of CITY)*)?"
    r"(?: (?:called|is called))?$"
)


_DETAIL = re.compile(
    r"\b(?:level of|percentage|average|distance|how (?:far|long|much|many (?!people|inhabitants|residents))|annual (?:rain|snow)fall|"
    r"difference|type of (?:meat|fish|vegetable)|ingredients?|architectural style|unesco|field of|contributions? to|milestones?|relation|compared?|time ?zone|dialect|accent|slang|greeting|population density|"
    r"densely|nightlife|zip code|area code|calling code|mayor|education(?:al)? system|(?:music|film|food|art|literature|jazz|sports|historical) (?:festival|event)|"
    r"capital of (?:the |its )?(?:province|state|region))\b"
)
"""Details that the tables do not hold."""
_KIND_ASKED = re.compile(
    r"\b(mosque|temple|cathedral|church|theater|theatre|skyscraper|bridge|palace|castle|fort|"
    r"statue|beach|square)(?:s|es)\b"
)
_ONE_NAME = re.compile(r"\b(?:name|names) of (?:the|a|an|one|that)\b")
_RESTRICTED = re.compile(
    r"(?<!CITY) (?:that|which) (?!(?:runs?|flows?|passes|is (?:located|spoken))\b)|\b(?:known for|during|dedicated to|where)\b"
)
"""A clause that narrows down which one is meant."""
_NAMED_TOPICS = frozenset(
    {"country_capital", "where", "language", "currency", "cuisine", "festival", "sports", "waters",
     "mountains", "border", "continent", "known", "religion", "clothing"}
)  # fmt: skip
"""Topics whose answer fits "what is the name of the ...": one outstanding thing each."""
_METRO = Phrase("known for its metro system")

Say = Callable[["OpenAnswers"], str]
Slot = tuple[str, str, Say]


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An open question, the same for every city.

    `kind` is the kind of sight that it asks for first of all, empty if it is none; `topic` and `say`
    are what it is about besides. What is not understood says nothing.
    """

    kind: str
    topic: str
    say: Say


def read_open(text: str) -> OpenQuestion:
    """What an open question in plain form asks for."""
    if _ASKS_NAME.search(text):
        return OpenQuestion("", "name", lambda _: "I cannot say the name.")
    return OpenQuestion(_kind_of_sight(text), *_slot(text))


def _nothing(_: OpenAnswers) -> str:
    return ""


def _slot(text: str) -> tuple[str, Say]:
    if _DETAIL.search(text):
        return "detail", _nothing
    kind = _KIND_ASKED.search(text)
    if kind:
        return "sight", lambda answers: answers.sight(kind[1])
    one = _ONE_NAME.search(text) is not None
    if one and _RESTRICTED.search(text):
        return "detail", _nothing
    for topic, pattern, say in _SLOTS:
        if pattern.search(text):
            return topic, _nothing if one and topic not in _NAMED_TOPICS else say
    return "open", _nothing


def _kind_of_sight(text: str) -> str:
    match = re.match(
        r"^(?:what|which)(?: (?:is|are|s))? (?:the |a |an |one |some )*(?:names? of (?:the |a |an |one of the |any |some )*)?(?P<rest>.+)$",
        text,
    ) or re.match(
        r"^(?:are there any|is there an?|do you have any|tell me about (?:any |the |some |a )*|describe (?:any |the |some |a )*)(?P<rest>.+)$",
        text,
    )
    if not match:
        return ""
    rest = re.sub(rf"^(?:CITYs |CITY )?{_QUALITY}", "", match["rest"].strip())
    rest = re.sub(_PLACE_TAIL, "", rest).strip()
    rest = re.sub(rf"^{_QUALITY}", "", rest + " ").strip()
    kind = rest if rest in SIGHT_KINDS else rest.removesuffix("s")
    return kind if kind in SIGHT_KINDS or kind == "river" else ""


class OpenAnswers:
    """Answers "what", "which", "where" and "can you tell me about" questions about one city."""

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.facts = claims.facts
        self.say = claims.facts.say

    def answer(self, asked: OpenQuestion) -> tuple[str, str]:
        """Text and topic; the text is empty if the question is not understood."""
        named = self._one_of(asked.kind)
        return (named, "sight") if named else (asked.say(self), asked.topic)

    def _one_of(self, kind: str) -> str:
        if kind == "river" and self.facts.rivers.sure and "river" not in self.facts.sights:
            return self._waters()
        return self.sight(kind)

    def _leaks(self, text: str) -> bool:
        return any(name in fold(text) for name in self.facts.city.names)

    def sight(self, kind: str) -> str:
        """Names the best known sight of a kind; empty if there is none."""
        sight = self.claims.topics.sight(kind)
        return f"One that is well known is {_dotless(sight)}." if sight else ""

    def _elevation(self) -> str:
        metres = self.facts.elevation
        level = "close to sea level" if metres < 30 else f"about {metres} metres above sea level"
        return f"It lies {level}."

    def _country_capital(self) -> str:
        if self.claims.national():
            return "The city itself is the capital of its country."
        return f"The capital of its country is {_shortest_first(self.facts.country.capital)[0].title()}."

    def _country(self) -> str:
        country = self.facts.country
        if country.name == self.facts.city.name:
            return "It is a city state, so I cannot name the country."
        return f"It is in {country.text.get('called', country.name)}."

    def _continent(self) -> str:
        several = self.facts.text.get("continents")
        if several:
            return f"It lies on {several}."
        return f"It is in {self.facts.country.continent}."

    def _where(self) -> str:
        words = {"n": "north", "s": "south", "e": "east", "w": "west", "ne": "northeast",
                 "nw": "northwest", "se": "southeast", "sw": "southwest", "c": "centre"}  # fmt: skip
        marks = sorted(self.facts.compass.sure, key=lambda mark: (-len(mark), mark))
        coast = {
            "yes": "on the coast", "no": "inland", "near": "not far from the coast", "lake": "by a large lake",
        }[self.facts.coast]  # fmt: skip
        if not marks:
            return f"It lies {coast} in {self.facts.country.continent}."
        return f"It lies in the {words[marks[0]]} of its country, {coast}."

    def _borders(self) -> str:
        borders = sorted(self.facts.country.borders.sure)
        return (
            f"Its country borders {', '.join(name.title() for name in borders[:6])}."
            if borders
            else "Its country has no land border."
        )

    def _official_language(self) -> str:
        return f"Officially {self.facts.country.languages[0]}."

    def _language(self) -> str:
        languages = self.facts.languages
        rest = f", besides {' and '.join(languages[1:3])}" if len(languages) > 1 else ""
        return f"Mostly {languages[0]}{rest}."

    def _population(self) -> str:
        people = self.facts.population
        text = f"{people:g} million" if people >= 1 else f"{people * 1000:.0f},000"
        return f"About {text} people live there."

    def _nickname(self) -> str:
        names = self.facts.nicknames
        return f"It is called {' and '.join(names)}." if names else ""

    def _transport(self) -> str:
        metro = self.claims.topics.truth(_METRO)
        if metro is None:
            return ""
        return f"People get around by {'metro, bus and car' if metro else 'bus, car and taxi'}."

    def _people(self) -> str:
        people = self.facts.text.get("people", "")
        return f"One thinks of {people}." if people else ""

    def _lakes(self) -> str:
        names = sorted(name for name in self.facts.lakes.sure if not self._leaks(name))
        return f"There is {names[0].title()}." if names else ""

    def _sights(self) -> str:
        names = [name for kind, name in self.facts.sights.items() if kind not in SIGHTS_LEFT_OUT]
        names = list(dict.fromkeys(name for name in names if not self._leaks(name)))[:3]
        return f"Well-known sights are {', '.join(map(_dotless, names))}." if names else ""

    def _nearest_water(self) -> str:
        return "It lies by the sea." if self.facts.coast == "yes" else self._waters()

    def _waters(self) -> str:
        if self.facts.rivers.sure:
            names = [name for name in self.facts.rivers.sure if not self._leaks(name)]
            longest = max(sorted(names), key=len, default="")
            return f"Nearby water: the {longest.title()}." if longest else ""
        return "It lies by the sea." if self.facts.coast == "yes" else ""

    def _terrain(self) -> str:
        mountains = _shortest_first(self.facts.mountains.sure)
        return (
            f"In or near it rise {', '.join(name.title() for name in mountains[:2])}."
            if mountains
            else ""
        )


def _shortest_first(names: Iterable[str]) -> list[str]:
    """The names by length and then by letters, so that an answer is the same in every run."""
    return sorted(names, key=lambda name: (len(name), name))


def _dotless(name: str | None) -> str:
    return (name or "").rstrip(".")


def _article(phrase: str) -> str:
    return phrase if phrase.startswith(("a ", "an ")) else f"a {phrase}"


# -- slots, tried in order: topic, pattern of the question, answer ------------------------------

_ABOUT_THE_COUNTRY: list[Slot] = [
    ("elevation", r"altitude|elevation|height above sea level|high above sea level", OpenAnswers._elevation),
    ("currency", r"currency|money (?:is )?used", lambda o: f"People pay in {o.say('currency')}."),
    ("country_capital", r"capital(?: city)? of (?:COUNTRY|your country)", OpenAnswers._country_capital),
    ("where", r"(?:which|what) (?:country|nation)|country (?:is|of)|name of COUNTRY|COUNTRYs name|what is COUNTRY$|in which country", OpenAnswers._country),
    ("continent", r"continent|(?:which|what) (?:part|region|area) of the world|hemisphere", OpenAnswers._continent),
    ("where", r"geographical? (?:location|position)|where is (?:it|CITY)|location of CITY|(?:what|which) (?:part|region|area|side) of (?:COUNTRY|the country)|proximity (?:of CITY )?to|where (?:exactly )?in|(?:which|what) (?:region|state|province)", OpenAnswers._where),
    ("border", r"border(?:s|ing)?|neighbou?ring (?:countr(?:y|ies)|nations?)", OpenAnswers._borders),
    ("language", r"official languages?", OpenAnswers._official_language),
    ("language", r"languages?(?:s)?|mother tongue|speak|spoken", OpenAnswers._language),
    ("population", r"populations?|how many people|inhabitants|how (?:big|large|populous) is CITY|size of CITY|CITY size", OpenAnswers._population),
    ("climate", r"climate|weather|temperatures?|seasons?|rainfall|winters?|summers?|snow", lambda o: f"The climate is {o.say('climate')}."),
    ("religion", r"religions?|faith|religious (?:beliefs?|affiliation|group|composition|demographics)|worship", lambda o: f"Mostly {o.say('religion')}."),
]  # fmt: skip
_ABOUT_PEOPLE: list[Slot] = [
    ("cuisine", r"cuisines?|dish(?:es)?|foods?|(?:people|locals|you) eat|delicac(?:y|ies)|culinary|meals?|snacks?|street food|specialt(?:y|ies)", lambda o: f"Typical dishes are {o.say('cuisine')}."),
    ("nickname", r"nickname|known as|referred to|called the|moniker|slogan", OpenAnswers._nickname),
    ("transport", r"transport(?:ation)?|get around|commute|traffic", OpenAnswers._transport),
    ("clothing", r"clothing|clothes|dress|attire|costume|garments?|wear", lambda o: f"A traditional dress is {o.say('dress')}." if o.say("dress") else ""),
    ("history", r"historical (?:events?|moments?)|historical figures? or events?", lambda o: f"In its history, {o.say('history')}."),
    ("festival", r"festivals?|celebrations?|celebrated?|holidays?|cultural events?|annual events?|carnival|parade", lambda o: f"Well known are {o.say('festival') or o.say('festivals')}."),
    ("music", r"music|dance|song|instrument|performing art|art forms?", lambda o: f"It is known for {o.say('music')}." if o.say("music") else ""),
    ("sports", r"sports? teams?|football (?:club|team)s?|soccer (?:club|team)s?|teams?", lambda o: f"Well-known teams are {o.say('team')}." if o.facts.text.get("team") else ""),
    ("sports", r"sports?", lambda o: f"Popular sports are {o.say('sport')}."),
    ("people", r"historical figures?|famous (?:people|person|individuals?|figures?|residents?)|notable (?:people|person|figures?|individuals?)|figures?|celebrit(?:y|ies)|born in|leaders?|writers?|artists?|musicians?|actors?|athletes?|poets?|authors?|scientists?|personalit(?:y|ies)", OpenAnswers._people),
    ("history", r"histor(?:y|ical (?:significance|events?|importance|background|facts?))|founded|established|how old|historically|(?<!economic )significance of CITY|past", lambda o: f"In its history, {o.say('history')}."),
    ("government", r"government|political (?:system|structure|situation|status|climate)|governed|ruled|politics", lambda o: f"It belongs to {_article(o.say('government'))}."),
    ("economy", r"industr(?:y|ies)|econom(?:y|ic|ies)|economic significance|jobs?|businesses|exports?|manufactur\w+|produced?|products?|companies|sectors?|livelihood|occupation", lambda o: f"Its economy rests on {o.say('economy')}."),
]  # fmt: skip
_ABOUT_PLACES: list[Slot] = [
    ("university", r"universit(?:y|ies)|educational institutions?|colleges?|schools?", lambda o: o.sight("university")),
    ("mountains", r"mountains?(?: ranges?)?|hills?|volcano(?:es)?|natural (?:features?|landmarks?|attractions?|wonders?)|geograph\w+|terrain|landscape|scenery", OpenAnswers._terrain),
    ("waters", r"(?<!river or )(?:lakes?|reservoirs?|ponds?)(?! or rivers?)", OpenAnswers._lakes),
    ("waters", r"coastline|(?<!river or )bod(?:y|ies) of water", OpenAnswers._nearest_water),
    ("waters", r"rivers?|bod(?:y|ies) of water|lakes?|waterways?", OpenAnswers._waters),
    ("museum", r"museums?|galler(?:y|ies)", lambda o: o.sight("museum")),
    ("park", r"parks?|gardens?|green spaces?", lambda o: o.sight("park")),
    ("market", r"markets?|bazaars?", lambda o: o.sight("market")),
    ("shopping", r"shopping|malls?", lambda o: o.sight("shopping district")),
    ("sights", r"landmarks?|attractions?|monuments?|sights?|places to (?:visit|see)|historic(?:al)? (?:sites?|places|buildings?|structures?)|tourist (?:sites?|spots?|destinations?)|things to (?:do|see)|buildings?|structures?|cultural (?:heritage|sites?|attractions?)|heritage sites?", OpenAnswers._sights),
    ("stadium", r"stadiums?", lambda o: o.sight("stadium")),
    ("airport", r"airports?", lambda o: o.sight("airport")),
    ("zoo", r"zoos?", lambda o: o.sight("zoo")),
    ("known", r"(?:what|which)(?: else)? (?:is|makes|does|things? is|features? is) CITY|describe CITY|about CITY$|culture (?:of|in|like)", lambda o: f"It is known for {o.say('known')}."),
]  # fmt: skip
_SLOTS = [
    (topic, re.compile(rf"\b(?:{pattern})\b"), say)
    for topic, pattern, say in (*_ABOUT_THE_COUNTRY, *_ABOUT_PEOPLE, *_ABOUT_PLACES)
]
