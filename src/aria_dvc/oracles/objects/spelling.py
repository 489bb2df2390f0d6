"""Questions about the word itself: its letters, its first and last one, how many words."""

from __future__ import annotations

import re
from collections.abc import Callable

from aria_dvc.oracles.numbers import number
from aria_dvc.oracles.objects.table import Extent, extent
from aria_dvc.oracles.objects.targets import objects

_WORD = (
    r"(?:it|its name|the (?:word|name|object|item|thing|answer)|its spelling|the first word"
    r"|the name of (?:it|the object))"
)
_LETTER = r"(?:the |an? )?(?:letter )?(?P<letters>[a-z])"
_COUNT = r"(?P<count>\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
_LENGTH = rf"{_COUNT} letters(?: long| in it)?"
_HAS = r"(?:have |contain |consist of |made of |made up of |spelled with )?"
_RULES: list[tuple[str, Callable[[str, re.Match[str]], bool]]] = [
    (rf"does {_WORD} (?:start|begin) with {_LETTER}", lambda n, m: n.startswith(m["letters"])),
    (
        rf"is (?:the )?(?:first letter(?: of {_WORD})?|initial(?: letter)?) {_LETTER}",
        lambda n, m: n.startswith(m["letters"]),
    ),
    (rf"does {_WORD} (?:start|begin) with (?:a |the )?vowel", lambda n, m: n[0] in "aeiou"),
    (rf"does {_WORD} (?:start|begin) with (?:a |the )?consonant", lambda n, m: n[0] not in "aeiou"),
    (rf"does {_WORD} end (?:with|in) {_LETTER}", lambda n, m: n.endswith(m["letters"])),
    (rf"is the last letter(?: of {_WORD})? {_LETTER}", lambda n, m: n.endswith(m["letters"])),
    (
        rf"does {_WORD} (?:contain|have|include) (?:an? |the )?letter (?P<letters>[a-z])"
        r"(?: in it)?",
        lambda n, m: m["letters"] in n,
    ),
    (
        rf"(?:does|is) {_WORD} {_HAS}(?:exactly )?{_LENGTH}",
        lambda n, m: _letters(n) == _limit(m),
    ),
    (
        rf"(?:does|is) {_WORD} {_HAS}(?:more than|over|longer than) {_LENGTH}",
        lambda n, m: _letters(n) > _limit(m),
    ),
    (
        rf"(?:does|is) {_WORD} {_HAS}(?:less than|fewer than|under|shorter than) {_LENGTH}",
        lambda n, m: _letters(n) < _limit(m),
    ),
    (
        rf"(?:does|is) {_WORD} {_HAS}(?:a |only |just )?(?:single|one) word",
        lambda n, m: " " not in n,
    ),
    (rf"(?:does|is) {_WORD} {_HAS}two words", lambda n, m: n.count(" ") == 1),
    (
        rf"(?:does|is) {_WORD} {_HAS}(?:more than one word|multiple words)",
        lambda n, m: " " in n,
    ),
]
_COMPILED = [(re.compile(rf"{pattern}$"), test) for pattern, test in _RULES]


def _letters(name: str) -> int:
    return len(name.replace(" ", ""))


def _limit(match: re.Match[str]) -> float:
    return number(match["count"]) or 0.0


def spelling(question: str) -> Extent | None:
    """The extent of a plain question about spelling; None for any other question."""
    for pattern, test in _COMPILED:
        match = pattern.match(question)
        if match:
            names = [(item.name, item.name.lower()) for item in objects()]
            return extent(frozenset(name for name, low in names if test(low, match)))
    return None
