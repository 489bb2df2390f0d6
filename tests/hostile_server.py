"""Servers that mean harm: each answers every request in one way that could cost memory or time.

`serve(HostileServer("flood"))` of tests/fault_server.py runs one beside the test.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from contextlib import suppress

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNK = b" " * 65536


class HostileServer:
    """Args: way: the name of a method below; elsewhere: where `redirect` sends callers."""

    def __init__(self, way: str, elsewhere: str = "") -> None:
        self.way, self.elsewhere = way, elsewhere
        self.asked: Counter[str] = Counter()
        self.heads: list[str] = []
        self.sent = 0  # bytes
        self.bomb_body = _bomb() if way == "bomb" else b""

    async def handle(self, reader, writer) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            self.asked[self.way] += 1
            await getattr(self, self.way)(lambda data: self._send(writer, data))
        writer.close()

    async def _send(self, writer, data: bytes) -> None:
        writer.write(data)
        self.sent += len(data)
        await writer.drain()

    async def flood(self, send) -> None:
        """A body without an end and without a length."""
        await send(OK + b"\r\n")
        while True:
            await send(CHUNK)

    async def chunks(self, send) -> None:
        await send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        while True:
            await send(b"10000\r\n" + CHUNK + b"\r\n")

    async def huge(self, send) -> None:
        """A body of 1 GB that says so."""
        await send(OK + b"Content-Length: 1073741824\r\n\r\n")
        for _ in range(16384):
            await send(CHUNK)

    async def headers(self, send) -> None:
        await send(b"HTTP/1.1 200 OK\r\n")
        while True:
            await send(b"X-Filler: " + b"x" * 60000 + b"\r\n")

    async def hints(self, send) -> None:
        """Interim answers for ever."""
        while True:
            await send(b"HTTP/1.1 103 Early Hints\r\nX-Filler: " + b"x" * 4000 + b"\r\n\r\n")

    async def bomb(self, send) -> None:
        """200 MB in 200 KB."""
        head = f"Content-Encoding: gzip\r\nContent-Length: {len(self.bomb_body)}\r\n\r\n"
        await send(OK + head.encode() + self.bomb_body)

    async def trickle(self, send) -> None:
        await send(OK + b"Content-Length: 100\r\n\r\n")
        for _ in range(100):
            await send(b" ")
            await asyncio.sleep(0.05)

    async def complain(self, send) -> None:
        """A refusal whose text does not end."""
        await send(b"HTTP/1.1 403 No\r\n\r\n\x1b[31mgo away ")
        while True:
            await send(CHUNK)

    async def slow_complaint(self, send) -> None:
        await send(b"HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\ngo away ")
        await asyncio.sleep(30)

    async def redirect(self, send) -> None:
        await send(
            b"HTTP/1.1 307 Elsewhere\r\nContent-Length: 0\r\n"
            + f"Location: {self.elsewhere}\r\n\r\n".encode()
        )

    async def lost(self, send) -> None:
        await send(b"HTTP/1.1 307 Elsewhere\r\nContent-Length: 0\r\n\r\n")

    async def page(self, send) -> None:
        body = b"<html>It works!</html>"
        head = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        await send(b"HTTP/1.1 200 OK\r\n" + head.encode() + body)

    async def cookies(self, send) -> None:
        body = b"7"
        name = b"Set-Cookie: c%d_%d=" + b"x" * 900 + b"\r\n"
        many = b"".join(name % (self.sent, i) for i in range(50))
        await send(OK + many + b"Content-Length: 1\r\nConnection: close\r\n\r\n" + body)


def _bomb() -> bytes:
    squeeze = zlib.compressobj(1, wbits=31)
    return b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(200)) + squeeze.flush()
