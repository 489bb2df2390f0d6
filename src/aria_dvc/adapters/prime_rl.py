"""prime-rl and verifiers: the credits of a trace, as per-token advantages of its message nodes.

`MessageNode.advantages` has one number a sampled token; nobody assigns it before the trainer's
algorithm does. Call `credit_traces` on the traces of one rollout group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aria_dvc.adapters.credits import Credits, centred


def credit_traces(traces: Sequence[Any], credits: Credits) -> None:
    """Set the advantages of every sampled node of the traces' last branches, in place.

    The advantage is the turn's credit less the mean over all sampled turns of these traces, and the
    credit is noted as `info["turn_rewards"]`.
    """
    paths = [_last_branch(trace.nodes) for trace in traces]
    found = credits([[_message(node) for node in path] for path in paths])
    sampled = [_sampled(path, own) for path, own in zip(paths, found, strict=True)]
    own = [[value for _, value in pairs] for pairs in sampled]
    advantages = centred(own, ["group"] * len(own))
    for trace, pairs, values, credit in zip(traces, sampled, advantages, own, strict=True):
        for (node, _), value in zip(pairs, values, strict=True):
            node.advantages = [value] * sum(node.mask)
        trace.info["turn_rewards"] = credit


def _sampled(path: Sequence[Any], credits: Sequence[float]) -> list[tuple[Any, float]]:
    """The nodes that a model call made, with their credits; others of the assistant's are given."""
    said = [node for node in path if node.message.role == "assistant"]
    return [(node, c) for node, c in zip(said, credits, strict=True) if node.sampled]


def _last_branch(nodes: Sequence[Any]) -> list[Any]:
    path, at = [], len(nodes) - 1
    while at is not None and at >= 0:
        path.append(nodes[at])
        at = nodes[at].parent
    return path[::-1]


def _message(node: Any) -> dict[str, Any]:
    found: dict[str, Any] = node.message.model_dump(mode="json", exclude_none=True)
    return {"content": None, **found}
