"""The one way to a server: JSON is posted, the answer is read, passing faults are tried again.

Every attempt ends (its time is bounded as a whole, so a server that hangs or drips holds nobody),
pauses grow unless the server asks for one, and a server that stays away ends in NoAnswer within
the deadline. The key goes into the header and is redacted in everything that is passed on.

This is httpx and a loop rather than the openai client. That one bounds the reads of an attempt and
not the attempt, counts retries and not seconds, gives up where Retry-After asks for a long pause,
and hands on answers of any shape; with its retries off, nothing of it would be left to use.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx
import orjson

from aria_dvc.servers.keys import read_key, redact
from aria_dvc.settings import Endpoint

PASSING = frozenset({408, 409, 425, 429, *range(500, 600)})
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0
SHOWN = 200  # characters of a server's complaint that are passed on
T = TypeVar("T")


class Fault(Exception):
    """A passing fault of the server; `retry_after` are the seconds it asks for, if it does."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Slow(Fault):
    """No whole answer within the time of an attempt."""


class NoAnswer(Exception):
    """Nothing but faults until the deadline. `since`: when the first attempt began (monotonic)."""

    def __init__(self, message: str, since: float) -> None:
        super().__init__(message)
        self.since = since


class Refusal(Exception):
    """The server will not do what it is asked: `status` and `said` are its answer, redacted."""

    def __init__(self, url: str, status: int, said: str) -> None:
        super().__init__(f"{url} refuses the request ({f'HTTP {status} {said}'.strip()})")
        self.status, self.said = status, said


@dataclass
class Server:
    """A server at `url`.

    Args:
        timeout_s: the longest that one attempt may take.
        deadline_s: the longest that one request may take, with all its attempts and pauses.
        max_concurrency: requests that are under way at once; others wait.
    """

    url: str
    key: str = field(default="", repr=False)
    timeout_s: float = 60.0
    deadline_s: float = 600.0
    max_concurrency: int = 16
    _client: httpx.AsyncClient | None = field(default=None, init=False, repr=False)
    _room: asyncio.Semaphore | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")

    @classmethod
    def of(cls, name: str, endpoint: Endpoint, deadline_s: float = math.inf) -> Server:
        """The server `endpoints.<name>`, asked for no longer than `deadline_s`.

        Raises:
            AriaError: its key is missing or impossible.
        """
        return cls(
            endpoint.base_url,
            read_key(endpoint.api_key_env, f"endpoints.{name}"),
            endpoint.timeout_s,
            min(endpoint.deadline_s, deadline_s),
            endpoint.max_concurrency,
        )

    async def post(self, path: str, body: Callable[[int], Any], read: Callable[[bytes], T]) -> T:
        """What `read` makes of the answer to a POST.

        Args:
            body: JSON-able, for the attempt of that number (from 0).
            read: raises Fault for an answer that is of no use, which is then asked for again.

        Raises:
            NoAnswer: the deadline has come.
            Refusal: any other status than success and PASSING.
        """
        client, room = self._open()
        async with room:
            since, attempt, last = time.monotonic(), 0, Fault("")
            ends = since + self.deadline_s
            while True:
                limit = max(min(self.timeout_s, ends - time.monotonic()), 0.001)
                try:
                    return read(await self._attempt(client, path, body(attempt), limit))
                except Fault as fault:
                    cut_short = isinstance(fault, Slow) and limit < self.timeout_s
                    last = last if cut_short and attempt else fault  # the earlier one tells more
                left = ends - time.monotonic()
                pause = _pause(attempt, last.retry_after, left)
                if pause >= left:
                    what = f"gave no answer within {self.deadline_s:g} s (last: {last})"
                    raise NoAnswer(f"{self.url} {what}", since)
                await asyncio.sleep(pause)
                attempt += 1

    def ask(self, path: str, body: Any, read: Callable[[bytes], T]) -> T:
        """One `post` with the same body at every attempt, for callers that do not await."""

        async def run() -> T:
            own = replace(self)  # connections belong to the event loop
            try:
                return await own.post(path, lambda attempt: body, read)
            finally:
                await own.close()

        return _in_own_loop(run())

    async def close(self) -> None:
        """Close connections; the next request opens new ones, in any event loop."""
        if self._client is not None:
            await self._client.aclose()
        self._client = self._room = None

    def redact(self, text: str) -> str:
        return redact(text, self.key)

    def _open(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """Client and semaphore belong to the event loop in which they are made."""
        if self._client is None or self._room is None:
            self._room = asyncio.Semaphore(self.max_concurrency)
            self._client = httpx.AsyncClient(
                headers={"Authorization": f"Bearer {self.key}"} if self.key else {},
                timeout=None,
                limits=httpx.Limits(max_connections=self.max_concurrency),
            )
        return self._client, self._room

    async def _attempt(
        self, client: httpx.AsyncClient, path: str, body: Any, limit: float
    ) -> bytes:
        try:
            async with asyncio.timeout(limit):
                response = await client.post(self.url + path, json=body)
        except TimeoutError:
            raise Slow(f"no whole answer within {limit:.3g} s") from None
        except httpx.HTTPError as error:
            raise Fault(self.redact(f"{type(error).__name__} {error}")) from None
        if response.is_success:
            return response.content
        said = self.redact(" ".join(response.text.split()))[:SHOWN]
        if response.status_code in PASSING:
            asked = retry_after(response.headers.get("retry-after"))
            raise Fault(f"HTTP {response.status_code} {said}".strip(), asked)
        raise Refusal(self.url, response.status_code, said)


def read_json(content: bytes) -> Any:
    """The JSON of an answer; Fault if it is none."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise Fault("an answer that is not JSON") from None


def retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header, which holds a number or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def _pause(attempt: int, asked: float | None, left: float) -> float:
    """Seconds until the next attempt: what the server asks for, else exponential with jitter.

    An asked pause longer than is left is cut, so that the server is asked again before giving up.
    """
    own = random.uniform(0, min(FIRST_PAUSE_S * 2 ** min(attempt, 30), LONGEST_PAUSE_S))
    return own if asked is None else min(asked + 0.1 * own, 0.9 * left)


def _in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end, also where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
