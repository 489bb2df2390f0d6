"""Reduces phrases of questions and of the property table to one comparable key."""

from __future__ import annotations

import re
from functools import lru_cache

from aria_dvc.oracles.text import fold

_IRREGULAR = {
    form: base
    for base, forms in {
        "be": "is are was were been being am",
        "eat": "ate eaten",
        "wear": "wore worn",
        "drive": "drove driven",
        "ride": "rode ridden",
        "hold": "held",
        "keep": "kept",
        "write": "wrote written",
        "throw": "threw thrown",
        "sit": "sat",
        "sleep": "slept",
        "find": "found",
        "make": "made",
        "build": "built",
        "grow": "grew grown",
        "blow": "blew blown",
        "buy": "bought",
        "sell": "sold",
        "see": "saw seen",
        "break": "broke broken",
        "drink": "drank drunk",
        "leaf": "leaves",
        "knife": "knives",
        "tooth": "teeth",
        "foot": "feet",
        "person": "persons",
        "child": "children childrens",
        "kid": "kids",
        "woman": "women womens",
        "man": "men mens",
        "mouse": "mice",
        "lens": "lenses",
        "have": "has had having",
        "do": "does did done",
        "fly": "flew flown flies flying",
        "run": "ran running",
        "give": "gave given",
        "take": "took taken",
        "hang": "hung",
        "spin": "spun spinning",
        "put": "putting",
        "cut": "cutting cuts",
        "die": "dying",
        "lie": "lying lain",
        "tie": "tying",
        "use": "using",
        "color": "colour colours coloured colored coloring",
        "gray": "grey",
        "loaf": "loaves",
        "shelf": "shelves",
        "teach": "taught",
        "wind": "wound",
        "lose": "lost",
        "stick": "stuck",
        "jewelry": "jewellery",
        "pajama": "pyjama pyjamas pajamas",
        "favorite": "favourite",
        "fiber": "fibre",
        "center": "centre",
        "bathroom": "washroom restroom",
        "grocery": "groceries",
        "store": "shop stores shops",
    }.items()
    for form in forms.split()
}
_GENERIC = frozenset("something anything thing things stuff item items object objects".split())
_KIND_OF = re.compile(r"\b(?:kind|type|sort|form|piece|pair|variety)s? of\b")
_DROPPED = frozenset(
    "a an the some any your you our my me us its it their his her this that these those them they "
    "somebody someone of "
    "usually typically generally commonly normally mostly mainly primarily often frequently "
    "considered regarded classified categorized known really actually perhaps maybe possibly "
    "probably also most common typical usual please there be to one "
    "other such very quite just as".split()
)


@lru_cache(maxsize=20000)
def stem(word: str) -> str:
    """Equal for the forms of a word: `cutting` and `cut`, `berries` and `berry`."""
    word = _IRREGULAR.get(word, word)
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
    dropped = _DROPPED if noun else _DROPPED | _GENERIC
    kept = [word for word in words if word not in dropped]
    return " ".join(map(stem, kept or words))
