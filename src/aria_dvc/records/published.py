"""Episodes as lines of the published log layout, with all that is recorded besides under `info`.

Adversarial games give `alice_actions`, `bob_actions` and their places in the dialogue;
single-agent games give `actions`, `obs` and a final reward of -1 (failure) to 0 (success).
`records.readers.read_log` reads these lines back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aria_dvc.files import write_jsonl
from aria_dvc.records.episodes import SYSTEM, Episode
from aria_dvc.records.layouts import LAYOUTS

PROMPT_KEYS = {"alice": "player_1_system_prompt", "bob": "player_2_system_prompt"}
# What a reader looks for: a configuration with such a key has it under `info` alone.
READ_KEYS = {key for layout in LAYOUTS for key in layout.keys} | {
    "alice_action_embeddings",
    "bob_actions_embeddings",
    "group_id",
    "rewards",
    "system_prompts",
    *PROMPT_KEYS.values(),
}
NAME_KEYS = {"alice": "player_1_name", "bob": "player_2_name"}


def write_log(path: str | Path, episodes: Sequence[Episode]) -> None:
    """Write one published-layout object a line, in the order of `episodes`."""
    write_jsonl(path, [published(episode) for episode in episodes])


def published(episode: Episode) -> dict[str, Any]:
    """One episode as a JSON-able object: of its category's published layout where its roles and
    rewards fit that and it has no system messages, else of the `messages` layout."""
    roles = [utterance.role for utterance in episode.utterances]
    if episode.preamble:
        layout = _messages
    elif _alternate(roles) and _is_share(episode.rewards):
        layout = _single
    elif set(roles) | set(episode.rewards) <= {"alice", "bob"}:
        layout = _adversarial
    else:
        layout = _messages
    named = {"episode_id": episode.episode_id, "game": episode.game}
    return {**named, **layout(episode), **named, "info": episode.info}


def _alternate(roles: Sequence[str]) -> bool:
    """Whether an agent and an oracle take turns, the agent first."""
    return all(role == ("agent", "oracle")[i % 2] for i, role in enumerate(roles))


def _is_share(rewards: dict[str, float]) -> bool:
    """Whether the agent alone has a reward, from 0 to 1: a utility has no place in that layout."""
    return set(rewards) == {"agent"} and 0.0 <= rewards["agent"] <= 1.0


def _messages(episode: Episode) -> dict[str, Any]:
    said = [(SYSTEM, text) for text in episode.preamble]
    said += [(utterance.role, utterance.text) for utterance in episode.utterances]
    return {
        "messages": [{"role": role, "content": text} for role, text in said],
        "rewards": episode.rewards,
        "system_prompts": episode.prompts,
    }


def _adversarial(episode: Episode) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    record = episode.record
    for role in ("alice", "bob"):
        said = [(i, u.text) for i, u in enumerate(episode.utterances) if u.role == role]
        player = record.players.get(role)
        if player is not None and player.name is not None:
            entry[NAME_KEYS[role]] = player.name
        if role in episode.prompts:
            entry[PROMPT_KEYS[role]] = episode.prompts[role]
        entry[f"{role}_reward"] = episode.rewards.get(role)
        entry[f"{role}_gain"] = record.utilities.get(role)
        entry[f"{role}_actions"] = [text for _, text in said]
        entry[f"{role}_ids"] = [place for place, _ in said]
    return {**{k: v for k, v in record.config.items() if k not in READ_KEYS}, **entry}


def _single(episode: Episode) -> dict[str, Any]:
    actions: list[str] = []
    answers: list[str] = []
    for utterance in episode.utterances:
        (actions if utterance.role == "agent" else answers).append(utterance.text)
    entry: dict[str, Any] = {"actions": actions, "obs": answers}
    if "agent" in episode.prompts:
        entry["system_prompt"] = episode.prompts["agent"]
    return {**entry, "reward": episode.rewards["agent"] - 1.0}
