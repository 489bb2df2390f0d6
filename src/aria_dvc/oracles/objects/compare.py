"""Comparisons: bigger than a car, heavier than 5 kg, fits in a pocket."""

from __future__ import annotations

import re
from functools import cache

from aria_dvc.oracles.numbers import number
from aria_dvc.oracles.objects.table import (
    UNKNOWN,
    Extent,
    Measures,
    extent,
    look_up,
    measures,
    measures_of,
    members,
)
from aria_dvc.oracles.objects.targets import PACKAGE, objects
from aria_dvc.oracles.objects.words import STANDING, key
from aria_dvc.packaged import read_rows, split

_MORE = {
    "bigger": "size", "larger": "size", "greater": "size", "heavier": "weight", "longer": "length",
    "taller": "height", "pricier": "price", "costlier": "price", "higher": "height",
}  # fmt: skip
_LESS = {"smaller": "size", "tinier": "size", "lighter": "weight", "shorter": "length",
         "cheaper": "price"}  # fmt: skip
_AS = {
    "big": "size", "large": "size", "small": "size", "heavy": "weight", "light": "weight",
    "long": "length", "short": "length", "expensive": "price", "cheap": "price",
}  # fmt: skip
_DOWN = frozenset({"small", "light", "short", "cheap"})
_COSTS = r"(?:cost|sell for|be worth|worth|priced at|priced)"
_UNIT = r"(?:feet|foot|ft|meters?|metres?|m|inch|inches|cm)"
_TALL = rf"(?=\S+ {_UNIT} (?:tall|high))"
_LONG = rf"(?=\S+ {_UNIT} (?:long|wide))"
_WORDY = [
    (re.compile(rf"\b{old}"), new)
    for old, new in (
        (r"more expensive\b", "pricier"),
        (r"(?:less expensive|more affordable)\b", "cheaper"),
        (r"more heavy\b", "heavier"),
        (r"(?:larger|bigger|greater) in size\b", "bigger"),
        (r"smaller in size\b", "smaller"),
        (rf"{_COSTS} (?:more|over|above)\b(?: than)?", "pricier than"),
        (rf"{_COSTS} (?:less|under|below)\b(?: than)?", "cheaper than"),
        (r"weighs? (?:more|over|above)\b(?: than)?", "heavier than"),
        (r"weighs? (?:less|under|below)\b(?: than)?", "lighter than"),
        (rf"(?:over|more than) {_TALL}", "taller than "),
        (rf"(?:over|more than) {_LONG}", "longer than "),
        (rf"(?:under|less than) (?:{_TALL}|{_LONG})", "shorter than "),
    )
]
"""Other words for the comparatives above."""
_COMPARISON = re.compile(
    rf"^(?:(?:much|a lot|significantly|slightly|physically|even|far) )?"
    rf"(?P<word>{'|'.join([*_MORE, *_LESS])})(?: in (?:size|weight|length|price))? than "
    r"(?:the size of |that of )?(?P<reference>.+?)"
    r"(?: in size| is| by size| by volume| does| in weight)?$"
)
_SIZE_OF = re.compile(
    r"^(?:about |roughly )?(?:the )?size of (?P<reference>.+?) or (?P<word>smaller|bigger|larger)$"
)
_EQUAL = re.compile(
    r"^(?:about |roughly |nearly |almost )?as (?P<word>\w+) as (?P<reference>.+?)(?: is)?$"
)
_FIT = re.compile(
    r"^(?:easily |comfortably |small enough to |able to |light enough to )*"
    r"(?:fit|fits|be put|be held|be placed|be carried|go|be kept|be stored)"
    r"(?: easily| comfortably)? "
    r"(?:in|into|inside|inside of|within|on|through)"
    r" (?:the palm of )?(?P<holder>.+)$"
)
_AMOUNT = re.compile(
    r"^(?:about |around )?(?P<number>[\d.]+|(?:\w+ ){0,2}?\w+?) ?(?P<unit>[a-z]+)"
    r"(?: (?:long|tall|high|wide|in length|in height|across|in weight|in size|bill))?$"
)
_SIDES = ("length", "width", "height")
_SAME = 1.06
"""Sizes closer than this factor count as neither bigger nor smaller."""


def comparison(claim: str) -> Extent | None:
    """The extent of a comparison with a thing or a measure; None if it is none that is known."""
    for pattern, replacement in _WORDY:
        claim = pattern.sub(replacement, claim)
    claim = _SIZE_OF.sub(_size_of, claim)
    equal = _EQUAL.match(claim)
    if equal:
        return _as_much(equal["word"], equal["reference"]) or look_up("is", claim) or UNKNOWN
    match = _COMPARISON.match(claim)
    if match:
        word = match["word"]
        measure = _MORE.get(word) or _LESS[word]
        if measure == "height":
            return _taller(match["reference"])
        bound = _bound(measure, match["reference"])
        return None if bound is None else _beyond(measure, bound, word in _MORE)
    held = _FIT.match(claim)
    return _fitting(held["holder"]) if held else None


def _size_of(match: re.Match[str]) -> str:
    return f"{match['word']} than {match['reference']}"


def _beyond(measure: str, bound: float, more: bool) -> Extent:
    values = {name: getattr(item, measure) for name, item in measures().items()}
    known = {name: value for name, value in values.items() if value is not None}
    yes = {
        n
        for n, value in known.items()
        if (value > bound * _SAME if more else value * _SAME < bound)
    }
    return Extent(frozenset(yes), frozenset(known) - yes)


def _as_much(word: str, reference: str) -> Extent | None:
    """`as big as a cat`: true of what is about as big, and false of what is smaller."""
    measure = _AS.get(word, "")
    bound = _bound(measure, reference) if measure else None
    if bound is None:
        return None
    more, less = _beyond(measure, bound, True), _beyond(measure, bound, False)
    return Extent(more.no & less.no, more.yes if word in _DOWN else less.yes)


def _taller(reference: str) -> Extent | None:
    """Unknown of what is hardly taller, and of what may stand or lie."""
    bound = _height_of(reference)
    if bound is None:
        return None
    heights = {item.name: _height(item.name) for item in objects()}
    return Extent(
        frozenset(name for name, (low, _) in heights.items() if low > bound[1] * _SAME),
        frozenset(name for name, (_, high) in heights.items() if high <= bound[0]),
    )


def _height_of(reference: str) -> tuple[float, float] | None:
    amount, name = _amount(reference), key(reference)
    if amount is not None:
        return (amount[1], amount[1]) if amount[0] == "length" else None
    if name in _heights():
        return _heights()[name]
    size = _references().get(name)
    return None if size is None else _between(size, standing=name in STANDING)


@cache
def _heights() -> dict[str, tuple[float, float]]:
    return {key(name): _height(item.name) for item in objects() for name in item.names}


def _height(name: str) -> tuple[float, float]:
    """The least and the greatest height that an object of the name has as it stands or lies."""
    size = measures()[name]
    for side in _SIDES:
        if name in members(f"height_is_{side}"):
            height = getattr(size, side)
            return height, height
    return _between(size, standing=False)


def _between(size: Measures, standing: bool) -> tuple[float, float]:
    sides = [getattr(size, side) for side in _SIDES]
    return (size.length if standing else min(sides)), max(sides)


def _fitting(holder: str) -> Extent | None:
    name = key(re.sub(r"^(?:person|someone|human|adult|average person)s? ", "", holder))
    if name not in _holders():
        room = _references().get(name)
        if room is None or "hand" in name:
            return None
        limits = (room.length, room.size)
    else:
        limits = _holders()[name]
    length, size = limits
    solid = frozenset(n for n, m in measures().items() if m.length <= length and m.size <= size)
    return extent(solid)


def _bound(measure: str, reference: str) -> float | None:
    amount = _amount(reference)
    if amount is not None:
        kind, value = amount
        wanted = {"size": "length"}.get(measure, measure)
        return value if kind == wanted else None
    named = _references().get(key(reference))
    return None if named is None else getattr(named, measure)


def _amount(text: str) -> tuple[str, float] | None:
    match = _AMOUNT.match(text)
    if not match:
        return None
    unit = _units().get(key(match["unit"]))
    count = number(match["number"])
    return None if unit is None or count is None else (unit[0], count * unit[1])


@cache
def _units() -> dict[str, tuple[str, float]]:
    """The measure of a unit and its size in cm, kg or US dollars."""
    return {
        key(name): (row["measure"], float(row["value"]))
        for row in read_rows(PACKAGE, "units.csv")
        for name in split(row["names"])
    }


@cache
def _references() -> dict[str, Measures]:
    found = {
        key(name): measures_of(row)
        for row in read_rows(PACKAGE, "references.csv")
        for name in split(row["names"])
    }
    for item in objects():
        for name in item.names:
            found[key(name)] = measures()[item.name]
    return found


@cache
def _holders() -> dict[str, tuple[float, float]]:
    return {
        key(name): (float(row["length"]), float(row["size"]))
        for row in read_rows(PACKAGE, "holders.csv")
        for name in split(row["names"])
    }
