"""How a log is to be read, and what becomes of entries that cannot be."""

from __future__ import annotations

import logging
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from aria_dvc.aside import written_aside
from aria_dvc.errors import AriaError
from aria_dvc.records.entries import Entry
from aria_dvc.suggestions import did_you_mean

logger = logging.getLogger(__name__)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\([^()]*\)")
_NUMBERS = re.compile(r"(?<![\w-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


class Rejected:
    """Entries that are left out: counted by kind, and written to a file that has them all.

    A line of the file is {"where", "problem", "entry"}: the line as it stood, or its content.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kinds: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # kind -> its first problem, as it was told
        self._lines = tempfile.SpooledTemporaryFile(16 << 20)  # noqa: SIM115

    def add(self, entry: Entry, problem: Exception) -> None:
        """Take in one more, with what is wrong with it."""
        raw = orjson.dumps(entry.value, default=str) if entry.raw is None else entry.raw
        text = raw.decode("utf-8", "backslashreplace").rstrip("\r\n")
        said = str(problem)
        line = {"where": entry.where, "problem": said, "entry": text}
        self._lines.write(orjson.dumps(line) + b"\n")
        kind = kind_of(said.removeprefix(f"{entry.where}: "))
        self.kinds[kind] += 1
        self._first.setdefault(kind, said)

    def close(self) -> None:
        """Write the file, empty where nothing was left out, and say how many of what kind."""
        self._lines.seek(0)
        with written_aside(self.path) as aside, aside.open("wb") as file:
            while piece := self._lines.read(1 << 20):
                file.write(piece)
        self._lines.close()
        for kind, count in self.kinds.most_common():
            logger.warning("left out %d like %s", count, self._first[kind])
        if self.kinds:
            logger.warning("all %d of them: %s", self.kinds.total(), self.path)


def kind_of(problem: str) -> str:
    """A problem without its names and numbers, and without the remedy."""
    said = _NUMBERS.sub("N", _QUOTED.sub("..", problem))
    return re.sub(r": (?=\D*$).*$", "", said) if ": " in said else said


def is_rejects(line: bytes) -> bool:
    """Whether this is the first line of such a file."""
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(first, dict) and {"where", "problem", "entry"} <= first.keys()


Outcome = Literal["win_test", "recorded"]


@dataclass(frozen=True)
class Reading:
    """How a log is read.

    game: the game's name for the episodes; default what the layout or the entry says.
    need_rewards: False leaves out the rewards of an entry where they are absent or odd.
    warn: say what is odd in the log; False where that was said before.
    agents: who is credited, by role or name; default every role with a reward.
    group_by: the field of an entry (`info.scenario`) whose value is the group of its episodes;
        default what the log has.
    outcome: of layouts whose game has a test of its own for a win: what that says, or what the log
        recorded.
    moves: False leaves moves that are no utterances (buttons of an interface) out of credit.
    rejected: takes the entries that cannot be read; None stops at the first.
    progress: the title of a progress display; None shows none.
    column: where somebody else's credit of each utterance stands (see given.py); None for none.

    Raises AriaError for an unknown outcome, or a group_by that is no text.
    """

    game: str | None = None
    need_rewards: bool = True
    warn: bool = True
    agents: tuple[str, ...] = ()
    group_by: str | None = None
    outcome: Outcome = "win_test"
    moves: bool = True
    rejected: Rejected | None = None
    progress: str | None = None
    column: str | None = None
    prefix: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        outcomes = get_args(Outcome)
        if self.outcome not in outcomes:
            hint = did_you_mean(str(self.outcome), outcomes)
            raise AriaError(f"unknown outcome {described(self.outcome)}{hint}")
        if not isinstance(self.group_by, str | None):
            raise AriaError(f"group_by is {described(self.group_by)}: give the name of one field")


def described(value: Any) -> str:
    """A value in an error, shortened."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
