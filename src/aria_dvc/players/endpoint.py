"""A language model behind an OpenAI-compatible chat server.

What the server's faults, refusals and silences mean for a game; how it is asked is
servers/client.py's.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from dataclasses import replace
from typing import Any

from aria_dvc.players.base import PlayerFailure, Reply, Request
from aria_dvc.players.oracle import answers, one_question
from aria_dvc.records.episodes import SampledWith
from aria_dvc.servers.client import Fault, NoAnswer, Refusal, Server
from aria_dvc.servers.completions import PATH, Completion, read_completion
from aria_dvc.servers.keys import SHORTEST_KEY
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Endpoint

FIRST_ANSWER_S = 5
EMPTY_REPLIES = 4  # as many to one request are taken for the model's own silence
logger = logging.getLogger(__name__)


class EndpointPlayer:
    """A player of any role; as the environment it answers one question at temperature 0.

    name: what its episodes record; another than the endpoint's where it plays as `policy`.

    Args:
        deadline_s: how long the run waits for a server that stays away; the endpoint's own may be
            shorter.

    Raises:
        AriaError: the endpoint's address or key cannot be used.
    """

    def __init__(
        self, name: str, endpoint: Endpoint, settings: PlaySettings, deadline_s: float
    ) -> None:
        self.name = self.endpoint = f"endpoint:{name}"
        self.model = endpoint.model
        self.options = endpoint.options
        self.settings = settings
        self.server = Server.of(name, endpoint, deadline_s)
        self._answered = -math.inf  # when the server last answered anything
        self._told = False  # that all tokens of a reply were spent on thoughts

    @property
    def sampling(self) -> SampledWith:
        """As the requests ask for it; a field that `options` drops is the server's own, 1."""
        asked = {"temperature": self.settings.temperature, "top_p": self.settings.top_p}
        asked |= {name: self.options[name] for name in asked.keys() & self.options.keys()}
        return SampledWith(**{name: 1.0 if it is None else it for name, it in asked.items()})

    async def reply(self, request: Request) -> Reply:
        silences = 0

        def read(content: bytes) -> Reply:
            nonlocal silences
            found = self._read(content)
            silent = not found.text.strip()
            silences += silent
            if silent and found.thought and found.cut:
                self._tell_of_thoughts()  # asked again, it would think again
            elif silent and silences < EMPTY_REPLIES:
                raise Fault("an empty message")
            return Reply(found.text, found.prompt_tokens, found.completion_tokens, cut=found.cut)

        try:
            return await self.server.post(PATH, lambda attempt: self._body(request, attempt), read)
        except NoAnswer as error:
            # A server that answers others has a problem with this request, not with itself.
            kind = "no_answer" if self._answered > error.since else "endpoint_unreachable"
            where = f"deadline_s of {self.endpoint} in params.yaml"
            check = "see what answers there" if error.misfit else "see that the server runs"
            remedy = f"{check}, or raise {where}"
            raise PlayerFailure(kind, f"{error}: {remedy}") from None
        except Refusal as refusal:
            raise await self._failure(refusal) from None

    def finished(self, episode_id: str) -> None:
        """Servers keep nothing for an episode."""

    async def close(self) -> None:
        await self.server.close()

    def _body(self, request: Request, attempt: int) -> dict[str, Any]:
        settings, messages = self.settings, request.messages
        temperature = settings.temperature
        if answers(request):
            messages, temperature = one_question(messages), 0.0
        body = {
            "model": self.model,
            "messages": messages,
            "temperature": temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_new_tokens,
            "seed": (request.seed + attempt) % 2**31,
            **self.options,
        }
        return {key: value for key, value in body.items() if value is not None}

    def _read(self, content: bytes) -> Completion:
        found = read_completion(content)
        self._answered = time.monotonic()
        if len(self.server.key) >= SHORTEST_KEY:
            return replace(found, text=self.server.redact(found.text))
        return found

    def _tell_of_thoughts(self) -> None:
        if not self._told:
            self._told = True
            logger.warning(
                "%s: a reply of thoughts alone: they took all %d tokens; raise max_new_tokens in "
                "params.yaml, or turn thinking off by the endpoint's options",
                self.endpoint,
                self.settings.max_new_tokens,
            )

    async def _failure(self, refusal: Refusal) -> PlayerFailure:
        """What a refusal means: this request's own fault, or the endpoint's."""
        if refusal.status in (400, 413) and _too_long(refusal.said):
            return PlayerFailure("context_full", str(refusal))
        if refusal.status in (400, 422) and await self._answers_others():
            return PlayerFailure("request_refused", str(refusal))
        return PlayerFailure(
            "endpoint_refused",
            f"{refusal}: check base_url, model, api_key_env and options of {self.endpoint} "
            "in params.yaml",
        )

    async def _answers_others(self) -> bool:
        """Whether the server has answered anything, or does within a little while."""
        for _ in range(FIRST_ANSWER_S * 10):
            if self._answered > -math.inf:
                return True
            await asyncio.sleep(0.1)
        return False


def _too_long(complaint: str) -> bool:
    folded = complaint.lower()
    return "context" in folded and ("length" in folded or "token" in folded)
