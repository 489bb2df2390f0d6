"""verl rollout dumps: `{rollout_data_dir}/{step}.jsonl` with input, output, gts, score and step.

verl decodes both texts without special tokens, so what is left of the chat template are lines that
hold the name of a role alone (ChatML: Qwen, SmolLM and others); there, or at `<|im_start|>` where
the tokens were kept, a text is split into messages. An output without such lines is one action.
What the template opens the reply with belongs to it; other replies that the prompt shows are said
by `given`, who does not act. A message of nothing is read as (empty). Equal inputs are a group.
Scores may be any finite number.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from aria_dvc.records.episodes import SYSTEM, Episode
from aria_dvc.records.formats.base import GIVEN, THE_AGENT, BadEntry, Layout
from aria_dvc.records.formats.messages import assistants, shared_prompt
from aria_dvc.records.formats.openai import ASSISTANT, EMPTY, chat_of

_TURN = re.compile(r"(?:\A|\n)(?:<\|im_start\|>)?(system|user|assistant|tool)[ ]*(?=\n|\Z)")
_END = re.compile(r"<\|im_end\|>|<\|endoftext\|>")
_NO_THOUGHT = re.compile(r"\s*<think>\s*</think>\s*")


def _read(entry: dict[str, Any]) -> Episode:
    given, made = _text(entry, "input"), _text(entry, "output")
    prompt = _messages(given, "user")
    opening = prompt.pop()["content"] if prompt and prompt[-1]["role"] == ASSISTANT else ""
    prompt = [m | {"role": GIVEN} if m["role"] == ASSISTANT else m for m in prompt]
    reply = _messages(_opened(opening, made), ASSISTANT)
    if len(reply) > 1 and not reply[-1]["content"]:
        reply.pop()  # a rollout that was cut off where the next message opens
    told = [m for m in (*prompt, *reply) if m["content"] or m["role"] != SYSTEM]
    episode = chat_of([m | {"content": m["content"] or EMPTY} for m in told])
    if not any(m["content"] and m["role"] == ASSISTANT for m in reply):
        raise BadEntry("output is empty: an action needs a text; remove the entry")
    episode.prompts = shared_prompt(episode, assistants(episode))
    known = {key: entry[key] for key in ("gts", "step", "uid") if entry.get(key) is not None}
    group = hashlib.sha256(given.encode()).hexdigest()[:16]
    episode.info = {"reward_rule": "utility", "group_id": group, "rollout": known}
    return episode


def _opened(opening: str, made: str) -> str:
    """The output behind what the template opened it with, unless that is a thought of nothing."""
    return made if not opening or _NO_THOUGHT.fullmatch(opening) else f"{opening}\n{made}"


def _text(entry: dict[str, Any], key: str) -> str:
    if not isinstance(entry[key], str):
        raise BadEntry(f"{key} must be a text, got {type(entry[key]).__name__}")
    return entry[key]


def _messages(text: str, first: str) -> list[dict[str, str]]:
    """The messages of a decoded text; what stands before the first name of a role is by `first`."""
    pieces = _TURN.split(_END.sub("", text))
    roles, texts = [first, *pieces[1::2]], pieces[0::2]
    found = [{"role": r, "content": t.strip()} for r, t in zip(roles, texts, strict=True)]
    return found if found[0]["content"] else found[1:]


def _rewards(entry: dict[str, Any]) -> dict[str, Any]:
    return {} if entry["score"] is None else {THE_AGENT: entry["score"]}


LAYOUT = Layout("verl", frozenset({"input", "output", "score"}), None, _read, _rewards)
