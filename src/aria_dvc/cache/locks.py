"""One writer at a time in a folder of the cache. Readers take no lock and never wait.

The lock is the system's: it ends with its holder, however that ends. Beside it lies a note of who
holds it, for the message that the next one gets.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from aria_dvc.cache.folder import note_use
from aria_dvc.errors import AriaError

LOCK, HOLDER = "lock", "holder.json"
GRACE_S = 3.0  # for a holder that is just ending: processes that play follow their parent in 1 s
LOOK_S = 0.1


@dataclass
class FolderLock:
    """The right to write in `folder`; one object may take it again while it has it."""

    folder: Path
    _lock: FileLock = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._lock = FileLock(self.folder / LOCK)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock during the block.

        Raises:
            AriaError: another process holds it; the message names that process.
        """
        if not self.take(GRACE_S):
            raise AriaError(f"{self.folder} is in use {self._holder()}")
        try:
            yield
        finally:
            self.let_go()

    def take(self, patience_s: float = 0.0) -> bool:
        """Take the lock if nobody else has it within so many seconds; whether we have it now."""
        again = self._lock.is_locked
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError, FileExistsError):  # pruned since the line before
                try:
                    self._lock.acquire(timeout=patience_s, poll_interval=LOOK_S)
                except Timeout:
                    return False
                break
        if not again:
            note_use(self.folder)
            (self.folder / HOLDER).write_bytes(orjson.dumps(_this_process()))
        return True

    def let_go(self) -> None:
        """Give the lock back; what was taken twice is given back twice."""
        self._lock.release()

    def _holder(self) -> str:
        try:
            who = orjson.loads((self.folder / HOLDER).read_bytes())
            told = "by process {pid} on {host} since {since}: {command}".format(**who)
        except (OSError, ValueError, KeyError, TypeError):
            told = "by another process"
        return f"{told}: wait until it has ended, or end it, and run again"


def _this_process() -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": shlex.join([Path(sys.executable).name, *sys.argv])[:300],
    }
