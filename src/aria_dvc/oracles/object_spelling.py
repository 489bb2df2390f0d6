"""Questions about the word itself: its letters, its first and last one, how many words."""

from __future__ import annotations

import re
from collections.abc import Callable

from aria_dvc.oracles.object_compare import _number
from aria_dvc.oracles.object_data import objects
from aria_dvc.oracles.object_table import Extent, extent

_WORD = r"(?:it|its name|the (?:word|name|object|item|thing|answer)|its spelling|the word|the first word|the name of (?:it|the object))"
_LETTER = r"(?:the |an? )?(?:letter )?(?P<letters>[a-z])"
_COUNT = r"(?P<count>\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
_RULES: list[tuple[str, Callable[[str, re.Match[str]], bool]]] = [
    (rf"does {_WORD} (?:start|begin) with {_LETTER}", lambda n, m: n.startswith(m["letters"])),
    (rf"(?:is|does) (?:the )?(?:first letter(?: of {_WORD})?|initial(?: letter)?) (?:be )?{_LETTER}", lambda n, m: n.startswith(m["letters"])),
    (rf"does {_WORD} (?:start|begin) with (?:a |the )?vowel", lambda n, m: n[0] in "aeiou"),
    (rf"does {_WORD} (?:start|begin) with (?:a |the )?consonant", lambda n, m: n[0] not in "aeiou"),
    (rf"does {_WORD} (?:end) (?:with|in) {_LETTER}", lambda n, m: n.endswith(m["letters"])),
    (rf"is the last letter(?: of {_WORD})? {_LETTER}", lambda n, m: n.endswith(m["letters"])),
    (rf"does {_WORD} (?:contain|have|include) (?:an? |the )?letter (?P<letters>[a-z])(?: in it)?", lambda n, m: m["letters"] in n),
    (rf"(?:does|is) {_WORD} (?:have |contain |made of |spelled with )?(?:exactly )?{_COUNT} letters(?: long| in it)?", lambda n, m: _letters(n) == _number(m["count"])),
    (rf"(?:does|is) {_WORD} (?:have |contain )?(?:more than|over|longer than) {_COUNT} letters(?: long| in it)?", lambda n, m: _letters(n) > (_number(m["count"]) or 0)),
    (rf"(?:does|is) {_WORD} (?:have |contain )?(?:less than|fewer than|under|shorter than) {_COUNT} letters(?: long| in it)?", lambda n, m: _letters(n) < (_number(m["count"]) or 0)),
    (rf"(?:does|is) {_WORD} (?:have |contain |consist of |made of |made up of )?(?:a |only |just )?(?:single|one) word", lambda n, m: " " not in n),
    (rf"(?:does|is) {_WORD} (?:have |contain |consist of |made of |made up of )?two words", lambda n, m: n.count(" ") == 1),
    (rf"(?:does|is) {_WORD} (?:have |contain |consist of )?(?:more than one word|multiple words|a compound of words)", lambda n, m: " " in n),
]  # fmt: skip
_COMPILED = [(re.compile(rf"{pattern}$"), test) for pattern, test in _RULES]


def _letters(name: str) -> int:
    return len(name.replace(" ", ""))


def spelling(question: str) -> Extent | None:
    """The extent of a plain question about spelling; None for any other question."""
    for pattern, test in _COMPILED:
        match = pattern.match(question)
        if match:
            names = [(item.name, item.name.lower()) for item in objects()]
            return extent(frozenset(name for name, low in names if test(low, match)))
    return None
