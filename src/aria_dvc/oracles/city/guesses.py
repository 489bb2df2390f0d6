"""What names a city: guesses of it, and answers that give it away."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

from aria_dvc.oracles.city.facts import city_facts
from aria_dvc.oracles.city.gazetteer import codes, is_place
from aria_dvc.oracles.city.lists import DEMONYMS
from aria_dvc.oracles.city.targets import City, cities, find_city
from aria_dvc.oracles.guesses import AM_I_RIGHT, SURE, GuessGrammar, guess_sentence, is_guess
from aria_dvc.oracles.text import fold, strip_accents

SHORT_NAME = 4
LIKE_OWN = 0.6
"""A name as similar as this to the city's own may be meant for it."""
_PROPER = re.compile(r"(?<=\s)([A-Z][\w'’-]{2,}(?:[ -][A-Z][\w'’-]+){0,2})(?:, [A-Z][\w ]+)?\W*$")
_TITLED = re.compile(r"\b[Tt]he (?:[A-Z][\w'’-]* (?:of )?)*$")
_ADJECTIVE = re.compile(r"(?:an|ese|ish|ic|ern|ist|ine)$")

_CITY = (
    r"(?:(?:mystery|secret|hidden|target|correct|right) )?(?:city|hometown|home town|home city"
    r"|home|town|place of residence|place|answer)"
)
_YOURS = (
    r"(?: (?:that )?(?:(?:you are|youre|you come|i am) from|you live in|you grew up in"
    r"|you have in mind|(?:you are|youre) thinking of|in question)"
    r"| where you (?:are from|live|come from))*"
)
_IT = rf"(?:it|this|that|(?:the name of )?(?:the|your) {_CITY}{_YOURS}|(?:the|your) citys name)"
_SOFT = (
    r"(?: (?:perhaps|maybe|possibly|actually|really|just|by any chance|probably|likely|most"
    r"|in fact|indeed|definitely|certainly|none other than|once|formerly|previously))*"
)
_FROM = (
    r"(?:from|in|living in|based in|thinking (?:of|about)|talking about|referring to|describing"
    r"|a (?:resident|native) of)"
)
_PRAISE = r"(?:beautiful|great|famous|lovely|historic|ancient|big|large|vibrant|bustling)"
_LEAD = (
    rf"(?:(?:is|isnt|was) {_IT}(?: is the city)?"
    rf"|(?:could|might|can|would|must|may) {_IT} (?:happen to )?be"
    rf"|{_IT} (?:is|must be|could be|has to be)|its|(?:are|were) (?:you|we) {_FROM}"
    r"|(?:you are|youre|you must be) (?:from|in|living in)|you (?:live in|come from)"
    r"|did you grow up in|does (?:it|your city|the city) (?:call itself|go by the name(?: of)?)"
    r"|do (?:people|you|they|locals) call (?:it|your city)"
    r"|do you (?:live in|come from|reside in)|my (?:\w+ )?guess (?:is|would be)"
    r"|(?:that |it |this )?sounds like"
    rf"|(?:{SURE}|{AM_I_RIGHT})(?: (?:{_IT} is|its|(?:you are|youre) from"
    r"|you (?:live in|come from)))?)"
)
_GRAMMAR = GuessGrammar(
    lead=(
        rf"{_LEAD}{_SOFT}(?: (?:called|named|(?:also )?known as))?"
        rf"(?: the capital(?: city)?|(?: the)?(?: {_PRAISE})?(?: city)?(?: of)?)"
        r"|the city(?: of)?|is"
    )
)
_NICKNAME = GuessGrammar(
    lead=(
        rf"{_LEAD}{_SOFT}(?: (?:also|often|sometimes|commonly|popularly|affectionately))*"
        r"(?: (?:called|named|nicknamed|dubbed|known as|referred to as))?(?: by the nickname)?"
        r"(?: the)?|is (?:its|your citys|the citys|the) nickname(?: the)?|the"
    )
)


def guesses(name: str, question: str) -> bool:
    """Whether the question guesses the city of that name, and nothing else."""
    return is_guess(question, _guesses(name), _any_guess())


def several(question: str) -> bool:
    """Whether it guesses twice: `Is it Paris? Is it London?`."""
    asked = [guess_sentence(part)[0] for part in question.split("?") if part.strip()]
    return len(asked) > 1 and all(_any_guess().fullmatch(part) for part in asked)


def initials(city: City) -> frozenset[str]:
    """`la` for "L.A.": too short a word to be looked for in any text."""
    letters = (name.split() for name in city.names)
    return frozenset("".join(each) for each in letters if set(map(len, each)) == {1})


def stranger(question: str) -> str:
    """The capitalised name that nobody knows and that is guessed ("Is it Khiva?"), folded, or "".

    Adjectives are no names, and what follows an article ("the Magic City") is a nickname.
    """
    found = _PROPER.search(question)
    if not found or _ADJECTIVE.search(found[1]) or is_place(fold(found[1])):
        return ""
    if _TITLED.search(question[: found.start()]):
        return ""
    guessed = is_guess(question, _GRAMMAR.pattern([fold(found[0])]), _any_guess())
    return fold(found[1]) if guessed else ""


def nicknamed(question: str) -> tuple[City, ...]:
    """The cities whose nickname it asks for: `Is it the Big Apple?`."""
    asked = guess_sentence(question)[0]
    if not _any_nickname().fullmatch(asked):
        return ()
    return tuple(
        city for city in cities() if _NICKNAME.pattern(_nicknames(city.name)).fullmatch(asked)
    )


@cache
def _nicknames(name: str) -> frozenset[str]:
    """Folded nicknames of the city without article; also `City of Lights` for `City of Light`."""
    bare = {fold(each).removeprefix("the ") for each in city_facts()[name].nicknames}
    return frozenset(form for each in bare for form in (each.removesuffix("s"), each, f"{each}s"))


@cache
def _any_nickname() -> re.Pattern[str]:
    return _NICKNAME.pattern(each for city in cities() for each in _nicknames(city.name))


def like_own(stranger: str, name: str) -> bool:
    """Whether a folded name may be a misspelling of the city's own."""
    return bool(get_close_matches(stranger, find_city(name).names, 1, LIKE_OWN))


def _places(name: str) -> frozenset[str]:
    """Folded names of what the city lies in: region, its code (`ny`), country, continent."""
    facts = city_facts()[name]
    places = facts.regions.sure | facts.country.names | facts.country.regions.sure
    places |= {re.sub("^state of | state$", "", place) for place in places}
    return places.union(*(codes().get(place, frozenset()) for place in places))


def _either(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def _titles(name: str) -> str:
    """What the city may be called before its name: `the Big Apple,`, `the capital of Egypt,`."""
    facts = city_facts()[name]
    ruled = set(facts.capital_of)
    if not facts.country.capital.isdisjoint(facts.city.names):
        ruled |= facts.country.names
    ruled |= {word for word, place in DEMONYMS.items() if place in ruled}
    titles = [_either(_nicknames(name))] if facts.nicknames else []
    if ruled:
        titles.append(
            rf"capital(?: city)? of (?:the )?(?:{_either(ruled)})|(?:{_either(ruled)})s? capital"
        )
    return rf"(?:the )?(?:{'|'.join(titles)})" if titles else ""


@cache
def _guesses(name: str) -> re.Pattern[str]:
    city = find_city(name)
    places = _either(_places(city.name))
    title = (
        r"(?: the| an?)?(?: (?:large|big|major|port|coastal|famous|largest|biggest))?"
        r" (?:capital|city|metropolis)(?: city)?(?: and largest city)? (?:of|in)"
    )
    yours = (
        rf"(?: (?:the|your) {_CITY}{_YOURS}| where you (?:live|are from|come from)"
        r"| that you (?:live in|are from)| it is)?"
    )
    own = _either(city.names)
    former = (
        rf"(?: (?:(?:formerly|previously|once|now|also|aka) )?(?:(?:known as|called) )?(?:{own}))?"
    )
    suffix = rf"(?: city)?{former}(?:(?: in|{title})?(?: the)? (?:{places}))*{yours}"
    grammar = GuessGrammar(_GRAMMAR.lead, suffix, _titles(city.name))
    return grammar.pattern({*city.names, *initials(city)})


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
