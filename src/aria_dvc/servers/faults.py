"""What goes wrong with a request, and when it is tried again.

Pauses grow with jitter unless the server asks for one, and a server that stays away, or keeps
answering what cannot be taken, ends in NoAnswer.
"""

from __future__ import annotations

import email.utils
import math
import random
import time
from dataclasses import dataclass, field

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0
# A proxy may serve its own page while a server restarts; what lasts longer will not mend itself.
MISFITS, MISFITS_S = 8, 60.0  # give up after so many in a row, over so many seconds


class Fault(Exception):
    """A passing fault of the server; `retry_after` are the seconds it asks for, if it does."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Slow(Fault):
    """No whole answer within the time of an attempt."""


class Misfit(Fault):
    """An answer that breaks its bounds or its form, as no later one may mend."""


class NoAnswer(Exception):
    """Nothing but faults. `since`: when the first attempt began (monotonic).

    misfit: the server answers, and what it answers cannot be taken.
    """

    def __init__(self, message: str, since: float, misfit: bool = False) -> None:
        super().__init__(message)
        self.since, self.misfit = since, misfit


class Refusal(Exception):
    """The server will not do what it is asked: `status` and `said` are its answer, redacted."""

    def __init__(self, url: str, status: int, said: str) -> None:
        super().__init__(f"{url} refuses the request ({f'HTTP {status} {said}'.strip()})")
        self.status, self.said = status, said


@dataclass
class Retries:
    """The attempts of one request to `url`, which may take `deadline_s` in all."""

    url: str
    deadline_s: float
    since: float = field(default_factory=time.monotonic)
    attempt: int = 0
    _last: Fault = field(default_factory=lambda: Fault("no attempt"))
    _misfits: int = 0  # in a row
    _fitted: float = field(default_factory=time.monotonic)  # when the first of them may have begun
    _cut: bool = False  # whether a pause that was asked for has been cut

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.since + self.deadline_s - time.monotonic()

    def pause(self, fault: Fault, cut_short: bool = False) -> float:
        """Seconds until the next attempt.

        cut_short: the attempt had less time than it should, so its slowness tells little.

        Raises:
            NoAnswer: there is no next attempt.
        """
        if not (cut_short and isinstance(fault, Slow) and self.attempt):
            self._last = fault
        self._count(fault)
        left = self.left()
        seconds = self._seconds(left, fault.retry_after)
        if seconds >= left:
            what = f"gave no answer within {self.deadline_s:g} s (last: {self._last})"
            raise NoAnswer(f"{self.url} {what}", self.since, isinstance(self._last, Misfit))
        self.attempt += 1
        return seconds

    def _count(self, fault: Fault) -> None:
        """Give up on a server that keeps answering what cannot be taken."""
        if not isinstance(fault, Misfit):
            self._misfits, self._fitted = 0, time.monotonic()
            return
        self._misfits += 1
        if self._misfits >= MISFITS and time.monotonic() - self._fitted >= MISFITS_S:
            what = f"gave {self._misfits} answers in a row that cannot be taken"
            raise NoAnswer(f"{self.url} {what} (last: {fault})", self.since, misfit=True)

    def _seconds(self, left: float, asked: float | None) -> float:
        """What the server asked for now and no less than our own, exponential with jitter.

        A pause longer than is left is cut, so that the server is asked again before the end; one
        that was asked for once only.
        """
        own = random.uniform(0, min(FIRST_PAUSE_S * 2 ** min(self.attempt, 30), LONGEST_PAUSE_S))
        part = random.uniform(0.5, 0.9) * left
        if own >= left >= FIRST_PAUSE_S:
            own = part
        if asked is None:
            return own
        seconds = max(asked + 0.1 * own, own)
        if seconds < left or self._cut:
            return seconds
        self._cut = True
        return part


def retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header, which holds a number or a date; None for anything else."""
    if value is None:
        return None
    try:
        seconds = float(value)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError, OSError):
        return None
