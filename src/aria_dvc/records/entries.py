"""One entry of a log as it is read, before anybody knows its layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aria_dvc.errors import AriaError


@dataclass(slots=True)
class Entry:
    """A JSON object and its place (`log.jsonl: line 3`), or why there is none.

    value: None where there is a `problem`. raw: the bytes of a line, if it came as such.
    """

    where: str
    value: dict[str, Any] | None
    raw: bytes | None = None
    problem: AriaError | None = None

    def object(self) -> dict[str, Any]:
        """The value.

        Raises its problem where there is one.
        """
        if self.problem is not None or self.value is None:
            raise self.problem or AriaError(f"{self.where}: nothing there")
        return self.value
