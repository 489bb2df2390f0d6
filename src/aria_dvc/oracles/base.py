"""What every oracle offers: one question in, one `Answer` out, nothing remembered between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MAX_QUESTION_CHARS = 2000
"""Longer questions are refused unread: nobody asks a question of that length in a game."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of an oracle.

    `text` is what the player reads; `known` is False where the oracle could not tell; `topic`
    names the knowledge that was used (for measuring, never shown to a player).
    """

    text: str
    known: bool
    topic: str


class Oracle(Protocol):
    """Answers questions about one hidden target, offline and deterministically."""

    def answer(self, question: str) -> Answer:
        """Answer one question in natural language; never raises on odd text."""
        ...
