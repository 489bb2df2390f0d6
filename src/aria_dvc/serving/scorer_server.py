"""The reward model behind HTTP, for online training on other machines.

`aria serve-reward-model DIR --port 8037`, then
POST /score {"items": [{"messages": [{"role": ..., "content": ...}, ...]}]} -> {"scores": [...]}:
the credit of the last message of every item. POST /score_dialogues takes the same and answers
with a list per item, the credits of all its assistant messages from one pass, null for one that
is too long. What waits together shares a batch. POST /quality answers with the model's metrics on
held-out episodes (r2, r2_low, r2_high), by which online training decides whether to believe it.

Where the environment variable ARIA_SCORER_KEY holds a key, requests must carry it. What clients
take of memory, time and connections is bounded (servers/door.py); 429 and 503 mean: later.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.memory import is_out_of_memory
from aria_dvc.servers.keys import read_key
from aria_dvc.servers.metering import CONTENT_TYPE, Meter
from aria_dvc.servers.rejections import Rejection, full
from aria_dvc.serving.scorer_batches import Batcher, Score, Scores
from aria_dvc.serving.scorer_requests import read_chats
from aria_dvc.settings.machine import Precision

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from aria_dvc.learning.scorer import RewardScorer

logger = logging.getLogger(__name__)
KEY_VARIABLE = "ARIA_SCORER_KEY"
QUALITY = ("r2", "r2_low", "r2_high")
AT_ONCE = 16  # requests of one address that are being scored
SHORTEST = 16  # tokens, as in params.yaml
SCORE_S = 540.0  # less than the client's patience with one request
LOCAL = ("127.0.0.1", "::1", "localhost")
Answer = Callable[["Request"], Awaitable[Any]]
T = TypeVar("T")


def make_app(
    score: Score[Any],
    quality: Mapping[str, Any] | None = None,
    key: str = "",
    read: Callable[[bytearray], list[Any]] = read_chats,
    at_once: int | None = None,
    described: bool = False,
) -> Starlette:
    """The web application around a scoring function.

    Args:
        quality: the model's metrics; None: they are not told.
        key: what requests must carry, but those that tell of the server itself; "": nothing.
        read: what it makes of a body is what is scored.
        at_once: requests of one address that are being scored; None for AT_ONCE.
        described: whether it has /metrics, /openapi.json and /docs.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    batcher: Batcher[Any] = Batcher(score)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    limit = AT_ONCE if at_once is None else at_once
    scoring, meter = _Scoring(batcher, read, limit), Meter("aria")
    meter.gauges["waiting_dialogues"] = ("Dialogues not yet answered.", lambda: batcher.waiting)
    told = {name: (quality or {}).get(name) for name in QUALITY}
    answers: list[tuple[str, Answer, list[str]]] = [
        ("/score", scoring.of(_last), ["POST"]),
        ("/score_dialogues", scoring.of(list), ["POST"]),
    ]
    if quality is not None:
        answers.append(("/quality", _constant(told), ["GET", "POST"]))
    routes = [Route(path, _guarded(answer, key, meter), methods=m) for path, answer, m in answers]
    health = Route("/health", _guarded(_constant({"status": "ok"}), "", meter), methods=["GET"])
    more = _descriptions(meter) if described else []
    return Starlette(routes=[*routes, health, *more], lifespan=lifespan)


def _descriptions(meter: Meter) -> list[Route]:
    """What a server tells of itself."""
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    from aria_dvc.serving.scorer_requests import MAX_ITEMS
    from aria_dvc.serving.serve_api import page, specification

    document = specification(MAX_ITEMS)

    async def metrics(request: Request) -> Response:
        return Response(meter.text(), headers={"content-type": CONTENT_TYPE})

    async def openapi(request: Request) -> Response:
        return JSONResponse(document)

    async def docs(request: Request) -> Response:
        return HTMLResponse(page(document))

    shown = {"/metrics": metrics, "/openapi.json": openapi, "/docs": docs}
    return [Route(path, answer, methods=["GET"]) for path, answer in shown.items()]


def _guarded(
    answer: Answer, key: str, meter: Meter
) -> Callable[[Request], Awaitable[JSONResponse]]:
    """`answer` for those who have the key; what goes wrong is a line that tells no internals."""
    from starlette.responses import JSONResponse

    from aria_dvc.servers.door import authorise

    async def endpoint(request: Request) -> JSONResponse:
        started, items = time.monotonic(), 0
        try:
            authorise(request, key)
            found = await answer(request)
            items = len(found.get("scores", ()))
            told = JSONResponse(found)
        except Exception as error:
            no = _rejection(error)
            told = JSONResponse({"error": str(no)}, no.status, no.headers)
        meter.observe(request.url.path, told.status_code, time.monotonic() - started, items)
        return told

    return endpoint


def _rejection(error: Exception) -> Rejection:
    """What callers are told of `error`: of a model's or a template's only where to look."""
    if isinstance(error, Rejection):
        return error
    reference = secrets.token_hex(4)
    logger.warning("scoring failed, reference %s", reference, exc_info=error)
    where = f"(reference {reference} in the server's log)"
    if is_out_of_memory(error):
        return full(f"too little memory at the moment {where}")
    return Rejection(f"these items cannot be scored {where}")


def _constant(value: dict[str, Any]) -> Answer:
    async def answer(request: Request) -> dict[str, Any]:
        return value

    return answer


class _Scoring:
    """Requests for scores, those of one address no more than `at_once` at a time."""

    def __init__(
        self, batcher: Batcher[Any], read: Callable[[bytearray], list[Any]], at_once: int
    ) -> None:
        from aria_dvc.servers.door import Bodies

        self._batcher, self._bodies = batcher, Bodies()
        self._read, self._at_once = read, at_once
        self._busy: Counter[str] = Counter()

    def of(self, shown: Callable[[list[Scores]], list[Any]]) -> Answer:
        """An answer with what `shown` makes of the scores."""

        async def answer(request: Request) -> dict[str, list[Any]]:
            self._check_turn(request)  # before its body is read: to say no must cost little
            async with self._bodies.reading(request, self._read) as chats:
                with self._turn(request):
                    found = await _while_there(request, self._batcher.submit(chats))
            if not all(score is None or math.isfinite(score) for own in found for score in own):
                raise Rejection("the model scores with NaN or infinity: train it anew")
            return {"scores": shown(found)}

        return answer

    def _check_turn(self, request: Request) -> str:
        """The request's address; Rejection where as many of it as may be are being scored."""
        address = request.client.host if request.client else ""
        if self._busy[address] >= self._at_once:
            hint = (
                f"{self._at_once} requests of this address are being scored: wait for their answers"
            )
            raise full(hint, 429)
        return address

    @contextmanager
    def _turn(self, request: Request) -> Iterator[None]:
        address = self._check_turn(request)
        self._busy[address] += 1
        try:
            yield
        finally:
            self._busy[address] -= 1
            self._busy += Counter()  # forgets addresses without requests


async def _while_there(request: Request, work: Awaitable[T]) -> T:
    """The result of `work`, which is cancelled where the client goes away or it takes too long."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, timeout=SCORE_S, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            raise Rejection("the client went away", 400)
        raise full(f"no scores within {SCORE_S:g} s: send fewer items")
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _last(scores: list[Scores]) -> list[float]:
    """The last score of every chat; Rejection if there is none."""
    found = [own[-1] for own in scores]
    if None in found:
        raise Rejection(f"items[{found.index(None)}]: the action is too long to be scored")
    return [score for score in found if score is not None]


def add_scorer_parser(subparsers: Any) -> None:
    """Add `serve-reward-model` to the command line."""
    parser = subparsers.add_parser("serve-reward-model", help="score actions over HTTP")
    parser.add_argument("folder", help="a trained reward model, e.g. data/reward_model/adversarial")
    add_serving_options(parser)
    parser.set_defaults(run=serve)


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    """Add what `serve` and `serve-reward-model` share."""
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
    parser.add_argument(
        "--api-key-env",
        metavar="NAME",
        help="the environment variable that holds the key which clients must send; default: "
        f"{KEY_VARIABLE}, where it is set",
    )


def serve(args: argparse.Namespace) -> None:
    """Run the server until interrupted.

    Raises:
        AriaError: the folder holds no reward model, or the key is missing.
    """
    from aria_dvc.models.source import ModelSource

    key = key_of(args, "serve-reward-model")
    scorer = scorer_of(args)
    metrics = ModelSource(args.folder).folder / "metrics.json"
    app = make_app(scorer.score_chats, read_json(metrics) if metrics.is_file() else None, key)
    listen(app, args.host, args.port)


def listen(app: Starlette, host: str, port: int) -> None:
    """Serve at the address until interrupted, and say where.

    Raises AriaError where it cannot be listened on.
    """
    import uvicorn

    from aria_dvc.servers.door import BOUNDED

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        door = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AriaError(
            f"--host {host} --port {port}: cannot be listened on ({reason}): name another one"
        ) from None
    with door:
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        print(f"listening on http://{shown}:{door.getsockname()[1]}", flush=True)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, **BOUNDED)).run(sockets=[door])


def scorer_of(args: argparse.Namespace) -> RewardScorer:
    """The reward model that the options name.

    Raises AriaError where the folder holds none.
    """
    from aria_dvc.learning.reward_head import trained_length
    from aria_dvc.learning.scorer import RewardScorer
    from aria_dvc.models.source import ModelSource

    if args.max_tokens is not None and args.max_tokens < SHORTEST:
        raise AriaError(f"--max-tokens: {args.max_tokens} is below {SHORTEST}")
    source = ModelSource(args.folder)
    length = args.max_tokens or trained_length(source.folder)
    return RewardScorer(
        source,
        ModelSource(args.base) if args.base else None,
        max_tokens=length,
        tokens_per_batch=length,
        precision=args.precision,
    )


def key_of(args: argparse.Namespace, command: str) -> str:
    """The key that clients must send; "" for none, which is said where others could come in."""
    named = args.api_key_env
    variable = named or (KEY_VARIABLE if os.environ.get(KEY_VARIABLE) else None)
    key = read_key(variable, "--api-key-env" if named else KEY_VARIABLE)
    if not key and args.host not in LOCAL:
        what = f"without a key everybody who reaches {args.host}:{args.port} may use it"
        logger.warning("%s: %s: set %s", command, what, KEY_VARIABLE)
    return key
