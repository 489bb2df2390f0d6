"""The 100 target cities of Guess My City: spelling, country, accepted other names.

`data/cities.csv` holds the list, spelled as in the published environments (Haerbin, Pusan, ...).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from aria_dvc.errors import AriaError
from aria_dvc.oracles.text import fold, phrase_pattern

_NOT_THE_CITY = (
    "el salvador",
    "salvador dali",
    "salvador allende",
    "santiago de compostela",
    "santiago de cuba",
    "santiago bernabeu",
    "santiago del estero",
    "state of new york",
    "new york state",
    "state of sao paulo",
    "sao paulo state",
    "state of rio de janeiro",
    "rio de janeiro state",
    "rio grande",
    "rio negro",
    "rio de la plata",
    "rio carnival",
    "peking duck",
    "peking opera",
    "peking man",
    "beijing opera",
    "canton fair",
    "tsingtao beer",
    "tsingtao brewery",
    "new york times",
    "quezon province",
    "province of quezon",
    "manuel quezon",
    "president ho chi minh",
    "singapore airlines",
    "south jakarta",
)
"""Folded phrases that contain a city's name and mean something else."""


@dataclass(frozen=True, slots=True)
class City:
    """One target. `name` and `country` are spelled as in the published list."""

    name: str
    country: str
    aliases: tuple[str, ...]

    @property
    def word(self) -> str:
        """The target as the environments write it, e.g. `Shanghai, China`."""
        return f"{self.name}, {self.country}"

    @property
    def names(self) -> tuple[str, ...]:
        """Every folded spelling that names the city."""
        return tuple(dict.fromkeys(fold(name) for name in (self.name, *self.aliases)))


@cache
def cities() -> tuple[City, ...]:
    """The 100 targets, in the order of the published list."""
    source = resources.files("aria_dvc.oracles").joinpath("data/cities.csv")
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return tuple(
        City(row["name"], row["country"], tuple(filter(None, row["aliases"].split("|"))))
        for row in rows
    )


@cache
def _by_name() -> dict[str, City]:
    return {name: city for city in cities() for name in city.names}


@cache
def _mention_pattern() -> tuple[object, object]:
    return phrase_pattern(list(_NOT_THE_CITY)), phrase_pattern(list(_by_name()))


def find_city(word: str) -> City:
    """The city that `word` names (`Shanghai, China`, `shanghai,china` or `Shanghai`).

    Raises:
        AriaError: no target has that name.
    """
    city = _by_name().get(fold(word.split(",")[0]))
    if city is None:
        raise AriaError(f"no target city {word!r}; see aria_dvc.oracles.city_data.cities()")
    return city


def find_city_mentions(text: str) -> list[City]:
    """The target cities that `text` names, in order of appearance, each once."""
    return list(dict.fromkeys(_mentions(fold(text))))


def _mentions(folded: str) -> Iterator[City]:
    blocked, names = _mention_pattern()
    for match in names.finditer(blocked.sub("|", folded)):  # type: ignore[attr-defined]
        yield _by_name()[match.group()]
