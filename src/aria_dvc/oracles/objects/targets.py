"""The 157 target words of Twenty Questions: category and accepted spellings.

`data/objects.csv` holds the list; the published spellings come first, common synonyms that mean
the same thing follow in `data/synonyms.csv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from aria_dvc.errors import AriaError
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_rows, split

PACKAGE = "aria_dvc.oracles.objects"


@dataclass(frozen=True, slots=True)
class Object:
    """One target word.

    `spellings` are the published ones (the name first); `synonyms` are further everyday words for
    the same thing (`airplane`: aeroplane, aircraft) that the oracle understands and that win.
    """

    name: str
    category: str
    spellings: tuple[str, ...]
    synonyms: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every folded spelling and synonym."""
        return tuple(dict.fromkeys(fold(name) for name in (*self.spellings, *self.synonyms)))


@cache
def objects() -> tuple[Object, ...]:
    """The 157 targets, grouped by category in the published order."""
    synonyms = {row["name"]: split(row["synonyms"]) for row in read_rows(PACKAGE, "synonyms.csv")}
    return tuple(
        Object(
            row["name"],
            row["category"],
            (row["name"], *split(row["spellings"])),
            synonyms.get(row["name"], ()),
        )
        for row in read_rows(PACKAGE, "objects.csv")
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
        raise AriaError(f"no target object {word!r}; the list is oracles/objects/data/objects.csv")
    return item
