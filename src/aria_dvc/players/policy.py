"""The in-process language model as a player of many games at once."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from aria_dvc.chat import Message, Renderer, view
from aria_dvc.errors import AriaError
from aria_dvc.memory import give_back_memory
from aria_dvc.models.loading import load_for_play, load_tokenizer
from aria_dvc.models.source import ModelSource
from aria_dvc.players.base import PlayerFailure, Reply, Request
from aria_dvc.players.engine import Engine
from aria_dvc.players.sampling import Sampling
from aria_dvc.records.episodes import SampledWith
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Pace

_places = itertools.count()
REMEMBERED = 8192  # rendered chats and encoded segments kept: a few megabytes
# Engines and renderers by what they are of, within `shared_engines`.
_shared: dict[tuple[Any, ...], tuple[Engine, Renderer]] | None = None


class PolicyPlayer:
    """A model behind an `Engine`; both roles of self-play may share one player.

    token_ids and logprobs are recorded if `record_logprobs`. The log-probabilities, the end-of-turn
    token's included, are those of softmax(logits) at temperature 1 without top-p, however the
    tokens were drawn; training scores the distribution that they were drawn from (`sampling`).
    """

    def __init__(
        self,
        name: str,
        model: str,
        engine: Engine,
        renderer: Renderer,
        settings: PlaySettings,
        adapter: Path | None,
        record_logprobs: bool,
    ) -> None:
        self.name = name
        self.model = f"{model}+{adapter}" if adapter else model
        self.adapter = adapter
        self.record_logprobs = record_logprobs
        self.engine = engine
        self.renderer = renderer
        self.settings = settings
        self._place = next(_places)

    def renamed(self, name: str, settings: PlaySettings) -> PolicyPlayer:
        """The same model and engine under another name and with other sampling."""
        twin = copy.copy(self)
        twin.name, twin.settings = name, settings
        return twin

    @property
    def sampling(self) -> SampledWith:
        return SampledWith(self.settings.temperature, self.settings.top_p)

    async def reply(self, request: Request) -> Reply:
        settings = self.settings
        sampling = Sampling(
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_new_tokens=settings.max_new_tokens,
            seed=request.seed,
            logprobs=self.record_logprobs,
        )
        dialogue = (self._of_series(request.episode_id), request.role)
        prompt_ids = self.renderer.prompt_ids(request.messages)
        try:
            generation = await self.engine.generate(dialogue, prompt_ids, sampling)
        except PlayerFailure:
            self._check_opening(request)
            raise
        tokens = generation.token_ids
        return Reply(
            text=self.renderer.tokenizer.decode(tokens, skip_special_tokens=True).strip(),
            prompt_tokens=generation.prompt_tokens,
            completion_tokens=len(tokens),
            token_ids=tokens if self.record_logprobs else None,
            logprobs=generation.logprobs,
            cut=not set(tokens[-1:]) & set(self.renderer.end_ids()),
        )

    def _check_opening(self, request: Request) -> None:
        """Raise AriaError if the context is too short for a reply before anybody has spoken.

        Then no dialogue can be played, which is no failure of the player.
        """
        opening = view([], request.role, request.match.system_prompt(request.role))
        taken, reply = len(self.renderer.prompt_ids(opening)), self.settings.max_new_tokens
        if taken + reply > self.engine.max_length:
            raise AriaError(
                f"the rules of the game ({taken} tokens) and a reply of {reply} exceed the "
                f"context of {self.engine.max_length} of {self.model}: lower "
                "max_new_tokens in params.yaml, or use a model with a longer context"
            )

    def finished(self, episode_id: str) -> None:
        self.engine.finished(self._of_series(episode_id))

    def _of_series(self, episode_id: str) -> str:
        """The episode among all that the engine plays: series may call theirs by the same name."""
        return f"{self._place}/{episode_id}"

    async def close(self) -> None:
        await self.engine.close()


class TurnRenderer(Renderer):
    """A renderer that remembers: a dialogue comes back every turn, each time a little longer."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self.encode = lru_cache(REMEMBERED)(super().encode)  # type: ignore[method-assign]
        self._text = lru_cache(REMEMBERED)(super()._template)

    def _template(self, messages: Sequence[Message], generation: bool) -> str:
        return self._text(tuple(_Hashed(message) for message in messages), generation)


class _Hashed(dict[str, str]):
    """A message that can be a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self["role"], self["content"]))


@contextmanager
def shared_engines() -> Iterator[None]:
    """Within it a model with its adapter is loaded once, and one engine plays all its games."""
    global _shared
    _shared = {}
    try:
        yield
    finally:
        _shared = None
        give_back_memory()


def _engine_for(source: ModelSource, adapter: Path | None, pace: Pace) -> tuple[Engine, Renderer]:
    """The shared engine of a model within `shared_engines`, elsewhere one of its own."""
    if _shared is None:
        return _loaded(source, adapter, pace)
    key = (source, adapter, pace.precision, pace.in_flight, pace.cache_gib)
    if key not in _shared:
        _shared[key] = _loaded(source, adapter, pace)
    return _shared[key]


def _loaded(source: ModelSource, adapter: Path | None, pace: Pace) -> tuple[Engine, Renderer]:
    """A fresh engine and its renderer."""
    renderer = TurnRenderer(load_tokenizer(source))
    engine = Engine(
        load_for_play(source, adapter, pace.precision),
        renderer.end_ids(),
        slots=pace.in_flight,
        cache_bytes=int(pace.cache_gib * 2**30),
    )
    return engine, renderer


def policy_player(
    name: str,
    source: ModelSource,
    settings: PlaySettings,
    pace: Pace,
    *,
    adapter: Path | None,
    record_logprobs: bool,
) -> PolicyPlayer:
    """Load `source` (with `adapter`) and wrap it as a player.

    Raises:
        AriaError: the model or the adapter cannot be loaded.
    """
    engine, renderer = _engine_for(source, adapter, pace)
    return PolicyPlayer(name, str(source), engine, renderer, settings, adapter, record_logprobs)
