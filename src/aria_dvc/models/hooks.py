"""Hooks of a module that several threads call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_changing = threading.Lock()  # PyTorch numbers its hooks without one


@contextmanager
def hooked(register: Callable[[Any], Any], hook: Callable[..., Any]) -> Iterator[None]:
    """`register(hook)` for as long as the block lasts, for calls of this thread alone.

    Args:
        register: e.g. a module's `register_forward_hook`.
    """
    own = threading.get_ident()

    def of_this_thread(*given: Any) -> Any:
        return hook(*given) if threading.get_ident() == own else None

    with _changing:
        handle = register(of_this_thread)
    try:
        yield
    finally:
        with _changing:
            handle.remove()
