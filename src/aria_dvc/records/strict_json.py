"""What the fast JSON reader passes over in silence: keys given twice, numbers that it rounds, and
nesting that can be read but not be written again.

A cheap look at the bytes decides whether the slow, exact look of the standard library is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

_HUGE = b"e+"  # in what is written again: a number that has over 64 bits, among others
_COLON = (b"\\u003a", b"\\u003A")  # a colon as an escape
_GAP = re.compile(r"[\s,]*")
TOO_DEEP = "nested too deep (over 240 levels): flatten it"
_ROOM = 8  # levels that are left for what an entry is wrapped in


class _LostError(Exception):
    """What would be lost."""


def lost(raw: bytes, value: Any) -> str | None:
    """What `value`, as orjson reads `raw`, has lost of it, with the remedy; None where nothing."""
    again = written(value)
    if again is None:
        return TOO_DEEP
    # A key that stands twice is written once, and its colon with it; colons in texts stay.
    doubtful = raw.count(b":") != again.count(b":") or any(colon in raw for colon in _COLON)
    return _exact(raw) if doubtful or _HUGE in again else None


def written(value: Any, around: int = 0) -> bytes | None:
    """JSON of a value in so many brackets and the room of an entry; None if nested too deep."""
    for _ in range(_ROOM + around):
        value = [value]
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None


def pieces(raw: bytes) -> Iterator[bytes]:
    """The JSON text of every element of a list."""
    text, decoder = raw.decode(), json.JSONDecoder(parse_int=str)  # int() takes 4,300 digits
    at = gap(text, text.index("[") + 1)
    while text[at : at + 1] not in ("]", ""):
        end = decoder.raw_decode(text, at)[1]
        yield text[at:end].encode()
        at = gap(text, end)


def gap(text: str, at: int) -> int:
    """Where the white space and the comma at a place end."""
    found = _GAP.match(text, at)
    return found.end() if found else at


def _exact(raw: bytes) -> str | None:
    try:
        json.loads(raw.decode(), object_pairs_hook=_once, parse_int=_whole)
    except _LostError as found:
        return str(found)
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _LostError(f"the key {_short(key)} stands twice in one object: keep one of them")
        found[key] = value
    return found


def _whole(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise _LostError(f"the number {_short(text)} has over 64 bits: write it as text")
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
