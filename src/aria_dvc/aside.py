"""Whole or absent: what is written takes its name in one step, once it is on the disk.

Every writer works in a folder of its own beside the target, `.NAME.<writer>.aside/`, so that two
writers of one target never touch the same file: one of their two whole contents wins. The folder
holds a lock that the system drops when its writer ends, however it ends; a later write of the same
target removes what is left of writers that are gone, and of nobody else.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from aria_dvc.errors import AriaError, naming

LOCK = ".aside.lock"  # in a writer's folder, beside what is written, which may have any other name
BEFORE = ".aside.before"  # what stood at the target while it is replaced, where it takes two steps
LONGEST_NAME = 100  # of the target in the name of the writer's folder; 255 is the system's limit
JUST_S = 60.0
ATTEMPTS = 100  # at a target that other writers replace at the same time
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_WRITER = re.compile(r"\..+\.(?P<host>[0-9a-f]{8})-(?P<boot>[0-9a-f]{8})-[0-9a-f]{12}\.aside")
# Systems on which a folder cannot be synced say so by one of these.
_UNSYNCABLE = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EISDIR})


@contextmanager
def written_aside(path: str | Path, without: Collection[str] = ()) -> Iterator[Path]:
    """Yield a temporary path; on success what was written there takes the name `path`.

    Works for files and folders, whose every file is synced to disk before and whose parent is
    after. On an exception `path` is untouched. A link to a folder stays, and its target is written.

    Args:
        without: files of a folder, relative to it, that the new one may lack.

    Raises:
        AriaError: `path` has no name; it is a folder and a file was written, or the other way
            round, or the folder holds other files that the new one has not: they may be somebody
            else's.
    """
    target = Path(path)
    check_named(target)
    if target.is_symlink() and target.is_dir():
        target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with naming(target), _own_folder(target) as own:
        aside = own / target.name
        yield aside
        _refuse_loss(aside, target, without)
        sync(aside)
        _replace(aside, target, own / BEFORE)
        sync_folder(target.parent)


def check_named(path: Path) -> None:
    """Refuse what only says where it is (`.`, `..`, `/`), before any work is done.

    Raises:
        AriaError: there is no name under which to write.
    """
    if path.name in ("", ".."):
        raise AriaError(f"{path} has no name to write under: give it one, such as {path / 'out'}")


def discard(path: Path) -> None:
    """Remove a file or folder that this program made, all of it or, to a reader, nothing."""
    with _own_folder(path) as own, suppress(FileNotFoundError):
        path.rename(own / path.name)


def sync(path: Path) -> None:
    """Bring a file, or every file of a folder, to the disk."""
    if not path.is_dir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
        return
    for folder, _, files in os.walk(path):
        for name in files:
            sync(Path(folder, name))
        sync_folder(Path(folder))


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system knows how to."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise
    finally:
        os.close(opened)


def _refuse_loss(aside: Path, target: Path, without: Collection[str]) -> None:
    was_folder, is_folder = _is_folder(target), aside.is_dir()
    if was_folder is None or not (was_folder or is_folder):
        return
    if not is_folder:
        raise AriaError(f"{target} is a folder: name a file to write")
    if not was_folder:
        raise AriaError(f"{target} is a file where a folder is to be written: move it away")
    others = sorted(_files(target) - _files(aside) - {*without})
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise AriaError(
            f"{target} holds {others[0]}{more}, which the new {target.name} does not have: move "
            "what is yours away, remove the folder, and run again"
        )


def _is_folder(path: Path) -> bool | None:
    """None where there is nothing. One look: other writers may replace it between two."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False if path.is_symlink() else None


def _files(folder: Path) -> set[str]:
    """What lies in a folder; not what killed writers have left in it.

    A folder that another writer takes away meanwhile has nothing.
    """
    found: set[str] = set()
    for root, folders, names in os.walk(folder, onerror=_unless_gone):
        folders[:] = [name for name in folders if not is_leftover(name)]
        links = [name for name in folders if Path(root, name).is_symlink()]
        found |= {Path(root, name).relative_to(folder).as_posix() for name in names + links}
    return found


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _replace(aside: Path, target: Path, before: Path) -> None:
    """Give `aside` the name `target`. A folder in one step where the system can swap two names."""
    if not aside.is_dir():
        os.replace(aside, target)
        return
    for _ in range(ATTEMPTS):
        try:
            if not os.path.lexists(target):
                os.rename(aside, target)
            elif not _swapped(aside, target):
                _in_two_steps(aside, target, before)
            return
        except OSError as error:  # another writer was between two of our looks
            if error.errno not in (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY):
                raise
    raise AriaError(f"{target} is written by other processes all the time: run one at a time")


def _in_two_steps(aside: Path, target: Path, before: Path) -> None:
    """A run that is killed between them leaves `before`, which the next writer puts back."""
    os.rename(target, before)
    try:
        os.rename(aside, target)
    except OSError:
        _put_back(before, target)
        raise


def _put_back(before: Path, target: Path) -> None:
    if before.is_dir() and not os.path.lexists(target):
        os.rename(before, target)
    elif before.is_dir():
        shutil.rmtree(before)  # another writer's whole folder stands there


def _swapped(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if swap is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    return bool(swap(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)


@contextmanager
def _own_folder(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that nobody else touches, removed at the end."""
    remove_leftovers(target.parent, target.name)
    own, lock = _locked_folder(target)
    try:
        yield own
    finally:
        _remove(own)
        lock.release()


def _remove(own: Path) -> None:
    """Remove a writer's folder, the lock last: what a kill leaves of it is known as left over."""
    for path in own.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            with suppress(OSError):
                path.unlink()
    shutil.rmtree(own, ignore_errors=True)


def _locked_folder(target: Path) -> tuple[Path, FileLock]:
    while True:
        own = target.with_name(f"{_prefix(target.name)}{_machine()}-{secrets.token_hex(6)}.aside")
        try:
            own.mkdir()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
        with suppress(FileNotFoundError, FileExistsError):  # removed before it was locked
            lock = _lock_of(own)
            if lock is not None:
                return own, lock


def _lock_of(own: Path) -> FileLock | None:
    """The lock of a writer's folder, taken; None while its writer lives."""
    lock = FileLock(own / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    return lock


def _prefix(name: str) -> str:
    return f".{name[:LONGEST_NAME]}."


def is_leftover(name: str) -> bool:
    """Whether it is the name of a writer's own folder."""
    return _WRITER.fullmatch(name) is not None


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what writers of `folder/name` (None: of anything there) that are gone have left."""
    known = None if name is None else _prefix(name)
    with suppress(FileNotFoundError):
        for left in list(folder.iterdir()):
            found = _WRITER.fullmatch(left.name)
            if found and known in (None, left.name[: found.start("host")]):
                _remove_leftover(left, found["host"], found["boot"])


def _remove_leftover(left: Path, host: str, boot: str) -> None:
    """Remove a writer's folder if that writer is provably gone.

    On the kernel that it ran on, its lock says so. If this machine was started anew since, no
    process of before lives, and nothing of it is younger than the start. Of other machines
    nothing is known, since not every shared file system shares locks.
    """
    here_host, here_boot = _machine().split("-")
    if boot != here_boot and (host != here_host or not _older_than_boot(left)):
        return
    with suppress(OSError):
        if not (left / LOCK).exists() and time.time() - left.stat().st_mtime < JUST_S:
            return  # its writer is about to lock it, or to remove it
        lock = _lock_of(left)
        if lock is None:
            return
        try:
            _recover(left)
            _remove(left)
        finally:
            lock.release()


def _recover(left: Path) -> None:
    """Put the folder back that a killed writer had taken away and not yet replaced."""
    if (left / BEFORE).is_dir():
        whole = [path for path in left.iterdir() if path.name not in (LOCK, BEFORE)]
        if len(whole) == 1:
            _put_back(left / BEFORE, left.with_name(whole[0].name))


def _older_than_boot(left: Path) -> bool:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        return False
    started = time.time() - time.clock_gettime(clock)
    return all(path.lstat().st_mtime < started for path in (left, *left.rglob("*")))


@cache
def _machine() -> str:
    """Which machine this is, and which start of it: 8 + 8 hexadecimal digits."""
    host = socket.gethostname() + _text("/etc/machine-id")
    boot = _text("/proc/sys/kernel/random/boot_id") or host
    return f"{_short(host)}-{_short(boot)}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
