"""Where the cache is, and what of it this process has used."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from aria_dvc.errors import AriaError

VARIABLE = "ARIA_CACHE"
# Part of every key: what an earlier layout has left is not found, so it is never misread.
LAYOUT = 2
USED = "used"  # an empty file in a folder of the cache; its time is that of the last use
_used: set[Path] = set()


def cache_folder() -> Path:
    """`.aria_cache` in the current folder, or what the environment variable ARIA_CACHE names.

    Experiments in temporary folders share one cache by that variable.

    Raises:
        AriaError: it is a file.
    """
    folder = Path(os.environ.get(VARIABLE) or ".aria_cache")
    if folder.is_file():
        raise AriaError(
            f"{folder} is a file, and the cache is a folder: move it away, or name another by "
            f"{VARIABLE}"
        )
    return folder


def note_use(path: Path) -> None:
    """Note that this process uses a file or folder of the cache: it is kept, and as young as now.

    Only a folder is touched.
    """
    _used.add(path.resolve())
    if path.is_dir():
        with suppress(OSError):  # of a cache that may only be read
            (path / USED).touch()


def is_used(folder: Path) -> bool:
    """Whether this process uses the folder, or something in it."""
    folder = folder.resolve()
    return any(used.is_relative_to(folder) for used in _used)


def uses_any() -> bool:
    """Whether this process uses anything in the cache."""
    return bool(_used)


def today() -> int:
    """Days since 1970."""
    return int(time.time() // 86400)
