"""Entries of tables: a row each, or one an episode where a row is an utterance.

A table with the columns episode_id, role and text holds utterances, an episode's rows together in
the order spoken. `reward` is the final reward of the row's role, in all of its rows or in some;
`position`, `group_id`, `game`, `embedding` are optional, and so is what `aria read` writes besides:
`is_action`, `preamble`, `system_prompt`, `info`, `speaks_as`. Any other table (Parquet, Arrow)
holds one entry a row.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, BinaryIO

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records.entries import Entry
from aria_dvc.records.episodes import SYSTEM
from aria_dvc.records.formats.base import BadEntry
from aria_dvc.records.formats.openai import NAMED
from aria_dvc.records.layouts import LAYOUTS
from aria_dvc.records.reading import described

NEEDED = ("episode_id", "role", "text")
_READ = ("reward", "position", "group_id", "game", "embedding", "is_action")
_KEPT = ("preamble", "system_prompt", "info", "speaks_as")
_OWN = frozenset({*NEEDED, *_READ, *_KEPT})
_DERIVED = frozenset({"turn", "turns", "embedded"})  # of a table of turns, counted anew
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_COLUMN = rb'"?[A-Za-z_\x80-\xff][\w\x80-\xff .-]*"?'
_HEADER = re.compile(_COLUMN + rb"([,;\t]" + _COLUMN + rb")+")
_TOLD = {"true": True, "1": True, "false": False, "0": False}
_BATCH = 1024
_MOST_BEFORE = 1000
_FILE = b"ARROW1"
csv.field_size_limit(1 << 30)
Row = dict[str, Any]


def is_csv(head: bytes) -> bool:
    """Whether a file that begins so is CSV: its first line names columns, maybe episode_id."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].rstrip()
    named = b"episode_id" in line and not line.startswith((b"{", b"["))
    return named or _HEADER.fullmatch(line) is not None


def csv_rows(file: BinaryIO, name: str) -> Iterator[Entry]:
    """The episodes of a CSV file of utterances: comma, semicolon or tab, with a first line."""
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        before, header = next((n, line) for n, line in enumerate(text) if line.strip())
        delimiter = max(",;\t", key=header.count)
        found = next(csv.reader([header], delimiter=delimiter, strict=True))
        names = [column.strip() for column in found]
        _check_columns(names, name)
        yield from _episodes(_csv_rows(text, names, delimiter, before + 2), name, "line")
    except csv.Error as error:
        raise AriaError(f"{name}: broken CSV ({error}): quote texts by double quotes") from None
    except UnicodeDecodeError as error:
        raise AriaError(f"{name}: not UTF-8 (byte {error.start}): save the log as UTF-8") from None


def _csv_rows(
    text: io.TextIOWrapper, names: list[str], delimiter: str, begin: int
) -> Iterator[tuple[int, Row]]:
    """(line, row) of every record that is not blank; the first begins on the line `begin`."""
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    while True:
        line = begin + reader.line_num
        cells = next(reader, None)
        if cells is None:
            return
        if not cells:
            continue
        row: Row = {name: _cell(name, cell) for name, cell in zip(names, cells, strict=False)}
        if len(cells) != len(names):
            row[_BROKEN] = f"line {line} has {len(cells)} fields where the first has {len(names)}"
        yield line, row


def _cell(name: str, text: str) -> Any:
    """A cell as its column's type; what is no number stays text, which the check then names."""
    if name in ("role", "text"):
        return text
    if not text.strip():
        return None
    if name == "embedding":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    if name == "position" and text.strip().isdigit():
        return int(text)
    return float(text) if name == "reward" and _NUMBER.fullmatch(text) else text


def parquet(file: BinaryIO, name: str) -> Iterator[Entry]:
    """The entries of a Parquet file."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(file)
    batches = table.iter_batches(_BATCH)
    return _entries(table.schema_arrow.names, (b.to_pylist() for b in batches), name)


def arrow(file: BinaryIO, name: str) -> Iterator[Entry]:
    """The entries of an Arrow file or stream; a Hugging Face dataset on disk is of streams."""
    import pyarrow as pa

    if file.read(len(_FILE)) == _FILE:
        whole = pa.ipc.open_file(file)
        batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
        return _entries(whole.schema.names, (batch.to_pylist() for batch in batches), name)
    file.seek(0)
    stream = pa.ipc.open_stream(file)
    return _entries(stream.schema.names, (batch.to_pylist() for batch in stream), name)


def _entries(names: list[str], batches: Iterator[list[Row]], name: str) -> Iterator[Entry]:
    rows = (_without_null(row) for batch in batches for row in batch)
    numbered = enumerate(rows, start=1)
    if _holds_utterances(names):
        _check_columns(names, name)
        yield from _episodes(numbered, name, "row")
        return
    for number, row in numbered:
        yield Entry(f"{name}: row {number}", row)


def _holds_utterances(names: list[str]) -> bool:
    """Whether a row is an utterance: no layout has its keys, or it has all that is needed."""
    if set(NEEDED) <= set(names):
        return True
    return "episode_id" in names and not any(layout.keys <= set(names) for layout in LAYOUTS)


def _without_null(value: Any) -> Any:
    """A value without the fields of objects that are null: a table has them in every row."""
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return [_without_null(item) for item in value]
    return value


def _check_columns(names: list[str], name: str) -> None:
    if missing := [column for column in NEEDED if column not in names]:
        raise AriaError(
            f"{name}: no column {', '.join(missing)}: a table of utterances needs "
            f"{', '.join(NEEDED)} and, to fit on, reward"
        )
    check_unique(names, name)


def check_unique(names: Iterable[str], name: str) -> None:
    """Raises AriaError for a column that stands twice in the table `name`."""
    counted = Counter(names)
    if twice := [column for column, count in counted.items() if count > 1]:
        raise AriaError(f"{name}: the column {twice[0]} stands twice: keep one of them")


def _episodes(rows: Iterator[tuple[int, Row]], name: str, unit: str) -> Iterator[Entry]:
    """One entry of the `messages` layout an episode.

    Raises AriaError where one comes back after another: what came of its first rows is not all of
    it, which cannot be mended by leaving out the later ones.
    """
    seen: set[str] = set()
    for episode, group in groupby(rows, key=lambda numbered: numbered[1].get("episode_id")):
        numbered = list(group)
        first, last = numbered[0][0], numbered[-1][0]
        where = f"{name}: {unit} {first}" if first == last else f"{name}: {unit}s {first} to {last}"
        said = [row for _, row in numbered]
        if str(episode) in seen:
            raise _apart(where, episode)
        seen.add(str(episode))
        try:
            entry = entry_of(episode, said)
            doubt = None if entry["rewards"] else partial(_comes_back, rows, episode, where)
            yield Entry(where, entry, doubt=doubt)
        except BadEntry as problem:
            raw = orjson.dumps(said, default=str)
            yield Entry(where, None, raw, AriaError(f"{where}: {problem}"))


def _comes_back(rows: Iterator[tuple[int, Row]], episode: Any, where: str) -> AriaError | None:
    """What is wrong where an episode has further rows behind those of others."""
    with suppress(Exception):  # what is broken there is not what is wrong here
        if any(row.get("episode_id") == episode for _, row in rows):
            return _apart(where, episode)
    return None


def _apart(where: str, episode: Any) -> AriaError:
    return AriaError(f"{where}: episode_id {episode} comes back: sort the rows by episode")


_BROKEN = "\0broken"  # the key under which a row says what is wrong with it


def entry_of(episode: Any, rows: list[Row]) -> Row:
    """The entry of the `messages` layout that the rows of an episode are.

    Raises BadEntry for rows that do not go together.
    """
    if broken := next((row[_BROKEN] for row in rows if _BROKEN in row), None):
        raise BadEntry(f"{broken}: quote texts with commas or line breaks")
    if episode is None:
        raise BadEntry("no episode_id: every row needs one")
    first, instructions = rows[0], _before(rows)
    acts = [_acts(row.get("is_action")) for row in rows]
    said = [row for row, acting in zip(rows, acts, strict=True) if acting is not False]
    remedy = f"the final reward {_SAME} (discounting is done here)"
    rewards = _of_roles(said, "reward", remedy) or _of_roles(rows, "reward", remedy)
    entry: Row = {"episode_id": episode, "messages": instructions + [_message(row) for row in rows]}
    entry["rewards"] = rewards
    entry["system_prompts"] = _of_roles(rows, "system_prompt", f"the prompt {_SAME}")
    acting = [row.get("role") for row, acts_here in zip(rows, acts, strict=True) if acts_here]
    entry["info"] = _info(first.get("info"), rows, acts, [*rewards, *acting])
    for key in ("group_id", "game"):
        if any(row.get(key) != first.get(key) for row in rows):
            raise BadEntry(f"several values of {key} in one episode: give it one")
        if key in first:
            entry[key] = first[key]
    entry["row"] = {k: v for k, v in first.items() if k not in _OWN and k not in _DERIVED}
    return entry


def _message(row: Row) -> Row:
    vector = {"embedding": row["embedding"]} if "embedding" in row else {}
    more = {k: v for k, v in row.items() if k not in _OWN and k not in _DERIVED}
    said = {**_speaker(row), "content": row.get("text"), **vector}
    return {**said, "row": more} if more else said


def _speaker(row: Row) -> Row:
    """The role of a row's message, and the name of a speaker that has one."""
    who, spoken = row.get("role"), row.get("speaks_as")
    if who is None or spoken is None or spoken == "" or spoken != spoken:  # NaN: an empty cell
        return {"role": who}
    if not isinstance(spoken, str) or spoken not in NAMED:
        known = " or ".join(sorted(NAMED))
        raise BadEntry(f"speaks_as is {described(spoken)}: give {known}, or nothing")
    return {"role": spoken, "name": who}


def _before(rows: list[Row]) -> list[Row]:
    """The system messages before the first row: what is kept of them, as many as its position."""
    texts = _preamble_of(rows[0].get("preamble"))
    start = _start(rows)
    if start is not None and start < len(texts):
        raise BadEntry(f"position begins at {start} behind {len(texts)} messages of preamble")
    texts += [""] * ((start or 0) - len(texts))
    return [{"role": SYSTEM, "content": text} for text in texts]


def _preamble_of(value: Any) -> list[str]:
    """The system messages in a cell of the column preamble.

    Raises BadEntry for what is no list of texts.
    """
    texts = _parsed(value)
    if texts is None:
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadEntry(f"preamble is {described(value)}: give a JSON list of system messages")
    return list(texts)


def _parsed(value: Any) -> Any:
    """What a JSON text holds; the value itself where it is none, None where it is blank."""
    if isinstance(value, str) and not value.strip():
        return None
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def _start(rows: list[Row]) -> int | None:
    """The position of the first row; None where there are no positions."""
    places = [row.get("position") for row in rows]
    if all(place is None for place in places):
        return None
    start = places[0]
    if type(start) is not int or start < 0 or places != list(range(start, start + len(rows))):
        raise BadEntry(
            "position must count up by one from the episode's first row: sort the rows, or "
            "leave the column out"
        )
    if start > _MOST_BEFORE:
        raise BadEntry(f"position begins at {start}: count an episode's messages from 0")
    return start


def _acts(value: Any) -> bool | None:
    """Whether a row is an action, by its `is_action`; None where it does not say."""
    if value is None or value != value:  # NaN: a cell of a frame without a value
        return None
    told = str(value).strip().lower().removesuffix(".0")
    if told not in _TOLD:
        raise BadEntry(f"is_action is {described(value)}: give true or false")
    return _TOLD[told]


def _info(given: Any, rows: list[Row], acts: list[bool | None], judged: Collection[Any]) -> Any:
    """What is recorded, where rows of the `judged` roles that are no actions are moves.

    A role is judged that has a reward or an action; of others `is_action` is false in any case.
    """
    info = _parsed(given)
    if info is None:
        info = {}
    told = {
        place: acting
        for place, (row, acting) in enumerate(zip(rows, acts, strict=True))
        if acting is not None and row.get("role") in judged
    }
    if not isinstance(info, dict) or not told:
        return info
    moves = [place for place, acting in told.items() if not acting]
    kept = {key: value for key, value in info.items() if key != "moves_credited"}
    return {**kept, "moves": moves, "moves_credited": False} if moves else kept


_SAME = "of a role is the same in all of its rows"


def _of_roles(rows: list[Row], column: str, remedy: str) -> dict[str, Any]:
    """What a column says of every role; nothing of a role whose rows are empty there."""
    found: dict[str, Any] = {}
    for row in rows:
        role, value = row.get("role"), row.get(column)
        if value is None or value == "" or value != value or not isinstance(role, str):
            continue
        if found.setdefault(role, value) != value:
            raise BadEntry(f"several {column}s of {role}: {remedy}")
    return found
