"""The reward model behind HTTP, for online training on other machines.

`python -m aria_dvc serve-reward-model DIR --port 8037`, then
POST /score {"items": [{"messages": [{"role": ..., "content": ...}, ...]}]} -> {"scores": [...]}:
the credit of the last message of every item. POST /score_dialogues takes the same and answers
with a list per item, the credits of all its assistant messages from one pass, null for one that
is too long. Requests that arrive together share a batch.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aria_dvc.chat import Message
from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse

Chat = list[Message]
Scores = list[float | None]  # of a chat's assistant messages; None: too long to be scored
Score = Callable[[Sequence[Chat]], list[Scores]]
MAX_BODY_BYTES = 8 << 20
ROLES = ("system", "user", "assistant")


class BadRequest(Exception):
    """A request that the sender must mend. `status` is its HTTP code."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class Batcher:
    """Collects requests for a moment and scores them together, in a thread of its own.

    Args:
        max_items: most chats in one batch.
        wait_s: how long the first request of a batch waits for company.
    """

    def __init__(self, score: Score, max_items: int = 64, wait_s: float = 0.01) -> None:
        self._score = score
        self._max_items = max_items
        self._wait_s = wait_s
        self._queue: asyncio.Queue[tuple[list[Chat], asyncio.Future[list[Scores]]]] = (
            asyncio.Queue()
        )

    async def submit(self, chats: list[Chat]) -> list[Scores]:
        """The scores of `chats`, in their order."""
        future: asyncio.Future[list[Scores]] = asyncio.get_running_loop().create_future()
        await self._queue.put((chats, future))
        return await future

    async def run(self) -> None:
        """Serve batches until cancelled."""
        while True:
            waiting = [await self._queue.get()]
            await asyncio.sleep(self._wait_s)
            size = len(waiting[0][0])
            while not self._queue.empty() and size < self._max_items:
                waiting.append(self._queue.get_nowait())
                size += len(waiting[-1][0])
            await self._answer(waiting)

    async def _answer(self, waiting: list[tuple[list[Chat], asyncio.Future[list[Scores]]]]) -> None:
        chats = [chat for request, _ in waiting for chat in request]
        try:
            scores = await asyncio.to_thread(self._score, chats)
        except Exception as error:
            if len(waiting) > 1:  # one sender's mistake must not fail the others
                for alone in waiting:
                    await self._answer([alone])
            elif not waiting[0][1].done():
                waiting[0][1].set_exception(error)
            return
        for request, future in waiting:
            own, scores = scores[: len(request)], scores[len(request) :]
            if not future.done():
                future.set_result(own)


def make_app(score: Score) -> Starlette:
    """The web application around a scoring function."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    batcher = Batcher(score)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    routes = [
        Route("/score", _score_endpoint(batcher, _last), methods=["POST"]),
        Route("/score_dialogues", _score_endpoint(batcher, list), methods=["POST"]),
        Route("/health", _health, methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


async def _health(request: Request) -> JSONResponse:
    from starlette.responses import JSONResponse

    return JSONResponse({"status": "ok"})


def _last(scores: list[Scores]) -> list[float]:
    """The last score of every chat.

    Raises:
        BadRequest: there is none.
    """
    found = [own[-1] for own in scores]
    if None in found:
        raise BadRequest(f"items[{found.index(None)}]: the action is too long to be scored")
    return [score for score in found if score is not None]


def _score_endpoint(
    batcher: Batcher, shown: Callable[[list[Scores]], list[Any]]
) -> Callable[[Request], Any]:
    from starlette.responses import JSONResponse

    async def endpoint(request: Request) -> JSONResponse:
        try:
            chats = read_chats(await _body(request))
            found = await batcher.submit(chats) if chats else []
            if not all(score is None or math.isfinite(score) for own in found for score in own):
                raise BadRequest("the model scores with NaN or infinity: train it anew")
            scores = shown(found)
        except BadRequest as error:
            return JSONResponse({"error": str(error)}, error.status)
        except AriaError as error:
            return JSONResponse({"error": str(error)}, 422)
        except Exception as error:  # whatever a model or its template does, callers get a line
            line = " ".join(str(error).split())
            return JSONResponse({"error": f"scoring failed: {type(error).__name__} {line}"}, 422)
        return JSONResponse({"scores": scores})

    return endpoint


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BadRequest(
                f"the body is larger than {MAX_BODY_BYTES} bytes: send fewer items", 413
            )
    return bytes(body)


def read_chats(body: bytes) -> list[Chat]:
    """The chats of a request.

    Raises:
        BadRequest: not JSON (400), or not of the expected shape (422).
    """
    import orjson

    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", 400) from None
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        raise BadRequest('the body must be {"items": [{"messages": [...]}, ...]}')
    return [_read_chat(item, f"items[{i}]") for i, item in enumerate(document["items"])]


def _read_chat(item: Any, where: str) -> Chat:
    messages = item.get("messages") if isinstance(item, dict) else None
    if not isinstance(messages, list) or not messages:
        raise BadRequest(f"{where}.messages must be a list of at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise BadRequest(f"{where}.messages[{index}].role must be one of {', '.join(ROLES)}")
        if not isinstance(message.get("content"), str):
            raise BadRequest(f"{where}.messages[{index}].content must be a string")
    if messages[-1]["role"] != "assistant":
        raise BadRequest(f"{where}.messages must end with the assistant's, the action to score")
    return [{"role": m["role"], "content": m["content"]} for m in messages]


def add_scorer_parser(subparsers: Any) -> None:
    """Add `serve-reward-model` to the command line."""
    parser = subparsers.add_parser("serve-reward-model", help="score actions over HTTP")
    parser.add_argument("folder", help="a trained reward model, e.g. data/reward_model/adversarial")
    parser.add_argument("--base", help="backbone under the adapter; default: what it names")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8037, help="port to listen on")
    parser.add_argument("--max-tokens", type=int, default=4096, help="longest history + action")
    parser.set_defaults(run=serve)


def serve(args: argparse.Namespace) -> None:
    """Run the server until interrupted."""
    import uvicorn

    from aria_dvc.learning.scorer import RewardScorer
    from aria_dvc.models.source import ModelSource

    scorer = RewardScorer(
        ModelSource(args.folder),
        ModelSource(args.base) if args.base else None,
        max_tokens=args.max_tokens,
        tokens_per_batch=args.max_tokens,
        precision="auto",
    )
    uvicorn.run(make_app(scorer.score_chats), host=args.host, port=args.port, log_level="warning")
