"""Plain-text forms that names and questions are compared in."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_NO_DECOMPOSITION = str.maketrans(
    {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"}
)
_APOSTROPHES = re.compile(r"['’‘`ʼ´\"“”]")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def strip_accents(text: str) -> str:
    """Lower case without diacritics; punctuation stays."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.lower().translate(_NO_DECOMPOSITION))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@lru_cache(maxsize=4096)  # most answers are those of other targets too
def fold(text: str) -> str:
    """Lower case letters and digits, single spaces, no accents: `Xi'an` -> `xian`."""
    bare = _APOSTROPHES.sub("", strip_accents(text))
    return _SEPARATORS.sub(" ", bare).strip()


def phrase_pattern(phrases: list[str]) -> re.Pattern[str]:
    """A pattern that finds any of the folded phrases as whole words, the longest first."""
    ordered = sorted(set(phrases), key=lambda phrase: (-len(phrase), phrase))
    return re.compile(r"\b(?:" + "|".join(map(re.escape, ordered)) + r")\b")
