"""Entries of JSON lines, or of one JSON list, read piece by piece where it is long."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records import strict_json
from aria_dvc.records.entries import Entry

WHOLE = 64 << 20  # a list of so many bytes is read at once
_CHUNK = 8 << 20


def read(file: io.BufferedReader, name: str) -> Iterator[Entry]:
    """The entries of a file, by line or by place in the list."""
    if file.peek(3).startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
    blank = 0
    while (head := file.peek()) and head.isspace():
        blank += file.read(len(head)).count(b"\n")
    if head.lstrip()[:1] == b"[":
        return _list(file, name)
    return _lines(file, name, blank + 1)


def _lines(file: io.BufferedReader, name: str, first: int) -> Iterator[Entry]:
    for number, line in enumerate(file, start=first):
        if line.strip():
            yield _entry(line, f"{name}: line {number}")


def _entry(raw: bytes, where: str) -> Entry:
    try:
        return Entry(where, an_object(_parse(raw, where), where), raw)
    except AriaError as problem:
        return Entry(where, None, raw, problem)


def _list(file: io.BufferedReader, name: str) -> Iterator[Entry]:
    raw = file.read(WHOLE)
    return _long(raw, file, name) if file.peek(1) else _short(raw, name)


def _short(raw: bytes, name: str) -> Iterator[Entry]:
    """The entries of a list in memory."""
    entries = _loaded(raw, name, "mend the list, or give JSON lines")
    if problem := strict_json.lost(raw, entries):
        try:
            for index, piece in enumerate(strict_json.pieces(raw), start=1):
                yield _entry(piece, f"{name}: entry {index}")
        except RecursionError:
            raise AriaError(f"{name}: {problem}") from None
        return
    for index, entry in enumerate(entries, start=1):
        where = f"{name}: entry {index}"
        try:
            yield Entry(where, an_object(entry, where))
        except AriaError as wrong:
            yield Entry(where, None, orjson.dumps(entry), wrong)


def _long(raw: bytes, file: io.BufferedReader, name: str) -> Iterator[Entry]:
    """The entries of a list that is read a piece at a time."""
    text = _Text(raw, file)
    text.at = text.text.index("[") + 1
    try:
        for index in count(1):
            where = f"{name}: entry {index}"
            if text.peek(where) == "]":
                break
            yield _entry(text.element(where).encode(), where)
        text.at += 1
        if text.rest().strip():
            raise AriaError(f"{name}: broken JSON (content after the list): keep one list")
    except UnicodeDecodeError as error:
        raise AriaError(f"{name}: not UTF-8 ({error.reason}): save the log as UTF-8") from None


class _Text:
    """A window on the text of a file, which moves on as elements are taken."""

    def __init__(self, head: bytes, file: io.BufferedReader) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._file = file
        self._decoder = json.JSONDecoder(parse_int=str)  # int() takes 4,300 digits
        self.text, self.at = self._decode.decode(head), 0

    def peek(self, where: str) -> str:
        """The next character that is no gap between elements."""
        self.at = strict_json.gap(self.text, self.at)
        while self.at == len(self.text):
            if not self._more():
                raise _broken(where, "unexpected end of data")
            self.at = strict_json.gap(self.text, self.at)
        return self.text[self.at]

    def element(self, where: str) -> str:
        """The text of the next element."""
        while True:
            try:
                end = self._decoder.raw_decode(self.text, self.at)[1]
                problem = "unexpected end of data"
            except (json.JSONDecodeError, RecursionError) as error:
                end = len(self.text)
                problem = getattr(error, "msg", "nested too deep")
            if end < len(self.text):  # a number may go on behind the window
                found, self.at = self.text[self.at : end], end
                return found
            if len(self.text) - self.at > WHOLE or not self._more():
                raise _broken(where, problem)

    def rest(self) -> str:
        """What is left in the window and a little more."""
        self._more()
        return self.text[self.at :]

    def _more(self) -> bool:
        read = self._file.read(_CHUNK)
        self.text, self.at = self.text[self.at :] + self._decode.decode(read, not read), 0
        return bool(read)


def _broken(where: str, problem: str) -> AriaError:
    return AriaError(f"{where}: broken JSON ({problem}): mend the list, or give JSON lines")


def _parse(raw: bytes, where: str) -> Any:
    value = _loaded(raw, where)
    if problem := strict_json.lost(raw, value):
        raise AriaError(f"{where}: {problem}")
    return value


def _loaded(raw: bytes, where: str, remedy: str = "one JSON object a line") -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        broken = f"broken JSON ({error.msg} at column {error.colno}): {remedy}"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AriaError(f"{where}: not UTF-8 (byte {error.start}): save the log as UTF-8") from None
    raise AriaError(f"{where}: {broken}, without NaN or Infinity")


def an_object(entry: Any, where: str) -> dict[str, Any]:
    """The entry if it is a JSON object.

    Raises AriaError for anything else.
    """
    if not isinstance(entry, dict):
        raise AriaError(f"{where}: a JSON object is expected, got {type(entry).__name__}")
    return entry
