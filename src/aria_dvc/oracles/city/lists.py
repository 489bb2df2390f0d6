"""Closed lists of words that the claims about a city are checked against (`data/words.yaml`)."""

from __future__ import annotations

from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_rows, read_text_yaml, split

_PACKAGE = "aria_dvc.oracles.city"
_WORDS = read_text_yaml(_PACKAGE, "words.yaml")
LANGUAGES = frozenset(split(_WORDS["languages"]))
CLUBS = frozenset(split(_WORDS["clubs"]))
SEAS = frozenset(split(_WORDS["seas"]))
DEMONYMS: dict[str, str] = _WORDS["demonyms"]
FAITHS: dict[str, str] = _WORDS["faiths"]
RULERS: dict[str, str] = _WORDS["rulers"]
DIRECTIONS: dict[str, str] = _WORDS["directions"]
LARGEST: dict[str, str] = _WORDS["largest"]
NEUTRAL = frozenset(map(fold, split(_WORDS["neutral"])))
COMMON_NAMES = frozenset(map(fold, split(_WORDS["common_names"])))
SHARED_NAMES = frozenset(map(fold, split(_WORDS["shared_names"])))
GENERIC_TOPICS = frozenset(split(_WORDS["generic_topics"]))
SIGHTS_LEFT_OUT = frozenset(split(_WORDS["sights_left_out"]))
SIGHT_KINDS: dict[str, tuple[str, ...]] = {
    row["asked"]: split(row["listed"]) for row in read_rows(_PACKAGE, "sight_kinds.csv")
}
"""Words for a kind of sight, with the keys of `CityFacts.sights` that serve it, the best first."""
