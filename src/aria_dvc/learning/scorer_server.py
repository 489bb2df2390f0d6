"""The reward model behind HTTP, for online training on other machines.

`aria serve-reward-model DIR --port 8037`, then
POST /score {"items": [{"messages": [{"role": ..., "content": ...}, ...]}]} -> {"scores": [...]}:
the credit of the last message of every item. POST /score_dialogues takes the same and answers
with a list per item, the credits of all its assistant messages from one pass, null for one that
is too long. What waits together shares a batch. POST /quality answers with the model's metrics on
held-out episodes (r2, r2_low, r2_high), by which online training decides whether to believe it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, get_args

import orjson

from aria_dvc.chat import Message
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.settings import Precision

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse

logger = logging.getLogger(__name__)
Chat = list[Message]
Scores = list[float | None]  # of a chat's assistant messages; None: too long to be scored
Score = Callable[[Sequence[Chat]], list[Scores]]
Waiting = tuple[Chat, asyncio.Future[Scores]]
ROLES = ("system", "user", "assistant")
QUALITY = ("r2", "r2_low", "r2_high")
MAX_BODY_BYTES = 8 << 20
MAX_ITEMS = 256  # in one request
MAX_BATCH = 64  # chats that are scored together
BODY_S = 60.0  # how long a body may take to arrive
WAIT_S = 0.01  # how long the first chat of a batch waits for company


class BadRequest(Exception):
    """A request that the sender must mend. `status` is its HTTP code."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class Batcher:
    """Collects chats for a moment and scores them together, in a thread of its own."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._queue: asyncio.Queue[Waiting] = asyncio.Queue()

    async def submit(self, chats: Sequence[Chat]) -> list[Scores]:
        """The scores of `chats`, in their order."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Scores]] = [loop.create_future() for _ in chats]
        for waiting in zip(chats, futures, strict=True):
            self._queue.put_nowait(waiting)
        return await asyncio.gather(*futures)

    async def run(self) -> None:
        """Serve batches until cancelled."""
        while True:
            batch = [await self._queue.get()]
            await asyncio.sleep(WAIT_S)
            while not self._queue.empty() and len(batch) < MAX_BATCH:
                batch.append(self._queue.get_nowait())
            await self._answer(batch)

    async def _answer(self, batch: Sequence[Waiting]) -> None:
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


def make_app(score: Score, quality: Mapping[str, Any] | None = None) -> Starlette:
    """The web application around a scoring function.

    quality: the model's metrics; None: they are not told.
    """
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
    if quality is not None:
        told = {name: quality.get(name) for name in QUALITY}
        routes.append(Route("/quality", _constant(told), methods=["GET", "POST"]))
    return Starlette(routes=routes, lifespan=lifespan)


def _constant(value: dict[str, Any]) -> Callable[[Request], Any]:
    from starlette.responses import JSONResponse

    async def endpoint(request: Request) -> JSONResponse:
        return JSONResponse(value)

    return endpoint


async def _health(request: Request) -> JSONResponse:
    from starlette.responses import JSONResponse

    return JSONResponse({"status": "ok"})


def _last(scores: list[Scores]) -> list[float]:
    """The last score of every chat; BadRequest if there is none."""
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
            found = await batcher.submit(read_chats(await _body(request)))
            if not all(score is None or math.isfinite(score) for own in found for score in own):
                raise BadRequest("the model scores with NaN or infinity: train it anew")
            return JSONResponse({"scores": shown(found)})
        except BadRequest as error:
            return JSONResponse({"error": str(error)}, error.status)
        except Exception as error:  # whatever a model or its template does, callers get a line
            logger.warning("scoring failed", exc_info=error)
            what = (
                "" if isinstance(error, AriaError) else f"scoring failed: {type(error).__name__} "
            )
            return JSONResponse({"error": what + _without_paths(str(error))}, 422)

    return endpoint


async def _body(request: Request) -> bytes:
    """The body, read no further and waited for no longer than the limits."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    limit = f"{MAX_BODY_BYTES} bytes"
                    raise BadRequest(f"the body is larger than {limit}: send fewer items", 413)
    except TimeoutError:
        raise BadRequest(f"the body did not arrive within {BODY_S:g} s", 408) from None
    return bytes(body)


def read_chats(body: bytes) -> list[Chat]:
    """The chats of a request.

    Raises:
        BadRequest: not JSON (400), or not of the expected shape (422).
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", 400) from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        raise BadRequest(
            f'the body must be {{"items": [{{"messages": [...]}}, ...]}}, at most {MAX_ITEMS} items'
        )
    return [_read_chat(item, f"items[{i}]") for i, item in enumerate(items)]


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


def _without_paths(text: str) -> str:
    """`text` in one line; the files of this machine are nobody else's business."""
    return re.sub(r"\S*[/\\]\S*", "<path>", " ".join(text.split()))


def add_scorer_parser(subparsers: Any) -> None:
    """Add `serve-reward-model` to the command line."""
    parser = subparsers.add_parser("serve-reward-model", help="score actions over HTTP")
    parser.add_argument("folder", help="a trained reward model, e.g. data/reward_model/adversarial")
    parser.add_argument("--base", help="backbone under the adapter; default: what it names")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8037, help="port to listen on")
    parser.add_argument(
        "--max-tokens",
        type=int,
        help="longest history + action, and tokens in one pass; default: as it was trained",
    )
    parser.add_argument(
        "--precision", default="auto", choices=get_args(Precision), help="see pace in params.yaml"
    )
    parser.set_defaults(run=serve)


def serve(args: argparse.Namespace) -> None:
    """Run the server until interrupted."""
    import uvicorn

    from aria_dvc.learning.reward_head import trained_length
    from aria_dvc.learning.scorer import RewardScorer
    from aria_dvc.models.source import ModelSource

    source = ModelSource(args.folder)
    length = args.max_tokens or trained_length(source.folder)
    scorer = RewardScorer(
        source,
        ModelSource(args.base) if args.base else None,
        max_tokens=length,
        tokens_per_batch=length,
        precision=args.precision,
    )
    metrics = source.folder / "metrics.json"
    app = make_app(scorer.score_chats, read_json(metrics) if metrics.is_file() else None)
    uvicorn.run(app, host=args.host, port=args.port, log_level="warning")
