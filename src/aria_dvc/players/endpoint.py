"""A language model behind an OpenAI-compatible chat server.

Every attempt ends (its time is bounded as a whole, so a server that hangs or drips cannot hold a
game), every passing fault is tried again with growing pauses, and a server that stays away ends
in a PlayerFailure within the deadline. The key is read from the environment, sent in the header,
and blotted out of everything that the server sends back.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import os
import time
from dataclasses import replace
from typing import Any

import httpx
import orjson
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.stop import stop_before_delay
from tenacity.wait import wait_random_exponential

from aria_dvc.errors import AriaError
from aria_dvc.params import Endpoint, PlaySettings
from aria_dvc.players.base import PlayerFailure, Reply, Request
from aria_dvc.players.oracle import answers, one_question

PASSING = frozenset({408, 409, 425, 429, *range(500, 600)})
FIRST_ANSWER_S = 5
EMPTY_REPLIES = 4  # as many to one request are taken for the model's own silence
LEAST_KEY = 8  # shorter ones are dummies for servers that want any; their letters are in every text
SHOWN = 200  # characters of a server's complaint that are passed on
_PAUSE = wait_random_exponential(multiplier=0.25, max=10.0)


class Fault(Exception):
    """A passing fault of the server; `retry_after` are the seconds it asks for, if it does."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EndpointPlayer:
    """A player of any role; as the environment it answers one question at temperature 0.

    Raises:
        AriaError: the endpoint's address or key cannot be used.
    """

    def __init__(self, name: str, endpoint: Endpoint, settings: PlaySettings) -> None:
        self.name = f"endpoint:{name}"
        self.model = endpoint.model
        self.endpoint = endpoint
        self.settings = settings
        self.deadline_s = min(endpoint.deadline_s, settings.deadline_s)
        self.url = endpoint.base_url.rstrip("/") + "/chat/completions"
        self._key = _key(name, endpoint.api_key_env)
        self._client: httpx.AsyncClient | None = None
        self._room: asyncio.Semaphore | None = None
        self._answered = -math.inf  # when the server last answered anything

    async def reply(self, request: Request) -> Reply:
        async with self._open_room():
            started = time.monotonic()
            retrying = AsyncRetrying(
                retry=retry_if_exception_type(Fault),
                wait=self._pause,
                stop=stop_before_delay(self.deadline_s),
                reraise=True,
            )
            silences = 0
            try:
                async for attempt in retrying:
                    with attempt:
                        number = attempt.retry_state.attempt_number
                        left = self.deadline_s - (time.monotonic() - started)
                        reply = await self._attempt(request, number, left)
                        silences += not reply.text.strip()
                        if not reply.text.strip() and silences < EMPTY_REPLIES:
                            raise Fault("an empty message")
                        return reply
            except Fault as fault:
                # A server that answers others has a problem with this request, not with itself.
                kind = "no_answer" if self._answered > started else "endpoint_unreachable"
                raise PlayerFailure(kind, self._gave_up(fault)) from None
        raise AssertionError("a retry loop returns or raises")

    def finished(self, episode_id: str) -> None:
        """Servers keep nothing for an episode."""

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._client = self._room = None

    def _open_room(self) -> asyncio.Semaphore:
        """The bound on concurrent requests; made, with the client, in the running event loop."""
        if self._room is None or self._client is None:
            self._room = asyncio.Semaphore(self.endpoint.max_concurrency)
            self._client = httpx.AsyncClient(
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                timeout=self.endpoint.timeout_s,
                limits=httpx.Limits(max_connections=self.endpoint.max_concurrency),
            )
        return self._room

    async def _attempt(self, request: Request, number: int, left: float) -> Reply:
        body = self._body(request, number)
        limit = max(min(self.endpoint.timeout_s, left), 0.001)
        assert self._client is not None
        try:
            async with asyncio.timeout(limit):
                response = await self._client.post(self.url, json=body)
        except TimeoutError:
            raise Fault(f"no whole answer within {limit:.3g} s") from None
        except httpx.HTTPError as error:
            raise Fault(self._blot(f"{type(error).__name__} {error}")) from None
        if response.status_code != 200:
            await self._complain(response)
        reply = _read(response.content)
        self._answered = time.monotonic()
        secret = len(self._key) >= LEAST_KEY
        return replace(reply, text=self._blot(reply.text)) if secret else reply

    def _body(self, request: Request, number: int) -> dict[str, Any]:
        settings, messages, heat = self.settings, request.messages, self.settings.temperature
        if answers(request):
            messages, heat = one_question(messages), 0.0
        body = {
            "model": self.endpoint.model,
            "messages": messages,
            "temperature": heat,
            "top_p": settings.top_p,
            "max_tokens": settings.max_new_tokens,
            "seed": (request.seed + number - 1) % 2**31,
            **self.endpoint.options,
        }
        return {key: value for key, value in body.items() if value is not None}

    async def _answers_others(self) -> bool:
        """Whether the server has answered anything, or does within a little while."""
        for _ in range(FIRST_ANSWER_S * 10):
            if self._answered > -math.inf:
                return True
            await asyncio.sleep(0.1)
        return False

    async def _complain(self, response: httpx.Response) -> None:
        """Raise what an answer other than 200 means."""
        said = self._blot(" ".join(response.text[: 4 * SHOWN].split()))[:SHOWN]
        what = f"HTTP {response.status_code} {said}".strip()
        if response.status_code in PASSING:
            raise Fault(what, _retry_after(response.headers.get("retry-after")))
        if response.status_code in (400, 413) and _too_long(said):
            raise PlayerFailure("context_full", f"{self.url}: {what}")
        if response.status_code in (400, 422) and await self._answers_others():
            raise PlayerFailure("request_refused", f"{self.url}: {what}")
        raise PlayerFailure(
            "endpoint_refused",
            f"{self.url} refuses the request ({what}): check base_url, model, api_key_env and "
            f"options of {self.name} in params.yaml",
        )

    def _gave_up(self, fault: Fault) -> str:
        return (
            f"{self.url} gave no answer within {self.deadline_s:g} s (last: {fault}): "
            f"see that the server runs, or raise deadline_s of {self.name} in params.yaml"
        )

    def _blot(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    def _pause(self, state: RetryCallState) -> float:
        """Seconds until the next attempt: what the server asks for, else exponential with jitter.

        A longer pause than is left is cut, so that the server is asked again before giving up.
        """
        fault = state.outcome.exception() if state.outcome else None
        asked = fault.retry_after if isinstance(fault, Fault) else None
        if asked is None:
            return _PAUSE(state)
        left = self.deadline_s - (state.seconds_since_start or 0.0)
        return min(asked + 0.1 * _PAUSE(state), 0.9 * left)


def _retry_after(value: str | None) -> float | None:
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


def _read(content: bytes) -> Reply:
    """The first choice of a chat completion; Fault if it is not one."""
    try:
        answer = orjson.loads(content)
        choice = answer["choices"][0]
        text = choice["message"].get("content") or ""
        usage = answer.get("usage") or {}
        prompt = int(usage.get("prompt_tokens") or 0)
        completion = int(usage.get("completion_tokens") or 0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise Fault("an answer that is not a chat completion") from None
    if not isinstance(text, str):
        raise Fault("a message whose content is not text")
    return Reply(text, prompt, completion, cut=choice.get("finish_reason") == "length")


def _too_long(complaint: str) -> bool:
    folded = complaint.lower()
    return "context" in folded and ("length" in folded or "token" in folded)


def _key(name: str, variable: str | None) -> str:
    """The key in the environment variable, or "" if the endpoint needs none."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AriaError(
            f"endpoints.{name}.api_key_env: the environment variable {variable} is not set: "
            "export it before the run"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise AriaError(f"endpoints.{name}: the key in {variable} has characters no key can have")
    return key
