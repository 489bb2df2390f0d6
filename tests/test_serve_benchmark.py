"""The load test of `aria serve` on a small fit: real server, real clients."""

from __future__ import annotations

import asyncio

from benchmarks.serve import dialogues, killed, load, server
from tests.test_exports import log_file

from aria_dvc.__main__ import main


def test_clients_are_answered_sent_away_or_cut_off_but_never_forgotten(tmp_path, monkeypatch):
    monkeypatch.delenv("ARIA_SCORER_KEY", raising=False)
    out = tmp_path / "fitted"
    assert main(["fit", str(log_file(tmp_path)), "--method", "prefix", "--out", str(out)]) == 0
    items = dialogues(out, None)
    assert {item["agent"] for item in items} == {"alice"}
    with server(out) as (url, process):
        found = asyncio.run(load(url, items, 4, 1.0))
        assert set(found["answers"]) == {"200"}
        assert found["requests_per_s"] > 1
        assert found["p50_ms"] <= found["p99_ms"]
        crowd = asyncio.run(load(url, items, 150, 1.0))
        assert set(crowd["answers"]) <= {"200", "429", "503"}
        assert crowd["answers"]["200"] > 0
        ended = asyncio.run(killed(url, items, process))
        assert sum(ended["answers"].values()) == 16
        assert set(ended["answers"]) <= {"200", "429", "503", "broken"}
