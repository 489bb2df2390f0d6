"""What lies in the cache: how much, how old, and what of it is damaged."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aria_dvc.cache.folder import USED, is_used, today
from aria_dvc.cache.lines import CheckedLines
from aria_dvc.cache.sums import SUFFIX, damage_of
from aria_dvc.cache.vectors import damaged_rows, days, is_unreadable, vectors_file

JOURNALS, TRAININGS, NAMES, VECTORS = "journals", "trainings", "names", "vectors"
SET_ASIDE = "set aside as damaged"
# Folders of the cache that hold a folder for every key. What else lies there is never touched.
FOLDERS = {
    "collect": JOURNALS,
    "base_model": TRAININGS,
    "policy": TRAININGS,
    "reward_model": TRAININGS,
    "progress": TRAININGS,
    "online": TRAININGS,
    "names": NAMES,
}
# What a run is found by: half a SHA-256. A folder of another name is somebody else's, such as those
# of data/ would be if ARIA_CACHE named it.
KEY = re.compile(r"[0-9a-f]{24}")
NAMES_FILE = "names.jsonl"
# The files of checked lines.
LINES = {JOURNALS: "episodes.jsonl", NAMES: NAMES_FILE}
DAY_S = 86400


@dataclass(frozen=True)
class Entry:
    """Something that is kept or goes as a whole.

    used: time of the last use, in seconds since 1970; of vectors, of which only the day is known,
        the latest that it may have been.
    day: of vectors: those that were last used on that day since 1970.
    """

    kind: str
    path: Path
    size: int
    used: float
    day: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this process uses it."""
        return is_used(self.path) and self.day in (None, today())


def entries(cache: Path) -> list[Entry]:
    """Everything in the cache that may be pruned."""
    return [*_folders(cache), *_files(cache), *_vectors(cache)]


def _folders(cache: Path) -> Iterator[Entry]:
    for name, kind in FOLDERS.items():
        for folder in sorted((cache / name).glob("*")):
            if folder.is_dir() and KEY.fullmatch(folder.name):
                yield Entry(kind, folder, *_size_and_use(folder))


def _size_and_use(folder: Path) -> tuple[int, float]:
    size, used = 0, folder.stat().st_mtime
    for parent, folders, files in os.walk(folder):  # which passes over what has just gone
        for name in (*folders, *files):
            with suppress(OSError):  # of a run under way
                found = Path(parent, name).lstat()
                size += 0 if stat.S_ISDIR(found.st_mode) else found.st_size
                used = max(used, found.st_mtime)
    with suppress(FileNotFoundError):
        used = (folder / USED).stat().st_mtime
    return size, used


def _files(cache: Path) -> Iterator[Entry]:
    for path in cache.glob(f"{vectors_file(cache).name}.damaged-*"):
        yield Entry(SET_ASIDE, path, path.stat().st_size, path.stat().st_mtime)


def _vectors(cache: Path) -> Iterator[Entry]:
    file = vectors_file(cache)
    try:
        for day, size in sorted(days(file).items()):
            yield Entry(VECTORS, file, size, min(time.time(), (day + 1.0) * DAY_S), day)
    except sqlite3.DatabaseError as error:
        if not is_unreadable(error):
            raise
        yield Entry(VECTORS, file, file.stat().st_size, file.stat().st_mtime)


def damages(cache: Path) -> Iterator[str]:
    """What is damaged, in words; every sum is checked."""
    for entry in _folders(cache):
        if entry.kind in LINES:
            file = entry.path / LINES[entry.kind]
            yield from (f"{file}: line {n}" for n in CheckedLines(file).bad_lines())
        for mark in sorted(entry.path.rglob(f"*{SUFFIX}")):
            yield from _damages_of(mark)
    yield from _damaged_vectors(vectors_file(cache))


def _damages_of(mark: Path) -> Iterator[str]:
    """Not what was dropped on purpose, as the checkpoints before the last ones are."""
    for name in damage_of(mark):
        if (mark.parent / name).parent.is_dir():
            yield str(mark.parent / name)


def _damaged_vectors(file: Path) -> Iterator[str]:
    if not file.exists():
        return
    try:
        count = damaged_rows(file)
    except sqlite3.DatabaseError as error:
        yield f"{file}: {error}"
        return
    if count:
        yield f"{file}: {count} vectors"
