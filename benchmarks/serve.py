"""`aria serve` under load: requests a second, latency, and what it says when it is too much.

    python benchmarks/serve.py FITTED [--log LOG] [--clients 1 16 64] [--seconds 10]

Starts the server, then so many clients at a time, each with a connection of its own, one request
after the other, a dialogue each. At the end four times as many as it takes at once, which must be
answered 200, 429 or 503, and a server that is killed while it works: every request is answered or
its client sees the connection break.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

START_S = 300.0


def main() -> None:
    args = parse()
    items = dialogues(args.fitted, args.log)
    rows = []
    with server(args.fitted) as (url, process):
        asyncio.run(load(url, items, 1, 2.0))  # warms the encoder
        for clients in args.clients:
            rows.append(asyncio.run(load(url, items, clients, args.seconds)))
            print(json.dumps(rows[-1]), flush=True)
        rows.append(asyncio.run(load(url, items, args.overload, args.seconds)))
        print(json.dumps({**rows[-1], "what": "overload"}), flush=True)
        rows.append(asyncio.run(killed(url, items, process)))
        print(json.dumps({**rows[-1], "what": "killed"}), flush=True)
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("fitted", type=Path, help="what `aria fit` wrote")
    parser.add_argument("--log", type=Path, help="whose dialogues are sent; default made-up ones")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--overload", type=int, default=256, help="clients in the last part")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--out", type=Path, help="JSON file of the figures")
    return parser.parse_args(argv)


def dialogues(fitted: Path, log: Path | None) -> list[dict[str, Any]]:
    """Items of requests: of a log, or 200 made-up ones of six messages."""
    about = json.loads((fitted / "fit.json").read_text("utf-8"))
    agent = about["acting"][0]
    if log is None:
        rng = np.random.default_rng(0)
        words = ("offer", "price", "take", "deal", "half", "more", "less", "please", "no", "yes")
        chats = [[" ".join(rng.choice(words, 8)) for _ in range(6)] for _ in range(200)]
        sides = ("assistant", "user")
        said = [
            [{"role": sides[i % 2], "content": t} for i, t in enumerate(chat)] for chat in chats
        ]
    else:
        from aria_dvc.records.readers import read_log
        from aria_dvc.records.reading import Reading

        said = [
            [{"role": u.role, "content": u.text} for u in episode.utterances]
            for episode in read_log(log, Reading(need_rewards=False, warn=False))
        ]
    return [{"messages": messages, "agent": agent} for messages in said]


@contextmanager
def server(fitted: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join(folder for folder in sys.path if folder)
    command = [sys.executable, "-m", "aria_dvc", "serve", str(fitted), "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
    try:
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                time.sleep(0.2)
        yield url, process
    finally:
        process.terminate()
        process.wait(30)


async def load(url: str, items: list[dict[str, Any]], clients: int, seconds: float) -> dict:
    """Requests a second that were answered, their latency in ms, and how all were answered."""
    said: Counter[str] = Counter()
    waits: list[float] = []
    turn = itertools.count()
    started = time.monotonic()

    async def one() -> None:
        async with httpx.AsyncClient(timeout=120) as client:
            while time.monotonic() - started < seconds:
                body = {"items": [items[next(turn) % len(items)]]}
                asked = time.monotonic()
                status = await answered(client, url, body)
                said[status] += 1
                if status == "200":
                    waits.append(time.monotonic() - asked)
                else:
                    await asyncio.sleep(0.2)

    await asyncio.gather(*(one() for _ in range(clients)))
    spent = time.monotonic() - started
    p50, p99 = np.percentile(waits, [50, 99]) * 1000 if waits else (np.nan, np.nan)
    return {
        "clients": clients,
        "requests_per_s": round(len(waits) / spent, 1),
        "p50_ms": round(float(p50), 1),
        "p99_ms": round(float(p99), 1),
        "answers": dict(said),
    }


async def answered(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> str:
    """The status, or "broken" where the connection ended without an answer."""
    try:
        return str((await client.post(f"{url}/score_dialogues", json=body)).status_code)
    except httpx.TransportError:
        return "broken"


async def killed(url: str, items: list[dict[str, Any]], process: subprocess.Popen[bytes]) -> dict:
    """How 16 requests in flight end when the server is killed."""
    async with httpx.AsyncClient(timeout=60) as client:
        body = {"items": items[:200]}
        asking = [asyncio.create_task(answered(client, url, body)) for _ in range(16)]
        await asyncio.sleep(0.3)
        process.kill()
        return {"clients": 16, "answers": dict(Counter(await asyncio.gather(*asking)))}


if __name__ == "__main__":
    main()
