"""Entries of tables: a row each, or one an episode where a row is an utterance.

A table with the columns episode_id, role and text holds utterances, an episode's rows together in
the order spoken. `reward` is the final reward of the row's role, in all of its rows or in some;
`position`, `group_id`, `game` and `embedding` are optional. Any other table (Parquet, Arrow) holds
one entry a row.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, BinaryIO

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records.entries import Entry
from aria_dvc.records.formats.base import BadEntry, is_number
from aria_dvc.records.layouts import LAYOUTS

NEEDED = ("episode_id", "role", "text")
_OWN = frozenset({*NEEDED, "reward", "position", "group_id", "game", "embedding", "is_action"})
_DERIVED = frozenset({"turn", "turns", "embedded"})  # of a table of turns, counted anew
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_BATCH = 1024
_MOST_BEFORE = 1000
_FILE = b"ARROW1"
csv.field_size_limit(1 << 30)
Row = dict[str, Any]


def is_csv(head: bytes) -> bool:
    """Whether a file that begins so is CSV: its first line names the column episode_id."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    return b"episode_id" in line and not line.startswith((b"{", b"["))


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
    if name == "is_action":
        return {"true": True, "false": False}.get(text.strip().lower(), text)
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
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise AriaError(f"{name}: the column {twice} stands twice: keep one of them")


def _episodes(rows: Iterator[tuple[int, Row]], name: str, unit: str) -> Iterator[Entry]:
    """One entry of the `messages` layout an episode."""
    seen: set[str] = set()
    for episode, group in groupby(rows, key=lambda numbered: numbered[1].get("episode_id")):
        numbered = list(group)
        first, last = numbered[0][0], numbered[-1][0]
        where = f"{name}: {unit} {first}" if first == last else f"{name}: {unit}s {first} to {last}"
        said = [row for _, row in numbered]
        try:
            if str(episode) in seen:
                raise BadEntry(f"episode_id {episode} comes back: sort the rows by episode")
            seen.add(str(episode))
            yield Entry(where, _episode(episode, said))
        except BadEntry as problem:
            raw = orjson.dumps(said, default=str)
            yield Entry(where, None, raw, AriaError(f"{where}: {problem}"))


_BROKEN = "\0broken"  # the key under which a row says what is wrong with it


def _episode(episode: Any, rows: list[Row]) -> Row:
    if broken := next((row[_BROKEN] for row in rows if _BROKEN in row), None):
        raise BadEntry(f"{broken}: quote texts with commas or line breaks")
    if episode is None:
        raise BadEntry("no episode_id: every row needs one")
    first = rows[0]
    entry: Row = {"episode_id": episode, "messages": _before(rows) + [_message(r) for r in rows]}
    entry["rewards"] = _rewards(rows)
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
    said = {"role": row.get("role"), "content": row.get("text"), **vector}
    return {**said, "row": more} if more else said


def _before(rows: list[Row]) -> list[Row]:
    """Empty system messages for what stands before the first row, by its position."""
    places = [row.get("position") for row in rows]
    if all(place is None for place in places):
        return []
    start = places[0]
    if type(start) is not int or start < 0 or places != list(range(start, start + len(rows))):
        raise BadEntry("position must count up by one from the episode's first row: sort the rows")
    if start > _MOST_BEFORE:
        raise BadEntry(f"position begins at {start}: count an episode's messages from 0")
    return [{"role": "system", "content": ""}] * start


def _rewards(rows: list[Row]) -> dict[str, Any]:
    """Every role's final reward; none for a role whose rows have none."""
    found: dict[str, Any] = {}
    for row in rows:
        role, reward = row.get("role"), row.get("reward")
        if reward is None or row.get("is_action") is False or not isinstance(role, str):
            continue
        if is_number(reward) and math.isnan(reward):
            continue
        if found.setdefault(role, reward) != reward:
            raise BadEntry(
                f"several rewards of {role}: the final reward of a role is the same in all of its "
                "rows (discounting is done here)"
            )
    return found
