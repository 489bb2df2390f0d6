"""The 157 target words of Twenty Questions: category and accepted spellings.

`data/objects.csv` holds the list; the published spellings come first, common synonyms that mean
the same thing follow in `data/object_synonyms.csv`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from aria_dvc.errors import AriaError
from aria_dvc.oracles.text import fold


@dataclass(frozen=True, slots=True)
class Object:
    """One target word.

    `spellings` are the published ones (the name first); `synonyms` are further everyday words for
    the same thing (`airplane`: aeroplane, aircraft) that the oracle understands.
    """

    name: str
    category: str
    spellings: tuple[str, ...]
    synonyms: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every folded spelling and synonym."""
        return tuple(dict.fromkeys(fold(name) for name in (*self.spellings, *self.synonyms)))


def _rows(name: str) -> list[dict[str, str]]:
    source = resources.files("aria_dvc.oracles").joinpath(f"data/{name}")
    return list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def _split(cell: str) -> tuple[str, ...]:
    return tuple(filter(None, cell.split("|")))


@cache
def objects() -> tuple[Object, ...]:
    """The 157 targets, grouped by category in the published order."""
    synonyms = {row["name"]: _split(row["synonyms"]) for row in _rows("object_synonyms.csv")}
    return tuple(
        Object(
            row["name"],
            row["category"],
            (row["name"], *_split(row["spellings"])),
            synonyms.get(row["name"], ()),
        )
        for row in _rows("objects.csv")
    )


@cache
def _by_spelling() -> dict[str, Object]:
    return {fold(spelling): item for item in objects() for spelling in item.spellings}


def find_object(word: str) -> Object:
    """The target that `word` spells (`Soccer ball`, `tv`, `pair of pants`).

    Raises:
        AriaError: no target is spelled like that.
    """
    item = _by_spelling().get(fold(word))
    if item is None:
        raise AriaError(f"no target object {word!r}; see aria_dvc.oracles.object_data.objects()")
    return item
