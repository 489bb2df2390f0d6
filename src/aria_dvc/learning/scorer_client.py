"""A reward model on another machine: its scorer server with the interface of RewardScorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aria_dvc.chat import Message
from aria_dvc.errors import AriaError
from aria_dvc.learning.examples import Dialogue, Key
from aria_dvc.servers.client import NoAnswer, Refusal, Server, read_json, scores_in
from aria_dvc.servers.keys import read_key

AT_ONCE = 16  # dialogues in one request: far below the server's largest
TIMEOUT_S = 600.0
NOT_FOUND = 404
KEY_FIELD = "online.scorer_api_key_env"
Scores = list[list[float | None]]


class RemoteScorer:
    """Scores dialogues with `aria serve-reward-model` at `url`.

    Where histories are cut is the server's --max-tokens.

    Args:
        deadline_s: how long a server that does not answer is asked again.
        key_variable: the environment variable that holds the server's key, if it wants one.

    Raises:
        AriaError: the key is missing or impossible.
    """

    def __init__(self, url: str, deadline_s: float, key_variable: str | None = None) -> None:
        key = read_key(key_variable, KEY_FIELD)
        self.server = Server(url, key, timeout_s=TIMEOUT_S, deadline_s=deadline_s)

    def score_dialogues(self, dialogues: Sequence[Dialogue]) -> dict[Key, float]:
        """Credit of every action that the server can score, one pass a dialogue.

        Raises:
            AriaError: the server stays away, or refuses the request.
        """
        found: dict[Key, float] = {}
        for start in range(0, len(dialogues), AT_ONCE):
            some = dialogues[start : start + AT_ONCE]
            for dialogue, scores in zip(some, self._ask(some), strict=True):
                for position, score in zip(dialogue.positions, scores, strict=True):
                    if score is not None:
                        found[dialogue.log, dialogue.episode_id, position] = score
        return found

    def quality(self) -> dict[str, Any] | None:
        """The model's metrics on held-out episodes; None from a server that does not tell them.

        Raises:
            AriaError: the server stays away, or does not want us.
        """
        try:
            answer = self.server.ask("/quality", {}, read_json)
        except (NoAnswer, Refusal) as error:
            if isinstance(error, Refusal) and error.status == NOT_FOUND:
                return None
            raise _unheard(error) from None
        return answer if isinstance(answer, dict) and "r2" in answer else None

    def _ask(self, dialogues: Sequence[Dialogue]) -> Scores:
        """The scores of every dialogue's actions, in one request."""
        body = {"items": [{"messages": _until_last_action(d.messages)} for d in dialogues]}
        counts = [len(dialogue.positions) for dialogue in dialogues]
        try:
            answer = self.server.ask("/score_dialogues", body, read_json)
        except (NoAnswer, Refusal) as error:
            raise _unheard(error) from None
        scores = scores_in(answer)
        if scores is None or [len(own) for own in scores] != counts:
            raise AriaError(
                f"online.scorer: {self.server.url} does not answer like "
                "serve-reward-model: start it there from this version, or mend the address"
            )
        return scores


def _unheard(error: Exception) -> AriaError:
    if isinstance(error, Refusal) and error.status in (401, 403):
        remedy = f"name the environment variable with its key in {KEY_FIELD}"
    else:
        remedy = "check the address, and that serve-reward-model runs there"
    return AriaError(f"online.scorer: {error}: {remedy}")


def _until_last_action(messages: Sequence[Message]) -> list[Message]:
    last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    return list(messages[: last + 1])
