"""The layouts of the published logs, which `published.write_log` writes too.

Adversarial: JSON lines with `alice_actions` and `bob_actions`. Single-agent: JSON lines with
`actions` and `obs` (or `next_observations`), and a final reward of -1 (failure) to 0 (success).
"""

from __future__ import annotations

from typing import Any

from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.formats.base import (
    ROLE_NAMES,
    BadEntry,
    Layout,
    is_number,
    list_of,
    vector_of,
)


def _same_length(entry: dict[str, Any], left: str, right: str) -> None:
    if len(list_of(entry, left)) != len(list_of(entry, right)):
        raise BadEntry(
            f"{left} has {len(entry[left])} elements and {right} has {len(entry[right])}: "
            "they must have the same length"
        )


def _utterances(entry: dict[str, Any], role: str, key: str, vectors: str) -> list[Utterance]:
    texts = list_of(entry, key)
    if entry.get(vectors) is None:
        return [Utterance(role, text) for text in texts]
    _same_length(entry, key, vectors)
    return [
        Utterance(role, text, vector_of(value, f"{key}[{i}]"))
        for i, (text, value) in enumerate(zip(texts, entry[vectors], strict=True))
    ]


def _read_adversarial(entry: dict[str, Any]) -> Episode:
    placed: dict[int, Utterance] = {}
    # `bob_actions_embeddings` is spelled so in the published logs.
    for role, vectors in (("alice", "alice_action_embeddings"), ("bob", "bob_actions_embeddings")):
        _same_length(entry, f"{role}_actions", f"{role}_ids")
        said = _utterances(entry, role, f"{role}_actions", vectors)
        for position, utterance in zip(entry[f"{role}_ids"], said, strict=True):
            if type(position) is not int or position in placed:  # True is an int to Python
                raise BadEntry(f"{role}_ids: position {position!r} is not a free whole number")
            placed[position] = utterance
    if sorted(placed) != list(range(len(placed))):
        raise BadEntry("alice_ids and bob_ids must together count 0, 1, 2, ... without gaps")
    keys = (("alice", "player_1_system_prompt"), ("bob", "player_2_system_prompt"))
    prompts = {role: prompt for role, key in keys if (prompt := _prompt(entry, key)) is not None}
    return Episode("", "", [placed[i] for i in sorted(placed)], {}, prompts)


def _prompt(entry: dict[str, Any], key: str) -> str | None:
    """The text under a key, if there is one."""
    prompt = entry.get(key)
    if not isinstance(prompt, str | None):
        raise BadEntry(f"{key} must be a text, got {type(prompt).__name__}")
    return prompt


def _adversarial_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    return {r: entry[f"{r}_reward"] for r in ROLE_NAMES if entry.get(f"{r}_reward") is not None}


def _read_single(entry: dict[str, Any]) -> Episode:
    observed = "obs" if entry.get("obs") is not None else "next_observations"
    actions = _utterances(entry, "agent", "actions", "action_embeddings")
    answers = _utterances(entry, "oracle", observed, "obs_embeddings")
    if not len(actions) - 1 <= len(answers) <= len(actions):
        raise BadEntry(
            f"actions has {len(actions)} elements and {observed} has {len(answers)}: "
            "one observation follows every action (the last may have none)"
        )
    said = [u for pair in zip(actions, answers, strict=False) for u in pair]
    said += actions[len(answers) :]
    prompt = _prompt(entry, "system_prompt")
    return Episode("", "", said, {}, {} if prompt is None else {"agent": prompt})


def _single_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    """Published final rewards run from -1 (failure) to 0 (success); R runs from 0 to 1."""
    reward = entry.get("reward")
    if reward is None:
        return {}
    if not is_number(reward) or not -1 <= reward <= 0:
        raise BadEntry(f"reward is {reward!r}: this layout has a number between -1 and 0")
    return {"agent": float(reward) + 1.0}


ADVERSARIAL = Layout(
    "published_adversarial",
    frozenset({"alice_actions", "bob_actions", "alice_ids", "bob_ids"}),
    None,
    _read_adversarial,
    _adversarial_rewards,
)
SINGLE = Layout("published_single", frozenset({"actions"}), None, _read_single, _single_rewards)
