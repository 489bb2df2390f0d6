"""The property table of the 157 objects: which objects have a property, and how people name it.

`data/kinds.yaml` and its sister files map a property to

- `who`: the objects that have it, a list of terms read from left to right. A term is an object,
  `@Category`, `+other_property`, `*` (all) or a measure such as `size<20` (cm), `length>100`,
  `weight<2` (kg), `price>300` (US dollars); `-term` takes away, `&term` keeps only.
- `can`: further objects that can have it but typically do not ("Can it be made of wood?").
- `maybe`: objects of which people would disagree or nobody knows, so no answer is given.
- phrases by frame: `is` ("Is it round?"), `noun` ("Is it a fruit?"), `has`, `made` (of), `use`
  (is it used to/for), `at` (places), `worn` (on), `do` (does it), `you` (do you ... it), `by`
  (who uses it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache

from aria_dvc.errors import AriaError
from aria_dvc.oracles.objects.targets import PACKAGE, objects
from aria_dvc.oracles.objects.words import key
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_rows, read_text_yaml

FRAMES = ("is", "noun", "has", "made", "use", "at", "worn", "do", "you", "by")
_FILES = ("kinds.yaml", "looks.yaml", "uses.yaml", "places.yaml")
_MEASURE = re.compile(r"(size|length|weight|price)([<>])([\d.e]+)$")


@dataclass(frozen=True, slots=True)
class Extent:
    """Of which objects a claim is true (`yes`) and of which it is false (`no`); else unknown."""

    yes: frozenset[str]
    no: frozenset[str]

    def __and__(self, other: Extent) -> Extent:
        return Extent(self.yes & other.yes, self.no | other.no)

    def __or__(self, other: Extent) -> Extent:
        return Extent(self.yes | other.yes, self.no & other.no)

    def __invert__(self) -> Extent:
        return Extent(self.no, self.yes)


@dataclass(frozen=True, slots=True)
class Measures:
    """Typical outer measures in cm, weight in kg and price in US dollars (None: not sold)."""

    length: float
    width: float
    height: float
    weight: float
    price: float | None

    @property
    def size(self) -> float:
        """What "bigger" is taken to mean: mostly bulk, and length counts too. In cm."""
        bulk = (self.length * self.width * self.height) ** (1 / 3)
        return bulk**0.7 * self.length**0.3


@dataclass(frozen=True, slots=True)
class Property:
    """`who` have it typically; `who | can` may have it; of `maybe` nothing is said."""

    name: str
    who: frozenset[str]
    can: frozenset[str]
    maybe: frozenset[str] = frozenset()

    def extent(self, possible: bool = False) -> Extent:
        true = self.who | self.can if possible else self.who
        return Extent(true, everything() - true - self.maybe)


@cache
def everything() -> frozenset[str]:
    return frozenset(item.name for item in objects())


def extent(yes: frozenset[str]) -> Extent:
    """The extent of a claim that is false of all others."""
    return Extent(yes, everything() - yes)


UNKNOWN = Extent(frozenset(), frozenset())


def measures_of(row: dict[str, str]) -> Measures:
    return Measures(*(float(row[f.name]) if row[f.name] else None for f in fields(Measures)))  # type: ignore[arg-type]


@cache
def measures() -> dict[str, Measures]:
    """The measures of every object."""
    return {row["name"]: measures_of(row) for row in read_rows(PACKAGE, "sizes.csv")}


@cache
def _rows() -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for name in _FILES:
        for title, row in read_text_yaml(PACKAGE, name).items():
            if title in rows or not set(row) <= {"who", "can", "maybe", *FRAMES}:
                raise AriaError(f"{name}: property {title!r} is twice there or has unknown fields")
            rows[title] = row
    return rows


@cache
def members(title: str) -> frozenset[str]:
    """The objects that typically have a property."""
    return _select(_rows()[title]["who"], title)


def _listed(row: dict[str, str], field: str) -> frozenset[str]:
    return _select(row.get(field, ""), field)


def _select(terms: str, title: str) -> frozenset[str]:
    chosen: frozenset[str] = frozenset()
    for term in filter(None, map(str.strip, terms.split(","))):
        sign = term[0] if term[0] in "-&" else ""
        part = _term(term[len(sign) :], title)
        chosen = {"-": chosen - part, "&": chosen & part}.get(sign, chosen | part)
    return chosen


def _term(term: str, title: str) -> frozenset[str]:
    if term == "*":
        return everything()
    if term.startswith("@"):
        found = frozenset(item.name for item in objects() if item.category == term[1:])
    elif term.startswith("+"):
        return members(term[1:])
    elif match := _MEASURE.match(term):
        return _measured(*match.groups())
    else:
        found = everything() & {term}
    if not found:
        raise AriaError(f"property {title!r}: {term!r} names no object, category or property")
    return found


def _measured(measure: str, relation: str, limit: str) -> frozenset[str]:
    values = {name: getattr(item, measure) for name, item in measures().items()}
    bound = float(limit)
    return frozenset(
        name
        for name, value in values.items()
        if value is not None and (value < bound if relation == "<" else value > bound)
    )


@cache
def properties() -> dict[str, Property]:
    return {
        title: Property(title, members(title), _listed(row, "can"), _listed(row, "maybe"))
        for title, row in _rows().items()
    }


def _phrases(row: dict[str, str], frame: str) -> list[str]:
    """The folded phrases of a frame; what is written as `do: have X` is a phrase of `has`, too."""
    own = [phrase for phrase in map(fold, row.get(frame, "").split(",")) if phrase]
    if frame == "has":
        had = _phrases(row, "do")
        return own + [phrase.removeprefix("have ") for phrase in had if phrase.startswith("have ")]
    return own


@cache
def written(frame: str) -> dict[str, frozenset[str]]:
    """The phrases of a frame as they are written -> the objects they are true of."""
    found: dict[str, frozenset[str]] = {}
    for title, row in _rows().items():
        for phrase in _phrases(row, frame):
            found[phrase] = found.get(phrase, frozenset()) | members(title)
    return found


@cache
def lexicon() -> dict[str, dict[str, tuple[Property, ...]]]:
    """frame -> key of a phrase -> the properties that it names (any of them suffices)."""
    found: dict[str, dict[str, tuple[Property, ...]]] = {frame: {} for frame in FRAMES}
    for title, row in _rows().items():
        for frame in FRAMES:
            for phrase in {key(phrase, frame == "noun") for phrase in _phrases(row, frame)}:
                known = found[frame].get(phrase, ())
                found[frame][phrase] = (*known, properties()[title])
    return found


def look_up(frame: str, phrase: str, possible: bool = False) -> Extent | None:
    """The extent of a phrase within a frame; None when the table does not name it."""
    named = lexicon()[frame].get(key(phrase, frame == "noun"))
    if not named:
        return None
    result = named[0].extent(possible)
    for item in named[1:]:
        result = result | item.extent(possible)
    return result
