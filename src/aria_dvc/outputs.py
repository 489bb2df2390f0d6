"""Where a command may write: on nothing that it reads, on no link, on nobody else's file."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import orjson

from aria_dvc.errors import AriaError

Mine = Callable[[Path], bool]


def table_with(columns: Collection[str]) -> Mine:
    """Whether a file is a Parquet table with (at least) these columns."""

    def is_mine(path: Path) -> bool:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with path.open("rb") as file:  # what cannot be opened is told as such
            try:
                return set(columns) <= set(pq.read_schema(file).names)
            except (pa.ArrowInvalid, OSError):  # the latter of a damaged footer
                return False

    return is_mine


def object_with(keys: Collection[str]) -> Mine:
    """Whether a file is a JSON object with (at least) these keys."""

    def is_mine(path: Path) -> bool:
        try:
            found = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            return False
        return isinstance(found, dict) and set(keys) <= found.keys()

    return is_mine


def beginning_with(start: bytes) -> Mine:
    """Whether a file begins so."""

    def is_mine(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(len(start)) == start

    return is_mine


def check_outputs(
    outputs: Mapping[str, tuple[Path, Mine]], inputs: Mapping[str, Path | list[Path]]
) -> None:
    """Refuse, before any work is done, an output that would cost somebody a file.

    Args:
        outputs: option -> its path, and whether a file that stands there is such as this command
            writes; any other file is somebody else's.
        inputs: option -> what is read.

    Raises:
        AriaError: an output is a link, a folder, a device, an input or another output (by any
            spelling and by hard or symbolic links), lies in a folder that is read or below a file,
            or is a file of another kind.
    """
    read = [
        (option, path)
        for option, paths in inputs.items()
        for path in (paths if isinstance(paths, list) else [paths])
    ]
    for option, (path, is_mine) in outputs.items():
        for other, taken in read:
            if is_same(path, taken):
                raise AriaError(
                    f"{option}: {path} is the same file as {other} {taken}, which is read: name "
                    "another file to write"
                )
            check_not_within(option, path, taken)
        _check_kind(option, path, is_mine)
    _check_apart({option: path for option, (path, _) in outputs.items()})


def _check_apart(outputs: Mapping[str, Path]) -> None:
    seen: dict[str, Path] = {}
    for option, path in outputs.items():
        for other, taken in seen.items():
            if is_same(path, taken):
                raise AriaError(
                    f"{option}: {path} is the same file as {other} {taken}: name two files"
                )
        seen[option] = path


def check_not_within(option: str, path: Path, taken: Path) -> None:
    """Refuse to write into a folder that is read: the next command would read that, too.

    Raises:
        AriaError: `path` is the folder `taken`, or lies in it.
    """
    if taken.is_dir() and is_inside(path, taken):
        raise AriaError(f"{option}: {path} lies in {taken}, which is read: name one elsewhere")


def check_not_below_file(option: str, path: Path) -> None:
    """Refuse a path on whose way lies a file, where no folder can be made.

    Raises:
        AriaError: the nearest of the folders above that there is, is none.
    """
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise AriaError(f"{option}: {path}: {above} is a file: name one elsewhere")


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, links followed; also one that case or accents spell anew.

    What does not exist yet is compared by its folder and its name.
    """
    if one.exists() and other.exists():
        return one.samefile(other)
    return _spelling(one) == _spelling(other)


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path lies below a folder, links followed."""
    return path.resolve().is_relative_to(folder.resolve())


def _spelling(path: Path) -> str:
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def _check_kind(option: str, path: Path, is_mine: Mine) -> None:
    if path.is_symlink():
        raise AriaError(
            f"{option}: {path} is a link to {os.path.realpath(path)}: name the file itself"
        )
    if path.is_dir():
        raise AriaError(f"{option}: {path} is a folder: name a file to write")
    if not path.exists():
        check_not_below_file(option, path)
        return
    if not path.is_file():
        raise AriaError(f"{option}: {path} is no regular file: name a file to write")
    if path.stat().st_size and not is_mine(path):
        raise AriaError(
            f"{option}: {path} exists and is not what this command writes: name another file, or "
            "move that one away"
        )


def names_in(folder: Path) -> set[str]:
    """What lies in a folder; nothing where there is none."""
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
