"""Bounds for an HTTP server that we run, so that clients who stall or send too much hold up nobody.

uvicorn bounds a head's size and the idle time between requests. What it has no knob for is here:
how long a head may take, how many connections there are, how long an answer may wait to be taken
(`BoundedProtocol`), and what all bodies together hold in memory (`Bodies`).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from aria_dvc.servers.rejections import Rejection, full

HEAD_S = 10.0  # from the connection, or a request's first byte, to the end of its head
ANSWER_S = 30.0  # how long a client may leave an answer untaken
CONNECTIONS = 512  # half of what a process may commonly have open
LARGEST_HEAD = 16 << 10
LARGEST_BODY = 8 << 20
ROOM = 48 << 20  # bytes of all bodies together, those of requests being answered included
BODY_S, STALL_S = 60.0, 10.0  # how long a body may take, and pause
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
LATE = b"HTTP/1.1 408 Request Timeout\r\n"
CLOSED = b"Connection: close\r\nContent-Length: 0\r\n\r\n"
T = TypeVar("T")


def authorise(request: Request, key: str) -> None:
    """Compare the request's key, in a time that tells nothing of it; no key lets everybody in.

    Raises:
        Rejection: 401.
    """
    given = request.headers.get("authorization", "").encode()
    if key and not hmac.compare_digest(given, f"Bearer {key}".encode()):
        hint = "the key is missing or wrong: send it as `Authorization: Bearer KEY`"
        raise Rejection(hint, 401, WWW_Authenticate="Bearer", Connection="close")


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol with limits on connections that wait.

    Where there are too many, the one that has sent no whole request for the longest time goes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.since = self.loop.time()
        self._head: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS and not self._make_room():
            self._end(FULL)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head = _stopped(self._head)
        self._untaken = _stopped(self._untaken)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._untaken = self.loop.call_later(ANSWER_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._untaken = _stopped(self._untaken)
        super().resume_writing()

    def _watch(self) -> None:
        if not self.waits or self.transport.is_closing():
            self._head = _stopped(self._head)
        elif self._head is None:
            self.since = self.loop.time()
            self._head = self.loop.call_later(HEAD_S, self._late)

    def _late(self) -> None:
        self._end(LATE if self.cycle is None else b"")

    def _end(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(status + CLOSED if status else b"")
            self.transport.close()

    def _make_room(self) -> bool:
        others = [c for c in self.connections if c is not self and getattr(c, "waits", False)]
        oldest = min(others, key=lambda c: getattr(c, "since", 0.0), default=None)
        if oldest is not None:
            self.connections.discard(oldest)
            oldest.transport.abort()
        return oldest is not None


# Arguments of uvicorn.Config. Clients are told apart by their address, so no header may forge it.
BOUNDED: dict[str, Any] = {
    "http": BoundedProtocol,
    "h11_max_incomplete_event_size": LARGEST_HEAD,
    "timeout_keep_alive": 5,
    "ws": "none",
    "proxy_headers": False,
    "server_header": False,
    "access_log": False,
    "log_level": "warning",
}


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, in place of this one."""
    if timer is not None:
        timer.cancel()
    return None


@dataclass(eq=False)
class _Arriving:
    """A body on its way. `heard`: when its last part came (time of the event loop)."""

    heard: float
    limit: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(STALL_S))
    content: bytearray = field(default_factory=bytearray)
    held: int = 0
    pushed_out: bool = False


class Bodies:
    """The bodies of all requests, in `room` bytes.

    Where they do not fit, the one that has stood still for the longest time is dropped.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room, self.held = room, 0
        self._arriving: set[_Arriving] = set()

    @asynccontextmanager
    async def reading(self, request: Request, read: Callable[[bytearray], T]) -> AsyncIterator[T]:
        """What `read` makes of the body; its room is taken until the block ends.

        Raises:
            Rejection: 413 it is too large; 408 it takes too long; 503 there is no room for it.
        """
        length = request.headers.get("content-length", "0")
        if len(length) > 12 or int(length) > LARGEST_BODY:
            raise _too_large()
        own = _Arriving(asyncio.get_running_loop().time())
        try:
            await self._arrive(own, request)
            found = read(own.content)
            own.content = bytearray()
            yield found
        finally:
            self._release(own)

    async def _arrive(self, own: _Arriving, request: Request) -> None:
        loop = asyncio.get_running_loop()
        ends = own.heard + BODY_S
        try:
            async with own.limit:
                self._arriving.add(own)
                async for chunk in request.stream():
                    self._add(own, chunk)
                    own.heard = loop.time()
                    own.limit.reschedule(min(ends, own.heard + STALL_S))
        except TimeoutError:
            raise _no_room() if own.pushed_out else _too_slow() from None
        except ClientDisconnect:
            raise Rejection("the client went away", 400) from None
        finally:
            self._arriving.discard(own)

    def _add(self, own: _Arriving, chunk: bytes) -> None:
        if len(own.content) + len(chunk) > LARGEST_BODY:
            raise _too_large()
        while not own.pushed_out and self.held + len(chunk) > self.room:
            self._push_out(own)
        if own.pushed_out:
            raise _no_room()
        own.content += chunk
        own.held += len(chunk)
        self.held += len(chunk)

    def _push_out(self, asking: _Arriving) -> None:
        """Drop the body that has stood still for the longest time, or, alone, the one that asks."""
        others = [body for body in self._arriving if body is not asking and body.held]
        stalest = min(others, key=lambda body: body.heard, default=asking)
        stalest.pushed_out = True
        self._release(stalest)
        if stalest is not asking and not stalest.limit.expired():
            stalest.limit.reschedule(0)

    def _release(self, own: _Arriving) -> None:
        self.held -= own.held
        own.held, own.content = 0, bytearray()


def _too_large() -> Rejection:
    limit = f"{LARGEST_BODY} bytes"
    return Rejection(f"the body is larger than {limit}: send fewer items", 413, Connection="close")


def _too_slow() -> Rejection:
    limits = f"{BODY_S:g} s, or paused for {STALL_S:g} s"
    return Rejection(f"the body did not arrive within {limits}", 408, Connection="close")


def _no_room() -> Rejection:
    return full("there is no room for the body at the moment: send it again")
