"""What several methods compute of one log is computed once, while somebody says so.

    with shared_by_methods(log):
        features = kept(log, "features", lambda: costly(log))   # made at the first asking

Outside of it nothing is kept, so that no log carries features that nobody will ask for again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aria_dvc.intentions.log import Log

T = TypeVar("T")
_KEPT: dict[Log, dict[Hashable, Any]] = {}


@contextmanager
def shared_by_methods(*logs: Log) -> Iterator[None]:
    """What is `kept` of these very objects lives until the end of the block."""
    _KEPT.update({log: {} for log in logs})
    try:
        yield
    finally:
        for log in logs:
            _KEPT.pop(log, None)


def kept(log: Log, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives; the key says all that it depends on beside the log."""
    known = _KEPT.get(log)
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found
