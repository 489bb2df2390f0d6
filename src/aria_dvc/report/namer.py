"""Names of intentions by a language model behind an endpoint, in place of their terms.

One short request an intention, with its terms and its most central utterances. Answers are kept in
the cache, so a report that is drawn again has the same names, and a table that grew asks for what
is new.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from aria_dvc.cache.entries import NAMES_FILE
from aria_dvc.cache.folder import LAYOUT, cache_folder
from aria_dvc.cache.lines import CheckedLines
from aria_dvc.cache.locks import FolderLock
from aria_dvc.errors import AriaError
from aria_dvc.report.names import shortened, told_apart
from aria_dvc.servers.client import NoAnswer, Refusal, Server, in_own_loop, with_options
from aria_dvc.servers.completions import PATH, read_completion
from aria_dvc.settings.machine import Endpoint
from aria_dvc.shown import printable

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)
LONGEST_NAME = 60  # characters
LONGEST_EXAMPLE = 300
MOST_TOKENS = 64  # a model that thinks aloud wants more: `options` of the endpoint
THOUGHT = "</think>"
MARKS = " \"'`*_.#-–—“”‘’"
SYSTEM = (
    "You name kinds of utterances. You are shown a few utterances from different dialogues that "
    "mean about the same, and words that set them apart from all others. Say in two to six words "
    "what a speaker does by them, such as: offers an even split, asks whether it is alive, turns "
    "down a low price. Answer with these words alone."
)


def named_by_model(table: pd.DataFrame, name: str, endpoint: Endpoint) -> pd.DataFrame:
    """A table of intentions with the names that the model of `endpoints.<name>` gives them.

    An intention that it answers nothing for keeps its terms, and a warning counts them.

    Args:
        table: of `intention_table`; its columns name and examples are what the model sees.

    Raises:
        AriaError: the endpoint's key is missing, it stays away or refuses, or another process
            asks for the same names.
    """
    shown = [_shown(*row) for row in zip(table["name"], table["examples"], strict=True)]
    answers = _answers(shown, name, endpoint)
    nameless = [text for text in shown if not answers[text]]
    if nameless:
        logger.warning(
            "%s has no name for %d of %d intentions, which keep their terms: see what it answers, "
            "or raise max_tokens in endpoints.%s.options",
            *(endpoint.model, len(nameless), len(shown), name),
        )
    named = [answers[text] or terms for text, terms in zip(shown, table["name"], strict=True)]
    numbers = table["intention"].tolist()
    names = told_apart(dict(zip(numbers, named, strict=True)))
    return table.assign(name=[names[number] for number in numbers])


def _shown(terms: str, examples: Sequence[str]) -> str:
    lines = [f"- {shortened(text, LONGEST_EXAMPLE)}" for text in examples]
    return "\n".join(["Utterances:", *lines, f"Words: {terms}"])


def _answers(shown: Sequence[str], name: str, endpoint: Endpoint) -> dict[str, str]:
    """What is shown -> the name, "" for none: from the cache, the rest from the server."""
    folder = cache_folder() / "names" / _key(endpoint)
    kept = CheckedLines(folder / NAMES_FILE)
    with FolderLock(folder).held():
        found = dict(kept.mend("their names are asked for again"))
        missing = [text for text in dict.fromkeys(shown) if text not in found]
        in_own_loop(_ask(missing, name, endpoint, kept))
        return dict(kept.read())


def _key(endpoint: Endpoint) -> str:
    """Of everything that answers; 24 hexadecimal digits."""
    asked = [LAYOUT, endpoint.base_url, endpoint.model, endpoint.options, SYSTEM, MOST_TOKENS]
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]


async def _ask(shown: Sequence[str], name: str, endpoint: Endpoint, kept: CheckedLines) -> None:
    """Add [shown, name] to `kept` the moment that each answer is there."""
    server = Server.of(name, endpoint)

    async def one(text: str) -> None:
        answer = await server.post(PATH, lambda attempt: _body(text, endpoint), _read)
        kept.add([text, server.redact(answer)])

    try:
        await asyncio.gather(*map(one, shown))
    except (NoAnswer, Refusal) as error:
        raise AriaError(
            f"endpoint {name} gave no names ({error}): check that the server runs and serves "
            f"{endpoint.model}, or set report.names: terms"
        ) from None
    finally:
        await server.close()


def _body(text: str, endpoint: Endpoint) -> dict[str, Any]:
    body = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
        "temperature": 0.0,
        "max_tokens": MOST_TOKENS,
    }
    return with_options(body, endpoint.options)


def _read(content: bytes) -> str:
    """The first line of an answer that says something, without thoughts, quotes and marks."""
    text = read_completion(content).text.rpartition(THOUGHT)[2]
    lines = [printable(" ".join(line.split())).strip(MARKS) for line in text.splitlines()]
    first = next(filter(None, lines), "")
    return shortened(first, LONGEST_NAME)
