"""What several methods compute of one log is computed once, while somebody says so.

    with shared_by_methods(log):
        fit = kept(log, "fit", lambda: costly(log))             # made at the first asking
        words = kept(log.told, "words", lambda: dear(log))      # the same under other returns

Outside of it nothing is kept, so that no log carries features that nobody will ask for again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aria_dvc.intentions.log import Log

T = TypeVar("T")
_KEPT: dict[object, dict[Hashable, Any]] = {}


@contextmanager
def shared_by_methods(*logs: Log) -> Iterator[None]:
    """What is `kept` of these very objects lives until the end of the block."""
    new = [of for log in logs for of in (log, log.told) if of not in _KEPT]
    _KEPT.update({of: {} for of in new})
    try:
        yield
    finally:
        for of in new:
            _KEPT.pop(of, None)


def kept(of: object, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives; the key says all that it depends on beside the log, or what was told."""
    known = _KEPT.get(of)
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found
