"""Records of whole chats and of single turns: ms-swift, TRL's KTO, verifiers' traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from aria_dvc.exports.calls import as_json, for_swift, for_verifiers, with_objects
from aria_dvc.exports.scales import Scale
from aria_dvc.exports.turns import Chat, Chats

Record = tuple[str, dict[str, Any]]  # the role whose file it belongs to, and one line of it


def swift(chats: Chats, scale: Scale, counts: Counter[str]) -> Iterator[Record]:
    """A chat a line, with a positive `loss_scale` at every credited message of the trained role.

    Its other messages have 0: without a number they would be trained with the weight 1.
    """
    for chat in chats():
        messages: list[dict[str, Any]] = [
            {**m, "loss_scale": 0.0} if m["role"] == "assistant" else dict(m) for m in chat.messages
        ]
        for turn in chat.turns:
            messages[turn.message]["loss_scale"] = scale.weight(chat.role, turn.advantage)
        counts["chats"] += 1
        counts["turns"] += len(chat.turns)
        yield chat.role, {"messages": list(for_swift(messages)), **tools_of(chat)}


def tools_of(chat: Chat) -> dict[str, str]:
    """The column `tools`, JSON, which TRL and ms-swift read; none without schemas."""
    return {"tools": as_json(chat.tools)} if chat.tools else {}


def kto(chats: Chats, scale: Scale, counts: Counter[str]) -> Iterator[Record]:
    """A turn a line: what was said before, what was said, and whether it was better than usual."""
    for chat in chats():
        messages = [with_objects(message) for message in chat.messages]
        for turn in chat.turns:
            if scale.is_small(chat.role, turn.advantage):
                counts["too small to have a sign"] += 1
                continue
            label = turn.advantage > 0
            counts["desirable" if label else "undesirable"] += 1
            prompt, said = messages[: turn.message], [messages[turn.message]]
            line = {"prompt": prompt, "completion": said, "label": label}
            yield chat.role, {**line, **tools_of(chat)}


def traces(chats: Chats, scale: Scale, counts: Counter[str]) -> Iterator[Record]:
    """An episode of one trace a line, its credits as `info.turn_rewards`.

    No token ids: `MessageNode.advantages` has one number a sampled token, so it stays empty.
    """
    for chat in chats():
        counts["episodes"] += 1
        counts["turns"] += len(chat.turns)
        yield chat.role, _episode(chat)


def _episode(chat: Chat) -> dict[str, Any]:
    own = {turn.message for turn in chat.turns}
    nodes = [
        {"parent": i - 1 if i else None, "message": for_verifiers(message), "sampled": i in own}
        for i, message in enumerate(chat.messages)
    ]
    name = f"{chat.episode_id}:{chat.role}"
    task = {"type": "aria-dvc", "key": chat.group_id, "data": {"idx": 0, "prompt": None}}
    info = {
        "turn_rewards": [float(turn.row["credit"]) for turn in chat.turns],
        "turn_advantages": [turn.advantage for turn in chat.turns],
        "anchors": [int(turn.row["anchor"]) for turn in chat.turns],
    }
    trace = {
        "id": name,
        "task": task,
        "agent": {"name": chat.role},
        **({"tools": [_tool(tool) for tool in chat.tools]} if chat.tools else {}),
        "nodes": nodes,
        "rewards": {"outcome": {"score": chat.reward, "weight": 1.0}},
        "info": info,
        "is_completed": True,
        "ok": True,
    }
    return {"id": name, "task": task, "group": {"id": chat.group_id}, "ok": True, "traces": [trace]}


def _tool(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "", "parameters": {}, **schema["function"]}
