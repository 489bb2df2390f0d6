"""Raw logs of every accepted layout, recognised by content, as checked episodes.

Every problem is an AriaError that names the file, the line (or list entry) and the remedy.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode
from aria_dvc.records.layouts import LAYOUTS, BadEntry, Layout, is_number


def read_log(path: str | Path, game: str | None = None, need_rewards: bool = True) -> list[Episode]:
    """All episodes of a log, in file order.

    Args:
        path: JSON lines, or one JSON list.
        game: the game's name for the episodes; default what the layout or the entry says.
        need_rewards: False leaves out the rewards of an entry where they are absent or odd (to
            score unseen dialogues).

    Raises:
        AriaError: unreadable file, broken or non-UTF-8 JSON, unknown layout, missing keys, lists
            of different lengths, an empty game, no action, a reward outside [0, 1], NaN or
            ragged embeddings, a duplicate id.
    """
    path = Path(path)
    return _checked(_entries(path), str(path), game, need_rewards)


def read_entries(
    entries: Iterable[Mapping[str, Any]], game: str | None = None, need_rewards: bool = True
) -> list[Episode]:
    """The episodes of entries in memory, of any layout; else as `read_log`."""
    numbered = enumerate(entries, start=1)
    found = (_an_object(entry, f"log: entry {number}") for number, entry in numbered)
    return _checked(found, "log", game, need_rewards)


def _checked(
    entries: Iterator[tuple[str, dict[str, Any]]], log: str, game: str | None, need_rewards: bool
) -> list[Episode]:
    episodes: list[Episode] = []
    seen: dict[str, str] = {}
    for number, (where, entry) in enumerate(entries):
        layout = _layout_of(entry, where)
        try:
            episode = layout.read(entry)
            _complete(episode, entry, game or layout.game, number)
            _check_texts(episode)
            episode.rewards = _rewards(episode, layout.rewards, entry, need_rewards)
            _check_vectors(episode, _width(episodes[0] if episodes else episode))
        except BadEntry as problem:
            raise AriaError(f"{where}: {problem}") from None
        if episode.episode_id in seen:
            raise AriaError(
                f"{where}: episode_id {episode.episode_id} was already used at "
                f"{seen[episode.episode_id]}: give every episode its own id"
            )
        seen[episode.episode_id] = where
        episodes.append(episode)
    if not episodes:
        raise AriaError(f"{log}: no episodes: give a log with at least one dialogue")
    return episodes


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) for every entry of a JSON list or of JSON lines (read line by line)."""
    try:
        with path.open("rb") as file:
            if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                file.seek(0)
            if _first_byte(file) == b"[":
                for index, entry in enumerate(_parse(file.read(), str(path)), start=1):
                    yield _an_object(entry, f"{path}: entry {index}")
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    where = f"{path}: line {number}"
                    yield _an_object(_parse(line, where), where)
    except OSError as error:
        raise AriaError(f"{path}: cannot be read ({error.strerror}): check the path") from None


def _first_byte(file: BinaryIO) -> bytes:
    """The next byte that is not white space; the file is put back to where it was."""
    start = file.tell()
    byte = file.read(1)
    while byte.isspace():
        byte = file.read(1)
    file.seek(start)
    return byte


def _parse(raw: bytes, where: str) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        broken = f"broken JSON ({error.msg} at column {error.colno}): one JSON object a line"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AriaError(f"{where}: not UTF-8 (byte {error.start}): save the log as UTF-8") from None
    raise AriaError(f"{where}: {broken}, without NaN or Infinity")


def _an_object(entry: Any, where: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict):
        raise AriaError(f"{where}: a JSON object is expected, got {type(entry).__name__}")
    return where, entry


def _layout_of(entry: dict[str, Any], where: str) -> Layout:
    for layout in LAYOUTS:
        if layout.keys <= entry.keys():
            return layout
    best = max(LAYOUTS, key=lambda layout: len(layout.keys & entry.keys()))
    missing = ", ".join(sorted(best.keys - entry.keys()))
    known = "; ".join(f"{layout.name}: {', '.join(sorted(layout.keys))}" for layout in LAYOUTS)
    if best.keys & entry.keys():
        raise AriaError(f"{where}: missing key {missing} of the {best.name} layout")
    raise AriaError(f"{where}: unknown layout; an entry needs the keys of one of: {known}")


def _complete(episode: Episode, entry: dict[str, Any], game: str | None, number: int) -> None:
    """Fill what the entry or the caller knows: id, game, recorded information."""
    given = entry.get("episode_id")
    episode.episode_id = f"{number:06d}" if given is None else str(given)
    episode.game = game or str(entry.get("game") or "dialogue")
    if isinstance(entry.get("info"), dict):
        episode.info.update(entry["info"])
    if (group := entry.get("group_id")) is not None:
        episode.info["group_id"] = str(group)


def _check_texts(episode: Episode) -> None:
    if not episode.utterances:
        raise BadEntry("empty game: a dialogue needs at least one utterance; remove the entry")
    for position, utterance in episode.numbered():
        if not isinstance(utterance.text, str) or not utterance.text.strip():
            raise BadEntry(
                f"utterance {position} ({utterance.role}) has no text: "
                "give a non-empty string or remove the entry"
            )


def _rewards(
    episode: Episode,
    read: Callable[[dict[str, Any]], dict[str, Any]],
    entry: dict[str, Any],
    needed: bool,
) -> dict[str, float]:
    """The checked final rewards of an entry; none instead of odd ones unless they are needed."""
    try:
        rewards = read(entry)
        bounded = episode.record.reward_rule != "utility"
        for role, reward in rewards.items():
            _check_reward(role, reward, bounded)
        if not rewards:
            raise BadEntry("no reward: give a final reward for at least one role")
        if not rewards.keys() & {utterance.role for utterance in episode.utterances}:
            raise BadEntry("no action: a role with a reward must say something")
    except BadEntry:
        if needed:
            raise
        return {}
    return rewards


def _check_reward(role: str, reward: Any, bounded: bool) -> None:
    """Final rewards lie in [0, 1]; only a utility recorded as such may be any finite number."""
    if not is_number(reward) or not math.isfinite(reward):
        raise BadEntry(f"reward of {role} is {reward!r}: a finite number is needed")
    if bounded and not 0.0 <= reward <= 1.0:
        raise BadEntry(f"reward of {role} is {reward}, outside [0, 1]: rescale the final rewards")


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
