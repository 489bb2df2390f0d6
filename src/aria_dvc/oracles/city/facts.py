"""What is known about each target city: curated tables, merged with those of its country.

`data/cities_*.yaml` and `data/countries.yaml` hold plain text fields. A list is written
`a|b|c`; a leading `?` marks a debatable entry, about which the oracle says nothing. Fields of a
city that are not plain text for an answer:

- `pos`: the directions of the country that it lies in; `coast`: yes, no, near or lake;
  `coast_sides`: on which coasts of its country, island or continent it lies or nearly lies
- `island`: "wholly" or "partly", where that is not its country's; `river_size`: "minor" where its
  streams are too small to count as "the" river
- `border`: the neighbours that it lies close to, or "far" where it lies deep inland
- `nick`: the nicknames that it goes by, as they stand in a sentence
- `ruled_by`: its past rulers where they are not its country's
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from aria_dvc.oracles.city.targets import City, cities
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_text_yaml, split

_CITY_FILES = ("cities_asia_east.yaml", "cities_asia_rest.yaml", "cities_west.yaml")


@dataclass(frozen=True, slots=True)
class Names:
    """A closed list of folded names: what is in it, and what is debatable."""

    sure: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    def has(self, name: str) -> bool | None:
        """True, False, or None where it is debatable."""
        if name in self.sure:
            return True
        return None if name in self.unsure else False

    def __or__(self, other: Names) -> Names:
        return Names(self.sure | other.sure, (self.unsure | other.unsure) - self.sure - other.sure)


@dataclass(frozen=True, slots=True)
class Country:
    """Facts of one country; `text` holds the free fields (cuisine, currency, ...)."""

    name: str
    names: frozenset[str]
    regions: Names
    borders: Names
    waters: Names
    languages: tuple[str, ...]
    people: float
    capital: frozenset[str]
    continent: str
    text: dict[str, str]

    @property
    def islands(self) -> bool:
        """Whether the country consists of islands."""
        return self.text.get("land") == "islands"

    @property
    def landlocked(self) -> bool:
        return self.text.get("land") == "landlocked"


@dataclass(frozen=True, slots=True)
class CityFacts:
    """Facts of one city. `population` in millions, `elevation` in metres.

    `compass` holds the directions of the country that it lies in (`n`, `se`, `c`, ...);
    `sights` maps a kind of sight to the name of the best known one.
    """

    city: City
    country: Country
    latitude: float
    longitude: float
    population: float
    elevation: int
    rank: int | None
    compass: Names
    coast: str
    regions: Names
    rivers: Names
    seas: Names
    mountains: Names
    lakes: Names
    capital_of: frozenset[str]
    former_capital: Names
    sights: dict[str, str]
    text: dict[str, str] = field(default_factory=dict)

    def say(self, name: str) -> str:
        """The free text of the city, or that of its country; empty if there is none."""
        return self.text.get(name) or self.country.text.get(name, "")

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages spoken most, the first one first."""
        own = self.text.get("languages")
        return tuple(own.split("|")) if own else self.country.languages

    @property
    def rulers(self) -> frozenset[str]:
        """Colonial or foreign rulers of the past."""
        own = self.text.get("ruled_by")
        return frozenset(split(self.country.text["ruled_by"] if own is None else own))

    @property
    def nicknames(self) -> tuple[str, ...]:
        """What the city is called besides its names: `the Big Apple`."""
        return split(self.text.get("nick", ""))

    @property
    def borders(self) -> frozenset[str]:
        """The countries that the city lies close to."""
        return frozenset(split(self.text.get("border", ""))) - {"far"}


def _load(name: str) -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = read_text_yaml("aria_dvc.oracles.city", name)
    return rows


def _names(cell: str, separator: str = "|") -> Names:
    parts = [part.strip() for part in cell.split(separator) if part.strip()]
    unsure = {fold(part) for part in parts if part.startswith("?")}
    sure = {fold(part) for part in parts} - unsure
    return Names(frozenset(sure), frozenset(unsure))


def _sights(cell: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in cell.split(";"))
    return {kind.strip(): name.strip() for kind, _, name in pairs if name.strip(' "')}


@cache
def countries() -> dict[str, Country]:
    """Every country of a target city, by its name in the published list."""
    return {name: _country(name, row) for name, row in _load("countries.yaml").items()}


def _country(name: str, row: dict[str, str]) -> Country:
    return Country(
        name=name,
        names=_names(row["names"]).sure | {fold(name)},
        regions=_names(row["regions"]),
        borders=_names(row["borders"]),
        waters=_names(row["waters"]),
        languages=tuple(row["languages"].split("|")),
        people=float(row["people"]),
        capital=_names(row["capital"]).sure,
        continent=row["continent"],
        text=row,
    )


@cache
def city_facts() -> dict[str, CityFacts]:
    """The facts of every target city, by its name in the published list."""
    rows = {name: row for file in _CITY_FILES for name, row in _load(file).items()}
    places = _load("coordinates.yaml")
    return {city.name: _city(city, rows[city.name], places[city.name]) for city in cities()}


def _city(city: City, row: dict[str, str], place: dict[str, str]) -> CityFacts:
    country = countries()[city.country]
    rank = row.get("rank", "")
    return CityFacts(
        city=city,
        country=country,
        latitude=float(place["latitude"]),
        longitude=float(place["longitude"]),
        population=float(row["pop"]),
        elevation=int(row["elev"]),
        rank=int(rank) if rank.isdigit() else None,
        compass=_names(row["pos"], " "),
        coast=row["coast"],
        regions=_names(row["in"]),
        rivers=_names(row.get("rivers", "")),
        seas=_names(row.get("seas", "")),
        mountains=_names(row.get("mountains", "")),
        lakes=_names(row.get("lakes", "")),
        capital_of=_names(row.get("capital_of", "")).sure,
        former_capital=_names(row.get("former_capital", "")),
        sights=_sights(row["sights"]),
        text=row,
    )
