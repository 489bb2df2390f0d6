"""Memory that goes back to the system once a model is done with."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Free what only reference cycles hold, and return freed memory to the system.

    Models are full of cycles, and glibc keeps what was freed: a process that trains and plays in
    turn would grow with each.
    """
    gc.collect()
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)  # glibc alone has it
