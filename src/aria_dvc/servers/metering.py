"""Counts of a server as Prometheus reads them (text format 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meter:
    """Requests by path and status, how long answers took, and gauges that are read when asked.

    gauges: name -> (what it is, how to read it).
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._requests: Counter[tuple[str, int]] = Counter()
        self._within: Counter[float] = Counter()
        self._seconds = 0.0
        self._items = 0

    def observe(self, path: str, status: int, seconds: float, items: int = 0) -> None:
        """Note an answered request; `items`: what it had scored."""
        self._requests[path, status] += 1
        self._seconds += seconds
        self._items += items
        for bucket in BUCKETS:
            self._within[bucket] += seconds <= bucket

    def text(self) -> str:
        """All of them, a line each."""
        total = self._requests.total()
        lines = [*self._head("requests_total", "counter", "Answered requests.")]
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'{self.prefix}_requests_total{{path="{path}",status="{status}"}} {count}')
        name = f"{self.prefix}_request_seconds"
        lines += self._head("request_seconds", "histogram", "Seconds from a request to its answer.")
        lines += [f'{name}_bucket{{le="{le:g}"}} {self._within[le]}' for le in BUCKETS]
        lines += [f'{name}_bucket{{le="+Inf"}} {total}', f"{name}_sum {self._seconds:.6f}"]
        lines.append(f"{name}_count {total}")
        lines += self._head("scored_total", "counter", "Dialogues that were scored.")
        lines.append(f"{self.prefix}_scored_total {self._items}")
        for gauge, (about, read) in self.gauges.items():
            lines += [*self._head(gauge, "gauge", about), f"{self.prefix}_{gauge} {read():g}"]
        return "\n".join(lines) + "\n"

    def _head(self, name: str, kind: str, about: str) -> list[str]:
        full = f"{self.prefix}_{name}"
        return [f"# HELP {full} {about}", f"# TYPE {full} {kind}"]
