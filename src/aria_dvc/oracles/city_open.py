"""Open questions about a city ("What language do people speak?"): short answers from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable

from aria_dvc.oracles.city_claims import Claims
from aria_dvc.oracles.city_topics import kinds

_METRO_NOTE = "buses, taxis and a metro"
_ASKS_NAME = re.compile(
    r"\b(?:name of (?:CITY|the city|it)|CITYs? name|CITY called|which city|what city|name CITY|what is CITY|"
    r"where exactly is CITY|letters?|spell|start with|begins? with)\b"
)
_NAMED = re.compile(
    r"^(?:what|which) (?:is|are|was|s) (?:the )?(?:name|names)? ?(?:of )?(?:the |a |an |any |some )?(.+)$"
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


class OpenAnswers:
    """Answers "what", "which", "where" and "can you tell me about" questions about one city."""

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.facts = claims.facts
        self.slots: list[tuple[str, re.Pattern[str], Callable[[], str]]] = [
            (topic, re.compile(rf"\b(?:{pattern})\b"), say) for topic, pattern, say in self._slots()
        ]

    def answer(self, text: str) -> tuple[str, str]:
        """Text and topic; the text is empty if the question is not understood."""
        if _ASKS_NAME.search(text):
            return "I cannot say the name.", "name"
        if re.search(r"\b(?:you|your) (?:favou?rite|personally|opinion|family|age)\b", text):
            text = re.sub(r"\b(?:your )?favou?rite\b", "", text)
        named = self._named_sight(text)
        if named:
            return named, "sight"
        for topic, pattern, say in self.slots:
            if pattern.search(text):
                said = say()
                if said:
                    return said, topic
        return "", "open"

    def _named_sight(self, text: str) -> str:
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
        kind = rest if rest in kinds() else rest.removesuffix("s")
        if kind == "river" and self.facts.rivers.sure and "river" not in self.facts.sights:
            return f"It is the {sorted(self.facts.rivers.sure)[0].title()}."
        sight = self.claims.topics.sight(kind) if kind in kinds() else None
        return f"One that is well known is {_dotless(sight)}." if sight else ""

    # -- slots, tried in order ------------------------------------------------------------------

    def _slots(self) -> list[tuple[str, str, Callable[[], str]]]:
        say = self.facts.say
        return [
            ("elevation", r"altitude|elevation|height above sea level|high above sea level", self._elevation),
            ("time", r"time ?zone", lambda: ""),
            ("currency", r"currency|money (?:is )?used", lambda: f"People pay in {say('currency')}."),
            ("country_capital", r"capital(?: city)? of (?:COUNTRY|your country)", self._country_capital),
            ("capital", r"capital of (?:the |its )?(?:province|state|region)", lambda: ""),
            ("where", r"(?:which|what) (?:country|nation)|country (?:is|of)|name of COUNTRY|COUNTRYs name|what is COUNTRY$|in which country", self._country),
            ("continent", r"continent|(?:which|what) (?:part|region|area) of the world|hemisphere", self._continent),
            ("where", r"geographical? (?:location|position)|where is (?:it|CITY)|location of CITY|(?:what|which) (?:part|region|area|side) of (?:COUNTRY|the country)|proximity (?:of CITY )?to|situated|which (?:region|state|province)|what (?:region|state|province)|located", self._where),
            ("border", r"border(?:s|ing)?|neighbou?r(?:s|ing)", self._borders),
            ("language", r"languages?(?:s)?|mother tongue|speak|spoken", self._language),
            ("dialect", r"dialect|accent|slang|greeting", lambda: ""),
            ("population_density", r"population density|densely", lambda: ""),
            ("population", r"populations?|how many people|inhabitants|how (?:big|large|populous) is CITY|size of CITY|CITY size", self._population),
            ("climate", r"climate|weather|temperatures?|seasons?|rainfall|winters?|summers?|snow", lambda: f"The climate is {say('climate')}."),
            ("religion", r"religions?|faith|religious (?:beliefs?|affiliation|group|composition|demographics)|worship", lambda: f"It is mostly {say('religion')}."),
            ("cuisine", r"cuisines?|dish(?:es)?|foods?|eat|delicac(?:y|ies)|culinary|meals?|snacks?|street food|specialt(?:y|ies)|ingredients?|desserts?|drinks?|beverages?", lambda: f"Typical dishes are {say('cuisine')}." if not re.search("drink", "") else ""),
            ("nickname", r"nickname|known as|referred to|called the|moniker|slogan", self._nickname),
            ("transport", r"transport(?:ation)?|get around|commute|traffic", self._transport),
            ("clothing", r"clothing|clothes|dress|attire|costume|garments?|wear", lambda: f"A traditional dress is {say('dress')}." if say("dress") else ""),
            ("festival", r"festivals?|celebrations?|celebrated?|holidays?|events?|carnival|parade", lambda: f"Well known are {say('festival') or say('festivals')}."),
            ("music", r"music|dance|song|instrument|performing art|art forms?", lambda: f"It is known for {say('music')}." if say("music") else ""),
            ("sports", r"sports? teams?|football (?:club|team)s?|soccer (?:club|team)s?|teams?", lambda: f"Well-known teams are {say('team')}." if self.facts.text.get("team") else ""),
            ("sports", r"sports?", lambda: f"Popular sports are {say('sport')}."),
            ("people", r"historical figures?|famous (?:people|person|individuals?|figures?|residents?)|notable (?:people|person|figures?|individuals?)|figures?|celebrit(?:y|ies)|born in|leaders?|writers?|artists?|musicians?|actors?|athletes?|poets?|authors?|scientists?|personalit(?:y|ies)", lambda: f"One thinks of {say('people')}." if say("people") else ""),
            ("history", r"histor(?:y|ical (?:significance|events?|importance|background|facts?))|founded|established|how old|historically|significance of CITY|past", lambda: f"In its history, {say('history')}."),
            ("government", r"government|political (?:system|structure|situation|status|climate)|governed|ruled|politics", lambda: f"It belongs to {_article(say('government'))}."),
            ("economy", r"industr(?:y|ies)|econom(?:y|ic|ies)|jobs?|businesses|exports?|manufactur\w+|produced?|products?|companies|sectors?|livelihood|occupation", lambda: f"Its economy rests on {say('economy')}."),
            ("university", r"universit(?:y|ies)|education(?:al)?|colleges?|schools?", self._university),
            ("sights", r"landmarks?|attractions?|monuments?|sights?|places to (?:visit|see)|historic(?:al)? (?:sites?|places|buildings?|structures?)|tourist (?:sites?|spots?|destinations?)|things to (?:do|see)|visit|architectur\w+|buildings?|structures?|cultural (?:heritage|sites?|attractions?)|heritage sites?", self._sights),
            ("museum", r"museums?|galler(?:y|ies)", lambda: self._sight("museum")),
            ("park", r"parks?|gardens?|green spaces?", lambda: self._sight("park")),
            ("market", r"markets?|shopping|malls?|bazaars?", lambda: self._sight("market")),
            ("stadium", r"stadiums?", lambda: self._sight("stadium")),
            ("waters", r"rivers?|bod(?:y|ies) of water|lakes?|water", self._waters),
            ("mountains", r"mountains?|hills?|volcano(?:es)?|natural (?:features?|landmarks?|attractions?|wonders?)|geograph\w+|terrain|landscape|scenery", self._terrain),
            ("airport", r"airports?", lambda: self._sight("airport")),
            ("zoo", r"zoos?", lambda: self._sight("zoo")),
            ("nightlife", r"nightlife", lambda: ""),
            ("known", r"known for|famous for|special about|unique (?:about|feature)|most famous|best known|stand out|characteristics?|describe CITY|about CITY$|reputation|culture|cultural", lambda: f"It is known for {say('known')}."),
        ]  # fmt: skip

    def _sight(self, kind: str) -> str:
        sight = self.claims.topics.sight(kind)
        return f"One that is well known is {_dotless(sight)}." if sight else ""

    def _elevation(self) -> str:
        metres = self.facts.elevation
        level = "close to sea level" if metres < 30 else f"about {metres} metres above sea level"
        return f"It lies {level}."

    def _country_capital(self) -> str:
        if self.claims.national():
            return "The city itself is the capital of its country."
        return f"The capital of its country is {sorted(self.facts.country.capital, key=len)[0].title()}."

    def _country(self) -> str:
        names = {
            "USA": "the United States",
            "UK": "the United Kingdom",
            "Congo": "the Democratic Republic of the Congo",
            "Philippines": "the Philippines",
            "Cote d'Ivoire": "Côte d'Ivoire",
        }
        name = self.facts.country.name
        if name == self.facts.city.name:
            return "It is a city state, so I cannot name the country."
        return f"It is in {names.get(name, name)}."

    def _continent(self) -> str:
        if self.facts.city.name == "Istanbul":
            return "It lies on two continents, Europe and Asia."
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

    def _language(self) -> str:
        languages = self.facts.languages
        rest = f", besides {' and '.join(languages[1:3])}" if len(languages) > 1 else ""
        return f"Mostly {languages[0]}{rest}."

    def _population(self) -> str:
        people = self.facts.population
        text = f"{people:g} million" if people >= 1 else f"{people * 1000:.0f},000"
        return f"About {text} people live there."

    def _nickname(self) -> str:
        nick = self.facts.text.get("nick", "").strip('"')
        return f"It is called {nick}." if nick else ""

    def _transport(self) -> str:
        metro = self.claims.topics.truth("known for its metro system")
        if metro is None:
            return ""
        return f"People get around by {'metro, bus and car' if metro else 'bus, car and taxi'}."

    def _university(self) -> str:
        return self._sight("university")

    def _sights(self) -> str:
        wanted = (
            "tower",
            "palace",
            "temple",
            "mosque",
            "cathedral",
            "monument",
            "building",
            "museum",
            "square",
            "bridge",
            "park",
            "fort",
            "garden",
        )
        names = [self.facts.sights[kind] for kind in wanted if kind in self.facts.sights]
        names = [name for name in dict.fromkeys(names)][:3]
        return f"Well-known sights are {', '.join(map(_dotless, names))}." if names else ""

    def _waters(self) -> str:
        if self.facts.rivers.sure:
            longest = max(self.facts.rivers.sure, key=len)
            return f"Nearby water: the {longest.title()}."
        return "It lies by the sea." if self.facts.coast == "yes" else ""

    def _terrain(self) -> str:
        mountains = sorted(self.facts.mountains.sure, key=len)
        return (
            f"In or near it rise {', '.join(name.title() for name in mountains[:2])}."
            if mountains
            else ""
        )


def _dotless(name: str | None) -> str:
    return (name or "").rstrip(".")


def _article(phrase: str) -> str:
    return phrase if phrase.startswith(("a ", "an ")) else f"a {phrase}"
