"""What every format is made of, and the checks that several share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from aria_dvc.records.episodes import Episode

ROLE_NAMES = ("alice", "bob")
# The role of one reward that is not said to be anybody's: it goes to whoever is credited.
THE_AGENT = "\0the agent"
GIVEN = "given"  # says what an assistant is shown as said and did not say; it does not act
_CONVERTED = frozenset({bool, str})  # what NumPy would take for numbers


class BadEntry(Exception):
    """What is wrong with one entry; the caller adds where."""


def whole(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An entry that is one episode."""
    yield entry


@dataclass(frozen=True)
class Layout:
    """How one layout is recognised (keys that an entry has) and turned into episodes.

    read: the episode without its rewards; its `info` may hold a group_id. rewards: those of the
    roles that have one. parts: the entry of each episode that an entry holds.
    judged: the rewards by the game's own test for a win; None where it cannot be made.
    local_groups: a group_id counts within one file only.
    """

    name: str
    keys: frozenset[str]
    game: str | None
    read: Callable[[dict[str, Any]], Episode]
    rewards: Callable[[dict[str, Any]], dict[str, Any]]
    parts: Callable[[dict[str, Any]], Iterator[dict[str, Any]]] = whole
    local_groups: bool = False
    judged: Callable[[Episode], dict[str, float] | None] | None = None


LARGEST = 1e15
"""Beyond it a reward or credit is a mark for none (the largest float, say): sums would lose what
all others say."""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Real) and not isinstance(value, bool)


def vector_of(value: Any, where: str) -> np.ndarray | None:
    """A (d,) float32 vector, or None where the log has none."""
    if value is None:
        return None
    converts = isinstance(value, list) and not _CONVERTED.isdisjoint(map(type, value))
    try:
        with np.errstate(over="ignore"):
            vector = np.asarray([] if converts else value, dtype=np.float32)
            length = np.linalg.norm(vector)  # infinite or NaN where one number is, or all overflow
    except (TypeError, ValueError, OverflowError):
        vector, length = np.empty(0, np.float32), np.float32(0)
    if vector.ndim != 1 or not vector.size or not np.isfinite(length):
        raise BadEntry(f"embedding of {where} must be a list of finite numbers")
    return vector


def list_of(entry: dict[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    if not isinstance(value, list):
        raise BadEntry(f"{key} must be a list, got {type(value).__name__}")
    return value
