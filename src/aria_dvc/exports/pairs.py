"""Preference pairs for DPO: only turns of the very same prompt are compared."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.exports.calls import Message, as_json, with_objects
from aria_dvc.exports.chats import Record, tools_of
from aria_dvc.exports.scales import Scale
from aria_dvc.exports.turns import Chat, Chats, Turn


def dpo(chats: Chats, scale: Scale, counts: Counter[str]) -> Iterator[Record]:
    """A pair a line: of each prompt that was answered in several ways, the best and the worst.

    An answer that was given several times has the mean of its advantages. Calls of tools are equal
    where their names and arguments are, whatever their ids.

    Raises:
        AriaError: there is no such pair.
    """
    wanted = _shared(chats, counts)
    answers: dict[bytes, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    messages: dict[tuple[bytes, str], Message] = {}
    prompts: dict[bytes, Chat] = {}
    length: dict[bytes, int] = {}
    for chat, turn, key in _keyed(chats):
        if key in wanted:
            said = chat.texts[turn.message]
            answers[key][said].append(turn.advantage)
            messages.setdefault((key, said), chat.messages[turn.message])
            prompts.setdefault(key, chat)
            length.setdefault(key, turn.message)
    for key, given in answers.items():
        chat = prompts[key]
        found = _pair(given)
        if scale.is_small(chat.role, found[2]):
            counts["pairs that differ too little"] += 1
            continue
        counts["pairs"] += 1
        yield chat.role, _line(chat, length[key], *(messages[key, text] for text in found[:2]))
    if not counts["pairs"]:
        raise AriaError(
            "dpo: no two turns answer the same prompt in different ways by enough "
            f"({counts['prompts said more than once']} prompts came more than once): let the same "
            "tasks be played several times, or export to kto, which needs no pairs"
        )


def _shared(chats: Chats, counts: Counter[str]) -> set[bytes]:
    """The keys of prompts with different answers; counts turns, prompts and what they share."""
    first: dict[bytes, bytes] = {}
    again: set[bytes] = set()
    differ: set[bytes] = set()
    for chat, turn, key in _keyed(chats):
        counts["turns"] += 1
        said = hashlib.sha256(chat.texts[turn.message].encode()).digest()
        if key in first:
            again.add(key)
            if first[key] != said:
                differ.add(key)
        else:
            first[key] = said
    counts["prompts"] += len(first)
    counts["prompts said more than once"] += len(again)
    counts["prompts with different answers"] += len(differ)
    return differ


def _keyed(chats: Chats) -> Iterator[tuple[Chat, Turn, bytes]]:
    """Every turn with the digest of its role and prompt."""
    for chat in chats():
        state = hashlib.sha256(f"{chat.role}{as_json(chat.tools)}".encode())
        turn_at = {turn.message: turn for turn in chat.turns}
        for at, message in enumerate(chat.messages):
            if at in turn_at:
                yield chat, turn_at[at], state.digest()
            state.update(orjson.dumps([message["role"], chat.texts[at]]))


def _pair(given: dict[str, list[float]]) -> tuple[str, str, float]:
    """(best, worst, their difference); ties by text, so that the order of a log does not count."""
    means = sorted((sum(own) / len(own), text) for text, own in given.items())
    return means[-1][1], means[0][1], means[-1][0] - means[0][0]


def _line(chat: Chat, length: int, chosen: Message, rejected: Message) -> dict[str, Any]:
    prompt = [with_objects(message) for message in chat.messages[:length]]
    best, worst = ([with_objects(message)] for message in (chosen, rejected))
    return {"prompt": prompt, "chosen": best, "rejected": worst, **tools_of(chat)}
