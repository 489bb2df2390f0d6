"""One chat message as agents write it (OpenAI): who speaks, and the text of what it does.

A tool call is an action: its text is `name(key=value, ...)`, arguments sorted by name and written
as JSON, below the message's own words. A reply of a tool may be empty, and an assistant may
say "" (no content at all is a call that was lost), which is written (empty).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from aria_dvc.records.episodes import SYSTEM, Episode, Utterance
from aria_dvc.records.formats.base import GIVEN, BadEntry, vector_of

ASSISTANT = "assistant"
NAMED = frozenset({ASSISTANT, "user"})  # roles in which several people may speak, each by `name`
TOOLS = frozenset({"tool", "function"})  # here `name` is the tool's
ROLES = frozenset({ASSISTANT, "user", SYSTEM, "developer", *TOOLS})  # no name of a speaker
DEVELOPER = "developer"  # what newer models call the role of instructions
EMPTY = "(empty)"
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_MEDIA = {
    "image_url": "[image]",
    "input_image": "[image]",
    "input_audio": "[audio]",
    "file": "[file]",
    "input_file": "[file]",
}


def chat_of(messages: list[Any]) -> Episode:
    """An episode of the messages of a chat: utterances, preamble and named speakers.

    Raises BadEntry, by the message's place, for what has no text to be made of it.
    """
    preamble: list[str] = []
    said: list[Utterance] = []
    roles: dict[str, str] = {}  # speaker -> the role in which it speaks
    for index, message in enumerate(messages):
        _check_keys(message, index)
        if not said and _instructs(message, messages):
            preamble.append(_instructions(message["content"], index))
            continue
        role = speaker(message, index)
        _check_speaker(role, message["role"], roles, index)
        vector = vector_of(message.get("embedding"), f"messages[{index}]")
        text = _text(message, index)
        said.append(Utterance(role, text, vector, message=_with_tools(message, index)))
    named = {name: role for name, role in roles.items() if name != role}
    return Episode("", "", said, {}, preamble=preamble, named=named)


def _check_speaker(name: str, role: str, roles: dict[str, str], index: int) -> None:
    """Take in who speaks a message.

    Raises BadEntry for a name by which somebody else would be meant.
    """
    if name != role and name in ROLES:
        raise BadEntry(
            f"messages[{index}] ({role}) has the name {name!r}, which is a role: name the speaker "
            "differently"
        )
    if (other := roles.setdefault(name, role)) != role:
        raise BadEntry(
            f"messages[{index}]: {name!r} speaks as {role} and before as {other}: give every "
            "speaker a name of its own"
        )


def speaker(message: Mapping[str, Any], index: int) -> str:
    """Who speaks: the `name` of an assistant or user that has one, else the role."""
    role, name = message["role"], message.get("name")
    if not isinstance(role, str):
        raise BadEntry(f"messages[{index}] has the role {role!r}: give a name as text")
    if role not in NAMED or name is None or name == "":
        return role
    if not isinstance(name, str):
        raise BadEntry(f"messages[{index}] has the name {name!r}: give a name as text")
    return name


def is_special(message: Mapping[str, Any]) -> bool:
    """Whether a message may go without content."""
    return any(message.get(key) for key in ("tool_calls", "function_call", "refusal"))


def _check_keys(message: Any, index: int) -> None:
    if (
        not isinstance(message, dict)
        or "role" not in message
        or ("content" not in message and not is_special(message))
    ):
        raise BadEntry(f"messages[{index}] needs the keys role and content")


def _instructs(message: Mapping[str, Any], messages: list[Any]) -> bool:
    """Whether it says what the others shall do; a developer only in a chat with an assistant."""
    if message["role"] != DEVELOPER:
        return bool(message["role"] == SYSTEM)
    return any(isinstance(m, dict) and m.get("role") == ASSISTANT for m in messages)


def _instructions(content: Any, index: int) -> str:
    """The text of a system message; it may be empty."""
    found = _parts(content, index) if _is_parts(content) else content
    if not isinstance(found, str | None):
        raise BadEntry(f"messages[{index}] ({SYSTEM}) has no text: give a string")
    return found or ""


def _text(message: Mapping[str, Any], index: int) -> Any:
    """What a message says and calls; anything but text is left to the reader's own check."""
    content = words(message, index)
    if not isinstance(content, str | None):
        return content
    calls = [call_text(call, index) for call in _calls(message, index)]
    if calls:
        return "\n".join([content, *calls] if content and content.strip() else calls)
    speaks = message["role"] in (ASSISTANT, GIVEN)
    if (content or "").strip() or not (speaks or message["role"] in TOOLS):
        return content
    if speaks and not isinstance(message.get("content"), str):
        raise BadEntry(
            f"messages[{index}] ({message['role']}) has neither content nor a call: give what it "
            'said, "" if that was nothing, or remove the entry'
        )
    return EMPTY


def words(message: Mapping[str, Any], index: int) -> Any:
    """What a message says beside its calls: its content, as text where it is parts; or a refusal.

    Raises BadEntry for a part that is not read.
    """
    content: Any = message.get("content")
    if _is_parts(content):
        content = _parts(content, index)
    refusal = message.get("refusal")
    refuses = isinstance(content, str | None) and not content and isinstance(refusal, str)
    return refusal if refuses else content


def _with_tools(message: Mapping[str, Any], index: int) -> dict[str, Any] | None:
    """`Utterance.message` of a message; None where it neither calls a tool nor is a tool's."""
    calls = [_as_written_now(call, index) for call in _calls(message, index)]
    if not calls and message["role"] not in TOOLS:
        return None
    content = words(message, index)
    if calls:
        return {"content": content, "tool_calls": calls}
    named = {key: message.get(key) for key in ("tool_call_id", "name")}
    return {"content": content, **{k: v for k, v in named.items() if isinstance(v, str)}}


def _as_written_now(call: Any, index: int) -> dict[str, Any]:
    """A call of any form that is read, as an entry of `tool_calls`."""
    name, arguments = _made(call, index)
    number = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    return {**number, "type": "function", "function": {"name": name, "arguments": arguments}}


def _is_parts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(part, dict) for part in content)


def _parts(content: list[dict[str, Any]], index: int) -> str:
    """The texts of content parts, one a line, and a word in brackets for what is no text."""
    return "\n".join(_part(part, index) for part in content)


def _part(part: dict[str, Any], index: int) -> str:
    kind = part.get("type")
    if isinstance(kind, str) and kind in _MEDIA:
        return _MEDIA[kind]
    text = part.get(_TEXTS[kind]) if isinstance(kind, str) and kind in _TEXTS else None
    if not isinstance(text, str):
        known = ", ".join((*_TEXTS, *_MEDIA))
        raise BadEntry(
            f"messages[{index}] has a content part of the type {kind!r} that is not read "
            f"(known: {known}): give its content as text"
        )
    return text


def _calls(message: Mapping[str, Any], index: int) -> list[Any]:
    """The calls of a message as it has them, an old `function_call` among them."""
    calls, old = message.get("tool_calls"), message.get("function_call")
    if isinstance(calls, str):  # a JSON text where a table holds them
        calls = _loaded(calls)
    calls = [] if calls is None else calls
    if not isinstance(calls, list):
        raise BadEntry(f"messages[{index}]: tool_calls must be a list")
    return [*calls, *([old] if old is not None else [])]


def call_text(call: Any, index: int) -> str:
    """One tool call in one form, however its arguments are ordered or spaced.

    Raises BadEntry for one without a name, or whose arguments are no text or object.
    """
    name, arguments = _made(call, index)
    return f"{name}({_arguments(arguments, index)})"


def _made(call: Any, index: int) -> tuple[str, Any]:
    """The name of what is called, and the arguments as the log has them."""
    made = call.get("function") if isinstance(call, dict) and "function" in call else call
    if isinstance(made, dict) and "function" not in made and isinstance(made.get("custom"), dict):
        made = made["custom"]
    name = made.get("name") if isinstance(made, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise BadEntry(f"messages[{index}] has a tool call without the name of its function")
    assert isinstance(made, dict)
    return name, made.get("arguments", made.get("input"))


def _arguments(given: Any, index: int) -> str:
    """`key=value, ...` sorted by key; what is no JSON object stays as it is."""
    if given is None:
        return ""
    if not isinstance(given, str | dict):
        raise BadEntry(f"messages[{index}] has a tool call whose arguments are no text or object")
    found = _loaded(given) if isinstance(given, str) else given
    if not isinstance(found, dict):
        return str(given).strip()
    try:
        return ", ".join(f"{key}={_value(found[key])}" for key in sorted(found))
    except (TypeError, ValueError) as error:
        raise BadEntry(f"messages[{index}] has a tool call that is no JSON ({error})") from None


def _loaded(text: str) -> Any:
    """The value of a JSON text, whole numbers to the last digit; the text where it is none."""
    try:
        orjson.loads(text)  # stricter: what passes can be written as UTF-8 again
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _value(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
