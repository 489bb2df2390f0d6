"""Episodes in memory: who said what, and what it was worth to whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(slots=True)
class Utterance:
    """One utterance; `embedding` ((d,) float32) only if the log carried one."""

    role: str
    text: str
    embedding: np.ndarray | None = None


@dataclass(slots=True)
class Episode:
    """One finished dialogue.

    rewards: final reward R of every role that acts (an utterance is an action if its role has one).
    prompts: system prompt per role, where the log has one.
    info: whatever else is recorded: config, seed, players, failure, token counts, ...
    """

    episode_id: str
    game: str
    utterances: list[Utterance]
    rewards: dict[str, float]
    prompts: dict[str, str] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)


def without_broken_off(episodes: list[Episode]) -> list[Episode]:
    """Leaves out episodes that somebody without a reward broke off, such as a model as oracle.

    Their outcome says nothing about those who acted.
    """
    failures = [episode.info.get("failure") for episode in episodes]
    return [
        episode
        for episode, failure in zip(episodes, failures, strict=True)
        if not isinstance(failure, dict) or failure.get("role") in episode.rewards
    ]
