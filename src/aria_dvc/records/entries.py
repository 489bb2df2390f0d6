"""One entry of a log as it is read, before anybody knows its layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aria_dvc.errors import AriaError


@dataclass(slots=True)
class Entry:
    """A JSON object and its place (`log.jsonl: line 3`), or why there is none.

    value: None where there is a `problem`. raw: the bytes of a line, if it came as such.
    doubt: what else may be wrong if it is not taken; looks for it in all that follows.
    """

    where: str
    value: dict[str, Any] | None
    raw: bytes | None = None
    problem: AriaError | None = None
    doubt: Callable[[], AriaError | None] | None = None

    def cause(self, problem: AriaError) -> AriaError:
        """What is wrong at the bottom of a problem that stops the reader: nothing is read after."""
        return (self.doubt and self.doubt()) or problem

    def object(self) -> dict[str, Any]:
        """The value.

        Raises its problem where there is one.
        """
        if self.problem is not None or self.value is None:
            raise self.problem or AriaError(f"{self.where}: nothing there")
        return self.value
