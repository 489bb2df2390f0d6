"""What a question asks of any city, read once: who is guessed, which claim is made, which options.

A `Reading` knows nothing of the hidden city. `oracle` asks it of one city after another, so that a
question to all 100 is read like a question to one; a part that no city needs is never read.
"""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache

from aria_dvc.oracles.city.claims import Claim, Claims
from aria_dvc.oracles.city.guesses import guesses, initials, nicknamed, several, stranger
from aria_dvc.oracles.city.lists import DIRECTIONS
from aria_dvc.oracles.city.open_answers import OpenQuestion, read_open
from aria_dvc.oracles.city.question import Question, plain_question
from aria_dvc.oracles.city.targets import City, cities, find_city_mentions
from aria_dvc.oracles.text import fold

_YES_NO = re.compile(
    r"^(?P<verb>is|are|was|were|does|do|did|has|have|had|can|could|would|will) "
    r"(?P<subject>CITY|it|there|COUNTRY|you|we|they|locals|the locals|people in CITY|people|the people|the answer|the city)(?![a-z]) ?(?P<claim>.*)$"
)
_GUESS_STATEMENT = re.compile(
    r"\b(?:my (?:final )?guess|i (?:guess|think|believe)|(?:is|must be|might be|could be) (?:most )?(?:likely|probably)|"
    r"^(?:CITY|it|the city|the answer) is)\b"
)
_CHOICE = re.compile(
    r"^(?:.*\b)?(?:coast(?:al)?(?: (?:area|region|city))?|sea|ocean|coastline|shore).* or .*\b(?:inland|landlocked|interior)\b|\binland or\b"
)
_MAIN = r"(?:main|predominant|dominant|majority|official|primary|principal|most common)"
_FIRST = r"(?:main|predominant|dominant|majority|primary|principal|most common|first|native)"
_EITHER = re.compile(r"^is (?:it|CITY) \w+(?: \w+){0,3} or \w+(?: \w+){0,3}$")
_PLACING = re.compile(r"\b(?:located|near|close|in|from|far)\b")
_COMPARED = re.compile(
    r"\b(?:near|nearer|nearest|close|closer|closest|far|farther|further|between|bigger|larger|smaller|older|north|south|east|west|than|as|like)\b"
)
_NEAREST = re.compile(
    r"^(?:located )?(?:geographically |physically )?(?:closer|nearer|closest|nearest) to (.+? or .+)$"
)
_AUXILIARY = re.compile(r"^(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will)\b")
_SIDE = "|".join(sorted(DIRECTIONS, key=len, reverse=True))
_CALLED = re.compile(
    r"^(?:is|are|was|could|would) (?:CITY|it|the answer|you|this|that|the city|the name)(?: be)?(?: in fact| perhaps| maybe| by any chance| actually| possibly| called| named| known as| from| you are from| you are thinking of)* (?P<name>(?!in |on |near |at |located).+)$"
)
_PEOPLE = frozenset(
    {"you", "we", "they", "locals", "the locals", "people in CITY", "people", "the people"}
)
_RESTATED = (
    (r"^is (?:the |its )?population (?:of CITY |there )?(.+)$", "population {}"),
    (r"^do (.+ (?:people|inhabitants|residents)) (?:live|reside) (?:in CITY|in it|there|here)$", "have {}"),
    (r"^(?:does|do) (?:the )?(.+) (?:flow|run|pass|go) (?:through|by|past) (?:CITY|it)$", "located on the {}"),
    (r"^(?:is|are) (?:the )?(.+) (?:in|part of) (?:CITY|it)$", "home to {}"),
)  # fmt: skip
"""Questions about something in the city, and what they claim of the city itself."""
_SHORT = 5
"""Words of a question that names a city and hardly anything else."""

Judgement = Callable[[Claims], tuple[bool | None, str]]
"""Truth and topic of what is asked, of one city."""


@lru_cache(maxsize=4096)
def read(raw: str) -> Reading:
    """The reading of a question, in the words of the player."""
    return Reading(raw)


class Reading:
    """One question, the same for every city: its parts are read once, when asked for."""

    def __init__(self, raw: str) -> None:
        self.raw = raw

    @cached_property
    def _plain(self) -> Question:
        return plain_question(self.raw)

    @property
    def negated(self) -> bool:
        """Whether a literal "not" was taken out."""
        return self._plain.negated

    @cached_property
    def text(self) -> str:
        """The plain form; `can you tell me about the food` -> `tell me about the food`."""
        return _imperative(self._plain.text)

    # -- guesses --------------------------------------------------------------------------------

    @cached_property
    def mentions(self) -> tuple[City, ...]:
        """The target cities that it names."""
        return tuple(find_city_mentions(self.raw))

    @cached_property
    def names_several(self) -> bool:
        """`is it paris or rome`, `is it paris? is it rome?`."""
        text = self._plain.text
        either = _EITHER.match(text) is not None and not _COMPARED.search(text)
        return len(self.mentions) > 1 and (either or several(self.raw))

    @cached_property
    def called(self) -> str:
        """What the city is said to be: `is it called paris`; empty if nothing is."""
        match = _CALLED.match(self._plain.text)
        return match["name"] if match else ""

    @cached_property
    def meant(self) -> City | None:
        """The one city that it names, if it says little else or says that it guesses."""
        text = self._plain.text
        stated = _GUESS_STATEMENT.search(text)
        short = 0 < len(text.split()) <= _SHORT and not _PLACING.search(text)
        return self.mentions[0] if len(self.mentions) == 1 and (stated or short) else None

    @cached_property
    def guessed(self) -> tuple[City, ...]:
        """The cities that it guesses, read strictly."""
        words = set(fold(self.raw).split())
        short = tuple(city for city in cities() if not words.isdisjoint(initials(city)))
        named = self.mentions or short
        return tuple(city for city in named if guesses(city.name, self.raw))

    @cached_property
    def nicknamed(self) -> tuple[City, ...]:
        """The cities by whose nickname it asks."""
        return nicknamed(self.raw)

    @cached_property
    def stranger(self) -> str:
        """The name that it guesses and nobody knows, folded; empty if there is none."""
        return stranger(self.raw)

    # -- claims ---------------------------------------------------------------------------------

    @cached_property
    def yes_no(self) -> tuple[str, str, str] | None:
        """Verb, subject and claim of a question about the city, its country or its people."""
        asked = _YES_NO.match(self.text)
        return (asked["verb"], asked["subject"], asked["claim"]) if asked else None

    @cached_property
    def is_open(self) -> bool:
        """Whether neither yes nor no can answer it."""
        return not _AUXILIARY.match(self.text)

    @cached_property
    def open(self) -> OpenQuestion:
        """What it asks for where neither yes nor no can answer it."""
        return read_open(self.text)

    @cached_property
    def coast_or_inland(self) -> bool:
        """Whether it asks which of the two."""
        return self.yes_no is not None and _CHOICE.search(self.yes_no[2]) is not None

    @cached_property
    def nearest(self) -> tuple[str, ...]:
        """The places of "is it closer to A or B"; empty if it asks for nothing such."""
        asked = _NEAREST.match(self.yes_no[2]) if self.yes_no else None
        parts = re.split(r" or |,", asked[1]) if asked else ()
        return tuple(re.sub(r"^ ?(?:to )?(?:the )?", "", part).strip() for part in parts)

    @cached_property
    def options(self) -> tuple[tuple[str, Claim], ...]:
        """The options of an "A or B" question about a place, as said and as claims."""
        said = _options(self.yes_no[2]) if self.yes_no else []
        return tuple((option, Claim(option)) for option in said)

    @cached_property
    def judge(self) -> Judgement:
        """Says of a city whether what a yes/no question claims is true of it."""
        return _judgement(*self.yes_no) if self.yes_no else _inverted(self.text)


def _judgement(verb: str, subject: str, claim: str) -> Judgement:
    claim = claim.strip()
    if subject == "COUNTRY":
        rest = re.sub(r"^(?:a|an|the) ", "", claim)
        return lambda claims: (claims.country.claim(rest), "country")
    if subject in _PEOPLE:
        return _of_people(claim)
    if verb in {"was", "were"}:
        claim = f"once {claim}"
    if subject == "there":
        claim = re.sub(r"^(?:a|an|any|some|many) ", "", claim)
    return _truth(claim)


def _truth(said: str) -> Judgement:
    claim = Claim(said)
    return lambda claims: claims.truth(claim)


def _of_people(claim: str) -> Judgement:
    speak = re.match(r"^(?:there )?(?:\w+ly )?(?:speak|speaking) (\w+)", claim)
    if speak:
        return lambda claims: (claims.country.speaks(speak[1]), "language")
    live = re.match(r"^(?:(?:live|living|from|reside|located|based)\b ?(?:in )?|in )(.+)$", claim)
    if live:
        return lambda claims: (claims.within(live[1]), "in")
    have = re.match(r"^have (.+)$", claim)
    return _truth(have[1]) if have else lambda claims: (None, "people")


def _inverted(text: str) -> Judgement:
    """Yes/no questions whose subject is something in the city."""
    return _of_language_or_faith(text) or _of_something_there(text)


def _of_language_or_faith(text: str) -> Judgement | None:
    first = re.match(rf"^is (\w+) (?:the|your|its) {_FIRST} (?:spoken )?language\b", text)
    if first:
        return lambda claims: (claims.country.mainly_speaks(first[1]), "language")
    spoken = re.match(
        r"^(?:is|are) (?!the )(\w+) (?:the )?(?:\w+ ){0,2}(?:language|spoken)\b", text
    )
    if spoken:
        return lambda claims: (_spoken(claims, spoken[1]), "language")
    faith = re.match(
        rf"^is (?:the )?{_MAIN} religion (?:(?:in|of) (?:CITY|COUNTRY) |there )?(\w+)$", text
    ) or re.match(rf"^is (\w+) the {_MAIN} religion\b", text)
    if faith:
        return lambda claims: (claims.country.faith(faith[1]), "religion")
    tongue = re.match(rf"^is (?:the )?{_MAIN} language (?:(?:in|of) CITY |there )?(\w+)$", text)
    return (lambda claims: (claims.country.speaks(tongue[1]), "language")) if tongue else None


def _spoken(claims: Claims, language: str) -> bool | None:
    """Whether it is spoken there; of English, which is known nearly everywhere, never False."""
    value = claims.country.speaks(language)
    return (value or None) if language == "english" else value


def _of_something_there(text: str) -> Judgement:
    """`do more than two million people live there` claims `have more than two million people`."""
    for pattern, claim in _RESTATED:
        match = re.match(pattern, text)
        if match:
            return _truth(claim.format(match[1]))
    return lambda claims: (None, "other subject")


def _options(claim: str) -> list[str]:
    """The full claims of an "A or B" question about a place; empty if it is none."""
    if not re.match(r"^(?:located|situated|in|on|found|more|part)\b", claim):
        return []
    if " or " not in claim or re.search(r"\b(?:such as|any|like|including)\b", claim):
        return []
    parts = re.split(
        r"(?: ,)? or (?:is (?:it|CITY) |are |does it )?(?:rather |more |instead )?| , ", claim
    )
    tail = re.match(rf"^(?:in )?(?:the )?(?:{_SIDE}) (.+)$", parts[-1])
    if tail:
        parts = [
            f"{part} {tail[1]}" if re.search(rf"\b(?:{_SIDE})$", part) else part for part in parts
        ]
    return [parts[0], *(_parallel(parts[0], part) for part in parts[1:])]


def _parallel(first: str, second: str) -> str:
    """`located in asia` and `europe` -> `located in europe`."""
    if re.match(r"^(?:located|situated|in|on|near|at|a |an |the capital|inland)\b", second.strip()):
        return second
    lead = re.match(r"^((?:located |situated |found )?(?:in|on|near) (?:the )?)", first)
    return f"{lead[1]}{second}" if lead else second


def _imperative(text: str) -> str:
    """`can you tell me about the food` -> `tell me about the food`."""
    return re.sub(
        r"^(?:can|could|would|will|do) you (?:please |kindly )?(?:also )?(tell|describe|share|give|name|explain|provide|list|mention)\b",
        r"\1",
        text,
    )
