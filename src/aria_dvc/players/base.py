"""What a player is: something that answers a request with a text, alone or many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from aria_dvc.chat import Message
from aria_dvc.records.episodes import SampledWith

if TYPE_CHECKING:
    from aria_dvc.games.base import Match


@dataclass(frozen=True)
class Request:
    """One turn asked of a player.

    episode_id and role name the dialogue (the key of a key-value cache); `seed` is fixed by
    (run seed, episode, role, turn, attempt), so that a player's randomness never depends on
    what else is in flight. `match` is for scripted players, which read the state; players that
    are language models read only `messages`.
    """

    episode_id: str
    role: str
    messages: list[Message]
    match: Match
    seed: int


@dataclass(frozen=True)
class Reply:
    """A player's text and what it cost. `logprobs` are per generated token, in nats.

    cut: the text ended at the limit of tokens, not with an end of turn.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    cut: bool = False


class PlayerFailure(Exception):
    """A player that cannot answer this request at all (`kind`, e.g. "endpoint_unreachable")."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Player(Protocol):
    """`name` and `model` are recorded with every episode."""

    name: str
    model: str

    async def reply(self, request: Request) -> Reply:
        """The player's text for this turn.

        Raises:
            PlayerFailure: no text could be had.
        """
        ...

    def finished(self, episode_id: str) -> None:
        """The episode is over: forget what is held for it."""
        ...

    async def close(self) -> None:
        """Release what the player holds."""
        ...


@runtime_checkable
class Sampling(Protocol):
    """A player whose texts a language model draws; recorded, since training divides by it."""

    @property
    def sampling(self) -> SampledWith:
        """How its tokens are drawn."""
        ...
