"""The embedded oracle of Guess My City.

`oracle("Shanghai, China").answer("Is your city on the coast?")` -> `Yes, it is.` Answers
never contain the city's name; what the tables do not cover is answered with `UNKNOWN`.
"""

from __future__ import annotations

import re
from functools import cache, cached_property

from aria_dvc.oracles.base import MAX_QUESTION_CHARS, Answer
from aria_dvc.oracles.city.claims import Claims
from aria_dvc.oracles.city.facts import city_facts
from aria_dvc.oracles.city.gazetteer import regions, towns
from aria_dvc.oracles.city.guesses import guesses, like_own
from aria_dvc.oracles.city.open_answers import OpenAnswers
from aria_dvc.oracles.city.reading import Reading, read
from aria_dvc.oracles.city.targets import PACKAGE, City, cities, find_city, find_city_mentions
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_lines

RIGHT, WRONG = "Yes, that is the city.", "No, that is not the city."
UNKNOWN = "I do not know the answer to that."


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
    def _behind(self) -> re.Pattern[str]:
        """What may stand behind the name: `city`, or the country."""
        countries = "|".join(sorted(self.claims.places.country_names))
        return re.compile(rf" (?:city|{countries})$")

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
        asked = read(question)
        text, topic = self._reply(asked)
        if text in ("", UNKNOWN) and self._names_another(asked):
            return Answer(WRONG, True, "guess")
        if text in ("", UNKNOWN):
            return Answer(UNKNOWN, False, topic)
        if self._names.search(fold(text)):
            return Answer("I cannot answer that without giving the name away.", True, topic)
        return Answer(text, True, topic)

    def _names_another(self, asked: Reading) -> bool:
        """Whether it guesses another target, by its nickname too, or a name that nobody knows."""
        if any(city != self.city for city in (*asked.guessed, *asked.nicknamed)):
            return True
        return bool(asked.stranger) and not like_own(asked.stranger, self.city.name)

    def _reply(self, asked: Reading) -> tuple[str, str]:
        if self.city in asked.nicknamed:
            return "Yes, it is.", "nickname"
        guess = self._guess(asked)
        if guess:
            return guess, "guess"
        if not asked.yes_no:
            return self._other(asked)
        choice = self._choice(asked)
        if choice:
            return choice, "choice"
        value, topic = asked.judge(self.claims)
        verb, subject, claim = asked.yes_no
        if value is None:
            return self._half_true(claim, topic)
        return _phrase(verb, subject, value, asked.negated), topic

    def _other(self, asked: Reading) -> tuple[str, str]:
        """Open questions, and yes/no questions about something else than the city."""
        if asked.is_open:
            return self.open.answer(asked.open)
        value, topic = asked.judge(self.claims)
        return ("" if value is None else "Yes." if value else "No."), topic

    # -- guesses --------------------------------------------------------------------------------

    def _guess(self, asked: Reading) -> str:
        if asked.names_several:
            own = self.city in asked.mentions
            return "It is one of them." if own else "No, it is none of them."
        if asked.called:
            return self._named(asked.called)
        return self._verdict(asked.meant == self.city) if asked.meant else ""

    def _named(self, phrase: str) -> str:
        if re.match(r"(?:the |a )?(?:\w+ )?capital\b", phrase):
            return ""
        parts = [fold(part) for part in re.split(r",| in (?=[a-z])", phrase) if part.strip()]
        first = re.sub("^the ", "", parts[0])
        first = first if first in self.city.names else first.removeprefix("city of ")
        if first in self.city.names:
            scope = [self.claims.places.within(part) for part in parts[1:]]
            return self._verdict(False not in scope)
        if self._behind.sub("", first) in self.city.names:
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

    def _choice(self, asked: Reading) -> str:
        """The true one of several options ("in the north or the south"); empty if undecided."""
        if asked.nearest:
            nearest = self.claims.distances.nearest(asked.nearest)
            return f"It is closer to {_as_asked(nearest, asked.raw)}." if nearest else ""
        if asked.coast_or_inland:
            return {
                "yes": "It is on the coast.", "no": "It is inland.",
                "near": "It is not directly on the coast, but not far from it.",
                "lake": "It is by a large lake, far from the sea.",
            }[self.claims.facts.coast]  # fmt: skip
        options = asked.options
        values = [self.claims.truth(claim)[0] for _, claim in options]
        if not values or None in values or values.count(True) > 1:
            return ""
        if True not in values:
            return "Neither of them." if len(values) == 2 else "None of them."
        return f"It is {_as_asked(options[values.index(True)][0], asked.raw)}."

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


def _as_asked(option: str, raw: str) -> str:
    """The option with the capitals of the question, where it stands there word for word."""
    said = option.replace("COUNTRY", "its country").strip(" ,")
    found = re.search(rf"\b{re.escape(said)}\b", raw, re.IGNORECASE)
    if found:
        return found[0]
    words = {word.lower(): word for word in re.findall(r"\w+", raw)}
    return " ".join(words.get(word, word) for word in said.split())


def _phrase(verb: str, subject: str, value: bool, negated: bool) -> str:
    if negated:
        return "That is in fact so." if value else "Correct, that is not so."
    if subject in {
        "there",
        "COUNTRY",
        "you",
        "we",
        "they",
        "locals",
        "the locals",
        "people",
        "the people",
        "people in CITY",
    }:
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
