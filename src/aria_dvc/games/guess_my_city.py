"""Guess My City: find the oracle's home city by free questions (LMRL-Gym's rules)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache

from aria_dvc.games.base import Config, Game, IllegalMove
from aria_dvc.games.guessing import GuessGrammar, GuessingMatch, complete, is_guess
from aria_dvc.games.parsing import clean, cut
from aria_dvc.oracles.city.facts import city_facts
from aria_dvc.oracles.city.targets import City, cities, find_city
from aria_dvc.oracles.text import fold, strip_accents

REFUSAL = "I cannot tell you the name of my city."
MAX_ANSWER_CHARS = 300
SHORT_NAME = 4

_CITY = r"(?:city|hometown|home town|home city|home|town|place|answer)"
_YOURS = (
    r"(?: (?:that )?(?:(?:you are|youre|you come|i am) from|you live in|you grew up in"
    r"|you have in mind|(?:you are|youre) thinking of|in question)"
    r"| where you (?:are from|live|come from))*"
)
_IT = rf"(?:it|this|that|(?:the name of )?(?:the|your) {_CITY}{_YOURS}|(?:the|your) citys name)"
_SOFT = r"(?: (?:perhaps|maybe|possibly|actually|really|just|by any chance|probably|likely|most))*"
_FROM = r"(?:from|in|living in|based in|thinking of|talking about)"
_GRAMMAR = GuessGrammar(
    lead=(
        rf"(?:is {_IT}(?: is the city)?|(?:could|might|can|would|must|may) {_IT} be"
        rf"|{_IT} (?:is|must be|could be)|its|(?:are|were) you {_FROM}"
        r"|(?:you are|youre|you must be) from"
        r"|do you (?:live in|come from|reside in)|my (?:\w+ )?guess is"
        rf"|(?:i|id|i would|i will) (?:guess|think|believe|say)(?: that)?"
        rf"(?: (?:{_IT} is|its|(?:you are|youre) from))?)"
        rf"{_SOFT}(?: (?:called|named|known as))?(?: the)?(?: city)?(?: of)?|the city(?: of)?|is"
    )
)


def _places(name: str) -> frozenset[str]:
    """Folded names of what the city lies in: region, country, continent."""
    facts = city_facts()[name]
    return facts.regions.sure | facts.country.names | facts.country.regions.sure


@cache
def _guesses(name: str) -> re.Pattern[str]:
    city = find_city(name)
    places = "|".join(sorted(map(re.escape, _places(city.name)), key=len, reverse=True))
    title = r"(?: the)? (?:capital|largest city)(?: city)?(?: and largest city)? (?:of|in)"
    yours = rf"(?: (?:the|your) {_CITY})?"
    suffix = rf"(?: city)?(?:(?: in|{title})?(?: the)? (?:{places}))*{yours}"
    grammar = GuessGrammar(_GRAMMAR.lead, suffix)
    return grammar.pattern(city.names)


@cache
def _any_guess() -> re.Pattern[str]:
    return _GRAMMAR.pattern([name for city in cities() for name in city.names])


@cache
def _named(name: str) -> re.Pattern[str]:
    """The city's names; its first one also as the beginning of a word, as in "Londoner"."""
    city = find_city(name)
    spellings = sorted(city.names, key=len, reverse=True)
    either = "|".join(re.escape(spelling).replace(r"\ ", " ?") for spelling in spellings)
    stem = re.escape(fold(city.name)).replace(r"\ ", " ?")
    longer = rf"|{stem}\w*" if len(stem) > SHORT_NAME else ""
    return re.compile(rf"\b(?:(?:{either})(?:s|city)?\b{longer})")


def leaks(answer: str, name: str) -> bool:
    """Whether an answer gives the city's name away: whole, hyphenated or letter by letter.

    Letters of another script count as giving it away, since no name is known in them.
    """
    if any(char.isalpha() and "LATIN" not in unicodedata.name(char, "") for char in answer):
        return True
    spelled = re.sub(
        r"\b(?:[a-z][\W_]+){2,}[a-z]\b",
        lambda match: re.sub(r"[\W_]", "", match[0]),
        strip_accents(answer),
    )
    readings = (answer, spelled, re.sub(r"(?<=\w)-(?=\w)", "", answer))
    return any(_named(name).search(fold(reading)) for reading in readings)


class GuessMyCityMatch(GuessingMatch):
    game = "guess_my_city"
    solved_answer = "Yes, that is my city."

    @property
    def city(self) -> City:
        return find_city(self.config["target"])

    def solved_by(self, question: str) -> bool:
        return is_guess(question, _guesses(self.city.name), _any_guess())

    def read_answer(self, text: str) -> str:
        answer = re.sub(r"^(?:oracle|assistant|answer) ?: ?", "", clean(text), flags=re.IGNORECASE)
        if not any(char.isalnum() for char in answer):
            raise IllegalMove("empty", "Your answer was empty. Answer in one short sentence.")
        return REFUSAL if leaks(answer, self.city.name) else cut(answer, MAX_ANSWER_CHARS)

    def system_prompt(self, role: str) -> str:
        if role == "oracle":
            return (
                f"You live in {self.config['target']}, and somebody must find out where by "
                "asking you. Answer each question about your city truthfully in one short "
                "sentence. Never write the name of your city."
            )
        return agent_prompt(self.config["max_questions"])


def agent_prompt(limit: int) -> str:
    return (
        "You play Guess My City: find out which city I live in. Ask one short question a turn, "
        f"{limit} at most, and learn from my answers. You win by naming the city in a question "
        'such as "Is it Springfield?"'
    )


class GuessMyCity(Game):
    name = "guess_my_city"
    category = "single_agent"
    roles = ("agent",)
    environment = "oracle"

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`default`: all targets, written "city, country"."""
        return {"default": [complete(self.name, {"target": city.word}) for city in cities()]}

    def start(self, config: Config, reward: str = "win") -> GuessMyCityMatch:
        full = complete(self.name, config)
        return GuessMyCityMatch({**full, "target": find_city(full["target"]).word})

    def describe(self, role: str) -> str:
        return agent_prompt(20) if role == "agent" else ""


GAME = GuessMyCity()
