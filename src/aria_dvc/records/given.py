"""Somebody else's credit of the turns of a log, found beside its messages."""

from __future__ import annotations

import math
from typing import Any

from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.base import LARGEST, BadEntry, is_number
from aria_dvc.records.reading import described
from aria_dvc.records.tables import moves_left_out

_LISTS = ("messages", "traj")


def note_given(episode: Episode, entry: dict[str, Any], column: str) -> None:
    """Set `given` of the utterances that have a number of this name.

    It is a key of a message, a column of a table of utterances, or a list of the entry (or of its
    `info`, also of a trace) with one number for every utterance of each role with a reward, with or
    without the moves that are left out of credit.

    Raises BadEntry for what is no number, or a list of another length.
    """
    messages = next((entry[key] for key in _LISTS if isinstance(entry.get(key), list)), None)
    if messages is not None and len(messages) == len(episode.preamble) + len(episode.utterances):
        for position, utterance in episode.numbered():
            utterance.given = _number(messages[position], column, position)
    if all(utterance.given is None for utterance in episode.utterances):
        _from_list(episode, entry, column)


def _number(message: Any, column: str, position: int) -> float | None:
    rows = message.get("row") if isinstance(message, dict) else None
    value = message.get(column) if isinstance(message, dict) else None
    if value is None and isinstance(rows, dict):
        value = rows.get(column)
    if isinstance(value, str):
        try:
            value = float(value) if value.strip() else None
        except ValueError:
            raise BadEntry(f"{column} of message {position} is {described(value)}") from None
    if value is None:
        return None
    if not is_number(value):
        raise BadEntry(f"{column} of message {position} is {described(value)}: give a number")
    return _bounded(float(value), f"{column} of message {position}")


def _from_list(episode: Episode, entry: dict[str, Any], column: str) -> None:
    places = [entry, entry.get("info"), *(_infos(entry))]
    values = next((p[column] for p in places if isinstance(p, dict) and column in p), None)
    if values is None:
        return
    if not isinstance(values, list):
        raise BadEntry(f"{column} is {described(values)}: give one number a turn")
    moves = moves_left_out(episode)
    judged = [place for place, u in enumerate(episode.utterances) if u.role in episode.rewards]
    credited = [place for place in judged if not moves[place]]
    acting = [episode.utterances[at] for at in (judged if len(values) == len(judged) else credited)]
    if len(values) != len(acting):
        raise BadEntry(
            f"{column} has {len(values)} values for {len(acting)} turns that are credited: give "
            "one number for each"
        )
    for place, (utterance, value) in enumerate(zip(acting, values, strict=True)):
        if not is_number(value):
            raise BadEntry(f"{column}[{place}] is {described(value)}: give a number for every turn")
        utterance.given = _bounded(float(value), f"{column}[{place}]")


def _bounded(value: float, what: str) -> float:
    if math.isfinite(value) and abs(value) > LARGEST:
        raise BadEntry(f"{what} is {value:g}, beyond {LARGEST:g}: rescale it, or remove it")
    return value


def _infos(entry: dict[str, Any]) -> list[Any]:
    """The `info` of the entry's traces."""
    traces = [value for value in entry.values() if isinstance(value, dict) and "nodes" in value]
    return [trace.get("info") for trace in traces]
