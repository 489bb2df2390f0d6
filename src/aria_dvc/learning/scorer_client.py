"""A reward model on another machine: its scorer server with the interface of RewardScorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception_type
from tenacity.stop import stop_before_delay
from tenacity.wait import wait_random_exponential

from aria_dvc.chat import Message
from aria_dvc.errors import AriaError
from aria_dvc.learning.examples import Dialogue, Key

AT_ONCE = 16  # dialogues in one request: far below the server's largest body
TIMEOUT_S = 600.0
DEADLINE_S = 300.0
PASSING = frozenset({408, 425, 429, *range(500, 600)})
SHOWN = 200  # characters of the server's complaint that are passed on


class _Fault(Exception):
    """A passing fault of the server."""


class RemoteScorer:
    """Scores dialogues with `python -m aria_dvc serve-reward-model` at `url`.

    Where histories are cut is the server's --max-tokens.

    Args:
        deadline_s: how long a server that does not answer is asked again.
    """

    def __init__(self, url: str, deadline_s: float = DEADLINE_S) -> None:
        self.url = url.rstrip("/")
        self.deadline_s = deadline_s

    def score_dialogues(self, dialogues: Sequence[Dialogue]) -> dict[Key, float]:
        """Credit of every action that the server can score, one pass a dialogue.

        Raises:
            AriaError: the server stays away, or refuses the request.
        """
        found: dict[Key, float] = {}
        with httpx.Client(timeout=TIMEOUT_S) as client:
            for start in range(0, len(dialogues), AT_ONCE):
                some = dialogues[start : start + AT_ONCE]
                for dialogue, scores in zip(some, self._ask(client, some), strict=True):
                    for position, score in zip(dialogue.positions, scores, strict=True):
                        if score is not None:
                            found[dialogue.game, dialogue.episode_id, position] = score
        return found

    def _ask(self, client: httpx.Client, dialogues: Sequence[Dialogue]) -> list[list[float | None]]:
        body = {"items": [{"messages": _until_last_action(d.messages)} for d in dialogues]}
        retrying = Retrying(
            retry=retry_if_exception_type(_Fault),
            wait=wait_random_exponential(multiplier=0.25, max=10.0),
            stop=stop_before_delay(self.deadline_s),
            reraise=True,
        )
        try:
            answer = retrying(self._post, client, body)
        except _Fault as fault:
            raise AriaError(
                f"policy.online.scorer: {self.url} gave no answer within {self.deadline_s:g} s "
                f"(last: {fault}): see that serve-reward-model runs there"
            ) from None
        scores = answer.get("scores") if isinstance(answer, dict) else None
        if not isinstance(scores, list) or [_length(own) for own in scores] != [
            len(dialogue.positions) for dialogue in dialogues
        ]:
            raise AriaError(
                f"policy.online.scorer: {self.url} does not answer like serve-reward-model: "
                "start it there from this version, or mend the address"
            )
        return scores

    def _post(self, client: httpx.Client, body: Any) -> Any:
        try:
            answer = client.post(f"{self.url}/score_dialogues", json=body)
        except httpx.HTTPError as error:
            raise _Fault(f"{type(error).__name__} {error}") from None
        problem = f"HTTP {answer.status_code} {answer.text[:SHOWN]}".strip()
        if answer.status_code in PASSING:
            raise _Fault(problem)
        if not answer.is_success:
            raise AriaError(
                f"policy.online.scorer: {self.url} refuses the request ({problem}): "
                "check the address, and that serve-reward-model runs there"
            )
        try:
            return answer.json()
        except ValueError:
            return None


def _until_last_action(messages: Sequence[Message]) -> list[Message]:
    last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    return list(messages[: last + 1])


def _length(scores: Any) -> int:
    return len(scores) if isinstance(scores, list) else -1
