"""What disks, files and the libraries that read them report, as one line with a remedy.

A full disk, a read-only folder, a truncated file or a locked database is no bug of this program
and needs no traceback. Anything that is not listed here is a bug, and keeps its traceback.
"""

from __future__ import annotations

import errno
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from aria_dvc.errors import AriaError
from aria_dvc.memory import is_out_of_memory
from aria_dvc.shown import brief, printable

_SPACE = "free some space and run again"
_MODE = "change its owner or mode, or name another path"
_AGAIN = "remove it and run again what writes it"
_OS = {
    errno.ENOSPC: ("disk full", _SPACE),
    errno.EDQUOT: ("disk quota used up", _SPACE),
    errno.EFBIG: (
        "larger than files may be here",
        "raise `ulimit -f`, or write elsewhere",
    ),
    errno.EROFS: ("read-only file system", "mount it writable, or name another path"),
    errno.EACCES: ("permission denied", _MODE),
    errno.EPERM: ("operation not permitted", _MODE),
    errno.EISDIR: ("a folder where a file is needed", "name a file"),
    errno.ENOTDIR: ("a part of its path is a file, not a folder", "name another path"),
    errno.ENOENT: ("no such file or folder", "check the path, or let `dvc repro` make it"),
    errno.EEXIST: ("is there already", "move it away and run again"),
    errno.ENOTEMPTY: ("somebody else writes into this folder", "run again when that is done"),
    errno.ENAMETOOLONG: ("name too long", "shorten it"),
    errno.EMFILE: ("too many open files", "raise the limit (ulimit -n) and run again"),
    errno.ENFILE: ("too many open files on this machine", "close some programs and run again"),
    errno.EIO: ("the device does not read or write", "check the disk, then run again"),
    errno.ESTALE: ("the network file system has lost it", "mount it anew and run again"),
    errno.ELOOP: ("its links go in a circle", "remove one of them"),
    errno.EBUSY: ("in use by something else", "run again when that is done"),
    errno.ETXTBSY: ("in use by something else", "run again when that is done"),
    errno.EXDEV: ("another file system", "name a path on one file system"),
    errno.ENODEV: ("no such device", "name another path"),
    errno.ENXIO: ("no such device", "name another path"),
    errno.EPIPE: ("nobody reads the output any more", "run again"),
    errno.EADDRINUSE: ("the address is in use", "name another port"),
    errno.EADDRNOTAVAIL: ("no such address on this machine", "name another host"),
}
# SQLite's primary result codes, as far as the file or the disk is at fault, not the statement.
_SQLITE = {
    "SQLITE_BUSY": ("the database is locked by another process", "run again when that is done"),
    "SQLITE_LOCKED": ("the database is locked by another process", "run again when that is done"),
    "SQLITE_CORRUPT": ("the database is damaged", _AGAIN),
    "SQLITE_NOTADB": ("no SQLite database", _AGAIN),
    "SQLITE_FULL": ("disk full", _SPACE),
    "SQLITE_READONLY": ("the database is read-only", _MODE),
    "SQLITE_PERM": ("permission denied", _MODE),
    "SQLITE_CANTOPEN": ("the database cannot be opened", "check that its folder can be written"),
    "SQLITE_IOERR": ("the device does not read or write", "check the disk, then run again"),
    "SQLITE_PROTOCOL": ("the database cannot be locked here", "use a local disk"),
}
_WORDS = (
    ("No space left on device", errno.ENOSPC),
    ("Disk quota exceeded", errno.EDQUOT),
    ("Read-only file system", errno.EROFS),
)
# All that PyTorch's writer says where a disk takes no more: how far it came.
_TORCH_WRITER = re.compile(r"inline_container\.cc.*unexpected pos|PytorchStreamWriter failed")

Failure = tuple[str, str]  # what, remedy


def one_line(error: BaseException) -> str | None:
    """`where: what: remedy` of an error that has another cause than a bug; None for all others.

    Known are AriaError, the lack of memory, an interruption, and what the operating system, JSON,
    Parquet and CSV readers, SQLite and safetensors report; also as the stated cause of another
    error. `errors.naming` says where, if the error does not.
    """
    if isinstance(error, AriaError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted: run again to go on from what is finished"
    for link in _chain(error):
        if is_out_of_memory(link):
            return "out of memory: lower the sizes in params.yaml or use a larger machine"
        if isinstance(link, AriaError):
            return str(link)
        if known := _known(link):
            where = next((name for part in _chain(error) if (name := _where(part))), "a file")
            return printable(" ".join(f"{where}: {known[0]}: {known[1]}".split()))
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _where(error: BaseException) -> str:
    """The file that an error is about; "" if that is not known.

    A file that is written aside (`.name...aside/name`) stands for the file that it would become.
    """
    about = getattr(error, "about", "")
    file = str(getattr(error, "filename", None) or "")
    if about and any(part.startswith(f".{Path(about).name}") for part in Path(file).parts):
        return str(about)
    return file or str(about)


def _known(error: BaseException) -> Failure | None:
    if isinstance(error, sqlite3.Error):
        name = "_".join((getattr(error, "sqlite_errorname", "") or "").split("_")[:2])
        return _SQLITE.get(name)
    if isinstance(error, OSError) and error.errno in _OS:
        return _OS[error.errno]
    return _said(error) or _unreadable(error)


def _said(error: BaseException) -> Failure | None:
    """What libraries of other languages say of the operating system in the text of an error."""
    text = str(error)
    if (found := re.search(r"\(os error (\d+)\)", text)) and int(found[1]) in _OS:
        return _OS[int(found[1])]
    if _TORCH_WRITER.search(text):
        return "PyTorch could not write it whole (disk full?)", _SPACE
    return next((_OS[number] for words, number in _WORDS if words in text), None)


def _unreadable(error: BaseException) -> Failure | None:
    """Files that hold something else than their reader expects."""
    text = f" ({brief(error)})"
    if isinstance(error, json.JSONDecodeError):  # orjson's is a kind of it
        return f"broken JSON ({error.msg}, line {error.lineno} column {error.colno})", _AGAIN
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 (byte {error.start})", "save it as UTF-8, or " + _AGAIN
    if type(error).__name__ == "SafetensorError":
        return f"no whole safetensors file{text}", _AGAIN
    if type(error).__name__ in ("EmptyDataError", "ParserError"):  # of pandas
        return f"no table in CSV{text}", _AGAIN
    if _is_arrows(error) and _passed_through(error, "parquet"):
        return f"no whole Parquet file, or not the expected one{text}", _AGAIN
    return None


def _is_arrows(error: BaseException) -> bool:
    """Whether Arrow may have raised it; reading errors of its own are an OSError without number."""
    named = type(error).__module__.startswith("pyarrow")
    return named or (isinstance(error, OSError) and error.errno is None)


def _passed_through(error: BaseException, name: str) -> bool:
    """Whether the error passed through code in a file with `name` in its path."""
    link = error.__traceback__
    while link is not None:
        if name in link.tb_frame.f_code.co_filename:
            return True
        link = link.tb_next
    return False
