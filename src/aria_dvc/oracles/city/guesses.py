"""What names a city: guesses of it, and answers that give it away."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from aria_dvc.oracles.city.facts import city_facts
from aria_dvc.oracles.city.targets import cities, find_city
from aria_dvc.oracles.guesses import GuessGrammar, is_guess
from aria_dvc.oracles.text import fold, strip_accents

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


def guesses(name: str, question: str) -> bool:
    """Whether the question guesses the city of that name, and nothing else."""
    return is_guess(question, _guesses(name), _any_guess())


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
