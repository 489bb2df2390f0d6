"""The body of a request for scores: read, bounded, checked."""

from __future__ import annotations

from typing import Any

import orjson

from aria_dvc.chat import Message
from aria_dvc.servers.rejections import Rejection

Chat = list[Message]
ROLES = ("system", "user", "assistant")
MAX_ITEMS = 256  # in one request
# Braces, brackets and commas in a body: a small JSON value takes many times its text in memory.
MAX_PARTS = 1 << 18


def read_chats(body: bytes | bytearray) -> list[Chat]:
    """The chats of a request.

    Raises:
        Rejection: as `read_items`; a chat that is not of the expected shape (422).
    """
    return [_read_chat(item, f"items[{i}]") for i, item in enumerate(read_items(body))]


def read_items(body: bytes | bytearray) -> list[Any]:
    """What a request has under `items`, MAX_ITEMS at the most.

    Raises:
        Rejection: not JSON (400), too much of it (413), or not of the expected shape (422).
    """
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MAX_PARTS:
        raise Rejection("the body has too many values: send fewer items", 413)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Rejection(f"the body is not JSON: {error}", 400) from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        raise Rejection(
            f'the body must be {{"items": [{{"messages": [...]}}, ...]}}, at most {MAX_ITEMS} items'
        )
    return items


def _read_chat(item: Any, where: str) -> Chat:
    messages = item.get("messages") if isinstance(item, dict) else None
    if not isinstance(messages, list) or not messages:
        raise Rejection(f"{where}.messages must be a list of at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise Rejection(f"{where}.messages[{index}].role must be one of {', '.join(ROLES)}")
        if not isinstance(message.get("content"), str):
            raise Rejection(f"{where}.messages[{index}].content must be a string")
    if messages[-1]["role"] != "assistant":
        raise Rejection(f"{where}.messages must end with the assistant's, the action to score")
    return [{"role": m["role"], "content": m["content"]} for m in messages]
