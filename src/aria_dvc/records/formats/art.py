"""OpenPipe ART: Parquet of trajectory groups, a row a trajectory.

`group_index` counts the groups of one file from 0, `reward` is one number for the trajectory, any
finite one, `messages` its chat, whose `tool_calls` are JSON texts. Messages marked `trainable` are
the model's; where none is, every assistant's are.
"""

from __future__ import annotations

from typing import Any

from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.base import GIVEN, THE_AGENT, BadEntry, Layout, list_of
from aria_dvc.records.formats.messages import assistants, shared_prompt
from aria_dvc.records.formats.openai import ASSISTANT, chat_of


def _read(entry: dict[str, Any]) -> Episode:
    group = entry["group_index"]
    if isinstance(group, bool) or not isinstance(group, int):
        raise BadEntry(f"group_index is {group!r}: a whole number is needed")
    messages = [m for m in list_of(entry, "messages") if isinstance(m, dict)]
    if len(messages) < len(entry["messages"]):
        raise BadEntry("messages must be a list of objects")
    trained = any(message.get("trainable") for message in messages)
    episode = chat_of([_spoken(message, trained) for message in messages])
    episode.prompts = shared_prompt(episode, assistants(episode))
    episode.info = {"reward_rule": "utility", "group_id": str(group)}
    return episode


def _spoken(message: dict[str, Any], trained: bool) -> dict[str, Any]:
    """A message that may lack content; an assistant's that is not trained on is no action."""
    given = trained and message.get("role") == ASSISTANT and not message.get("trainable")
    return {"content": None, **message, **({"role": GIVEN} if given else {})}


def _rewards(entry: dict[str, Any]) -> dict[str, Any]:
    return {} if entry.get("reward") is None else {THE_AGENT: entry["reward"]}


LAYOUT = Layout(
    "art", frozenset({"group_index", "messages"}), None, _read, _rewards, local_groups=True
)
