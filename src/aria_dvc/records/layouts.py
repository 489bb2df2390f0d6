"""The layouts of raw logs that are recognised, each turned into an episode.

published_adversarial  JSON lines with `alice_actions` and `bob_actions`
published_single       JSON lines with `actions` and `obs` (or `next_observations`)
messages               JSON lines with `messages: [{role, content}]` and `rewards: {role: R}`;
                       system messages before the first utterance are the system prompt of all
                       who act, unless `system_prompts: {role: text}` has one for the role
guess_my_city          one JSON list of {conversation, done, word}
casino                 one JSON list of CaSiNo dialogues ({chat_logs, participant_info})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aria_dvc.records.episodes import SYSTEM, Episode, Utterance
from aria_dvc.suggestions import did_you_mean

CASINO_MAX_POINTS = 36.0
ROLE_NAMES = ("alice", "bob")
_CONVERTED = frozenset({bool, str})  # what NumPy would take for numbers


class BadEntry(Exception):
    """What is wrong with one entry; the caller adds where."""


@dataclass(frozen=True)
class Layout:
    """How one layout is recognised (keys that an entry has) and turned into an episode.

    read: the episode without its rewards. rewards: those of the roles that have one.
    """

    name: str
    keys: frozenset[str]
    game: str | None
    read: Callable[[dict[str, Any]], Episode]
    rewards: Callable[[dict[str, Any]], dict[str, Any]]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _vector(value: Any, where: str) -> np.ndarray | None:
    """A (d,) float32 vector, or None where the log has none."""
    if value is None:
        return None
    converts = isinstance(value, list) and not _CONVERTED.isdisjoint(map(type, value))
    try:
        with np.errstate(over="ignore"):
            vector = np.asarray([] if converts else value, dtype=np.float32)
            length = np.linalg.norm(vector)  # infinite or NaN where one number is, or all overflow
    except (TypeError, ValueError, OverflowError):
        vector, length = np.empty(0, np.float32), np.float32(0)
    if vector.ndim != 1 or not vector.size or not np.isfinite(length):
        raise BadEntry(f"embedding of {where} must be a list of finite numbers")
    return vector


def _list(entry: dict[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    if not isinstance(value, list):
        raise BadEntry(f"{key} must be a list, got {type(value).__name__}")
    return value


def _same_length(entry: dict[str, Any], left: str, right: str) -> None:
    if len(_list(entry, left)) != len(_list(entry, right)):
        raise BadEntry(
            f"{left} has {len(entry[left])} elements and {right} has {len(entry[right])}: "
            "they must have the same length"
        )


def _utterances(entry: dict[str, Any], role: str, key: str, vectors: str) -> list[Utterance]:
    texts = _list(entry, key)
    if entry.get(vectors) is None:
        return [Utterance(role, text) for text in texts]
    _same_length(entry, key, vectors)
    return [
        Utterance(role, text, _vector(value, f"{key}[{i}]"))
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


def _read_messages(entry: dict[str, Any]) -> Episode:
    preamble: list[str] = []
    said: list[Utterance] = []
    for index, message in enumerate(_list(entry, "messages")):
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise BadEntry(f"messages[{index}] needs the keys role and content")
        if message["role"] == SYSTEM and not said:
            preamble.append(_instructions(message["content"], index))
            continue
        vector = _vector(message.get("embedding"), f"messages[{index}]")
        said.append(Utterance(_role(message["role"], index), message["content"], vector))
    prompts = {**_shared_prompt(entry, preamble, said), **_own_prompts(entry)}
    return Episode("", "", said, {}, prompts, preamble=preamble)


def _role(role: Any, index: int) -> str:
    if not isinstance(role, str):
        raise BadEntry(f"messages[{index}] has the role {role!r}: give a name as text")
    return role


def _instructions(content: Any, index: int) -> str:
    """The text of a system message; it may be empty."""
    if not isinstance(content, str | None):
        raise BadEntry(f"messages[{index}] ({SYSTEM}) has no text: give a string")
    return content or ""


def _shared_prompt(
    entry: dict[str, Any], preamble: list[str], said: list[Utterance]
) -> dict[str, str]:
    """The system messages as the prompt of every role with a reward; of all where none has one."""
    prompt = "\n\n".join(text for text in preamble if text.strip())
    rewards = entry.get("rewards")
    acting = [r for r, v in rewards.items() if v is not None] if isinstance(rewards, dict) else []
    spoken = dict.fromkeys(utterance.role for utterance in said if utterance.role != SYSTEM)
    return dict.fromkeys(acting or spoken, prompt) if prompt else {}


def _own_prompts(entry: dict[str, Any]) -> dict[str, str]:
    prompts = entry.get("system_prompts")
    prompts = {} if prompts is None else prompts
    if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
        raise BadEntry("system_prompts must map roles to texts")
    return prompts


def _message_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    rewards = entry.get("rewards") or {}
    if not isinstance(rewards, dict):
        raise BadEntry("rewards must map every acting role to a number")
    rewards = {role: reward for role, reward in rewards.items() if reward is not None}
    said = sorted({message["role"] for message in entry["messages"]})
    if SYSTEM in rewards:
        raise BadEntry(f"rewards names {SYSTEM}, which never acts: name that role differently")
    if unheard := sorted(rewards.keys() - set(said)):
        hint = did_you_mean(unheard[0], said)
        raise BadEntry(f"rewards names {', '.join(unheard)}, who says nothing{hint}")
    return rewards


def _read_city(entry: dict[str, Any]) -> Episode:
    said = []
    for index, turn in enumerate(_list(entry, "conversation")):
        if not isinstance(turn, str):
            raise BadEntry(f"conversation[{index}] must be a string")
        question, mark, answer = turn.partition("?")
        said.append(Utterance("agent", (question + mark).strip()))
        if answer.strip():
            said.append(Utterance("oracle", answer.strip()))
    word = entry.get("word")
    if not isinstance(word, str | None):
        raise BadEntry(f"word is {type(word).__name__}: give the word to guess as text")
    return Episode("", "", said, {}, {}, {"config": {"target": word}})


def _city_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    done = entry.get("done")
    if done is None:
        return {}
    if not isinstance(done, int) or done not in (0, 1):
        raise BadEntry(f"done is {done!r}: true or false is needed")
    return {"agent": float(done)}


def _read_casino(entry: dict[str, Any]) -> Episode:
    roles = _casino_roles(entry)
    said = []
    for index, line in enumerate(_list(entry, "chat_logs")):
        role = roles.get(str(line.get("id"))) if isinstance(line, dict) else None
        if role is None:
            raise BadEntry(f"chat_logs[{index}] needs the id of one of the participants")
        said.append(Utterance(role, line.get("text") or ""))
    return Episode("", "", said, {})


def _casino_roles(entry: dict[str, Any]) -> dict[str, str]:
    people = entry["participant_info"]
    if not isinstance(people, dict) or len(people) != 2:
        raise BadEntry("participant_info must describe two people")
    return dict(zip(sorted(people), ROLE_NAMES, strict=True))


def _casino_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    rewards = {}
    for person, role in _casino_roles(entry).items():
        points = _points(entry["participant_info"][person])
        if points is not None and not is_number(points):
            raise BadEntry(f"points_scored of {person} is {points!r}: a number is needed")
        if points is not None:
            rewards[role] = points / CASINO_MAX_POINTS
    return rewards


def _points(person: Any) -> Any:
    outcomes = (person.get("outcomes") or {}) if isinstance(person, dict) else None
    if not isinstance(outcomes, dict):
        raise BadEntry("participant_info needs outcomes: {points_scored: number} for each person")
    return outcomes.get("points_scored")


LAYOUTS = (
    Layout(
        "published_adversarial",
        frozenset({"alice_actions", "bob_actions", "alice_ids", "bob_ids"}),
        None,
        _read_adversarial,
        _adversarial_rewards,
    ),
    Layout("messages", frozenset({"messages"}), None, _read_messages, _message_rewards),
    Layout(
        "guess_my_city",
        frozenset({"conversation", "word"}),
        "guess_my_city",
        _read_city,
        _city_rewards,
    ),
    Layout(
        "casino",
        frozenset({"chat_logs", "participant_info"}),
        "casino",
        _read_casino,
        _casino_rewards,
    ),
    Layout("published_single", frozenset({"actions"}), None, _read_single, _single_rewards),
)
