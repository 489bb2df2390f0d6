"""Claims by name (`is it a cat`): true of the named target, or of all of the named kind."""

from __future__ import annotations

import re
from functools import cache

from aria_dvc.oracles.objects.table import Extent, everything, extent, look_up, written
from aria_dvc.oracles.objects.targets import objects
from aria_dvc.oracles.objects.words import UNLIKE, key
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_lines

_ARTICLE = re.compile(r"^(?:a|an|the|some|any|your|my|one)\b ?")


@cache
def _targets() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for item in objects():
        for name in item.names:
            found[key(name, True)] = found.get(key(name, True), frozenset()) | {item.name}
    return found


@cache
def _strangers() -> frozenset[str]:
    """Keys of common things that are none of the targets."""
    lines = read_lines("aria_dvc.oracles.objects", "others.txt")
    names = {name for line in lines for name in line.split(",")}
    return frozenset(key(name, noun=True) for name in names) - {""}


def named(phrase: str) -> Extent | None:
    """The extent of `Is it a <phrase>?`; None when the phrase names no known thing."""
    bare = _ARTICLE.sub("", phrase.strip())
    name = key(bare, noun=True)
    targets = _targets().get(name)
    if targets is not None and not _verb(bare):
        return extent(targets | written("noun").get(fold(bare), frozenset()))
    if look_up("noun", phrase) is not None:
        return None
    if name in UNLIKE:
        return extent(frozenset())
    return _narrower(bare) if name in _strangers() else None


def _verb(phrase: str) -> bool:
    """Whether it ends in a form of a verb that only sounds like a name: `ringing`, `coated`."""
    last = fold(phrase).split()[-1]
    return last.endswith(("ing", "ed")) and last not in _last_words()


@cache
def _last_words() -> frozenset[str]:
    """`ring`, `bed` and all other last words of names."""
    return frozenset(name.split()[-1] for item in objects() for name in item.names)


def _narrower(phrase: str) -> Extent:
    """`oak tree`: some tree, so nobody knows whether it is this one; it is none of the others."""
    wider = _spelled().get(phrase.rsplit(" ", 1)[-1], frozenset()) if " " in phrase else frozenset()
    return Extent(frozenset(), everything() - wider)


@cache
def _spelled() -> dict[str, frozenset[str]]:
    return {fold(word): frozenset({item.name}) for item in objects() for word in item.spellings}


def between_things(phrase: str) -> bool:
    """Whether it asks which of several things it is: `cat or dog`; colours are no things."""
    parts = [part for part in re.split(r",? or |, ", phrase) if part]
    chosen = " or " in phrase and not any(part in written("is") for part in parts)
    return chosen and all(named(part) is not None for part in parts)
