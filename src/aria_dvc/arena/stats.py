"""What a collection counts while it runs: episodes, failures by kind, tokens a second."""

from __future__ import annotations

import time
from collections import Counter

from aria_dvc.players.base import Reply
from aria_dvc.progress import Update
from aria_dvc.records.episodes import Episode


class Stats:
    """Counts of one collection, shown by `update`. Times are in seconds of a monotonic clock."""

    def __init__(self, title: str, total: int, resumed: int, update: Update) -> None:
        self.title = title
        self.total = total
        self.resumed = resumed
        self.done = resumed
        self.tokens = 0
        self.refused = 0
        self.failures: Counter[str] = Counter()
        self.update = update
        self.started = self.last_reply = time.monotonic()
        update(self.done, total)

    def count_reply(self, reply: Reply) -> None:
        self.tokens += reply.completion_tokens
        self.last_reply = time.monotonic()
        self.update(self.done, self.total, self.note())

    def count_episode(self, episode: Episode) -> None:
        self.done += 1
        if failure := episode.record.failure:
            self.failures[f"{failure.role} {failure.kind}"] += 1
        self.update(self.done, self.total, self.note())

    def idle(self) -> float:
        """Seconds since the last reply of any player."""
        return time.monotonic() - self.last_reply

    def note(self) -> str:
        """Resumed episodes, refused moves, the most frequent failures, the speed: one line."""
        spent = max(time.monotonic() - self.started, 1e-9)
        resumed = [f"{self.resumed} resumed"] if self.resumed else []
        refused = [f"{self.refused} refused moves"] if self.refused else []
        failures = [f"{kind}: {count}" for kind, count in self.failures.most_common(3)]
        return ", ".join([*resumed, *refused, *failures, f"{self.tokens / spent:.0f} tokens/s"])

    def summary(self) -> str:
        """One line on the whole collection."""
        return f"{self.title}: {self.done} of {self.total} episodes, {self.note()}"
