"""What threads allocate from."""

import os
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, sys, threading
from aria_dvc.memory import share_one_heap

if sys.argv[1] == "one":
    share_one_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.fopen.restype = ctypes.c_void_p, ctypes.c_void_p
libc.malloc_info.argtypes, libc.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
gate = threading.Barrier(4)


def allocate():
    libc.malloc(5000)
    gate.wait()


threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(
    not hasattr(os, "confstr") or "CS_GNU_LIBC_VERSION" not in os.confstr_names,
    reason="needs glibc",
)
def test_threads_share_one_heap_unless_the_user_says_how_many(tmp_path):
    def heaps(way, **environment):
        file = tmp_path / "heaps.xml"
        env = {key: value for key, value in os.environ.items() if key != "MALLOC_ARENA_MAX"}
        command = [sys.executable, "-c", HEAPS, way, str(file)]
        subprocess.run(command, env={**env, **environment}, check=True)
        return file.read_text().count("<heap nr=")

    assert heaps("many") > 1
    assert heaps("one") == 1
    assert heaps("one", MALLOC_ARENA_MAX="3") > 1
