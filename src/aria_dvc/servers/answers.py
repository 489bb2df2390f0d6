"""Reading what a server sends, no further than its bounds.

Headers are bounded by httpcore (100 KiB), the time by the attempt's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import httpx
import orjson

from aria_dvc.servers.faults import Misfit
from aria_dvc.servers.keys import redact

# A completion with its reasoning and log-probabilities is far below; 16 at once are 128 MiB.
LARGEST_ANSWER = 8 << 20
LARGEST_COMPLAINT = 64 << 10  # bytes of an error page that are read
COMPLAINT_S = 5.0  # its status is known: no reason to wait long for the text
SHOWN = 200  # characters of it that are passed on


async def read_bounded(response: httpx.Response, largest: int) -> bytes:
    """The body of a streamed answer.

    Raises:
        Misfit: it has more than `largest` bytes, or is compressed: what it would grow to is not
            bounded, and no compression was asked for.
    """
    if _is_compressed(response):
        raise Misfit("a compressed answer, though none was asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > largest:
            raise Misfit(f"an answer of more than {largest / 2**20:g} MiB")
    return bytes(body)


async def complaint(response: httpx.Response, key: str) -> str:
    """The beginning of an error's text in one printable line, without the key."""
    if response.has_redirect_location:
        host = httpx.URL(response.headers["location"]).host or "another path"
        return _shown(f"sends on to {host}: name the final address as base_url", key)
    if _is_compressed(response):
        return ""
    body = bytearray()
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(COMPLAINT_S):
            async for chunk in response.aiter_raw():
                body += chunk[: LARGEST_COMPLAINT - len(body)]
                if len(body) == LARGEST_COMPLAINT:
                    break
    text = redact(body.decode("utf-8", "replace"), key)
    return _shown(text[: -len(key)] if key and len(body) == LARGEST_COMPLAINT else text, key)


def read_json(content: bytes) -> Any:
    """The JSON of an answer; Misfit if it is none."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise Misfit("an answer that is not JSON") from None


def scores_in(answer: Any) -> list[list[float | None]] | None:
    """The scores of a scorer server's answer, a list a dialogue; None if it is anything else."""
    scores = answer.get("scores") if isinstance(answer, dict) else None
    if not isinstance(scores, list) or not all(isinstance(own, list) for own in scores):
        return None
    plain = all(type(score) in (float, int, type(None)) for own in scores for score in own)
    return scores if plain else None


def _is_compressed(response: httpx.Response) -> bool:
    return response.headers.get("content-encoding", "").strip().lower() not in ("", "identity")


def _shown(text: str, key: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in redact(text, key))
    return " ".join(printable.split())[:SHOWN]
