"""The 100 target cities of Guess My City: spelling, country, accepted other names.

`data/cities.csv` holds the list, spelled as in the published environments (Haerbin, Pusan, ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from aria_dvc.errors import AriaError
from aria_dvc.oracles.text import fold, phrase_pattern
from aria_dvc.packaged import read_lines, read_rows, split

PACKAGE = "aria_dvc.oracles.city"


@dataclass(frozen=True)
class City:
    """One target. `name` and `country` are spelled as in the published list."""

    name: str
    country: str
    aliases: tuple[str, ...]

    @property
    def word(self) -> str:
        """The target as the environments write it, e.g. `Shanghai, China`."""
        return f"{self.name}, {self.country}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every folded spelling that names the city."""
        return tuple(dict.fromkeys(fold(name) for name in (self.name, *self.aliases)))


@cache
def cities() -> tuple[City, ...]:
    """The 100 targets, in the order of the published list."""
    rows = read_rows(PACKAGE, "cities.csv")
    return tuple(City(row["name"], row["country"], split(row["aliases"])) for row in rows)


@cache
def _by_name() -> dict[str, City]:
    return {name: city for city in cities() for name in city.names}


@cache
def _mention_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Phrases that only contain a city's name, and the names."""
    others = read_lines(PACKAGE, "not_the_city.txt")
    return phrase_pattern(others), phrase_pattern(list(_by_name()))


def find_city(word: str) -> City:
    """The city that `word` names (`Shanghai, China`, `shanghai,china` or `Shanghai`).

    Raises:
        AriaError: no target has that name.
    """
    city = _by_name().get(fold(word.split(",")[0]))
    if city is None:
        raise AriaError(f"no target city {word!r}; the list is oracles/city/data/cities.csv")
    return city


def find_city_mentions(text: str) -> list[City]:
    """The target cities that `text` names, in order of appearance, each once."""
    return list(_distinct_mentions(text))


@lru_cache(maxsize=4096)
def _distinct_mentions(text: str) -> tuple[City, ...]:
    return tuple(dict.fromkeys(_mentions(fold(text))))


def _mentions(folded: str) -> Iterator[City]:
    blocked, names = _mention_patterns()
    for match in names.finditer(blocked.sub("|", folded)):
        yield _by_name()[match.group()]
