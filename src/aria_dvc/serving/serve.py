"""`aria serve DIR`: the credit of whole dialogues over HTTP, by a fitted credit or a reward model.

POST /score_dialogues {"items": [{"messages": [...], "agent": "alice"}]} answers
{"scores": [[...], ...]}, one credit for every assistant message of every item; /score has the last
one of each. Messages are as agents write them (tool calls, parts, names). Bounds, key and batches
are those of scorer_server.py; /openapi.json, /docs, /health and /metrics tell about the server.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.errors import AriaError
from aria_dvc.servers.rejections import Rejection
from aria_dvc.serving.scorer_batches import Scores
from aria_dvc.serving.scorer_requests import read_chats, read_items
from aria_dvc.serving.scorer_server import (
    add_serving_options,
    key_of,
    listen,
    make_app,
    scorer_of,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from aria_dvc.credit.fitted import FittedCredit
    from aria_dvc.records.episodes import Episode

USAGE = """\
Answers POST /score_dialogues with a credit for every assistant message of a dialogue, by what `aria
fit` made or by a reward model's folder. /docs, /openapi.json, /health and /metrics tell about the
server; the first line that it writes says where it listens.

  aria fit games.json --out fitted/
  aria serve fitted/
"""
AT_ONCE = 64  # requests of one address that are being scored
MAX_MESSAGES = 8192  # in one request


def add_serve_parser(subparsers: Any) -> None:
    """Add the subcommand `serve`; its parsed arguments carry the function to call as `run`."""
    about = "credits of whole dialogues over HTTP, from what `aria fit` made or a reward model"
    parser = subparsers.add_parser(
        "serve",
        help=about,
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="what `aria fit` wrote, or a reward model")
    limit = "requests of one address that are scored at the same time; 429 above"
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help=f"{limit} (%(default)s)")
    add_serving_options(parser)
    parser.set_defaults(run=run_serve)


def run_serve(args: argparse.Namespace) -> None:
    """Run the server until interrupted.

    Raises:
        AriaError: the folder holds neither a fit nor a reward model, options that have no effect
            on what it holds, or the key is missing.
    """
    from aria_dvc.credit.fitted import is_fit, load_fit
    from aria_dvc.learning.reward_head import SCALE_FILE

    if args.at_once < 1:
        raise AriaError(f"--at-once {args.at_once}: at least one request must be scored at a time")
    key = key_of(args, "serve")
    if is_fit(args.folder):
        _check_options(args)
        app = credit_app(load_fit(args.folder), key, args.at_once)
    elif (args.folder / SCALE_FILE).is_file():
        score = scorer_of(args).score_chats
        app = make_app(score, None, key, read_chats, args.at_once, described=True)
    else:
        raise AriaError(
            f"{args.folder}: neither a fitted credit nor a reward model: make a fit by "
            "`aria fit LOG --out DIR`"
        )
    listen(app, args.host, args.port)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse for a fitted credit what decides how a reward model is loaded."""
    for option, default in (("base", None), ("max_tokens", None), ("precision", "auto")):
        if getattr(args, option) != default:
            raise AriaError(
                f"--{option.replace('_', '-')} is for a reward model, and {args.folder} holds a "
                "fitted credit: leave it out"
            )


def credit_app(fitted: FittedCredit, key: str = "", at_once: int = AT_ONCE) -> Starlette:
    """The web application around a fitted credit."""

    def read(body: bytes | bytearray) -> list[tuple[str, Episode]]:
        return read_dialogues(body, fitted)

    def score(chats: Sequence[tuple[str, Episode]]) -> list[Scores]:
        return fitted.score(chats)

    return make_app(score, None, key, read, at_once, described=True)


def read_dialogues(body: bytes | bytearray, fitted: FittedCredit) -> list[tuple[str, Episode]]:
    """(agent, dialogue) of every item of a request.

    Raises:
        Rejection: as `read_items`; a message that cannot be read, no agent, too many messages.
    """
    items = read_items(body)
    said = [item.get("messages") if isinstance(item, dict) else None for item in items]
    total = sum(len(messages) for messages in said if isinstance(messages, list))
    if total > MAX_MESSAGES:
        raise Rejection(f"{total} messages, over {MAX_MESSAGES}: send fewer items", 413)
    return [_dialogue(item, f"items[{place}]", fitted) for place, item in enumerate(items)]


def _dialogue(item: Any, where: str, fitted: FittedCredit) -> tuple[str, Episode]:
    from aria_dvc.records.readers import read_entries
    from aria_dvc.records.reading import Reading

    messages = item.get("messages") if isinstance(item, dict) else None
    if not isinstance(messages, list) or not messages:
        raise Rejection(f"{where}.messages must be a list of at least one message")
    named = item.get("agent")
    if not isinstance(named, str | None):
        raise Rejection(f"{where}.agent must be a string: a fitted role")
    try:
        agent = fitted.agent(named)
        how = Reading(need_rewards=False, warn=False)
        (episode,) = read_entries([{"messages": messages}], how)
    except AriaError as problem:
        raise Rejection(f"{where}: {problem}") from None
    roles = {utterance.role for utterance in fitted.renamed(episode, agent).utterances}
    if agent not in roles:
        raise Rejection(f"{where}: nothing is said by the assistant ({agent})")
    return agent, episode
