"""Credits of chats at run time, and their places among the tokens of responses."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import SYSTEM
from aria_dvc.records.formats.base import BadEntry
from aria_dvc.records.formats.openai import (
    ASSISTANT,
    EMPTY,
    call_text,
    is_special,
    speaker,
    words,
)
from aria_dvc.records.oddities import is_unicode, is_visible
from aria_dvc.servers.faults import NoAnswer, Refusal

if TYPE_CHECKING:
    import torch

    from aria_dvc.records.episodes import Episode

Messages = list[dict[str, Any]]
Credits = Callable[[Sequence[Messages]], list[list[float]]]
AT_ONCE = 16  # chats in one request: far below what a server takes
OF_THE_CHATS = (400, 413, 422)  # HTTP statuses: they cannot be read, or are too many
_SOLE = "log: entry 1: "  # what a reader calls a log's only dialogue
_ITEM = re.compile(r"items\[(\d+)\]")  # what a server calls one of a request's
TIMEOUT_S, DEADLINE_S = 600.0, 1200.0  # of one attempt, and of all attempts of a request


def credits_of(
    source: str | Path,
    agent: str | None = None,
    key_env: str | None = None,
    deadline_s: float = DEADLINE_S,
) -> Credits:
    """A function from n chats to the credits of all assistant messages of each.

    Models under training write anything: a message without a text is scored as `(empty)`, and one
    with a call that names no function, or is otherwise none, as without that call.

    Args:
        source: a folder of `aria fit`, or the address of `aria serve`, which may hold a reward
            model too.
        agent: the fitted role that the assistant is, where several were fitted.
        key_env: the environment variable that holds the server's key.
        deadline_s: how long a server that is full or away is asked again.

    Raises, here or when it is called:
        AriaError: no fit there, no answer, or a chat without a credit for every message.
    """
    if str(source).startswith(("http://", "https://")):
        return _served(str(source), agent, key_env, deadline_s)
    from aria_dvc.credit.fitted import load_fit
    from aria_dvc.records.readers import read_entries
    from aria_dvc.records.reading import Reading

    fitted = load_fit(source)
    who = fitted.agent(agent)

    def credits(chats: Sequence[Messages]) -> list[list[float]]:
        if not chats:
            return []
        reading = Reading(need_rewards=False, warn=False)

        def read(number: int, chat: Messages) -> Episode:
            # a log of its own: names in one chat have nothing to do with those in another
            try:
                (episode,) = read_entries([{"messages": spoken(chat)}], reading)
            except AriaError as problem:
                raise AriaError(f"chat {number}: {str(problem).removeprefix(_SOLE)}") from None
            return episode

        read_all = [(who, read(number, chat)) for number, chat in enumerate(chats)]
        return _whole(fitted.score(read_all), chats, who)

    return credits


def spoken(chat: Messages) -> Messages:
    """The chat without calls that are none, `(empty)` where a message neither says nor calls."""
    made = [_with_its_calls(message) for message in chat]
    return [{**m, "content": EMPTY} if _is_blank(m) else m for m in made]


def _is_blank(message: dict[str, Any]) -> bool:
    if message.get("role") == SYSTEM or is_special(message):
        return False
    try:
        text = words(message, 0)
    except BadEntry:  # for the reader to name
        return False
    return text is None or (isinstance(text, str) and not is_visible(text))


def _with_its_calls(message: dict[str, Any]) -> dict[str, Any]:
    """The message with those of its calls that can be read."""
    made, calls, old = dict(message), message.get("tool_calls"), message.get("function_call")
    if isinstance(calls, list):
        made["tool_calls"] = [call for call in calls if _is_call(call)]
    if old is not None and not _is_call(old):
        del made["function_call"]
    return made


def _is_call(call: Any) -> bool:
    try:
        call_text(call, 0)
    except BadEntry:
        return False
    return True


def _served(url: str, agent: str | None, key_env: str | None, deadline_s: float) -> Credits:
    from pydantic_core import PydanticCustomError

    from aria_dvc.servers.client import Server, read_json, scores_in
    from aria_dvc.servers.keys import read_key
    from aria_dvc.settings.block import address

    try:
        address(url, "http://host:port")
    except PydanticCustomError as error:
        raise AriaError(f"the server's address {error.message()}") from None
    server = Server(url, read_key(key_env, "key_env"), TIMEOUT_S, deadline_s)
    named = {} if agent is None else {"agent": agent}

    def credits(chats: Sequence[Messages]) -> list[list[float]]:
        items = [{"messages": spoken(chat), **named} for chat in chats]
        found: list[list[float | None]] = []
        for start in range(0, len(items), AT_ONCE):
            some = {"items": items[start : start + AT_ONCE]}
            try:
                answer = server.ask("/score_dialogues", some, read_json)
            except (NoAnswer, Refusal) as error:
                raise AriaError(_unserved(error, start)) from None
            except UnicodeEncodeError:
                texts = (json.dumps(item, ensure_ascii=False) for item in some["items"])
                number = start + [is_unicode(text) for text in texts].index(False)
                raise AriaError(
                    f"chat {number} has half of a character (a lone surrogate), which no request "
                    "holds: take it out"
                ) from None
            scores = scores_in(answer)
            if scores is None or len(scores) != len(some["items"]):
                raise AriaError(f"{url} does not answer like `aria serve`: mend it")
            found += scores
        return _whole(found, chats, agent)

    return credits


def _unserved(error: NoAnswer | Refusal, start: int) -> str:
    """What went wrong with a request whose first chat is number `start`, and the remedy."""
    said = _ITEM.sub(lambda item: f"chat {start + int(item[1])}", str(error)).replace(_SOLE, "")
    if isinstance(error, Refusal) and error.status in OF_THE_CHATS:
        return said
    return f"{said}: check the address, and that `aria serve` runs"


def _whole(
    scores: Sequence[Sequence[float | None]], chats: Sequence[Messages], agent: str | None
) -> list[list[float]]:
    """The credits, if each of the agent's messages has one."""
    for number, (own, chat) in enumerate(zip(scores, chats, strict=True)):
        if not own or any(value is None for value in own):
            raise AriaError(
                f"chat {number} has a message without a credit: it is too long, or none"
            )
        if len(own) != (said := _said(chat, agent)):
            raise AriaError(
                f"chat {number} has {said} messages of the assistant but {len(own)} credits: leave "
                "out a name that is another fitted role's, or name the agent"
            )
    return [[float(value) for value in own if value is not None] for own in scores]


def _said(chat: Messages, agent: str | None) -> int:
    """How many messages are the assistant's, who may stand there as the fitted role too."""
    own = (ASSISTANT, agent)
    return sum(m["role"] == ASSISTANT or speaker(m, at) in own for at, m in enumerate(chat))


Total = tuple[Hashable, int, float]  # a group's number of turns, and their sum
Gather = Callable[[list[Total]], list[Total]]  # what several processes have, in one list in each


def centred(
    values: Sequence[Sequence[float]], groups: Sequence[Hashable], gather: Gather | None = None
) -> list[list[float]]:
    """Each number less the mean of all turns of its group's chats: an advantage.

    The baseline is one number a group. A mean by turn index would depend on which chats are still
    going on at that turn, and so on what was done.

    gather: where the chats of a group are spread over processes, of which each has some.
    """
    own: dict[Hashable, list[float]] = defaultdict(list)
    for row, group in zip(values, groups, strict=True):
        own[group] += row
    totals: list[Total] = [(g, len(found), float(np.sum(found))) for g, found in own.items()]
    counts: dict[Hashable, int] = defaultdict(int)
    sums: dict[Hashable, float] = defaultdict(float)
    for group, count, total in totals if gather is None else gather(totals):
        counts[group] += count
        sums[group] += total
    means = {group: sums[group] / max(counts[group], 1) for group in own}
    return [[x - means[g] for x in row] for row, g in zip(values, groups, strict=True)]


def over_turns(mask: torch.Tensor, values: Sequence[Sequence[float]]) -> torch.Tensor:
    """(B, T) float32: each turn's number at all of its tokens, 0 elsewhere.

    mask: (B, T), 1 at tokens that the model sampled; each run of them is a turn. A row of zeros,
    of a response that is left out for being cut off, has nothing to give its numbers to.

    Raises AriaError for a response with another number of turns than of values.
    """
    import torch

    starts = _starts(mask)
    longest = max((len(row) for row in values), default=0)
    table = torch.zeros(len(values), longest + 1, dtype=torch.float32, device=mask.device)
    for number, (row, found) in enumerate(zip(values, starts.sum(dim=1).tolist(), strict=True)):
        if found == 0:
            continue
        if found != len(row):
            raise AriaError(f"response {number} has {found} turns but {len(row)} credits")
        table[number, 1 : len(row) + 1] = torch.tensor(row, dtype=torch.float32)
    return table.gather(1, starts.cumsum(dim=1) * mask.long())


def at_turn_ends(mask: torch.Tensor, values: Sequence[Sequence[float]]) -> torch.Tensor:
    """(B, T) float32: each turn's number at its last token, 0 elsewhere (see `over_turns`)."""
    import torch

    later = torch.zeros_like(mask)
    later[:, :-1] = mask[:, 1:]
    ends = mask.bool() & ~later.bool()
    return over_turns(mask, values) * ends


def sums_of_turns(mask: torch.Tensor, values: torch.Tensor) -> list[list[float]]:
    """What stands at the tokens of each turn of each response, added up; both are (B, T)."""
    import torch

    starts = _starts(mask)
    sums = torch.zeros(len(mask), mask.shape[1] + 1, dtype=values.dtype, device=values.device)
    sums.scatter_add_(1, starts.cumsum(dim=1), values * mask)
    counts = starts.sum(dim=1).tolist()
    return [row[1 : n + 1].tolist() for row, n in zip(sums, counts, strict=True)]


def last_turns(credits: Sequence[Any], count: int) -> Sequence[Any]:
    """The last `count` of a chat's turns, or all where it has fewer."""
    return credits[max(len(credits) - count, 0) :]


def turn_counts(mask: torch.Tensor) -> list[int]:
    """How many turns each response has."""
    counts: list[int] = _starts(mask).sum(dim=1).tolist()
    return counts


def _starts(mask: torch.Tensor) -> torch.Tensor:
    """(B, T) int64, 1 at the first token of each run of ones."""
    import torch

    before = torch.zeros_like(mask)
    before[:, 1:] = mask[:, :-1]
    return (mask.bool() & ~before.bool()).long()
