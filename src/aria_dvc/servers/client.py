"""The one way to a server: JSON is posted, the answer is read, passing faults are tried again.

Every attempt ends: its time is bounded as a whole, so a server that hangs or drips holds nobody,
and so is its size. A server that stays away ends in NoAnswer within the deadline (faults.py). The
key goes into the header, to no other server, and is redacted in everything that is passed on.

This is httpx and a loop rather than the openai client. That one bounds the reads of an attempt and
not the attempt, counts retries and not seconds, gives up where Retry-After asks for a long pause,
and hands on answers of any shape; with its retries off, nothing of it would be left to use.
"""

from __future__ import annotations

import asyncio
import http.cookiejar
import logging
import math
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx

from aria_dvc.servers.answers import (
    LARGEST_ANSWER,
    complaint,
    read_bounded,
    read_json,
    scores_in,
)
from aria_dvc.servers.faults import Fault, Misfit, NoAnswer, Refusal, Retries, Slow, retry_after
from aria_dvc.servers.keys import read_key, redact
from aria_dvc.settings.machine import Endpoint

__all__ = [
    "Fault",
    "Misfit",
    "NoAnswer",
    "Refusal",
    "Server",
    "Slow",
    "read_json",
    "retry_after",
    "scores_in",
    "with_options",
]
logger = logging.getLogger(__name__)
PASSING = frozenset({408, 409, 425, 429, *range(500, 600)})
LONG_WAIT_S = 30.0  # a pause worth a line
NO_COOKIES = http.cookiejar.DefaultCookiePolicy(allowed_domains=[])
T = TypeVar("T")


@dataclass
class Server:
    """A server at `url`.

    Args:
        timeout_s: the longest that one attempt may take.
        deadline_s: the longest that one request may take, with all its attempts and pauses.
        max_concurrency: requests that are under way at once; others wait.
        largest: bytes of an answer that are taken.
    """

    url: str
    key: str = field(default="", repr=False)
    timeout_s: float = 60.0
    deadline_s: float = 600.0
    max_concurrency: int = 16
    largest: int = LARGEST_ANSWER
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
            read_key(endpoint.api_key_env, f"endpoints.{name}.api_key_env"),
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
            NoAnswer: the deadline has come, or no answer of a minute could be taken.
            Refusal: any other status than success and PASSING.
        """
        client, room = self._open()
        async with room:
            retries = Retries(self.url, self.deadline_s)
            while True:
                limit = max(min(self.timeout_s, retries.left()), 0.001)
                try:
                    content = await self._attempt(client, path, body(retries.attempt), limit)
                    return read(content)
                except Fault as fault:
                    seconds = retries.pause(fault, cut_short=limit < self.timeout_s)
                    if seconds > LONG_WAIT_S:
                        logger.warning("%s: %s; asked again in %.0f s", self.url, fault, seconds)
                await asyncio.sleep(seconds)

    def ask(self, path: str, body: Any, read: Callable[[bytes], T]) -> T:
        """One `post` with the same body at every attempt, for callers that do not await."""

        async def run() -> T:
            own = replace(self)  # connections belong to the event loop
            try:
                return await own.post(path, lambda attempt: body, read)
            finally:
                await own.close()

        return in_own_loop(run())

    async def close(self) -> None:
        """Close connections; the next request opens new ones, in any event loop."""
        if self._client is not None:
            await self._client.aclose()
        self._client = self._room = None

    def redact(self, text: str) -> str:
        return redact(text, self.key)

    def _open(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """Client and semaphore belong to the event loop in which they are made.

        Nothing is sent anywhere but to `url`: no redirect is followed, no cookie kept.
        """
        if self._client is None or self._room is None:
            self._room = asyncio.Semaphore(self.max_concurrency)
            self._client = httpx.AsyncClient(
                headers={"Accept-Encoding": "identity", **self._authorization()},
                cookies=http.cookiejar.CookieJar(NO_COOKIES),
                follow_redirects=False,
                timeout=None,
                limits=httpx.Limits(max_connections=self.max_concurrency),
            )
        return self._client, self._room

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    async def _attempt(
        self, client: httpx.AsyncClient, path: str, body: Any, limit: float
    ) -> bytes:
        try:
            async with (
                asyncio.timeout(limit),
                client.stream("POST", self.url + path, json=body) as response,
            ):
                return await self._taken(response)
        except TimeoutError:
            raise Slow(f"no whole answer within {limit:.3g} s") from None
        except httpx.InvalidURL as error:
            raise Refusal(self.url, 0, f"is no address: {error}") from None
        except httpx.HTTPError as error:
            raise Fault(self.redact(f"{type(error).__name__} {error}")) from None

    async def _taken(self, response: httpx.Response) -> bytes:
        """The body of a success; Fault or Refusal for any other status."""
        status = response.status_code
        if response.is_success:
            return await read_bounded(response, self.largest)
        said = await complaint(response, self.key)
        if status in PASSING:
            asked = retry_after(response.headers.get("retry-after"))
            raise Fault(f"HTTP {status} {said}".strip(), asked)
        raise Refusal(self.url, status, said)


def with_options(body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request with an endpoint's `options`, of which null drops a field."""
    return {key: value for key, value in {**body, **options}.items() if value is not None}


def in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end, also where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
