"""The `messages` layout: chats of any roles, as JSON lines with `messages: [{role, content}]`.

`rewards: {role: R}` has the final reward of every role that acts; `reward: R` is the assistant's,
or that of whom `--agent` names. System messages before the first utterance are the system prompt of
all who act, unless `system_prompts: {role: text}` has one for the role.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aria_dvc.records.episodes import SYSTEM, Episode
from aria_dvc.records.formats.base import THE_AGENT, BadEntry, Layout, list_of
from aria_dvc.records.formats.openai import ASSISTANT, chat_of
from aria_dvc.suggestions import did_you_mean


def read_messages(entry: dict[str, Any]) -> Episode:
    """The episode of one chat."""
    episode = chat_of(list_of(entry, "messages"))
    episode.prompts = {**shared_prompt(episode, _acting(entry, episode)), **_own_prompts(entry)}
    return episode


def shared_prompt(episode: Episode, acting: Collection[str]) -> dict[str, str]:
    """The system messages as the prompt of all who act."""
    prompt = "\n\n".join(text for text in episode.preamble if text.strip())
    return dict.fromkeys(acting, prompt) if prompt else {}


def assistants(episode: Episode) -> list[str]:
    """Who speaks as the assistant, by role and by name."""
    spoken = dict.fromkeys(utterance.role for utterance in episode.utterances)
    return [role for role in spoken if episode.named.get(role, role) == ASSISTANT]


def _acting(entry: dict[str, Any], episode: Episode) -> list[str]:
    """The roles with a reward, or who speaks in them; all who speak where nobody has one."""
    rewards = entry.get("rewards")
    if rewards is None and entry.get("reward") is not None:
        return assistants(episode)
    given = rewards if isinstance(rewards, dict) else {}
    roles = [role for role, reward in given.items() if reward is not None]
    named = [name for name, role in episode.named.items() if role in roles]
    spoken = dict.fromkeys(u.role for u in episode.utterances if u.role != SYSTEM)
    heard = [role for role in roles if role in spoken or not named]
    return list(dict.fromkeys([*heard, *named])) or list(spoken)


def _own_prompts(entry: dict[str, Any]) -> dict[str, str]:
    prompts = entry.get("system_prompts")
    prompts = {} if prompts is None else prompts
    if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
        raise BadEntry("system_prompts must map roles to texts")
    return prompts


def _rewards(entry: dict[str, Any]) -> dict[str, Any]:
    if entry.get("rewards") is None and entry.get("reward") is not None:
        return {THE_AGENT: entry["reward"]}
    rewards = entry.get("rewards") or {}
    if not isinstance(rewards, dict):
        raise BadEntry("rewards must map every acting role to a number")
    rewards = {role: reward for role, reward in rewards.items() if reward is not None}
    said = sorted({name for message in entry["messages"] for name in _names(message)})
    if SYSTEM in rewards:
        raise BadEntry(f"rewards names {SYSTEM}, which never acts: name that role differently")
    if unheard := sorted(rewards.keys() - set(said)):
        hint = did_you_mean(unheard[0], said)
        raise BadEntry(f"rewards names {', '.join(unheard)}, who says nothing{hint}")
    return rewards


def _names(message: dict[str, Any]) -> set[str]:
    """The role of a message, and the name of its speaker."""
    name = message.get("name")
    return {message["role"], *([name] if isinstance(name, str) else [])}


LAYOUT = Layout("messages", frozenset({"messages"}), None, read_messages, _rewards)
