"""Raw logs of every accepted layout, recognised by content, as checked episodes.

Every problem is an AriaError that names the file, the line (or list entry) and the remedy. Entries
come one by one (`sources.py`), become an episode by their layout (`layouts.py`) and pass the checks
here, so that `iter_log` holds one episode at a time, and the names of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.progress import Update, progress_bar
from aria_dvc.records import strict_json
from aria_dvc.records.entries import Entry
from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.base import BadEntry, Layout
from aria_dvc.records.given import note_given
from aria_dvc.records.json_entries import an_object
from aria_dvc.records.layouts import layout_of
from aria_dvc.records.oddities import Oddities, is_unicode, is_visible
from aria_dvc.records.outcome_checks import Judged, credited_rewards
from aria_dvc.records.reading import Reading, described
from aria_dvc.records.sources import Source, entries_of, sources_of
from aria_dvc.suggestions import did_you_mean


def read_log(path: str | Path, reading: Reading | None = None) -> list[Episode]:
    """All episodes of a log, in its order; see `iter_log`."""
    return list(iter_log(path, reading))


def iter_log(path: str | Path, reading: Reading | None = None) -> Iterator[Episode]:
    """The episodes of a log one by one, in its order; held in memory are only their names.

    Args:
        path: JSON lines, one JSON list, Parquet, CSV, Arrow, any of them compressed; a folder of
            such files or of a Hugging Face dataset; or `-`, standard input.

    Raises:
        AriaError: unreadable file, broken or non-UTF-8 JSON, unknown layout, missing keys, lists
            of different lengths, an empty game, no action, a reward outside [0, 1], NaN or
            ragged embeddings, a duplicate id, or anything of which the meaning is in doubt (see
            oddities.py and strict_json.py); what concerns one entry only is left to
            `reading.rejected` where there is one.
    """
    reading = reading or Reading()
    check = _Check(reading)
    if reading.progress is None:
        yield from check.log(path)
        return
    with progress_bar(reading.progress) as update:
        yield from check.log(path, update)


def read_entries(
    entries: Iterable[Mapping[str, Any]], reading: Reading | None = None
) -> list[Episode]:
    """The episodes of entries in memory, of any layout; else as `iter_log`."""
    check = _Check(reading or Reading())
    return list(check.all(_in_memory(entries), "log"))


def _in_memory(entries: Iterable[Mapping[str, Any]]) -> Iterator[Entry]:
    for number, entry in enumerate(entries, start=1):
        where = f"log: entry {number}"
        yield Entry(where, an_object(entry, where))


class _Check:
    """What is known of a log while its entries come in."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.seen: dict[str, str] = {}
        self.oddities = Oddities()
        self.width: int | None = None  # numbers in the first vector of the log; 0: none
        self.number = 0  # of the entry that comes next, whether or not it is taken
        self.judged = Judged()

    def log(self, path: str | Path, update: Update | None = None) -> Iterator[Episode]:
        return self.all(self._of_sources(sources_of(path), update), str(path))

    def _of_sources(self, sources: list[Source], update: Update | None) -> Iterator[Entry]:
        outer = self.reading
        for source in sources:
            self.reading = replace(outer, prefix=outer.prefix + source.prefix)
            if source.prefix:
                self.number = 0
            yield from entries_of(source, update)
        self.reading = outer

    def all(self, entries: Iterator[Entry], log: str) -> Iterator[Episode]:
        """The checked episodes of all entries; warnings come after the last one."""
        found, rejected = 0, self.reading.rejected
        for entry in entries:
            try:
                episodes = self._episodes(entry)
            except AriaError as problem:
                if rejected is None:
                    raise entry.cause(problem) from None
                rejected.add(entry, problem)
                continue
            found += len(episodes)
            yield from episodes
        if not found:
            given = "give a log with at least one dialogue"
            if rejected is not None and rejected.kinds:
                rejected.close()
                given = f"all {rejected.kinds.total()} entries are in {rejected.path}"
            raise AriaError(f"{log}: no episodes: {given}")
        if self.reading.warn:
            self.oddities.tell()
            self.judged.tell(log, self.reading.outcome)

    def _episodes(self, entry: Entry) -> list[Episode]:
        """The episodes of one entry: all of them, or none and its problem."""
        first = self.number
        self.number += 1
        where, value = entry.where, entry.object()
        found: list[Episode] = []
        width = self.width
        self.oddities.begin()
        try:
            _check_writable(value)
            layout = layout_of(value)
            parts = list(layout.parts(value))
            self.number = first + len(parts)
            for number, part in enumerate(parts, start=first):
                found.append(self._episode(part, layout, where, number))
        except BadEntry as problem:
            for episode in found:
                del self.seen[episode.episode_id]
            self.width = width
            self.oddities.forget()
            raise AriaError(f"{where}: {problem}") from None
        return found

    def _episode(self, entry: dict[str, Any], layout: Layout, where: str, number: int) -> Episode:
        reading = self.reading
        episode = layout.read(entry)
        _complete(episode, entry, layout, reading, number)
        _check_texts(episode)
        _check_grounded(episode)
        _check_told(episode)
        _check_moves(episode)
        if strict_json.written(episode.info, around=1) is None:  # as a line of the raw log
            raise BadEntry(strict_json.TOO_DEEP)
        episode.rewards = credited_rewards(episode, layout, entry, reading, self.judged)
        if reading.column is not None:
            note_given(episode, entry, reading.column)
        width = _width(episode) if self.width is None else self.width
        _check_vectors(episode, width)
        self.oddities.look_at(episode, entry, layout.name, where)
        if episode.episode_id in self.seen:
            raise BadEntry(
                f"episode_id {episode.episode_id} was already used at "
                f"{self.seen[episode.episode_id]}: give every episode its own id"
            )
        self.seen[episode.episode_id], self.width = where, width
        return episode


def _check_writable(entry: dict[str, Any]) -> None:
    try:
        orjson.dumps([[entry.get("info"), entry.get("word")]])
    except orjson.JSONEncodeError as error:
        raise BadEntry(f"info is no JSON ({error}): leave out what is none") from None


def _complete(
    episode: Episode, entry: dict[str, Any], layout: Layout, reading: Reading, number: int
) -> None:
    """Fill what the entry or the caller knows: id, game, group, recorded information."""
    given = _name(entry, "episode_id") or episode.episode_id or f"{number:06d}"
    episode.episode_id = reading.prefix + _visible(given, "episode_id")
    own = entry.get("game")
    if not isinstance(own, str | None):
        raise BadEntry(f"game is {own!r}: give its name as text")
    episode.game = reading.game or layout.game or own or "dialogue"
    episode.tools = episode.tools or entry.get("tools")
    if layout.local_groups and "group_id" in episode.info:
        episode.info["group_id"] = reading.prefix + episode.info["group_id"]
    if isinstance(entry.get("info"), dict):
        episode.info.update(_with_named_group(entry["info"]))
    if not reading.moves:
        episode.info["moves_credited"] = False
    if (group := _name(entry, "group_id")) is not None:
        episode.info["group_id"] = group
    if reading.group_by is not None:
        episode.info["group_id"] = _group(entry, reading.group_by)
    if isinstance(named := episode.info.get("group_id"), str):
        _visible(named, "group_id")


def _with_named_group(info: dict[str, Any]) -> dict[str, Any]:
    """`info`, a group that is a whole number as text."""
    group = info.get("group_id")
    is_whole = isinstance(group, Integral) and not isinstance(group, bool)
    return {**info, "group_id": str(group)} if is_whole else info


def _group(entry: dict[str, Any], field: str) -> str:
    """The value of a field of an entry, or of its first row, as a group's name."""
    row = entry.get("row")
    value = _field(entry, field)
    if value is None and isinstance(row, dict):
        value = _field(row, field)
    blank = isinstance(value, str) and not is_visible(value)
    if value is None or value != value or blank:  # NaN: a cell of a frame without a value
        known = sorted({*entry, *(row if isinstance(row, dict) else ())})
        hint = did_you_mean(field, known)
        raise BadEntry(f"no field {field} to group by{hint}: name one that every entry has")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str | Integral):
        return str(value)
    raw = orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)
    return hashlib.sha256(raw).hexdigest()[:16]


def _field(value: Any, field: str) -> Any:
    """What is under `field`, or under its first part and there under the rest."""
    if not isinstance(value, dict):
        return None
    first, _, rest = field.partition(".")
    return value.get(field) if field in value or not rest else _field(value.get(first), rest)


def _name(entry: dict[str, Any], key: str) -> str | None:
    """A text or whole number as text; None where the entry has none."""
    name = entry.get(key)
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, str | Integral):
        raise BadEntry(f"{key} is {described(name)}: give a text or a whole number")
    return _visible(str(name), key)


def _visible(name: str, key: str) -> str:
    """A name as it is, if there is something to see in it."""
    if not is_visible(name):
        raise BadEntry(f"{key} is {described(name)}: give a text or a whole number")
    return name


def _check_texts(episode: Episode) -> None:
    if not episode.utterances:
        raise BadEntry("empty game: a dialogue needs at least one utterance; remove the entry")
    for position, utterance in episode.numbered():
        if not is_visible(utterance.role):
            raise BadEntry(f"utterance {position} has the role {utterance.role!r}: give a name")
        if not isinstance(utterance.text, str | None):
            raise BadEntry(
                f"utterance {position} ({utterance.role}) is {described(utterance.text)}, no text: "
                "give a string, such as its JSON"
            )
        if not utterance.text or not is_visible(utterance.text):
            raise BadEntry(
                f"utterance {position} ({utterance.role}) has no text: "
                "give a non-empty string or remove the entry"
            )
        if not (utterance.text.isascii() or is_unicode(utterance.text)):
            raise BadEntry(
                f"utterance {position} ({utterance.role}) has half of a character (a lone "
                "surrogate), which no file holds: take it out"
            )


def _check_grounded(episode: Episode) -> None:
    """What is recorded of a role's utterances is so of each of them."""
    for role, carried_out in episode.record.grounded.items():
        said = sum(utterance.role == role for utterance in episode.utterances)
        if len(carried_out) != said:
            raise BadEntry(
                f"info.grounded has {len(carried_out)} values for {said} utterances of {role}: "
                "give true or false for each"
            )


def _check_told(episode: Episode) -> None:
    """What the game told is recorded of each utterance."""
    told, said = len(episode.record.told), len(episode.utterances)
    if told not in (0, said):
        raise BadEntry(
            f"info.told has {told} texts for {said} utterances: give what the game told the "
            "hearers of each, or an empty text"
        )


def _check_moves(episode: Episode) -> None:
    """Moves that are left out of credit are told by their places among the utterances, from 0."""
    if episode.info.get("moves_credited") is not False:
        return
    moves, said = episode.info.get("moves", []), len(episode.utterances)
    listed = moves if isinstance(moves, list) else [None]
    if not all(type(move) is int and 0 <= move < said for move in listed):
        raise BadEntry(
            f"info.moves is {described(moves)}: to leave moves out of credit (--no-moves), give "
            f"the numbers of those utterances, 0 to {said - 1} here (system messages not counted)"
        )


def _check_vectors(episode: Episode, width: int) -> None:
    """Every utterance carries a vector of `width` numbers, as the log's first does (0: none)."""
    for position, utterance in episode.numbered():
        found = 0 if utterance.embedding is None else len(utterance.embedding)
        if found != width:
            raise BadEntry(
                f"utterance {position} ({utterance.role}) has an embedding of {found} numbers "
                f"where the log starts with {width}: embed all of the log with one model, or none"
            )


def _width(episode: Episode) -> int:
    first = episode.utterances[0].embedding
    return 0 if first is None else len(first)
