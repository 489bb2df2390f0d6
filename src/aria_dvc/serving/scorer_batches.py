"""Chats of many requests, scored together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from aria_dvc.servers.rejections import full

Scores = list[float | None]  # of a chat's assistant messages; None: too long to be scored
C = TypeVar("C")  # a chat, in whatever form it is scored
Score = Callable[[Sequence[C]], list[Scores]]
Waiting = tuple[C, asyncio.Future[Scores]]
MAX_BATCH = 64  # chats that are scored together
MAX_WAITING = 1024  # chats that are not yet answered; four requests of the largest size
WAIT_S = 0.01  # how long the first chat of a batch waits for company


class Batcher(Generic[C]):
    """Collects chats for a moment and scores them together, in a thread of its own."""

    def __init__(self, score: Score[C]) -> None:
        self._score = score
        self._queue: asyncio.Queue[Waiting[C]] = asyncio.Queue()
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Chats that are not yet answered."""
        return self._waiting

    async def submit(self, chats: Sequence[C]) -> list[Scores]:
        """The scores of `chats`, in their order; cancelled, what is not yet scored never will be.

        Raises:
            Rejection: 503, too many wait.
        """
        if self._waiting + len(chats) > MAX_WAITING:
            raise full("too much waits to be scored: send it again")
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Scores]] = [loop.create_future() for _ in chats]
        self._waiting += len(chats)
        try:
            for waiting in zip(chats, futures, strict=True):
                self._queue.put_nowait(waiting)
            return await asyncio.gather(*futures)
        finally:
            self._waiting -= len(chats)
            for future in futures:
                future.cancel()

    async def run(self) -> None:
        """Serve batches until cancelled."""
        while True:
            batch = [await self._queue.get()]
            await asyncio.sleep(WAIT_S)
            while not self._queue.empty() and len(batch) < MAX_BATCH:
                batch.append(self._queue.get_nowait())
            await self._answer(batch)

    async def _answer(self, batch: Sequence[Waiting[C]]) -> None:
        batch = [(chat, future) for chat, future in batch if not future.done()]
        if not batch:
            return
        try:
            scores = await asyncio.to_thread(self._score, [chat for chat, _ in batch])
            answered = list(zip(batch, scores, strict=True))
        except Exception as error:
            if len(batch) > 1:  # one sender's mistake must not fail the others
                for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                    await self._answer(half)
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, future), own in answered:
            if not future.done():
                future.set_result(own)
