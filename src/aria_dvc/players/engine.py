"""Text generation for many dialogues at once, each of which comes back turn after turn.

A reply starts the moment it is asked for and joins whatever else is being decoded. Every forward
pass carries one token of each reply under way plus up to `prompt_tokens` tokens of prompts; what
a dialogue said before stays in the cache until it is over, and each reply has its own seed.

Tokens per CPU second over transformers' continuous batching (benchmarks/engine.py, SmolLM2-135M on
a CPU): 2.8 with 64 games in flight, 1.6 with 16. Without flash attention that one attends to all
games' keys under a mask, sorts the vocabulary for top_p, and has one seed for all requests.

Launch: `engine = Engine(model, end_ids, slots=64, cache_bytes=3 << 30)`, then
`await engine.generate(dialogue, ids, Sampling(...))`.
"""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

from aria_dvc.errors import AriaError
from aria_dvc.models.attention import attends_plainly
from aria_dvc.players.allocator import DialogueKey, SlotAllocator, TokenSequence
from aria_dvc.players.base import PlayerFailure
from aria_dvc.players.sampling import Sampling, choose, token_logprobs
from aria_dvc.players.slots import ATTENTION, CacheShape, plan_step, slot_attention

AttentionInterface.register(ATTENTION, slot_attention)

QUIET_ROUNDS = 3  # turns of the event loop without a new request before a step starts
# One step at a time in the whole process: two models at once would fight for the cores.
_STEP_LOCKS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
    weakref.WeakKeyDictionary()
)


@dataclass(frozen=True)
class Generation:
    """Generated token ids (with the end-of-turn token, if it came) and what they cost.

    logprobs are at temperature 1 over the whole vocabulary, whatever the sampling settings.
    prompt_tokens counts the whole prompt, computed_tokens the part that was not in the cache.
    """

    token_ids: list[int]
    logprobs: list[float] | None
    prompt_tokens: int
    computed_tokens: int


class _Row(TokenSequence):
    """One reply under way. `ids` is the prompt followed by what is generated."""

    def __init__(
        self,
        dialogue: DialogueKey,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        future: asyncio.Future[Generation],
    ) -> None:
        super().__init__(dialogue, list(prompt_ids), len(prompt_ids) + sampling.max_new_tokens)
        self.sampling = sampling
        self.future = future
        self.draws = random.Random(sampling.seed)
        self.prompt_tokens = len(prompt_ids)
        self.reused = 0
        self.logprobs: list[float] = []

    @property
    def single(self) -> bool:
        """Whether one token is left to compute before the next can be chosen."""
        return self.cached == len(self.ids) - 1


class Engine:
    """A causal language model that answers many dialogues at once, with one cache slot each.

    Args:
        model: a transformers causal model (PEFT adapters may be on it) in evaluation mode.
        end_ids: tokens that end a reply.
        slots: games expected at once; on a GPU the cache starts with that many slots.
        cache_bytes: upper bound of the cache; idle dialogues are forgotten to stay below it.
        prompt_tokens: prompt tokens computed in one step besides the replies under way.

    Raises:
        AriaError: the model's attention cannot be driven slot by slot.
    """

    def __init__(
        self,
        model: Any,
        end_ids: Sequence[int],
        *,
        slots: int,
        cache_bytes: int,
        prompt_tokens: int = 512,
    ) -> None:
        check_attention(model)
        self.model = model
        self.end_ids = frozenset(end_ids)
        self.prompt_tokens = prompt_tokens
        self.max_length = model.config.get_text_config().max_position_embeddings
        shape = CacheShape.of(model)
        self.allocator = SlotAllocator(shape, slots, cache_bytes // shape.token_bytes)
        self._step = 0
        self._waiting: list[_Row] = []
        self._rows: list[_Row] = []
        self._over: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def generate(
        self, dialogue: DialogueKey, prompt_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """Continue `prompt_ids`; what the dialogue's slot already holds of it is not recomputed.

        Raises:
            PlayerFailure: "context_full", the prompt and reply do not fit the model.
            AriaError: they do not fit the cache.
        """
        length = len(prompt_ids) + sampling.max_new_tokens
        asked = f"a prompt of {len(prompt_ids)} tokens and a reply of {sampling.max_new_tokens}"
        if length > self.max_length:
            raise PlayerFailure(
                "context_full", f"{asked} exceed the model's context of {self.max_length}"
            )
        if length > self.allocator.max_tokens:
            raise AriaError(
                f"{asked} exceed the {self.allocator.max_tokens} tokens that the cache holds: "
                "raise pace.cache_gib or lower max_new_tokens in params.yaml"
            )
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Row(dialogue, prompt_ids, sampling, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await future

    def finished(self, episode_id: str) -> None:
        """Free the slots of an episode that is over (their contents stay for shared prefixes)."""
        self._over.append(episode_id)

    async def close(self) -> None:
        """Give up what is under way, after the step that runs now, and free the cache."""
        for row in (*self._rows, *self._waiting):
            row.future.cancel()
        if self._task is not None:
            await self._task
        self._task, self._rows, self._waiting = None, [], []
        self.allocator.clear()

    async def _run(self) -> None:
        """Step until nothing is asked any more.

        A step holds up the event loop, and with it answers of servers for a tenth of a second. In
        a thread of its own it would be slower than that: OpenMP keeps threads for every thread
        that ever computed, and puts them to sleep between operations once there are more of them
        than cores.
        """
        lock = _STEP_LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        try:
            while self._rows or self._waiting:
                async with lock:
                    await self._settle()
                    self._take_in()
                    for row in self._advance():
                        self._deliver(row)
                await asyncio.sleep(0)
        except Exception as error:
            for row in (*self._rows, *self._waiting):
                if not row.future.done():
                    row.future.set_exception(error)
            self._rows, self._waiting = [], []

    async def _settle(self) -> None:
        """Let every game that was just answered ask again.

        So the schedule is the same in every run in which all players are in process.
        """
        quiet, seen = 0, len(self._waiting)
        while quiet < QUIET_ROUNDS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == seen else 0
            seen = len(self._waiting)

    def _take_in(self) -> None:
        self._rows = [row for row in self._rows if not row.future.done()]
        self._waiting = [row for row in self._waiting if not row.future.done()]
        self.allocator.leave(self._over)
        self._over = []

    def _deliver(self, row: _Row) -> None:
        if row.future.done():
            return
        generation = Generation(
            token_ids=row.ids[row.prompt_tokens :],
            logprobs=row.logprobs if row.sampling.logprobs else None,
            prompt_tokens=row.prompt_tokens,
            computed_tokens=row.prompt_tokens - row.reused,
        )
        row.future.set_result(generation)

    @torch.inference_mode()
    def _advance(self) -> list[_Row]:
        """One forward pass; returns the rows that are done."""
        self._step += 1
        self._admit()
        singles = [row for row in self._rows if row.single]
        chunks = self._prompt_chunks()
        if not singles and not chunks:
            return []
        logits, ready = self._forward(singles, chunks)
        return self._extend(ready, logits) if ready else []

    def _admit(self) -> None:
        """Give waiting rows a slot, in the order in which they came, as far as slots go.

        No more than this step can compute: who comes later finds a shared beginning computed.
        """
        asked = [len(row.ids) - row.cached for row in self._rows if not row.single]
        room = self.prompt_tokens - sum(asked)
        while self._waiting and room > 0 and self.allocator.place(self._waiting[0], self._rows):
            row = self._waiting.pop(0)
            row.reused = row.cached
            room -= len(row.ids) - row.cached
            self._rows.append(row)

    def _prompt_chunks(self) -> list[tuple[_Row, int]]:
        """Rows whose prompt is not computed yet, and up to where to compute it in this step."""
        room, chunks = self.prompt_tokens, []
        for row in self._rows:
            if row.single or room <= 0:
                continue
            end = min(len(row.ids), row.cached + room)
            room -= end - row.cached
            chunks.append((row, end))
        return chunks

    def _forward(
        self, singles: list[_Row], chunks: list[tuple[_Row, int]]
    ) -> tuple[torch.Tensor, list[_Row]]:
        """Float32 logits (n, vocabulary) of the n rows that can now choose their next token."""
        plan = plan_step(
            self.allocator.cache,
            [(row.slot, row.cached) for row in singles],
            [(row.slot, row.cached, end) for row, end in chunks],
        )
        ids, last = [row.ids[-1] for row in singles], list(range(len(singles)))
        ready = list(singles)
        for row, end in chunks:
            ids += row.ids[row.cached : end]
            if end == len(row.ids):
                last.append(len(ids) - 1)
                ready.append(row)
        device = self.allocator.cache.shape.device
        with _attention_by_slots(self.model):
            output = self.model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=plan.positions[None],
                use_cache=False,
                logits_to_keep=torch.tensor(last, dtype=torch.long, device=device),
                plan=plan,
            )
        for row, end in [*((row, len(row.ids)) for row in singles), *chunks]:
            self.allocator.note(row, end, self._step)
        return output.logits[0].float(), ready

    def _extend(self, rows: list[_Row], logits: torch.Tensor) -> list[_Row]:
        """Choose each row's next token; returns the rows that ended."""
        tokens = choose(
            logits,
            [row.sampling.temperature for row in rows],
            [row.sampling.top_p for row in rows],
            [row.draws.random() for row in rows],
        )
        if any(row.sampling.logprobs for row in rows):
            scores = token_logprobs(logits, tokens).tolist()
            for row, score in zip(rows, scores, strict=True):
                row.logprobs.append(score)
        ended = []
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.ids.append(token)
            full = len(row.ids) - row.prompt_tokens >= row.sampling.max_new_tokens
            if full or token in self.end_ids:
                ended.append(row)
        gone = set(ended)
        self._rows = [row for row in self._rows if row not in gone]
        return ended


def check_attention(model: Any) -> None:
    """Raise AriaError unless every layer of `model` is plain causal attention that can be driven
    by an attention function of ours."""
    if not attends_plainly(model):
        kind = model.config.get_text_config().model_type
        raise AriaError(
            f"a model of type {kind} cannot play in process (it needs full causal "
            "attention in every layer): serve it with vLLM and use the player endpoint:<name>"
        )


@contextmanager
def _attention_by_slots(model: Any) -> Iterator[None]:
    """Let attention go through the slots for one pass, so that others may use the model too."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before
