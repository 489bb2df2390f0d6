"""A language model behind an OpenAI-compatible chat server.

What the server's faults, refusals and silences mean for a game; how it is asked is
servers/client.py's.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aria_dvc.chat import Message
from aria_dvc.errors import AriaError
from aria_dvc.players.base import PlayerFailure, Reply, Request
from aria_dvc.players.oracle import answers, one_question
from aria_dvc.records.episodes import SampledWith
from aria_dvc.servers.client import Fault, NoAnswer, Refusal, Server, with_options
from aria_dvc.servers.completions import PATH, Completion, read_completion
from aria_dvc.servers.keys import SHORTEST_KEY
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Endpoint

SOON_S = 5.0  # a server that is there answers something within so long
GREETING: list[Message] = [{"role": "user", "content": "Say hello."}]
EMPTY_REPLIES = 4  # as many to one request are taken for the model's own silence
# What changes the distribution beside temperature and top_p, and the value, in vLLM's terms, that
# does not; None: there is no default to be overridden, so it is left out.
NEUTRAL: dict[str, Any] = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    **dict.fromkeys(("min_tokens", "logit_bias", "allowed_token_ids", "bad_words")),
    **dict.fromkeys(("response_format", "structured_outputs")),
}
logger = logging.getLogger(__name__)


def drawn_plainly(name: str, endpoint: Endpoint) -> Endpoint:
    """The endpoint with options by which vLLM draws from nothing but temperature and top_p.

    All are sent: what a request leaves out, vLLM may take from the model's generation_config.json.

    Raises:
        AriaError: its options ask for another distribution.
    """
    options = endpoint.options
    shaping = [key for key in NEUTRAL if options.get(key) not in (None, NEUTRAL[key])]
    if shaping:
        raise AriaError(
            f"endpoints.{name}.options: {', '.join(shaping)} would change what the policy says but "
            "not what training scores: leave them out where online.rollouts names this endpoint"
        )
    dropped = {key: 1.0 for key in ("temperature", "top_p") if options.get(key, 1.0) is None}
    return endpoint.model_copy(update={"options": {**options, **dropped, **NEUTRAL}})


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
        """As the requests ask for it; a field that `options` drops is the server's own, 1.

        What else shapes the distribution, in `options` or by the server's defaults, is not told.
        """
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
            return await self.server.post(PATH, lambda attempt: self._turn(request, attempt), read)
        except NoAnswer as error:
            raise await self._unanswered(error) from None
        except Refusal as refusal:
            raise await self._failure(refusal) from None

    def finished(self, episode_id: str) -> None:
        """Servers keep nothing for an episode."""

    async def close(self) -> None:
        await self.server.close()

    def _turn(self, request: Request, attempt: int) -> dict[str, Any]:
        seed = request.seed + attempt
        if answers(request):
            return self._body(one_question(request.messages), seed, temperature=0.0)
        return self._body(request.messages, seed, self.settings.temperature)

    def _body(self, messages: list[Message], seed: int, temperature: float) -> dict[str, Any]:
        body = {
            "model": self.model,
            "messages": messages,
            "temperature": temperature,
            "top_p": self.settings.top_p,
            "max_tokens": self.settings.max_new_tokens,
            "seed": seed % 2**31,
        }
        return with_options(body, self.options)

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

    async def _unanswered(self, error: NoAnswer) -> PlayerFailure:
        """What it means that a request got no answer: its own fault, or the endpoint is away."""
        kind = "no_answer" if await self._answers_others() else "endpoint_unreachable"
        check = "see what answers there" if error.misfit else "see that the server runs"
        where = f"deadline_s of {self.endpoint} in params.yaml"
        return PlayerFailure(kind, f"{error}: {check}, or raise {where}")

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
        """Whether the server answers another request now: a greeting, or any that is under way.

        What it answered before tells nothing: it may have gone since. The greeting does not wait
        for room, which other requests to a server that is away hold until their deadline.
        """
        since = time.monotonic()
        apart = replace(self.server, deadline_s=min(SOON_S, self.server.deadline_s))
        body = self._body(GREETING, seed=0, temperature=0.0)
        try:
            with suppress(NoAnswer, Refusal):
                await apart.post(PATH, lambda attempt: body, self._read)
        finally:
            await apart.close()
        return self._answered > since


def _too_long(complaint: str) -> bool:
    folded = complaint.lower()
    return "context" in folded and ("length" in folded or "token" in folded)
