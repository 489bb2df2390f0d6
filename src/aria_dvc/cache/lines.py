"""An append-only file of JSON lines, each with a checksum and written once it is added.

A line is `{"sum":"<16 hexadecimal digits>","entry":<JSON>}`; the sum is that of the entry's bytes.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.aside import sync_folder, written_aside

logger = logging.getLogger(__name__)
_DIGITS = 16
_HEAD, _MIDDLE, _END = b'{"sum":"', b'","entry":', b"}"
_START = len(_HEAD) + _DIGITS


@dataclass(frozen=True)
class CheckedLines:
    """The file at `path`. Only one process at a time may add to it or mend it.

    synced: a line is on the disk once it is added; otherwise only the end of the machine, not that
        of the process, may cost the last ones.
    """

    path: Path
    synced: bool = True

    @property
    def damaged(self) -> Path:
        """Where the lines are kept that were found damaged."""
        return self.path.with_suffix(f".damaged{self.path.suffix}")

    def read(self) -> list[Any]:
        """The entries of all lines that are whole."""
        return _entries(line for line in self._lines() if _is_whole(line))

    def bad_lines(self) -> list[int]:
        """Numbers, from 1, of the lines that are damaged; not of a last one cut short."""
        return [n for n, line in enumerate(self._lines(), start=1) if not _is_whole(line)]

    def mend(self, remedy: str) -> list[Any]:
        """Leave only whole lines in the file; damaged ones are kept in `damaged` and named.

        A last line without its end is what a kill leaves: it is dropped without a word.

        Args:
            remedy: what becomes of the entries that are lost, for the message.

        Returns:
            The entries of the lines that are left.
        """
        raw = self._raw()
        bad, whole = {}, []
        for number, line in enumerate(_ended(raw), start=1):
            if _is_whole(line):
                whole.append(line)
            else:
                bad[number] = line
        if bad:
            with self.damaged.open("ab") as file:
                file.write(b"".join(bad.values()))
            logger.warning(
                "%s: line %s damaged, kept in %s: %s",
                *(self.path, ", ".join(map(str, bad)), self.damaged.name, remedy),
            )
        if (left := b"".join(whole)) != raw:
            with written_aside(self.path) as aside:
                aside.write_bytes(left)
        return _entries(whole)

    def add(self, entry: Any) -> None:
        """Add one entry; the system has it when this returns, and if `synced` the disk."""
        body = orjson.dumps(entry)
        new = not self.path.exists()
        with self.path.open("ab") as file:
            file.write(_HEAD + _sum(body) + _MIDDLE + body + _END + b"\n")
            file.flush()
            if self.synced:
                os.fsync(file.fileno())
        if new:
            sync_folder(self.path.parent)

    def _lines(self) -> list[bytes]:
        return _ended(self._raw())

    def _raw(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""


def _ended(raw: bytes) -> list[bytes]:
    """Every line that has an end, with it."""
    return [line + b"\n" for line in raw.split(b"\n")[:-1]]


def _entries(whole: Iterable[bytes]) -> list[Any]:
    return [orjson.loads(_entry(line)) for line in whole]


def _is_whole(line: bytes) -> bool:
    frame = (line[: len(_HEAD)], line[_START : _START + len(_MIDDLE)], line[-2:-1])
    return frame == (_HEAD, _MIDDLE, _END) and line[len(_HEAD) : _START] == _sum(_entry(line))


def _entry(line: bytes) -> bytes:
    return line[_START + len(_MIDDLE) : -2]


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_DIGITS].encode()
