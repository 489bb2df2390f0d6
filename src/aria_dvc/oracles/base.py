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
    """Knows one hidden target, offline and deterministically."""

    @property
    def target(self) -> str:
        """The target as configurations of the game write it."""
        ...

    @property
    def spellings(self) -> tuple[str, ...]:
        """Folded names of the target; every guess of it contains one."""
        ...

    @property
    def guesses(self) -> tuple[str, ...]:
        """Questions that guess the target, as a player may put them."""
        ...

    def answer(self, question: str) -> Answer:
        """Answer one question in natural language; never raises on odd text."""
        ...

    def is_guess(self, question: str) -> bool:
        """Whether the question names the target as its guess, read strictly."""
        ...


class Knowledge(Protocol):
    """What a guessing game is about: the functions of the module `oracle` of each sub-package."""

    def targets(self) -> tuple[str, ...]:
        """All targets, in the published order."""
        ...

    def familiar(self) -> tuple[str, ...]:
        """Some of the targets: those that small models name, in the order small grids take them."""
        ...

    def oracle(self, target: str) -> Oracle:
        """The oracle of a target, however it is spelled; the same one for the same target.

        Raises:
            AriaError: `target` names none.
        """
        ...

    def questions(self) -> tuple[str, ...]:
        """Everyday questions that can be answered for most targets."""
        ...
