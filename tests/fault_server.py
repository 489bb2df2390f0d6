"""A server that misbehaves: every fault that a real one has shown, at a chosen rate.

`serve(FaultServer(...))` runs it in a thread of its own and gives its base_url.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

FAULTS = ("429", "500", "503", "slow", "hang", "close", "cut", "malformed", "empty", "no_choices")


class FaultServer:
    """Args: rate of faults, which ones, and seconds (from the start) during which it is dead.

    echo_key: complain with the caller's own Authorization header, as careless servers do.
    """

    def __init__(self, rate=0.0, faults=FAULTS, dead=(0.0, 0.0), seed=0, echo_key=False) -> None:
        self.rate, self.faults, self.dead, self.echo_key = rate, faults, dead, echo_key
        self.draws = random.Random(seed)
        self.served: Counter[str] = Counter()
        self.bodies: list[dict] = []
        self.headers: list[str] = []
        self.at_once = self.most_at_once = 0
        self.complaint, self.retry_after = "no", 0.05
        self.started = time.monotonic()
        self.say = lambda body: "hello there"
        self.whole = lambda body: completion(self.say(body))  # the answer without a fault
        self.always = lambda body: None  # the fault of a request that never succeeds

    async def handle(self, reader, writer) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.served["gone"] += 1
        finally:
            self.at_once -= 1
            writer.close()

    async def _handle(self, reader, writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = {k.lower(): v for k, v in (x.split(": ", 1) for x in head.split("\r\n")[1:] if x)}
        body = json.loads(await reader.readexactly(int(fields["content-length"])))
        since = time.monotonic() - self.started
        if self.dead[0] <= since < self.dead[1]:
            self.served["dead"] += 1
            return
        fault = self.draws.choice(self.faults) if self.draws.random() < self.rate else "ok"
        fault = self.always(body) or fault
        self.served[fault] += 1
        self.bodies.append(body)
        self.headers.append(fields.get("authorization", ""))
        await self._answer(writer, fault, body)

    async def _answer(self, writer, fault: str, body: dict) -> None:
        await asyncio.sleep(0.002)
        whole = self.whole(body)
        if fault in ("429", "500", "503", "401", "400"):
            message = self.headers[-1] if self.echo_key else self.complaint
            extra = f"Retry-After: {self.retry_after}\r\n" if fault == "429" else ""
            await _send(writer, int(fault), json.dumps({"error": {"message": message}}), extra)
        elif fault == "hang":
            await asyncio.sleep(30)
        elif fault == "slow":
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b" " * 99:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
        elif fault == "close":
            return
        elif fault == "cut":
            writer.write(_head(200, len(whole)) + whole.encode()[: len(whole) // 2])
            await writer.drain()
        elif fault == "malformed":
            await _send(writer, 200, whole[:-7])
        elif fault == "no_choices":
            await _send(writer, 200, json.dumps({"choices": []}))
        else:
            await _send(writer, 200, completion("") if fault == "empty" else whole)


def completion(text: str) -> str:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json.dumps({"choices": [choice], "usage": usage})


def _head(status: int, length: int, extra: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"{extra}Content-Length: {length}\r\n\r\n"
    ).encode()


async def _send(writer, status: int, text: str, extra: str = "") -> None:
    writer.write(_head(status, len(text.encode()), extra) + text.encode())
    await writer.drain()


@contextmanager
def serve(server: FaultServer) -> Iterator[str]:
    """Run the server beside the test; yields its base_url."""
    ready, address = threading.Event(), []

    async def run() -> None:
        stop = asyncio.Event()
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        address.extend([listening.sockets[0].getsockname()[1], asyncio.get_running_loop(), stop])
        ready.set()
        await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    ready.wait(10)
    port, loop, stop = address
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
