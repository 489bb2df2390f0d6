"""Matches against an environment that carries commands out.

Its first line is where one is and what is to be done, and each command is answered by what came of
it, without a player for the environment. A text that is no command, or an impossible one, is no
illegal move: it is answered "Nothing happens.", costs a step, and is recorded as not `grounded`.
Illegal is what is no utterance in any game: empty, too long, or another speaker's turn.
"""

from __future__ import annotations

from abc import abstractmethod

from aria_dvc.games.base import Config, Failure, Match, Outcome
from aria_dvc.games.parsing import cut, utterance

AGENT, ENVIRONMENT = "agent", "environment"
NOTHING = "Nothing happens."
MAX_COMMAND_CHARS = 500
STEPS_BOUND = 1_000
"""Nobody may allow more."""


class CommandMatch(Match):
    """`config` has max_steps; `opening` is the environment's first line."""

    roles = (AGENT,)

    def __init__(self, config: Config, opening: str) -> None:
        super().__init__(config)
        self.lines = [(ENVIRONMENT, opening)]
        self.grounded = {AGENT: []}

    @abstractmethod
    def carry_out(self, command: str) -> str | None:
        """What came of the command; None where it is none or impossible now."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the task is done."""

    @property
    def steps(self) -> int:
        """Commands given so far."""
        return len(self.grounded[AGENT])

    @property
    def to_move(self) -> str | None:
        return None if self.outcome else AGENT

    def system_prompt(self, role: str) -> str:
        return (
            "Do a task in a room, by one command a turn: go to R, open R, close R, take X from R, "
            "put X in/on R, clean X with R, heat X with R, cool X with R, use X, examine X, look "
            f"or inventory. {self.config['max_steps']} commands."
        )

    def play(self, text: str) -> None:
        if self.outcome:
            raise ValueError("the match is over")
        said = utterance(text, AGENT, MAX_COMMAND_CHARS)
        told = self.carry_out(said)
        self.grounded[AGENT].append(told is not None)
        self.lines += [(AGENT, said), (ENVIRONMENT, told or NOTHING)]
        if self.is_done():
            self._end("solved")
        elif self.steps >= self.config["max_steps"]:
            self._end("turn_limit")

    def forfeit(self, kind: str, text: str = "") -> None:
        if self.outcome:
            raise ValueError("the match is over")
        if kept := cut(text, MAX_COMMAND_CHARS):
            self.lines.append((AGENT, kept))
            self.grounded[AGENT].append(False)
        self._end("failure", Failure(AGENT, kind))

    def _end(self, reason: str, failure: Failure | None = None) -> None:
        self.outcome = Outcome(
            rewards={AGENT: 1.0 if reason == "solved" else 0.0},
            reason=reason,
            details={"steps": self.steps, "executed": sum(self.grounded[AGENT])},
            failure=failure,
        )
