"""Reduces phrases of questions and of the property table to one comparable key."""

from __future__ import annotations

import re
from functools import lru_cache

from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_text_yaml

_WORDS = read_text_yaml("aria_dvc.oracles.objects", "words.yaml")
_IRREGULAR = {form: base for base, forms in _WORDS["irregular"].items() for form in forms.split()}
GENERIC = frozenset(_WORDS["generic"].split())
JOINING = frozenset(_WORDS["joining"].split())
WITHOUT_ARTICLE = frozenset(_WORDS["without_article"].split())
_KIND_OF = re.compile(r"\b(?:kind|type|sort|form|piece|pair|variety)s? of\b")
_DROPPED = frozenset(_WORDS["dropped"].split())


@lru_cache(maxsize=20000)
def stem(word: str) -> str:
    """Equal for the forms of a word: `cutting` and `cut`, `berries` and `berry`."""
    word = _IRREGULAR.get(word, word)
    if word.isdigit():
        return word
    for ending in ("ing", "ed", "es", "s"):
        bare = word[: -len(ending)]
        if word.endswith(ending) and len(bare) >= 3 and re.search("[aeiouy]", bare):
            if not word.endswith("ss"):
                word = bare
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    if len(word) > 3:
        word = re.sub(r"(?:e|ie)$", "", word) if not word.endswith("ie") else word[:-2] + "i"
    return re.sub(r"y$", "i", word) if len(word) > 3 else word


@lru_cache(maxsize=20000)
def key(phrase: str, noun: bool = False) -> str:
    """The stems of the words that carry meaning, in order; may be empty.

    In a noun phrase (`noun`) words like "item" carry meaning: a kitchen item is no kitchen.
    """
    words = _KIND_OF.sub(" ", fold(phrase)).split()
    dropped = _DROPPED if noun else _DROPPED | GENERIC
    kept = [word for word in words if word not in dropped]
    return " ".join(map(stem, kept or words))


def plurals(word: str) -> list[str]:
    """Spellings that are taken for the plural of a folded word."""
    forms = [word + "s", word + "es"]
    for ending, plural in (("y", "ies"), ("f", "ves"), ("fe", "ves")):
        if word.endswith(ending):
            forms.append(word.removesuffix(ending) + plural)
    return forms


STANDING = frozenset(key(name) for name in _WORDS["standing"].split("|"))
"""Things other than the targets whose longest side is their height."""
UNLIKE = frozenset(key(name, noun=True) for name in _WORDS["unlike"].split(","))
"""Compounds that are no kind of what their last word names."""
IMITATING = frozenset(_WORDS["imitating"].split())
"""Words before a name of what is not made that tell of a copy: a plush cat is no cat."""
ANTONYMS = [
    frozenset(key(word) for word in pair.split("|")) for pair in _WORDS["antonyms"].split(",")
]
