"""What a path leads to: files of entries, compressed or not, folders of them, standard input.

Everything is recognised by content: gzip and zstd by their first bytes, then Parquet, Arrow, CSV
(a first line of names between commas, semicolons or tabs), else JSON. `entries_of` reads entry by
entry.
"""

from __future__ import annotations

import gzip
import io
import logging
import os
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records import json_entries, row_entries
from aria_dvc.records.entries import Entry
from aria_dvc.shown import brief

STDIN = "-"
BUFFER = 1 << 20
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
SKIPPED = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # a frame of zstd that holds no content
OTHERS = {
    "bzip2": re.compile(rb"BZh[1-9]1AY&SY"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zip": re.compile(rb"PK(\x03\x04|\x05\x06)"),
    "7-Zip": re.compile(rb"7z\xbc\xaf\x27\x1c"),
}
ARROW = (b"ARROW1", b"\xff\xff\xff\xff")  # a file; a stream, as Hugging Face datasets writes them
SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow")
PACKED = (".gz", ".zst")
logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Source:
    """One file, or several that are one (`parts`), and what its episodes' ids begin with."""

    path: Path
    prefix: str = ""
    parts: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        return self.parts or (self.path,)


def sources_of(path: str | Path, warn: bool = True) -> list[Source]:
    """The files that a path leads to, those of a folder in natural order (2 before 10).

    warn: say which files of a folder are left out.

    Raises:
        AriaError: a folder without a log, or a Hugging Face dataset whose files are not named.
    """
    if str(path) == STDIN or not os.path.isdir(path):
        return [Source(Path(path))]
    folder = Path(path)
    found = _dataset(folder) or _splits(folder) or _listed(folder, warn)
    if not found:
        kinds = ", ".join(SUFFIXES)
        raise AriaError(f"{path}: cannot be read (a folder without a log): it needs files {kinds}")
    return found


def _splits(folder: Path) -> list[Source]:
    """A Hugging Face DatasetDict: the dataset of every split, the split before its ids."""
    if not (about := folder / "dataset_dict.json").is_file():
        return []
    names = _described(about, "splits")
    split = [(name, _dataset(folder / name)) for name in names if isinstance(name, str)]
    if len(split) < len(names) or not all(found for _, found in split):
        raise AriaError(f"{about}: names a split without a dataset: save the datasets again")
    return [Source(s.path, f"{name}:", s.parts) for name, found in split for s in found]


def _dataset(folder: Path) -> list[Source]:
    """A Hugging Face dataset on disk: its Arrow files are one log."""
    if not (about := folder / "state.json").is_file():
        return []
    files = _described(about, "_data_files")
    named = [file.get("filename") for file in files if isinstance(file, dict)]
    names = [name for name in named if isinstance(name, str) and Path(name).name == name]
    if len(names) < len(files):
        raise AriaError(f"{about}: _data_files must name files: save the dataset again")
    return [Source(folder, "", tuple(folder / name for name in names))]


def _described(about: Path, key: str) -> list[Any]:
    try:
        found = orjson.loads(about.read_bytes())
    except orjson.JSONDecodeError as error:
        raise AriaError(f"{about}: broken JSON ({error.msg}): save the dataset again") from None
    names = found.get(key) if isinstance(found, dict) else None
    if not isinstance(names, list) or not names:
        raise AriaError(f"{about}: {key} names nothing: save the dataset again")
    return names


def _listed(folder: Path, warn: bool) -> list[Source]:
    """Every log below a folder; several have their path before their ids."""
    names = sorted(_below(folder), key=_natural)
    logs = [name for name in names if _bare(name).endswith(SUFFIXES)]
    left = [name for name in names if name not in logs]
    if left and warn:
        more = f" and {len(left) - 1} more files" if len(left) > 1 else ""
        logger.warning("%s: %s%s left out: no log by its suffix", folder, left[0], more)
    return [Source(folder / name, f"{name}:" if len(logs) > 1 else "") for name in logs]


def _below(folder: Path) -> Iterator[str]:
    """Paths of files below a folder and the folders that are linked there, relative to it, without
    what is hidden.

    Raises:
        AriaError: a link that leads nowhere, or back to a folder that it lies in.
    """
    for place, folders, files in os.walk(folder, followlinks=True):
        at = Path(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            if (at / name).is_symlink() and (at / name).resolve() in _above(at):
                raise AriaError(f"{at / name}: a link to a folder that it lies in: remove it")
        for name in (name for name in files if not name.startswith(".")):
            if not (at / name).exists():
                raise AriaError(f"{at / name}: a link that leads nowhere: mend or remove it")
            yield (at / name).relative_to(folder).as_posix()


def _above(place: Path) -> set[Path]:
    """The folder and all that it lies in, as links lead there."""
    return {one.resolve() for one in (place, *place.absolute().parents)}


def _bare(name: str) -> str:
    """A name in small letters without what says that the file is compressed."""
    name = name.lower()
    return next((name.removesuffix(suffix) for suffix in PACKED if name.endswith(suffix)), name)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = re.findall(r"\d+|\D+", name)
    return [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


def prefixes_of(paths: Sequence[str | Path]) -> list[str]:
    """What the episode ids of each log begin with: nothing, `file:`, or `path:` for equal names.

    Raises:
        AriaError: a file is given twice, by its name, a link to it or a folder that it lies in; or
            as `sources_of`.
    """
    files = Counter(os.path.realpath(file) for path in paths for file in _files_of(path))
    twice = [path for path, n in files.items() if n > 1]
    if twice:
        raise AriaError(f"{twice[0]} is given twice: name every log once")
    if len(paths) == 1:
        return [""]
    names = [Path(path).name for path in paths]
    return [f"{part}:" for part in (names if len(set(names)) == len(names) else paths)]


def _files_of(path: str | Path) -> Iterator[Path]:
    for source in sources_of(path, warn=False):
        yield from source.files


def entries_of(source: Source, progress: Progress | None = None) -> Iterator[Entry]:
    """The entries of a source, one after the other.

    progress: told now and then how many of how many bytes are read; 0 of 0 where nobody knows.

    Raises:
        AriaError: what cannot be read at all; an entry that cannot carries its problem.
    """
    for path in source.files:
        name = "standard input" if str(path) == STDIN else str(path)
        try:
            yield from _file_entries(path, name, progress)
        except (OSError, ValueError, EOFError, zlib.error, NotImplementedError) as error:
            raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> AriaError:
    reason = getattr(error, "strerror", None) or brief(error) or type(error).__name__
    if getattr(error, "errno", None) is not None or type(error) is ValueError:  # a zero byte
        return AriaError(f"{name}: cannot be read ({reason}): check the path")
    return AriaError(f"{name}: damaged, or cut off ({reason}): write or fetch it again")


def _file_entries(path: Path, name: str, progress: Progress | None) -> Iterator[Entry]:
    with _opened(path) as raw:
        total = 0 if str(path) == STDIN else os.fstat(raw.fileno()).st_size
        file = _unpacked(raw)
        for number, entry in enumerate(_read(file, name)):
            if progress and number % 500 == 499:
                progress(raw.tell() if total else 0, total)
            yield entry


def _opened(path: Path) -> io.BufferedReader:
    file = io.FileIO(0, closefd=False) if str(path) == STDIN else io.FileIO(path)
    return io.BufferedReader(file, BUFFER)


def _unpacked(raw: io.BufferedReader) -> io.BufferedReader:
    """What a file holds, decompressed as it is read."""
    head = raw.peek(4)
    if head.startswith(GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), BUFFER)  # type: ignore[type-var]
    if head.startswith(ZSTD) or SKIPPED.match(head):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"), BUFFER)
    return raw


def _read(file: io.BufferedReader, name: str) -> Iterator[Entry]:
    head = file.peek(16)
    _check_packed(head, name)
    if head.startswith(PARQUET):
        return row_entries.parquet(_seekable(file), name)
    if head.startswith(ARROW):
        return row_entries.arrow(_seekable(file), name)
    if row_entries.is_csv(file.peek(BUFFER)):
        return row_entries.csv_rows(file, name)
    return json_entries.read(file, name)


def _check_packed(head: bytes, name: str) -> None:
    for how, magic in OTHERS.items():
        if magic.match(head):
            remedy = "unpack it, or compress it by gzip or zstd"
            raise AriaError(f"{name}: packed by {how}, which is not read: {remedy}")


def _seekable(file: io.BufferedReader) -> BinaryIO:
    """The file itself, or a copy on disk of what comes compressed or from a pipe."""
    if isinstance(file.raw, io.FileIO) and file.seekable():
        return file
    copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(file, copy, BUFFER)
    copy.seek(0)
    return copy
