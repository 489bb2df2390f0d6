"""Raw logs of every accepted layout, recognised by content, as checked episodes.

Every problem is an AriaError that names the file, the line (or list entry) and the remedy.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records import strict_json
from aria_dvc.records.episodes import Episode
from aria_dvc.records.layouts import LAYOUTS, BadEntry, Layout, is_number
from aria_dvc.records.oddities import Oddities, is_visible


def read_log(
    path: str | Path, game: str | None = None, need_rewards: bool = True, warn: bool = True
) -> list[Episode]:
    """All episodes of a log, in file order.

    Args:
        path: JSON lines, or one JSON list.
        game: the game's name for the episodes; default what the layout or the entry says.
        need_rewards: False leaves out the rewards of an entry where they are absent or odd (to
            score unseen dialogues).
        warn: say what is odd in the log; False where that was said before.

    Raises:
        AriaError: unreadable file, broken or non-UTF-8 JSON, unknown layout, missing keys, lists
            of different lengths, an empty game, no action, a reward outside [0, 1], NaN or
            ragged embeddings, a duplicate id, or anything of which the meaning is in doubt (see
            oddities.py and strict_json.py).
    """
    path = Path(path)
    return _checked(_entries(path), str(path), game, need_rewards, warn)


def read_entries(
    entries: Iterable[Mapping[str, Any]], game: str | None = None, need_rewards: bool = True
) -> list[Episode]:
    """The episodes of entries in memory, of any layout; else as `read_log`."""
    numbered = enumerate(entries, start=1)
    found = (_writable(*_an_object(entry, f"log: entry {number}")) for number, entry in numbered)
    return _checked(found, "log", game, need_rewards)


def _checked(
    entries: Iterator[tuple[str, dict[str, Any]]],
    log: str,
    game: str | None,
    need_rewards: bool,
    warn: bool = True,
) -> list[Episode]:
    episodes: list[Episode] = []
    seen: dict[str, str] = {}
    oddities = Oddities()
    for number, (where, entry) in enumerate(entries):
        layout = _layout_of(entry, where)
        try:
            episode = layout.read(entry)
            _complete(episode, entry, game or layout.game, number)
            _check_texts(episode)
            _check_grounded(episode)
            episode.rewards = _rewards(episode, layout.rewards, entry, need_rewards)
            _check_vectors(episode, _width(episodes[0] if episodes else episode))
            oddities.look_at(episode, entry, layout.name, where)
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
    if warn:
        oddities.tell()
    return episodes


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) for every entry of a JSON list or of JSON lines (read line by line)."""
    try:
        with path.open("rb") as file:
            if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                file.seek(0)
            if _first_byte(file) == b"[":
                yield from _listed(file.read(), path)
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    where = f"{path}: line {number}"
                    yield _an_object(_parse(line, where), where)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise AriaError(f"{path}: cannot be read ({reason}): check the path") from None


def _listed(raw: bytes, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of one JSON list."""
    entries = _loaded(raw, str(path))
    if problem := strict_json.lost(raw, entries):
        try:
            for index, piece in enumerate(strict_json.pieces(raw), start=1):
                _parse(piece, f"{path}: entry {index}")
        except RecursionError:
            raise AriaError(f"{path}: {problem}") from None
    for index, entry in enumerate(entries, start=1):
        yield _an_object(entry, f"{path}: entry {index}")


def _first_byte(file: BinaryIO) -> bytes:
    """The next byte that is not white space; the file is put back to where it was."""
    start = file.tell()
    byte = file.read(1)
    while byte.isspace():
        byte = file.read(1)
    file.seek(start)
    return byte


def _parse(raw: bytes, where: str) -> Any:
    value = _loaded(raw, where)
    if problem := strict_json.lost(raw, value):
        raise AriaError(f"{where}: {problem}")
    return value


def _loaded(raw: bytes, where: str) -> Any:
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


def _writable(where: str, entry: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    try:
        orjson.dumps([[entry.get("info"), entry.get("word")]])
    except orjson.JSONEncodeError as error:
        raise AriaError(f"{where}: info is no JSON ({error}): leave out what is none") from None
    return where, entry


def _layout_of(entry: dict[str, Any], where: str) -> Layout:
    fitting = [layout for layout in LAYOUTS if layout.keys <= entry.keys()]
    if len(fitting) > 1:
        names = " and ".join(layout.name for layout in fitting)
        raise AriaError(f"{where}: fits the layouts {names}: leave out the keys of all but one")
    if fitting:
        return fitting[0]
    best = max(LAYOUTS, key=lambda layout: len(layout.keys & entry.keys()))
    missing = ", ".join(sorted(best.keys - entry.keys()))
    known = "; ".join(f"{layout.name}: {', '.join(sorted(layout.keys))}" for layout in LAYOUTS)
    if best.keys & entry.keys():
        raise AriaError(f"{where}: missing key {missing} of the {best.name} layout")
    raise AriaError(f"{where}: unknown layout; an entry needs the keys of one of: {known}")


def _complete(episode: Episode, entry: dict[str, Any], game: str | None, number: int) -> None:
    """Fill what the entry or the caller knows: id, game, recorded information."""
    given = _name(entry, "episode_id")
    episode.episode_id = f"{number:06d}" if given is None else given
    own = entry.get("game")
    if not isinstance(own, str | None):
        raise BadEntry(f"game is {own!r}: give its name as text")
    episode.game = game or own or "dialogue"
    if isinstance(entry.get("info"), dict):
        episode.info.update(entry["info"])
    if (group := _name(entry, "group_id")) is not None:
        episode.info["group_id"] = group


def _name(entry: dict[str, Any], key: str) -> str | None:
    """A text or whole number as text; None where the entry has none."""
    name = entry.get(key)
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, str | Integral) or not is_visible(str(name)):
        raise BadEntry(f"{key} is {_shortened(name)}: give a text or a whole number")
    return str(name)


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _check_texts(episode: Episode) -> None:
    if not episode.utterances:
        raise BadEntry("empty game: a dialogue needs at least one utterance; remove the entry")
    for position, utterance in episode.numbered():
        if not is_visible(utterance.role):
            raise BadEntry(f"utterance {position} has the role {utterance.role!r}: give a name")
        if not isinstance(utterance.text, str) or not is_visible(utterance.text):
            raise BadEntry(
                f"utterance {position} ({utterance.role}) has no text: "
                "give a non-empty string or remove the entry"
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
        got = _shortened(reward)
        raise BadEntry(f"reward of {role} is {got}: a finite number is needed")
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
