"""The `messages` layout: chats of any roles, as JSON lines with `messages: [{role, content}]`.

`rewards: {role: R}` has the final reward of every role that acts; `reward: R` is the assistant's,
or that of whom `--agent` names; where an entry has both, they must agree. System messages before
the first utterance are the system prompt of all who act, unless `system_prompts: {role: text}` has
one for the role.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aria_dvc.records.episodes import SYSTEM, Episode
from aria_dvc.records.formats.base import THE_AGENT, BadEntry, Layout, list_of
from aria_dvc.records.formats.openai import ASSISTANT, chat_of
from aria_dvc.records.reading import described
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
    roles = list(_given(entry))
    if not roles and entry.get("reward") is not None:
        return assistants(episode)
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


def _given(entry: dict[str, Any]) -> dict[str, Any]:
    """`rewards` without those that are null."""
    given = entry.get("rewards")
    roles = given.items() if isinstance(given, dict) else ()
    return {role: reward for role, reward in roles if reward is not None}


def _rewards(entry: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(entry.get("rewards") or {}, dict):
        raise BadEntry("rewards must map every acting role to a number")
    rewards, single = _given(entry), entry.get("reward")
    if single is not None and not rewards:
        return {THE_AGENT: single}
    if single is not None and single not in _compared(rewards):
        raise BadEntry(
            f"reward is {described(single)} and rewards is {described(rewards)}: keep the right one"
        )
    said = sorted({name for message in entry["messages"] for name in _names(message)})
    if SYSTEM in rewards:
        raise BadEntry(f"rewards names {SYSTEM}, which never acts: name that role differently")
    if unheard := sorted(rewards.keys() - set(said)):
        hint = did_you_mean(unheard[0], said)
        raise BadEntry(f"rewards names {', '.join(unheard)}, who says nothing{hint}")
    return rewards


def _compared(rewards: dict[str, Any]) -> list[Any]:
    """What a single reward may be: the assistant's, or anybody's where that role has none."""
    return [rewards[ASSISTANT]] if ASSISTANT in rewards else list(rewards.values())


def _names(message: dict[str, Any]) -> set[str]:
    """The role of a message, and the name of its speaker."""
    name = message.get("name")
    return {message["role"], *([name] if isinstance(name, str) else [])}


LAYOUT = Layout("messages", frozenset({"messages"}), None, read_messages, _rewards)
