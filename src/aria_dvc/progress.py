"""One progress display for everything that takes over a few seconds.

A bar with the time left on a terminal; elsewhere, and in files, sparse lines of the log.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from aria_dvc.shown import Formatter, printable

logger = logging.getLogger(__name__)
INTERVAL_S = 10.0
_bars = True  # false in a process beside others: two bars would overwrite each other


def log_to_stderr(*, bars: bool = True) -> None:
    """Show the messages of this program, and bars on a terminal if wanted."""
    global _bars
    _bars = bars
    warnings_to_stderr()
    logging.getLogger("aria_dvc").setLevel(logging.INFO)


def warnings_to_stderr() -> None:
    """Show warnings of any program, one line each, without what would steer a terminal."""
    handler = _Stderr()
    handler.setFormatter(Formatter("%(message)s"))
    logging.basicConfig(handlers=[handler])


class _Stderr(logging.StreamHandler):
    """Writes to what sys.stderr is at the time: while a bar is shown, that is above the bar."""

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, _: Any) -> None: ...


class Update(Protocol):
    """Says that `done` of `total` are done, and in a few words what else is worth knowing."""

    def __call__(self, done: int, total: int, note: str = "") -> None: ...


@contextmanager
def progress_bar(title: str) -> Iterator[Update]:
    """Show what the caller's updates say, from the first one on."""
    if _bars and sys.stderr.isatty():
        with _bar(title) as update:
            yield update
    else:
        yield _Lines(title)


@contextmanager
def _bar(title: str) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(title), total=None, note="")

        def update(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=printable(note))

        yield update


class _Lines:
    """One line of the log per INTERVAL_S at the most."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = self.shown = time.monotonic()
        self.start: int | None = None  # done before the first update: it took no time of ours

    def __call__(self, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        self.start = done if self.start is None else self.start
        if now - self.shown < INTERVAL_S:
            return
        self.shown = now
        parts = [f"{self.title}: {done} of {total}", *([note] if note else [])]
        if done > self.start:
            left = (now - self.started) / (done - self.start) * (total - done)
            parts.append(f"{left / 60:.1f} min left")
        logger.info(", ".join(parts))
