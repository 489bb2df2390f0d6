"""The embedded oracle of Guess My City.

`oracle("Shanghai, China").answer("Is your city on the coast?")` -> `Yes, it is.` Answers
never contain the city's name; what the tables do not cover is answered with `UNKNOWN`.
"""

# ruff: noqa: E501 - one pattern a line reads best

from __future__ import annotations

import re
from functools import cache, cached_property

from aria_dvc.oracles.base import MAX_QUESTION_CHARS, Answer
from aria_dvc.oracles.city.claims import Claims
from aria_dvc.oracles.city.facts import city_facts
from aria_dvc.oracles.city.gazetteer import regions, towns
from aria_dvc.oracles.city.guesses import guesses, names_stranger
from aria_dvc.oracles.city.lists import DIRECTIONS
from aria_dvc.oracles.city.open_answers import OpenAnswers
from aria_dvc.oracles.city.question import Question, read_question
from aria_dvc.oracles.city.targets import PACKAGE, City, cities, find_city, find_city_mentions
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_lines

RIGHT, WRONG = "Yes, that is the city.", "No, that is not the city."
UNKNOWN = "I do not know the answer to that."
_YES_NO = re.compile(
    r"^(?P<verb>is|are|was|were|does|do|did|has|have|had|can|could|would|will) "
    r"(?P<subject>CITY|it|there|COUNTRY|you|we|people in CITY|people|the people|the answer|the city)(?![a-z]) ?(?P<claim>.*)$"
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
_AUXILIARY = re.compile(r"^(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will)\b")
_SIDE = "|".join(sorted(DIRECTIONS, key=len, reverse=True))


class CityOracle:
    """Answers questions about one city in short sentences that do not name it."""

    def __init__(self, city: City) -> None:
        self.city = city
        self.target = city.word
        self.spellings = city.names
        self._names = re.compile(rf"\b(?:{'|'.join(map(re.escape, city.names))})\b")

    @cached_property
    def claims(self) -> Claims:
        return Claims(city_facts()[self.city.name])

    @cached_property
    def open(self) -> OpenAnswers:
        return OpenAnswers(self.claims)

    @cached_property
    def guesses(self) -> tuple[str, ...]:
        """Questions that guess the city, as a player may put them."""
        patterns = read_lines(PACKAGE, "guesses.txt")
        return tuple(p.format(city=self.city.name, country=self.city.country) for p in patterns)

    def is_guess(self, question: str) -> bool:
        """Whether the question names the city as its guess, read strictly."""
        return guesses(self.city.name, question)

    def answer(self, question: str) -> Answer:
        """Answer one question; `known` is False for `UNKNOWN`."""
        if len(question) > MAX_QUESTION_CHARS:
            return Answer(UNKNOWN, False, "too long")
        if self.is_guess(question):
            return Answer(RIGHT, True, "guess")
        text, topic = self._reply(read_question(question), question)
        if text in ("", UNKNOWN) and self._names_another(question):
            return Answer(WRONG, True, "guess")
        if text in ("", UNKNOWN):
            return Answer(UNKNOWN, False, topic)
        if self._names.search(fold(text)):
            return Answer("I cannot answer that without giving the name away.", True, topic)
        return Answer(text, True, topic)

    def _names_another(self, question: str) -> bool:
        """Whether the question guesses another target, or a name that nobody knows."""
        others = (city for city in find_city_mentions(question) if city != self.city)
        if any(guesses(city.name, question) for city in others):
            return True
        return names_stranger(question, self.city.name)

    def _reply(self, question: Question, raw: str) -> tuple[str, str]:
        guess = self._guess(question, raw)
        if guess:
            return guess, "guess"
        text = _imperative(question.text)
        asked = _YES_NO.match(text)
        if not asked:
            return self._other(text)
        choice = self._choice(asked["claim"], raw)
        if choice:
            return choice, "choice"
        value, topic = self._claim(asked)
        if value is None:
            return self._half_true(asked["claim"], topic)
        return _phrase(asked["verb"], asked["subject"], value, question.negated), topic

    def _other(self, text: str) -> tuple[str, str]:
        """Open questions, and yes/no questions about something else than the city."""
        if not _AUXILIARY.match(text):
            return self.open.answer(text)
        value, topic = self._inverted(text)
        return ("" if value is None else "Yes." if value else "No."), topic

    def _inverted(self, text: str) -> tuple[bool | None, str]:
        """Yes/no questions whose subject is something in the city."""
        first = re.match(rf"^is (\w+) (?:the|your|its) {_FIRST} (?:spoken )?language\b", text)
        if first:
            return self.claims.country.mainly_speaks(first[1]), "language"
        spoken = re.match(
            r"^(?:is|are) (?!the )(\w+) (?:the )?(?:\w+ ){0,2}(?:language|spoken)\b", text
        )
        if spoken:
            value = self.claims.country.speaks(spoken[1])
            return (value or None) if spoken[1] == "english" else value, "language"
        faith = re.match(
            rf"^is (?:the )?{_MAIN} religion (?:(?:in|of) (?:CITY|COUNTRY) |there )?(\w+)$", text
        ) or re.match(rf"^is (\w+) the {_MAIN} religion\b", text)
        if faith:
            return self.claims.country.faith(faith[1]), "religion"
        tongue = re.match(rf"^is (?:the )?{_MAIN} language (?:(?:in|of) CITY |there )?(\w+)$", text)
        if tongue:
            return self.claims.country.speaks(tongue[1]), "language"
        people = re.match(r"^is (?:the |its )?population (?:of CITY |there )?(.+)$", text)
        if people:
            return self.claims.truth(f"population {people[1]}")
        living = re.match(
            r"^do (.+ (?:people|inhabitants|residents)) (?:live|reside) (?:in CITY|in it|there|here)$",
            text,
        )
        if living:
            return self.claims.truth(f"have {living[1]}")
        flows = re.match(
            r"^(?:does|do) (?:the )?(.+) (?:flow|run|pass|go) (?:through|by|past) (?:CITY|it)$",
            text,
        )
        if flows:
            return self.claims.truth(f"located on the {flows[1]}")
        within = re.match(r"^(?:is|are) (?:the )?(.+) (?:in|part of) (?:CITY|it)$", text)
        return self.claims.truth(f"home to {within[1]}") if within else (None, "other subject")

    # -- guesses --------------------------------------------------------------------------------

    def _guess(self, question: Question, raw: str) -> str:
        named = find_city_mentions(raw)
        if len(named) > 1 and _EITHER.match(question.text):
            return "It is one of them." if self.city in named else "No, it is none of them."
        match = re.match(
            r"^(?:is|are|was|could|would) (?:CITY|it|the answer|you|this|that|the city|the name)(?: be)?(?: in fact| perhaps| maybe| by any chance| actually| possibly| called| named| known as| from| you are from| you are thinking of)* (?P<name>(?!in |on |near |at |located).+)$",
            question.text,
        )
        if match:
            return self._named(match["name"])
        if len(named) == 1 and _GUESS_STATEMENT.search(question.text):
            return self._verdict(named[0] == self.city)
        if 0 < len(question.text.split()) <= 5 and named and not _PLACING.search(question.text):
            return self._verdict(self.city in named) if len(named) == 1 else ""
        return ""

    def _named(self, phrase: str) -> str:
        if re.match(r"(?:the |a )?(?:\w+ )?capital\b", phrase):
            return ""
        parts = [fold(part) for part in re.split(r",| in (?=[a-z])", phrase) if part.strip()]
        first = re.sub("^the ", "", parts[0])
        first = first if first in self.city.names else first.removeprefix("city of ")
        if first in self.city.names:
            scope = [self.claims.places.within(part) for part in parts[1:]]
            return self._verdict(False not in scope)
        longest = re.sub(
            r" (?:city|" + "|".join(sorted(self.claims.places.country_names)) + ")$", "", first
        )
        if longest in self.city.names:
            return self._verdict(True)
        if " or " in phrase:
            return ""
        other = find_city_mentions(first)
        if other and other[0] != self.city and first in other[0].names:
            return self._verdict(False)
        if first in regions() and first not in towns():
            value = self.claims.places.within(first)
            return (
                "" if value is None else ("Yes, it is there." if value else "No, it is not there.")
            )
        return self._verdict(False) if first in towns() else ""

    def _verdict(self, right: bool) -> str:
        """Wrong guesses only: a right one has been confirmed by the grammar that wins the game."""
        return UNKNOWN if right else WRONG

    # -- choices --------------------------------------------------------------------------------

    def _choice(self, claim: str, raw: str) -> str:
        """The true one of several options ("in the north or the south"); empty if undecided."""
        coast = self.claims.facts.coast
        if _CHOICE.search(claim):
            return {
                "yes": "It is on the coast.", "no": "It is inland.",
                "near": "It is not directly on the coast, but not far from it.",
                "lake": "It is by a large lake, far from the sea.",
            }[coast]  # fmt: skip
        options = _options(claim)
        values = [self.claims.truth(option)[0] for option in options]
        if not values or None in values or values.count(True) > 1:
            return ""
        if True not in values:
            return "Neither of them." if len(values) == 2 else "None of them."
        return f"It is {_as_asked(options[values.index(True)], raw)}."

    # -- claims ---------------------------------------------------------------------------------

    def _claim(self, asked: re.Match[str]) -> tuple[bool | None, str]:
        claim, subject = asked["claim"].strip(), asked["subject"]
        if subject == "COUNTRY":
            value = self.claims.country.claim(re.sub(r"^(?:a|an|the) ", "", claim))
            return value, "country"
        if subject in {"you", "we", "people in CITY", "people", "the people"}:
            return self._people(claim)
        if asked["verb"] in {"was", "were"}:
            claim = f"once {claim}"
        if subject == "there":
            claim = re.sub(r"^(?:a|an|any|some|many) ", "", claim)
        return self.claims.truth(claim)

    def _people(self, claim: str) -> tuple[bool | None, str]:
        speak = re.match(r"^(?:there )?(?:\w+ly )?(?:speak|speaking) (\w+)", claim)
        if speak:
            return self.claims.country.speaks(speak[1]), "language"
        live = re.match(
            r"^(?:(?:live|living|from|reside|located|based)\b ?(?:in )?|in )(.+)$", claim
        )
        if live:
            return self.claims.within(live[1]), "in"
        have = re.match(r"^have (.+)$", claim)
        return (self.claims.truth(have[1])) if have else (None, "people")

    def _half_true(self, claim: str, topic: str) -> tuple[str, str]:
        """What can be said where neither yes nor no is right."""
        coast = self.claims.facts.coast
        if topic == "coast" and coast == "near":
            return "Not directly, but the coast is not far.", topic
        if topic == "coast" and coast == "lake":
            return "It is on the shore of a large lake, not of the sea.", topic
        if topic == "capital" and re.match(r"^(?:a |the )?capital(?: city)?$", claim):
            return "It is the capital of its province or state, not of the country.", topic
        return "", topic


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


def _as_asked(option: str, raw: str) -> str:
    """The option with the capitals of the question, where it stands there word for word."""
    said = option.replace("COUNTRY", "its country").strip(" ,")
    found = re.search(rf"\b{re.escape(said)}\b", raw, re.IGNORECASE)
    if found:
        return found[0]
    words = {word.lower(): word for word in re.findall(r"\w+", raw)}
    return " ".join(words.get(word, word) for word in said.split())


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


def _phrase(verb: str, subject: str, value: bool, negated: bool) -> str:
    if negated:
        return "That is in fact so." if value else "Correct, that is not so."
    if subject in {"there", "COUNTRY", "you", "we", "people", "the people", "people in CITY"}:
        return "Yes." if value else "No."
    verb = verb if verb in {"is", "was", "does", "has", "did"} else "is"
    return f"Yes, it {verb}." if value else f"No, it {verb} not."


@cache
def targets() -> tuple[str, ...]:
    """The 100 targets, written `Shanghai, China`, in the published order."""
    return tuple(city.word for city in cities())


@cache
def familiar() -> tuple[str, ...]:
    """32 cities that small models name, in the order in which small grids take them."""
    return tuple(find_city(name).word for name in read_lines(PACKAGE, "familiar.txt"))


def oracle(target: str) -> CityOracle:
    """The oracle for a target such as `Shanghai, China` or `Shanghai`; the same one for a city.

    Raises:
        AriaError: `target` names no target city.
    """
    return _oracle(find_city(target))


@cache
def _oracle(city: City) -> CityOracle:
    return CityOracle(city)


@cache
def questions() -> tuple[str, ...]:
    """Everyday questions that can be answered for most cities."""
    return tuple(read_lines(PACKAGE, "questions.txt"))
