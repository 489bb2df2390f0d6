"""The scorer server among clients who stall: how soon it answers others, and what memory it takes.

    python benchmarks/scorer.py data/reward_model/adversarial [--stalled 300] [--partial 60]

Starts `aria serve-reward-model`, then as many clients as asked for that send half a head and wait,
and others that send megabytes of a body and wait; who is turned away comes again at once. Beside
them a real client (RemoteScorer) asks for scores, one request after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aria_dvc.learning.examples import Dialogue
from aria_dvc.learning.scorer_client import RemoteScorer

HEAD = b"POST /score_dialogues HTTP/1.1\r\nHost: scorer\r\nContent-Type: application/json\r\n"
KEY = "a-key-of-this-benchmark"
START_S = 120.0
PERIOD_S = 0.02  # between two looks at the memory


def main() -> None:
    args = parse()
    with scorer(args.model) as (url, pid):
        figures = asyncio.run(measure(url, pid, args))
    for name, value in figures.items():
        print(f"{name}: {value}")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, help="a trained reward model")
    parser.add_argument("--stalled", type=int, default=300, help="clients with half a head")
    parser.add_argument("--partial", type=int, default=60, help="clients with part of a body")
    parser.add_argument("--megabytes", type=float, default=7, help="of each such body")
    parser.add_argument("--seconds", type=float, default=30, help="how long all this lasts")
    return parser.parse_args(argv)


@contextmanager
def scorer(model: Path) -> Iterator[tuple[str, int]]:
    """The server with a key, in a process of its own; yields its address and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "aria_dvc", "serve-reward-model", str(model)]
    path = os.pathsep.join(folder for folder in sys.path if folder)
    environment = {**os.environ, "PYTHONPATH": path, "ARIA_SCORER_KEY": KEY}
    server = subprocess.Popen([*command, "--port", str(port)], env=environment)
    os.environ["ARIA_SCORER_KEY"] = KEY
    try:
        url = f"http://127.0.0.1:{port}"
        client(url, START_S).score_dialogues([dialogue()])
        yield url, server.pid
    finally:
        server.terminate()
        server.wait(30)


def client(url: str, deadline_s: float) -> RemoteScorer:
    return RemoteScorer(url, deadline_s, "ARIA_SCORER_KEY")


def dialogue() -> Dialogue:
    turns = [("user", "I offer $60."), ("assistant", "Make it $50."), ("user", "No.")]
    chat = [{"role": role, "content": text} for role, text in turns * 3]
    return Dialogue("log", "1", "buyer", chat, [1, 4, 7])


def resident(pid: int) -> float:
    """Memory of a process, in MB."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(url: str, pid: int, args: argparse.Namespace) -> dict[str, float | int]:
    """Seconds to an answer before and during the harm, and megabytes before and at the peak."""
    quiet = [await asyncio.to_thread(asked, url) for _ in range(5)]
    before, peak, turned_away = resident(pid), 0.0, Counter[str]()
    port = int(url.rpartition(":")[2])
    harm = [
        *(stall(port, b"Half-A-He", 0, turned_away) for _ in range(args.stalled)),
        *(stall(port, b"", int(args.megabytes * 1e6), turned_away) for _ in range(args.partial)),
    ]
    tasks = [asyncio.create_task(one) for one in harm]
    ends, waited = time.monotonic() + args.seconds, list[float]()
    asking = asyncio.create_task(asyncio.to_thread(asked, url))
    while time.monotonic() < ends or not asking.done():
        peak = max(peak, resident(pid))
        if asking.done():
            waited.append(asking.result())
            asking = asyncio.create_task(asyncio.to_thread(asked, url))
        await asyncio.sleep(PERIOD_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "stalled clients": args.stalled,
        "partial bodies": args.partial,
        "seconds to an answer before, median": round(sorted(quiet)[2], 3),
        "answers meanwhile": len(waited),
        "seconds to an answer meanwhile, median": round(sorted(waited)[len(waited) // 2], 3),
        "seconds to an answer meanwhile, longest": round(max(waited), 3),
        "MB before": round(before),
        "MB more at the peak": round(peak - before),
        "heads turned away": turned_away["head"],
        "bodies turned away": turned_away["body"],
    }


def asked(url: str) -> float:
    """Seconds until a real client has its scores."""
    started = time.monotonic()
    assert len(client(url, 60.0).score_dialogues([dialogue()])) == 3
    return time.monotonic() - started


async def stall(port: int, half: bytes, size: int, turned_away: Counter[str]) -> None:
    """Send half a head, or a whole one and `size` bytes of a body that is to be longer; wait."""
    head = HEAD + half
    if size:
        length = f"Content-Length: {size + 100_000}\r\n"
        head += f"{length}Authorization: Bearer {KEY}\r\n\r\n".encode()
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(head)
                for start in range(0, size, 65536):
                    writer.write(b" " * min(65536, size - start))
                    await writer.drain()
                await reader.read()
            finally:
                writer.close()
        turned_away["body" if size else "head"] += 1
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    main()
