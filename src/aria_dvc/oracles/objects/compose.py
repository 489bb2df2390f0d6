"""Claims joined by `not`, `and`, `or` and commas, over any way to read a single claim."""

from __future__ import annotations

import re
from collections.abc import Callable

from aria_dvc.oracles.objects.patterns import ALTERNATIVE
from aria_dvc.oracles.objects.table import UNKNOWN, Extent, everything, extent
from aria_dvc.oracles.objects.words import ANTONYMS, key

Reader = Callable[[str], Extent | None]
_AND = re.compile(r",? and |, (?:but )?| but ")
_OR = re.compile(r",? or |, ")
_LEAD = re.compile(r"^(.*\b(?:in|on|for|of|to|at|from|by|with)) ")


def negatable(text: str, read: Reader) -> Extent | None:
    """A literal `not` turns the claim around: `not alive` is true of a chair."""
    match = re.match(r"^not (.+)$", text)
    found = read(match[1] if match else text)
    return ~found if match and found is not None else found


def composed(text: str, read: Reader) -> Extent | None:
    """Reads the whole text, else the parts that `and`, `or` and commas join."""
    whole = read(text)
    if whole is not None:
        return whole
    if re.search(r"\bor\b", text):
        return _either(text, read)
    parts = [part.strip() for part in _AND.split(text) if part.strip()]
    return _all(parts, read) if len(parts) > 1 else None


def _all(parts: list[str], read: Reader) -> Extent | None:
    found = [negatable(part, read) for part in parts]
    if all(part is None for part in found):
        return None
    result = extent(everything())
    for part in found:
        result = result & (part or UNKNOWN)
    return result


def _either(text: str, read: Reader) -> Extent | None:
    """`yellow or green`: one suffices; a choice (`an animal or a plant`) is no claim."""
    parts = [part.strip() for part in _OR.split(text) if part.strip()]
    if ALTERNATIVE.search(text) or len(parts) < 2 or _opposed(parts):
        return None
    found = [_first(parts, read), *(_next(part, parts[0], read) for part in parts[1:])]
    if all(value is None for value in found):
        return None
    result = found[0] or UNKNOWN
    for value in found[1:]:
        result = result | (value or UNKNOWN)
    return result


def _opposed(parts: list[str]) -> bool:
    keys = {key(part) for part in parts}
    words = {word for each in keys for word in each.split()}
    return any(pair <= keys | words for pair in ANTONYMS)


def _first(parts: list[str], read: Reader) -> Extent | None:
    """The first alternative may share the end of the last: `red or green fruit`."""
    value = read(parts[0])
    tail = parts[-1].split(" ", 1)
    return read(f"{parts[0]} {tail[1]}") if value is None and len(tail) > 1 else value


def _next(part: str, first: str, read: Reader) -> Extent | None:
    """A later alternative may share the beginning of the first: `used for work or school`."""
    lead = _LEAD.match(first)
    value = read(f"{lead[1]} {part}") if lead else None
    return value if value is not None else read(part)
