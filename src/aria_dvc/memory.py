"""Memory: what goes back to the system once a model is done with, and how its lack shows."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

_MOST_HEAPS = -8  # M_ARENA_MAX in glibc's malloc.h
_LACKS = ("allocate memory", "out of memory", "ALLOC_FAILED")  # as torch and CUDA put it


def is_out_of_memory(error: BaseException) -> bool:
    """Lack of memory as Python, torch and CUDA report it, told without importing torch."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _LACKS)


def give_back_memory() -> None:
    """Free what only reference cycles hold, and return freed memory to the system.

    Models are full of cycles, and glibc keeps what was freed: a process that trains and plays in
    turn would grow with each.
    """
    gc.collect()
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)  # glibc alone has it


def share_one_heap() -> None:
    """Let all threads that start from now on allocate from one heap, if MALLOC_ARENA_MAX is unset.

    glibc has heaps for threads, each of which keeps what was freed in it: micro-batches side by
    side, of ever other sizes, held 7.5 GB after 23 steps where they hold 3, and were as slow.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)(_MOST_HEAPS, 1)  # glibc alone has it
