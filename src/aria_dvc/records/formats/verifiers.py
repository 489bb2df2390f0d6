"""verifiers and prime-rl: `traces.jsonl`, an episode of one trace an agent (version 1 of traces).

A trace is a graph of messages; it is read along its last branch, as verifiers itself reads it.
Every trace is an episode here, its reward the weighted sum of its rewards, any finite number.
Replies that no model call made (`sampled: false`) are said by `given`, who does not act. Where an
episode has several agents, each speaks by its name. The group is the episode's, else its task's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.base import GIVEN, THE_AGENT, BadEntry, Layout, is_number, list_of
from aria_dvc.records.formats.messages import assistants, shared_prompt
from aria_dvc.records.formats.openai import ASSISTANT, chat_of

VERSION = 1
_ONE = "trace"  # the key of the single trace of a part


def _parts(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The entry once for every trace."""
    traces = list_of(entry, "traces")
    if not traces:
        raise BadEntry("traces is empty: that rollout broke down; remove the entry")
    for trace in traces:
        if not isinstance(trace, dict):
            raise BadEntry(f"a trace is {type(trace).__name__}: an object is needed")
        yield {**entry, _ONE: trace}


def _read(entry: dict[str, Any]) -> Episode:
    trace, several = entry[_ONE], len(entry["traces"]) > 1
    if trace.get("version", VERSION) != VERSION:
        raise BadEntry(f"version {trace['version']!r} of traces is not read: {VERSION} is")
    nodes = list_of(trace, "nodes")
    path, branches = _last_branch(nodes)
    if path and not any(_sampled(nodes[at]) for at in path):
        raise BadEntry("no message of assistant is marked `sampled: true`: an action needs that")
    episode = chat_of([_message(nodes[at], at, trace, several) for at in path])
    episode.episode_id = _id(trace if several else entry)
    episode.prompts = shared_prompt(episode, assistants(episode))
    episode.info = {"reward_rule": "utility", "group_id": _group(entry)}
    episode.tools = trace.get("tools")
    if branches > 1:
        episode.info["branches_left_out"] = branches - 1
    return episode


def _last_branch(nodes: list[Any]) -> tuple[list[int], int]:
    """Node numbers from the root to the last leaf, and how many leaves there are."""
    parents = [_parent(node, at) for at, node in enumerate(nodes)]
    leaves = sorted(set(range(len(nodes))) - set(parents))
    path: list[int] = []
    at = leaves[-1] if leaves else None
    while at is not None:
        path.append(at)
        at = parents[at]
    return path[::-1], len(leaves)


def _parent(node: Any, at: int) -> int | None:
    """The number of the message before; it stands above in the list."""
    if not isinstance(node, dict) or not isinstance(node.get("message"), dict):
        raise BadEntry(f"nodes[{at}] has no message")
    parent = node.get("parent")
    if parent is not None and (type(parent) is not int or not 0 <= parent < at):
        raise BadEntry(f"nodes[{at}] has the parent {parent!r}: the number of an earlier node")
    return parent


def _message(node: dict[str, Any], at: int, trace: dict[str, Any], several: bool) -> dict[str, Any]:
    message = {"content": None, **node["message"]}
    if message.get("role") != ASSISTANT:
        return message
    if not _sampled(node):
        return {**message, "role": GIVEN}
    agent = trace.get("agent")
    name = agent.get("name") if isinstance(agent, dict) else None
    return {**message, "name": name} if several else message


def _sampled(node: dict[str, Any]) -> bool:
    """Whether it is what a model was asked for and said."""
    return bool(node.get("sampled")) and node["message"].get("role") == ASSISTANT


def _id(holder: dict[str, Any]) -> str:
    name = holder.get("id")
    if not isinstance(name, str):
        raise BadEntry(f"id is {name!r}: give a text")
    return name


def _group(entry: dict[str, Any]) -> str:
    """The rollout group, else the task's key, hash, id or number; else the episode alone."""
    group, task = entry.get("group"), entry.get("task")
    if isinstance(group, dict) and isinstance(group.get("id"), str):
        return str(group["id"])
    task = task if isinstance(task, dict) else {}
    data = task["data"] if isinstance(task.get("data"), dict) else {}
    names = (task.get("key"), task.get("hash"), data.get("id"), data.get("idx"))
    return str(next((name for name in names if name is not None), entry.get("id")))


def _rewards(entry: dict[str, Any]) -> dict[str, Any]:
    """The sum of score times weight; none where nothing was scored."""
    rewards = entry[_ONE].get("rewards") or {}
    if not isinstance(rewards, dict):
        raise BadEntry("rewards must map names to {score, weight}")
    values = [_value(name, r) for name, r in rewards.items() if r is not None]
    if not values:
        return {}
    agent = entry[_ONE].get("agent")
    several = len(entry["traces"]) > 1 and isinstance(agent, dict) and agent.get("name")
    return {agent["name"] if several else THE_AGENT: sum(values)}


def _value(name: str, reward: Any) -> float:
    known = reward if isinstance(reward, dict) else {}
    score, weight = known.get("score"), known.get("weight", 1.0)
    if not is_number(score) or not is_number(weight):
        raise BadEntry(f"the reward {name} has no score and weight in numbers")
    return float(score * weight)


LAYOUT = Layout("verifiers", frozenset({"task", "traces"}), None, _read, _rewards, _parts)
