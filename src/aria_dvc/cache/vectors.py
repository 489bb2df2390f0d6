"""Vectors of texts by model, in one SQLite file, each with its length, a checksum and a day.

The sum covers the key too, so a vector that stands at another text's place is noticed. A file that
SQLite cannot read is moved aside; what is missing or damaged is simply not found.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from filelock import FileLock

from aria_dvc.cache.folder import cache_folder, today
from aria_dvc.errors import AriaError, naming

logger = logging.getLogger(__name__)
FILE = "vectors.sqlite"  # in the cache folder
PATIENCE_S = 60.0  # with other processes that write
DIGEST_BYTES = 8
ROW_BYTES = 96  # of a row beside its vector, about
_TABLE = """CREATE TABLE IF NOT EXISTS vectors
    (key BLOB PRIMARY KEY, value BLOB, length INTEGER, sum BLOB, day INTEGER)"""
# A damaged day is long ago: the row goes first, and one that is used gets a new day.
_DAY = "CASE typeof(day) WHEN 'integer' THEN day ELSE 0 END"
_UNREADABLE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
Row = tuple[bytes, bytes | None, int | bytes | None, bytes]
T = TypeVar("T")


def vectors_file(folder: Path | None = None) -> Path:
    """The file in the cache folder."""
    return (folder or cache_folder()) / FILE


class VectorStore:
    """The vectors of one model's texts.

    Args:
        model: all that the vectors follow from, beside the text.
        remedy: what the caller does about vectors that are not found, for messages.
    """

    def __init__(self, model: str, remedy: str = "they are computed again") -> None:
        self.model, self.remedy, self.path = model, remedy, vectors_file()
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def get(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """text -> (d,) float32 of those texts whose vector is here and whole."""
        found, damaged = self._mended(lambda: self._get(texts))
        if damaged:
            logger.warning("%s: %d damaged vectors: %s", self.path, damaged, self.remedy)
        return found

    def put(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Keep the vectors (n, d) of n texts."""
        values = [np.ascontiguousarray(vector, dtype=np.float32) for vector in vectors]
        rows = []
        for text, value in zip(texts, values, strict=True):
            key, raw = self._key(text), value.tobytes()
            rows.append((key, raw, value.size, _sum(key, raw), today()))
        self._mended(lambda: self._put(rows))

    def _get(self, texts: Sequence[str]) -> tuple[dict[str, np.ndarray], int]:
        found, damaged = {}, 0
        old: list[tuple[int, bytes]] = []
        query = f"SELECT key, value, length, sum, {_DAY} FROM vectors WHERE key = ?"
        with opened(self.path) as db:
            for text in texts:
                row = db.execute(query, (self._key(text),)).fetchone()
                if row is None:
                    continue
                if not is_whole(row[:4]):
                    damaged += 1
                    continue
                found[text] = np.frombuffer(row[1], dtype=np.float32)
                if row[4] != today():
                    old.append((today(), row[0]))
            if old:
                with db:
                    db.executemany("UPDATE vectors SET day = ? WHERE key = ?", old)
        return found, damaged

    def _put(self, rows: list[tuple[bytes, bytes, int, bytes, int]]) -> None:
        with opened(self.path) as db, db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.model}\0{text}".encode()).digest()

    def _mended(self, work: Callable[[], T]) -> T:
        """What `work` returns; once more with a new file if this one cannot be read."""
        for _ in range(2):
            seen = _inode(self.path)
            try:
                with naming(self.path):
                    return work()
            except sqlite3.DatabaseError as error:
                if not is_unreadable(error):
                    raise
                move_aside(self.path, seen, self.remedy)
        raise AriaError(f"{self.path} is damaged again and again: see the disk")


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the file, with its table.

    Raises:
        AriaError: other processes have kept it locked for a minute.
        sqlite3.DatabaseError: it is damaged, or the disk is full.
    """
    try:
        with closing(sqlite3.connect(path, timeout=PATIENCE_S)) as db:
            db.text_factory = bytes  # of a damaged cell, which may be no UTF-8
            db.execute(_TABLE)
            yield db
    except sqlite3.OperationalError as error:
        if _code(error) not in _BUSY:
            raise
        raise AriaError(
            f"{path} has been locked by another process for {PATIENCE_S:.0f} s: end that one, or "
            "point ARIA_CACHE to another folder, and run again"
        ) from None


def is_unreadable(error: sqlite3.Error) -> bool:
    """Whether the error says that the file is damaged or is no database."""
    return _code(error) in _UNREADABLE


def _code(error: sqlite3.Error) -> int:
    """The primary code of an error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_whole(row: Row) -> bool:
    """Whether (key, value, length, sum) belong together and the vector has finite numbers."""
    key, value, length, noted = row
    if not isinstance(value, bytes) or not isinstance(length, int):
        return False
    if len(value) != 4 * length or noted != _sum(key, value):
        return False
    return bool(np.isfinite(np.frombuffer(value, dtype=np.float32)).all())


def _sum(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=DIGEST_BYTES, key=key).digest()


def move_aside(path: Path, inode: int | None, remedy: str) -> None:
    """Give a damaged file another name, unless another process has done so (the inode tells)."""
    with FileLock(path.with_suffix(".lock"), timeout=PATIENCE_S):
        if inode is None or _inode(path) != inode:
            return
        kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{inode}")
        for suffix in ("-journal", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        os.replace(path, kept)
    logger.warning("%s is damaged, kept as %s: %s", path, kept.name, remedy)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def days(path: Path) -> Mapping[int, int]:
    """Bytes by the day of last use."""
    if not path.exists():
        return {}
    query = f"SELECT {_DAY} AS used, SUM(COALESCE(length(value), 0) + ?) FROM vectors GROUP BY used"
    with opened(path) as db:
        return dict(db.execute(query, (ROW_BYTES,)).fetchall())


def forget(path: Path, days_of_use: Sequence[int]) -> None:
    """Remove the vectors that were last used on those days, and give their room back."""
    with opened(path) as db:
        with db:
            unused = f"DELETE FROM vectors WHERE {_DAY} = ?"
            db.executemany(unused, [(day,) for day in days_of_use])
        db.execute("VACUUM")


def damaged_rows(path: Path) -> int:
    """How many vectors are damaged.

    Raises:
        sqlite3.DatabaseError: the whole file is.
    """
    with opened(path) as db:
        (told,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if told != b"ok":
            raise sqlite3.DatabaseError(told.decode(errors="replace"))
        rows = db.execute("SELECT key, value, length, sum FROM vectors")
        return sum(not is_whole(row) for row in rows)
