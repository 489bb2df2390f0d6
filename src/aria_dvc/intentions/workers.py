"""Threads over blocks: each task is one single-threaded matrix product and one compiled loop.

Tasks are cut the same way for any number of threads and never write to the same rows, so threads
change nothing in a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from aria_dvc.cores import default_threads


class Workers:
    """A pool whose `run` applies a function to independent tasks."""

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self._pool = pool

    def run(self, task: Callable[..., Any], items: Iterable[tuple]) -> None:
        if self._pool is None:
            for item in items:
                task(*item)
            return
        for done in [self._pool.submit(task, *item) for item in items]:
            done.result()


@contextmanager
def workers(threads: int | None = None) -> Iterator[Workers]:
    """A pool of `threads` (default: see `default_threads`) with BLAS held to one thread each."""
    count = threads or default_threads()
    with threadpool_limits(1, user_api="blas"):
        if count == 1:
            yield Workers(None)
            return
        with ThreadPoolExecutor(count) as pool:
            yield Workers(pool)


def rounds_of_pairs(blocks: int) -> Iterator[list[tuple[int, int]]]:
    """All pairs (i, j), i <= j, of `blocks` blocks in rounds that use no block twice."""
    yield [(i, i) for i in range(blocks)]
    places = blocks + blocks % 2
    ring = list(range(places))
    for _ in range(places - 1):
        facing = zip(ring[: places // 2], reversed(ring[places // 2 :]), strict=True)
        yield [(min(i, j), max(i, j)) for i, j in facing if max(i, j) < blocks]
        ring = [ring[0], ring[-1], *ring[1:-1]]
