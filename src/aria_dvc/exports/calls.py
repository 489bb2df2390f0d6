"""Chats with tools: calls and replies as messages, and the layout of each trainer.

A call is kept as OpenAI writes it, its arguments as the log has them: a JSON text or an object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, NamedTuple

import orjson

from aria_dvc.chat import heard, view
from aria_dvc.records.formats.openai import EMPTY
from aria_dvc.records.oddities import is_unicode

Message = dict[str, Any]


class Line(NamedTuple):
    """Who said what; message: see `Utterance.message`; told: what the game told the hearers."""

    role: str
    text: str
    message: Message | None = None
    told: str = ""

    @property
    def calls(self) -> list[Any]:
        found: list[Any] = (self.message or {}).get("tool_calls", [])
        return found

    @property
    def is_silent(self) -> bool:
        """Whether an empty message was read so."""
        return self.text == EMPTY and self.message is None

    @property
    def is_reply(self) -> bool:
        return self.message is not None and not self.calls


@dataclass(frozen=True)
class Said:
    """A message of a chat, the places of the lines in it, and what it is where all is text.

    worded: tool calls and replies in it that stand as text.
    """

    message: Message
    text: str
    places: Sequence[int] = ()
    worded: int = 0


def seen_by(role: str, lines: Sequence[Line], system_prompt: str) -> list[Said]:
    """The chat of `role` as `chat.view` has it, but with its tool calls and the replies to them.

    A message ends with the calls that it makes; replies that follow at once are messages of the
    role `tool`. Whatever else others call or answer is text.
    """
    whole = view([(line.role, line.text) for line in lines], role, system_prompt)
    numbered = enumerate(lines)
    runs = [list(run) for _, run in groupby(numbered, key=lambda one: one[1].role == role)]
    before = whole[: len(whole) - len(runs)]  # the system prompt, an opening
    found = [Said(dict(message), message["content"]) for message in before]
    for run in runs:
        if run[0][1].role == role:
            found += _own(run)
        else:
            found += _others(run, answers=bool(found and "tool_calls" in found[-1].message))
    return found


Run = Sequence[tuple[int, Line]]  # lines of one side with their places


def _own(run: Run) -> Iterator[Said]:
    """The run, cut behind every line with calls."""
    piece: list[tuple[int, Line]] = []
    for at, line in run:
        piece.append((at, line))
        if line.calls or at == run[-1][0]:
            yield _joined("assistant", piece)
            piece = []


def _others(run: Run, answers: bool) -> Iterator[Said]:
    """Tools' replies that the run begins with, where it answers calls; the rest as one message."""
    replies = list(takewhile(lambda one: answers and one[1].is_reply, run))
    for at, line in replies:
        assert line.message is not None
        content = heard(line.message["content"] or "", line.told)
        message = {"role": "tool", **line.message, "content": content}
        yield Said(message, heard(line.text, line.told), [at])
    if rest := run[len(replies) :]:
        yield _joined("user", rest)


def _joined(side: str, piece: Run) -> Said:
    """One message of lines of a side, with the calls of the last where it is the assistant's."""
    lines = [line for _, line in piece]
    places = [at for at, _ in piece]
    text = "\n".join(
        line.text if side == "assistant" else heard(line.text, line.told) for line in lines
    )
    message: Message = {"role": side, "content": text}
    if side == "assistant" and not lines[-1].calls and any(line.is_silent for line in lines):
        message["content"] = "\n".join(line.text for line in lines if not line.is_silent)
    called = lines[-1].message if side == "assistant" and lines[-1].calls else None
    if called is not None:
        words = [*(line.text for line in lines[:-1] if not line.is_silent), called["content"]]
        message["content"] = words[0] if len(words) == 1 else "\n".join(filter(None, words))
        message["tool_calls"] = called["tool_calls"]
    untold = lines if called is None else lines[:-1]
    return Said(message, text, places, sum(len(x.calls) + x.is_reply for x in untold))


def schemas_of(tools: Any) -> list[Message]:
    """A log's schemas of tools as OpenAI writes them; none where it has no list of objects, or one
    that no file can hold."""
    try:
        found = json.loads(tools) if isinstance(tools, str) else tools
        can_be_written = is_unicode(as_json(found))
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(found, list) and all(isinstance(tool, dict) for tool in found)
    return [_schema(tool) for tool in found] if is_list and can_be_written else []


def _schema(tool: Message) -> Message:
    if isinstance(tool.get("function"), dict):
        return tool
    return {"type": "function", "function": {k: v for k, v in tool.items() if k != "function"}}


def as_json(value: Any) -> str:
    """JSON with whole numbers to the last digit."""
    return json.dumps(value, ensure_ascii=False)


def with_objects(message: Message) -> Message:
    """As TRL and chat templates read it: arguments are objects, where they are JSON of one."""
    return _with_arguments(message, _object)


def _with_arguments(message: Message, form: Callable[[Any], Any]) -> Message:
    if "tool_calls" not in message:
        return message
    made = [(call, call["function"]) for call in message["tool_calls"]]
    calls = [{**c, "function": {**f, "arguments": form(f["arguments"])}} for c, f in made]
    return {**message, "tool_calls": calls}


def _object(arguments: Any) -> Any:
    """The object that arguments are; the text where they are none, or none that can be written."""
    try:
        found = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments or {}
        orjson.dumps(found)
    except (ValueError, RecursionError, TypeError):
        return _text(arguments)
    return found if isinstance(found, dict) else _text(arguments)


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else as_json(arguments or {})


def for_swift(messages: Sequence[Message]) -> Iterator[Message]:
    """As ms-swift reads it: a message of role `tool_call` for each call, then `tool_response`.

    Its layout has no ids, so that replies stand in the order of the calls that they name.
    """
    calls: list[Any] = []
    for is_reply, some in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_reply:
            for reply in _in_order(calls, list(some)):
                name = {"name": reply["name"]} if "name" in reply else {}
                yield {"role": "tool_response", "content": reply["content"], **name}
            continue
        for message in some:
            calls = message.get("tool_calls", [])
            yield from _words_and_calls(message) if calls else [message]


def _in_order(calls: Sequence[Any], replies: list[Message]) -> list[Message]:
    ids = [call.get("id") for call in calls]
    named = [reply.get("tool_call_id") for reply in replies]
    if None in ids or len(set(ids)) < len(ids) or set(named) != set(ids):
        return replies
    return sorted(replies, key=lambda reply: ids.index(reply["tool_call_id"]))


def _words_and_calls(message: Message) -> Iterator[Message]:
    """ms-swift reads arguments that are text as JSON, so that other text is written as JSON."""
    plain = {key: value for key, value in message.items() if key != "tool_calls"}
    if message["content"]:
        yield plain
    for call in with_objects(message)["tool_calls"]:
        made = call["function"]
        if isinstance(made["arguments"], str):
            made = {**made, "arguments": as_json(made["arguments"])}
        yield {**plain, "role": "tool_call", "content": as_json(made)}


def for_art(message: Message) -> Message:
    """As ART's Parquet has it: `tool_calls` is JSON, and a reply has no name."""
    message = _with_arguments(message, _text)
    calls = {k: as_json(v) for k, v in message.items() if k == "tool_calls"}
    return {k: v for k, v in message.items() if k != "name"} | calls


def for_verifiers(message: Message) -> Message:
    """As verifiers has it: calls without a level of `function`; an unknown id is empty."""
    if message["role"] == "tool":
        return {**message, "tool_call_id": message.get("tool_call_id", "")}
    if "tool_calls" not in message:
        return message
    calls = _with_arguments(message, _text)["tool_calls"]
    flat = [{"id": call.get("id", ""), **call["function"]} for call in calls]
    return {**message, "tool_calls": flat}
