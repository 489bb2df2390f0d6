"""One progress display for everything that takes over a few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PLAIN_INTERVAL_S = 10.0


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield `update(done, total)`: a rich bar on a terminal, sparse plain lines elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _plain(title)


def _plain(title: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def update(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_INTERVAL_S:
            last = time.monotonic()
            print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)

    return update
