"""The embedded oracle of Guess My City.

`city_oracle("Shanghai, China").answer("Is your city on the coast?")` -> `Yes, it is.` Answers
never contain the city's name; what the tables do not cover is answered with `UNKNOWN`.
"""

from __future__ import annotations

import re

from aria_dvc.oracles.base import MAX_QUESTION_CHARS, Answer
from aria_dvc.oracles.city_claims import Claims
from aria_dvc.oracles.city_data import City, find_city, find_city_mentions
from aria_dvc.oracles.city_facts import city_facts
from aria_dvc.oracles.city_open import OpenAnswers
from aria_dvc.oracles.city_places import is_place, regions, towns
from aria_dvc.oracles.city_question import Question, read_question
from aria_dvc.oracles.text import fold

UNKNOWN = "I do not know the answer to that."
_YES_NO = re.compile(
    r"^(?P<verb>is|are|was|were|does|do|did|has|have|had|can|could|would|will) "
    r"(?P<subject>CITY|it|there|COUNTRY|you|we|people in CITY|people|the people|the answer|the city) ?(?P<claim>.*)$"
)
_GUESS_STATEMENT = re.compile(
    r"\b(?:my (?:final )?guess|i (?:guess|think|believe)|(?:is|must be|might be|could be) (?:most )?(?:likely|probably)|"
    r"^(?:CITY|it|the city|the answer) is)\b"
)
_CHOICE = re.compile(
    r"^(?:.*\b)?(?:coast(?:al)?(?: (?:area|region|city))?|sea|ocean|coastline|shore).* or .*\b(?:inland|landlocked|interior)\b|\binland or\b"
)


class CityOracle:
    """Answers questions about one city in short sentences that do not name it."""

    def __init__(self, city: City) -> None:
        self.city = city
        self.claims = Claims(city_facts()[city.name])
        self.open = OpenAnswers(self.claims)
        self._names = re.compile(rf"\b(?:{'|'.join(map(re.escape, city.names))})\b")

    def answer(self, question: str) -> Answer:
        """Answer one question; `known` is False for `UNKNOWN`."""
        if len(question) > MAX_QUESTION_CHARS:
            return Answer(UNKNOWN, False, "too long")
        text, topic = self._reply(read_question(question), question)
        if not text:
            return Answer(UNKNOWN, False, topic)
        if self._names.search(fold(text)):
            return Answer("I cannot answer that without giving the name away.", True, topic)
        return Answer(text, True, topic)

    def _reply(self, question: Question, raw: str) -> tuple[str, str]:
        guess = self._guess(question, raw)
        if guess:
            return guess, "guess"
        asked = _YES_NO.match(question.text)
        if not asked:
            return self.open.answer(_imperative(question.text))
        choice = self._choice(asked["claim"])
        if choice:
            return choice, "choice"
        value, topic = self._claim(asked)
        if value is None:
            return self._half_true(asked["claim"], topic)
        return _phrase(asked["verb"], asked["subject"], value, question.negated), topic

    # -- guesses --------------------------------------------------------------------------------

    def _guess(self, question: Question, raw: str) -> str:
        named = find_city_mentions(raw)
        match = re.match(
            r"^(?:is|are|was|could|would) (?:CITY|it|the answer|you|this|that|the city|the name)(?: be)?(?: in fact| perhaps| maybe| by any chance| actually| possibly| called| named| known as| from| you are from| you are thinking of)* (?P<name>(?!in |on |near |at |located).+)$",
            question.text,
        )
        if match:
            return self._named(match["name"])
        if len(named) == 1 and _GUESS_STATEMENT.search(question.text):
            return self._verdict(named[0] == self.city)
        if 0 < len(question.text.split()) <= 5 and named:
            return self._verdict(self.city in named) if len(named) == 1 else ""
        return ""

    def _named(self, phrase: str) -> str:
        parts = [fold(part) for part in re.split(r",| in (?=[a-z])", phrase) if part.strip()]
        first = re.sub(
            r"^(?:the )?(?:city of |capital city of |capital city |capital )?", "", parts[0]
        )
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
        return "Yes, that is the city." if right else "No, that is not the city."

    # -- choices --------------------------------------------------------------------------------

    def _choice(self, claim: str) -> str:
        coast = self.claims.facts.coast
        if _CHOICE.search(claim):
            return {
                "yes": "It is on the coast.", "no": "It is inland.",
                "near": "It is not directly on the coast, but not far from it.",
                "lake": "It is by a large lake, far from the sea.",
            }[coast]  # fmt: skip
        parts = re.split(
            r",? or (?:is (?:it|CITY) |are |does it )?(?:rather |more |instead )?", claim
        )
        if len(parts) != 2 or not re.match(r"^(?:located|situated|in|on|found|more|part)\b", claim):
            return ""
        first, second = parts
        values = [self.claims.truth(first)[0], self.claims.truth(_parallel(first, second))[0]]
        if values == [True, False] or values == [False, True]:
            said = first if values[0] else _parallel(first, second)
            return f"It is {re.sub(r'COUNTRY', 'its country', said.strip(' ,'))}."
        if values == [False, False]:
            return "Neither of them."
        return ""

    # -- claims ---------------------------------------------------------------------------------

    def _claim(self, asked: re.Match[str]) -> tuple[bool | None, str]:
        claim, subject = asked["claim"].strip(), asked["subject"]
        if subject == "COUNTRY":
            value = self.claims.country_claim(re.sub(r"^(?:a|an|the) ", "", claim), claim)
            return value, "country"
        if subject in {"you", "we", "people in CITY", "people", "the people"}:
            return self._people(claim)
        if subject == "there":
            claim = re.sub(r"^(?:a|an|any|some|many) ", "", claim)
        return self.claims.truth(claim)

    def _people(self, claim: str) -> tuple[bool | None, str]:
        speak = re.match(r"^(?:\w+ly )?(?:speak|speaking) (\w+)", claim)
        if speak:
            return self.claims.speaks(speak[1]), "language"
        live = re.match(r"^(?:live|living|from|reside|located|based)\b ?(?:in )?(.+)$", claim)
        if live:
            return self.claims.within(live[1]), "in"
        have = re.match(r"^have (.+)$", claim)
        return (self.claims.truth(have[1])) if have else (None, "people")

    def _half_true(self, claim: str, topic: str) -> tuple[str, str]:
        coast = self.claims.facts.coast
        if (
            topic == "topic"
            and re.search(r"\b(?:coast|coastal|coastline|beach)\b", claim)
            and len(claim.split()) <= 7
        ):
            asked_coast = re.search(
                r"\b(?:on|along|a|in) (?:the |a )?coast(?:al|line)?(?: (?:city|area|region|town))?$",
                claim,
            )
            if asked_coast and coast == "near":
                return "Not directly, but the coast is not far.", "coast"
            if asked_coast and coast == "lake":
                return "It is on the shore of a large lake, not of the sea.", "coast"
        if topic == "capital" and re.match(r"^(?:a |the )?capital(?: city)?$", claim):
            return "It is the capital of its province or state, not of the country.", "capital"
        return "", topic


def _parallel(first: str, second: str) -> str:
    """`located in asia` and `europe` -> `located in europe`."""
    if re.match(r"^(?:located|situated|in|on|near|at|a |an |the capital|inland)\b", second.strip()):
        return second if not second.startswith("the ") else second
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


def city_oracle(word: str) -> CityOracle:
    """The oracle for a target such as `Shanghai, China`.

    Raises:
        AriaError: `word` names no target city.
    """
    return CityOracle(find_city(word))


__all__ = ["UNKNOWN", "CityOracle", "city_oracle", "is_place"]
