"""The one exception that users see: a single line saying what, where and the remedy."""

from __future__ import annotations


class AriaError(Exception):
    """A mistake that the user can mend. `str(error)` is one line: what, where, remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
