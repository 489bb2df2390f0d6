"""Credits of chats at run time, and their places among the tokens of responses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    import torch

Messages = list[dict[str, Any]]
Credits = Callable[[Sequence[Messages]], list[list[float]]]
TIMEOUT_S = 600.0


def credits_of(source: str | Path, agent: str | None = None, key_env: str | None = None) -> Credits:
    """A function from n chats to the credits of all assistant messages of each.

    Args:
        source: a folder of `aria fit`, or the address of `aria serve`, which may hold a reward
            model too.
        agent: the fitted role that the assistant is, where several were fitted.
        key_env: the environment variable that holds the server's key.

    Raises, here or when it is called:
        AriaError: no fit there, no answer, or a chat without a credit for every message.
    """
    if str(source).startswith(("http://", "https://")):
        return _served(str(source), agent, key_env)
    from aria_dvc.credit.fitted import load_fit
    from aria_dvc.records.readers import read_entries
    from aria_dvc.records.reading import Reading

    fitted = load_fit(source)
    who = fitted.agent(agent)

    def credits(chats: Sequence[Messages]) -> list[list[float]]:
        entries = [{"messages": chat} for chat in chats]
        episodes = read_entries(entries, Reading(need_rewards=False, warn=False))
        return _whole(fitted.score([(who, episode) for episode in episodes]))

    return credits


def _served(url: str, agent: str | None, key_env: str | None) -> Credits:
    import httpx

    from aria_dvc.servers.keys import read_key

    key = read_key(key_env, "key_env")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_S)
    named = {} if agent is None else {"agent": agent}

    def credits(chats: Sequence[Messages]) -> list[list[float]]:
        items = [{"messages": chat, **named} for chat in chats]
        try:
            answer = client.post("/score_dialogues", json={"items": items})
        except httpx.HTTPError as error:
            raise AriaError(f"{url}: no answer ({error}): start `aria serve`") from None
        if answer.status_code != 200:
            raise AriaError(f"{url}: HTTP {answer.status_code}: {answer.text[:200]}")
        return _whole(answer.json()["scores"])

    return credits


def _whole(scores: Sequence[Sequence[float | None]]) -> list[list[float]]:
    for number, own in enumerate(scores):
        if not own or any(value is None for value in own):
            raise AriaError(
                f"chat {number} has a message without a credit: it is too long, or none"
            )
    return [[float(value) for value in own if value is not None] for own in scores]


def centred(values: Sequence[Sequence[float]], groups: Sequence[Hashable]) -> list[list[float]]:
    """Each number less the mean of all turns of its group's chats: an advantage.

    The baseline is one number a group. A mean by turn index would depend on which chats are still
    going on at that turn, and so on what was done.
    """
    means = {}
    for group in set(groups):
        own = [x for row, g in zip(values, groups, strict=True) if g == group for x in row]
        means[group] = float(np.mean(own)) if own else 0.0
    return [[x - means[g] for x in row] for row, g in zip(values, groups, strict=True)]


def over_turns(mask: torch.Tensor, values: Sequence[Sequence[float]]) -> torch.Tensor:
    """(B, T) float32: each turn's number at all of its tokens, 0 elsewhere.

    mask: (B, T), 1 at tokens that the model sampled; each run of them is a turn.

    Raises AriaError for a response with another number of turns than of values.
    """
    import torch

    starts = _starts(mask)
    turn = starts.cumsum(dim=1)
    longest = max((len(row) for row in values), default=0)
    table = torch.zeros(len(values), longest + 1, dtype=torch.float32, device=mask.device)
    for number, row in enumerate(values):
        found = int(turn[number, -1]) if mask.shape[1] else 0
        if found != len(row):
            raise AriaError(f"response {number} has {found} turns but {len(row)} credits")
        table[number, 1 : len(row) + 1] = torch.tensor(row, dtype=torch.float32)
    return table.gather(1, turn * mask.long())


def at_turn_ends(mask: torch.Tensor, values: Sequence[Sequence[float]]) -> torch.Tensor:
    """(B, T) float32: each turn's number at its last token, 0 elsewhere (see `over_turns`)."""
    import torch

    later = torch.zeros_like(mask)
    later[:, :-1] = mask[:, 1:]
    ends = mask.bool() & ~later.bool()
    return over_turns(mask, values) * ends


def _starts(mask: torch.Tensor) -> torch.Tensor:
    """(B, T) int64, 1 at the first token of each run of ones."""
    import torch

    before = torch.zeros_like(mask)
    before[:, 1:] = mask[:, :-1]
    return (mask.bool() & ~before.bool()).long()
