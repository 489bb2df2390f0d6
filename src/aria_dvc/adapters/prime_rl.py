"""prime-rl and verifiers: the credits of a trace, as per-token advantages of its message nodes.

`MessageNode.advantages` has one number a sampled token; nobody assigns it before the trainer's
algorithm does. Call `credit_traces` on the traces of one rollout group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aria_dvc.adapters.credits import Credits, centred


def credit_traces(traces: Sequence[Any], credits: Credits) -> None:
    """Set the advantages of every sampled node of the traces, in place.

    Each way from the root to a leaf is a chat; a node that several of them share has the credit of
    the first. The advantage is the turn's credit less the mean over all sampled turns of these
    traces, and the credits are noted as `info["turn_rewards"]`, in the order of the nodes.
    """
    paths = [(number, p) for number, trace in enumerate(traces) for p in _paths(trace.nodes)]
    chats = [[_message(traces[number].nodes[at]) for at in path] for number, path in paths]
    worth: list[dict[int, float]] = [{} for _ in traces]
    for (number, path), row in zip(paths, credits(chats), strict=True):
        for at, credit in _sampled(traces[number].nodes, path, row):
            worth[number].setdefault(at, credit)
    own = [[credit for _, credit in sorted(found.items())] for found in worth]
    advantages = centred(own, ["group"] * len(own))
    for trace, found, values, row in zip(traces, worth, advantages, own, strict=True):
        for at, value in zip(sorted(found), values, strict=True):
            node = trace.nodes[at]
            node.advantages = [value] * sum(node.mask)
        trace.info["turn_rewards"] = row


def _sampled(
    nodes: Sequence[Any], path: Sequence[int], credits: Sequence[float]
) -> list[tuple[int, float]]:
    """Nodes of a path that a model call made, with their credits; other replies are given."""
    said = [at for at in path if nodes[at].message.role == "assistant"]
    return [(at, c) for at, c in zip(said, credits, strict=True) if nodes[at].sampled]


def _paths(nodes: Sequence[Any]) -> list[list[int]]:
    """Node numbers from the root to each leaf that has a sampled node on its way."""
    inner = {node.parent for node in nodes}
    paths = [_path(nodes, at) for at in range(len(nodes)) if at not in inner]
    return [path for path in paths if any(nodes[at].sampled for at in path)]


def _path(nodes: Sequence[Any], leaf: int) -> list[int]:
    path: list[int] = []
    at: int | None = leaf
    while at is not None:
        path.append(at)
        at = nodes[at].parent
    return path[::-1]


def _message(node: Any) -> dict[str, Any]:
    found: dict[str, Any] = node.message.model_dump(mode="json", exclude_none=True)
    return {"content": None, **found}
