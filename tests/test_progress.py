"""One progress display: sparse lines of the log in files; bars, even nested, on a terminal."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from aria_dvc import progress
from aria_dvc.arena.stats import Stats
from aria_dvc.players.base import Reply
from aria_dvc.progress import progress_bar
from aria_dvc.records.episodes import Episode


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves: `clock[0] += seconds`."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_lines_are_sparse_and_leave_out_what_was_done_before(clock, caplog):
    caplog.set_level(logging.INFO)
    with progress_bar("collect") as update:
        update(40, 100)
        for done in range(41, 61):
            clock[0] += 1.5
            update(done, 100, "3 tokens/s")
    assert caplog.messages == [
        "collect: 47 of 100, 3 tokens/s, 1.3 min left",
        "collect: 54 of 100, 3 tokens/s, 1.1 min left",
    ]


def test_bars_on_a_terminal_may_stand_in_one_another(monkeypatch, caplog):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)
    with progress_bar("online [x]") as outer:
        outer(1, 4)
        with progress_bar("collect {0}") as inner:
            inner(2, 8, "5 tokens/s")
    shown = terminal.getvalue()
    assert all(text in shown for text in ("online [x]", "collect {0}", "1/4", "2/8", "5 tokens/s"))
    assert caplog.messages == []


def test_a_collection_shows_failures_and_speed(clock):
    shown = []
    stats = Stats("collect", 5, 2, lambda done, total, note="": shown.append((done, total, note)))
    clock[0] += 2.0
    stats.count_reply(Reply("hi", completion_tokens=30))
    broken = {"failure": {"role": "bob", "kind": "too_long"}}
    stats.count_episode(Episode("a", "g", [], {}, info=broken))
    stats.count_episode(Episode("b", "g", [], {}))
    clock[0] += 1.0
    assert shown == [
        (2, 5, ""),
        (2, 5, "2 resumed, 15 tokens/s"),
        (3, 5, "2 resumed, bob too_long: 1, 15 tokens/s"),
        (4, 5, "2 resumed, bob too_long: 1, 15 tokens/s"),
    ]
    assert stats.idle() == 1.0
    assert stats.summary() == "collect: 4 of 5 episodes, 2 resumed, bob too_long: 1, 10 tokens/s"
