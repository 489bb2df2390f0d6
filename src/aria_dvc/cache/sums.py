"""Checksums: JSON files that carry their own and those of files beside them.

Such a file is written last, so that what it vouches for is whole. Its name ends with SUFFIX.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.aside import is_leftover
from aria_dvc.files import write_json

SUFFIX = ".sums.json"
MANIFEST = f"all{SUFFIX}"  # of a whole folder: one without it was never finished


def vouch(mark: Path, files: Iterable[Path], **more: Any) -> None:
    """Write `more`, the sums of `files` (below the mark's folder) and its own sum into `mark`."""
    sums = {file.relative_to(mark.parent).as_posix(): file_sum(file) for file in files}
    value = {**more, "sums": sums}
    write_json(mark, {"sum": _seal(value), "value": value})


def read_mark(mark: Path) -> dict[str, Any]:
    """What `vouch` wrote: `more`, and sums by name.

    Raises:
        ValueError: the mark itself is damaged.
        FileNotFoundError: there is none.
    """
    try:
        found = orjson.loads(mark.read_bytes())
        whole = found["sum"] == _seal(found["value"])
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise ValueError(f"{mark} is damaged")
    value: dict[str, Any] = found["value"]
    return value


def damage_of(mark: Path) -> list[str]:
    """Names, from the mark's folder, of what it vouches for and is changed or missing."""
    try:
        sums = read_mark(mark)["sums"]
    except (ValueError, FileNotFoundError):
        return [mark.name]
    return differing(mark.parent, sums)


def differing(folder: Path, sums: dict[str, str]) -> list[str]:
    """Names of the files below `folder` that are missing or have other sums."""
    return [name for name, noted in sums.items() if _sum_or_none(folder / name) != noted]


def write_manifest(folder: Path) -> None:
    """Mark a folder as finished, with the sums of all that it holds."""
    vouch(folder / MANIFEST, files_of(folder))


def has_manifest(folder: Path) -> bool:
    """Whether the folder was finished."""
    return (folder / MANIFEST).is_file()


def files_of(folder: Path) -> list[Path]:
    """Every file of the folder but its manifest and what killed writers have left."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path != folder / MANIFEST
        and not any(map(is_leftover, path.relative_to(folder).parts))
    ]


def file_sum(path: Path) -> str:
    """The SHA-256 of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum_or_none(path: Path) -> str | None:
    try:
        return file_sum(path)
    except OSError:  # gone, or the disk cannot read it any more
        return None


def _seal(value: Any) -> str:
    options = orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return hashlib.sha256(orjson.dumps(value, option=options)).hexdigest()[:32]
