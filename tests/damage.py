"""What a bad disk does to a file."""

from __future__ import annotations

from pathlib import Path


def flip(path: Path, at: int | None = None) -> None:
    """Change one bit of byte `at` of a file, by default of the one in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    path.write_bytes(content)
