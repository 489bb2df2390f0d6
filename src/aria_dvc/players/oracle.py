"""A language model as the environment: it sees the rules, the hidden target and one question."""

from __future__ import annotations

from aria_dvc.chat import Message
from aria_dvc.players.base import Request


def answers(request: Request) -> bool:
    """Whether the request's role is the environment's, which answers and is not rewarded."""
    return request.role not in request.match.roles


def one_question(messages: list[Message]) -> list[Message]:
    """The system prompt, which names the target, and the latest question.

    Earlier turns are left out: an answer must be true of the target, whatever was said before,
    and what a player wrote earlier cannot talk the oracle out of its rules.
    """
    return [message for message in messages[:-1] if message["role"] == "system"] + messages[-1:]
