"""What a collection shows while it runs: episodes, failures by kind, tokens a second, time left."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aria_dvc.players.base import Reply
from aria_dvc.records.episodes import Episode

PLAIN_INTERVAL_S = 10.0


class Tally:
    """Counts of one collection. Times are in seconds of a monotonic clock."""

    def __init__(self, title: str, total: int, resumed: int) -> None:
        self.title = title
        self.total = total
        self.resumed = resumed
        self.done = resumed
        self.tokens = 0
        self.failures: Counter[str] = Counter()
        self.started = self.last_reply = time.monotonic()

    def count_reply(self, reply: Reply) -> None:
        self.tokens += reply.completion_tokens
        self.last_reply = time.monotonic()

    def count_episode(self, episode: Episode) -> None:
        self.done += 1
        failure = episode.info.get("failure")
        if failure:
            self.failures[f"{failure['role']} {failure['kind']}"] += 1

    def idle(self) -> float:
        """Seconds since the last reply of any player."""
        return time.monotonic() - self.last_reply

    def line(self) -> str:
        """One line of progress."""
        spent = max(time.monotonic() - self.started, 1e-9)
        parts = [f"{self.title}: {self.done} of {self.total} episodes"]
        if self.resumed:
            parts.append(f"{self.resumed} resumed")
        parts += [f"{kind}: {count}" for kind, count in self.failures.most_common(3)]
        parts.append(f"{self.tokens / spent:.0f} tokens/s")
        played = self.done - self.resumed
        if played and self.done < self.total:
            left = spent / played * (self.total - self.done)
            parts.append(f"{left / 60:.1f} min left")
        return ", ".join(parts)


@contextmanager
def shown(tally: Tally) -> Iterator[None]:
    """Show `tally` on standard error: a live line on a terminal, and one line at the end."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        live = Live(
            console=Console(stderr=True),
            get_renderable=tally.line,
            refresh_per_second=2,
            transient=True,
        )
        with live:
            yield
    else:
        yield
    print(tally.line(), file=sys.stderr, flush=True)
