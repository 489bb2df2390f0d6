"""Room in the cache: what was used longest ago goes first, and nothing that a process uses."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aria_dvc.aside import discard, is_leftover, remove_leftovers
from aria_dvc.cache.entries import FOLDERS, Entry, entries
from aria_dvc.cache.folder import cache_folder, uses_any
from aria_dvc.cache.locks import FolderLock
from aria_dvc.cache.vectors import forget
from aria_dvc.errors import AriaError

logger = logging.getLogger(__name__)
GIB = 2**30


@dataclass
class Pruned:
    """What was removed, what would have been but is in use, and the bytes that are left."""

    removed: list[Entry]
    in_use: list[Entry]
    left: int

    @property
    def freed(self) -> int:
        """Bytes."""
        return sum(entry.size for entry in self.removed)


def prune(cache: Path, most: float | None = None, oldest_s: float | None = None) -> Pruned:
    """Remove what was last used more than `oldest_s` seconds ago, and then, from the oldest on,
    until at most `most` bytes are left; None: no bound.

    What this process has used is kept, and so is what another one holds.
    """
    for name in FOLDERS:
        _remove_leftovers_below(cache / name)
    found = sorted(entries(cache), key=lambda entry: entry.used)
    pruned = Pruned([], [], sum(entry.size for entry in found))
    earliest = time.time() - oldest_s if oldest_s is not None else 0.0
    for entry in found:
        if entry.used >= earliest and (most is None or pruned.left <= most):
            break
        if _is_removed(entry):
            pruned.removed.append(entry)
            pruned.left -= entry.size
        else:
            pruned.in_use.append(entry)
    _forget(pruned.removed)
    return pruned


def _remove_leftovers_below(folder: Path) -> None:
    """What killed writers have left in a folder and in the folders of its keys: a run whose result
    was whole when it was killed writes there no more."""
    for parent, folders, _ in os.walk(folder):
        left = [name for name in folders if is_leftover(name)]
        if left:
            remove_leftovers(Path(parent))
        folders[:] = [name for name in folders if name not in left]


def _is_removed(entry: Entry) -> bool:
    """Remove an entry (vectors all at once, later), unless it is in use."""
    if entry.is_ours:
        return False
    if entry.day is not None:
        return True
    if not entry.path.is_dir():
        discard(entry.path)
        return True
    lock = FolderLock(entry.path)
    if not lock.take():
        return False
    try:
        discard(entry.path)
    finally:
        lock.let_go()
    return True


def _forget(removed: Iterable[Entry]) -> None:
    days: dict[Path, list[int]] = {}
    for entry in removed:
        if entry.day is not None:
            days.setdefault(entry.path, []).append(entry.day)
    for file, gone in days.items():
        forget(file, gone)


def keep_within(limit_gib: float) -> None:
    """Prune at the end of a stage that has used the cache, and tell if anything went.

    Of several processes of one launch the first does it. That it fails, fails no stage.
    """
    if not uses_any() or os.environ.get("RANK", "0") != "0":
        return
    try:
        pruned = prune(cache_folder(), limit_gib * GIB)
    except (OSError, sqlite3.Error, AriaError) as error:
        logger.warning("%s could not be pruned: %s", cache_folder(), error)
        return
    if pruned.removed:
        logger.info(
            "%s: %.1f GiB of %d entries used longest ago removed to stay within "
            "pace.cache_limit_gib: %g",
            *(cache_folder(), pruned.freed / GIB, len(pruned.removed), limit_gib),
        )
