"""The one exception that users see: a single line saying what, where and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aria_dvc.shown import printable


class AriaError(Exception):
    """A mistake that the user can mend. `str(error)` is one line: what, where, remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Errors from inside carry `path`: a failed write or a broken JSON does not say of what file.

    `failures.one_line` puts it into its line. The innermost name stays.
    """
    try:
        yield
    except Exception as error:
        if not hasattr(error, "about"):
            error.about = str(path)  # type: ignore[attr-defined]
        raise
