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
