"""The chats of a log as each trained role saw them, with the credit of its actions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.chat import view
from aria_dvc.errors import AriaError
from aria_dvc.exports.calls import Line, Message, Said, schemas_of, seen_by
from aria_dvc.records.episodes import Episode
from aria_dvc.records.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("episode_id", "position")
TELL = ("group_id", "role", "turn", "text_sha", "cell", "anchor", "return", "credit", "advantage")


@dataclass(frozen=True)
class Turn:
    """One action: the number of its message in the chat, its text, its row of the credit table."""

    message: int
    text: str
    row: dict[str, Any]

    @property
    def advantage(self) -> float:
        return float(self.row["advantage"])


@dataclass(frozen=True)
class Chat:
    """What one role saw and said: it is `assistant`, its tools are `tool`, everybody else `user`.

    messages: as `calls.seen_by` has them. texts: each of them where all is text.
    turns: one for every message of the assistant's that has a credit; moves that are left out of
    credit have none. Utterances of a side that follow one another are one message, whose credit is
    that of the last of them that has one.
    tools: their schemas, where the log has them. worded: tool calls and replies that are text.
    """

    episode_id: str
    group_id: str
    role: str
    reward: float
    messages: list[Message]
    turns: list[Turn]
    texts: list[str]
    tools: list[Message] = field(default_factory=list)
    worded: int = 0


Chats = Callable[[], Iterator[Chat]]  # reads the log anew at each call
Key = tuple[str, int]  # episode, position
Lines = dict[Key, tuple[str, bool, str]]  # role, is_action, text


def chats_of(paths: list[Path], reading: Reading, table: pd.DataFrame) -> Chats:
    """The chats of logs, in their order, with the rows of their credit table.

    Raises, while it is read:
        AriaError: as `iter_log`; a table of other texts than the log's.
    """
    place = dict(zip(zip(*(table[n] for n in NAMES), strict=True), range(len(table)), strict=True))
    columns = {name: table[name].to_numpy() for name in TELL}

    def row(key: Key) -> dict[str, Any]:
        return _row(place, columns, key)

    def read() -> Iterator[Chat]:
        for turns, part in _tables(paths, reading):
            lines = _lines(turns)
            for episode in part:
                yield from _chats(episode, lines, row)

    return read


def _chats(episode: Episode, lines: Lines, row: Callable[[Key], dict[str, Any]]) -> Iterator[Chat]:
    """The chat of every role that acts, in the order in which they do."""
    keys = [(episode.episode_id, position) for position, _ in episode.numbered()]
    told = episode.record.told or [""] * len(episode.utterances)
    said = [
        Line(u.role, u.text, u.message, also)
        for u, also in zip(episode.utterances, told, strict=True)
    ]
    for role in dict.fromkeys(lines[key][0] for key in keys if lines[key][1]):
        found = seen_by(role, said, episode.prompts.get(role, ""))
        turns = [
            Turn(number, lines[key][2], row(key))
            for number, message in enumerate(found)
            if (key := _credited(message, role, keys, lines)) is not None
        ]
        yield Chat(
            episode.episode_id,
            str(turns[0].row["group_id"]),
            role,
            float(episode.rewards[role]),
            [message.message for message in found],
            turns,
            [message.text for message in found],
            schemas_of(episode.tools) if _has_tools(episode, role) else [],
            sum(message.worded for message in found),
        )


def _credited(message: Said, role: str, keys: list[Key], lines: Lines) -> Key | None:
    """The last action of the role in a message."""
    acts = [keys[at] for at in message.places if lines[keys[at]][:2] == (role, True)]
    return acts[-1] if acts else None


def _has_tools(episode: Episode, role: str) -> bool:
    """Whether an episode's tools are the role's: it is the assistant, or calls some."""
    from aria_dvc.records.formats.messages import assistants

    calls = (u.message for u in episode.utterances if u.role == role and u.message)
    return role in assistants(episode) or any("tool_calls" in message for message in calls)


def as_text(chat: Chat) -> Chat:
    """The chat where calls and replies are text, for a trainer that has no place for them."""
    head = [m["content"] for m in chat.messages[:1] if m["role"] == "system"]
    roles = [m["role"] for m in chat.messages[len(head) :]]
    sides = ["assistant" if role == "assistant" else "user" for role in roles]
    spoken = list(zip(sides, chat.texts[len(head) :], strict=True))
    messages: list[Message] = [dict(m) for m in view(spoken, "assistant", "".join(head))]
    begins = np.array([a != b for a, b in zip(["", *sides], sides, strict=False)], bool)
    number = [*range(len(head)), *(begins.cumsum() - 1 + len(head)).tolist()]
    turns = {number[turn.message]: turn for turn in chat.turns}  # the last of each message
    return replace(
        chat,
        messages=messages,
        texts=[message["content"] for message in messages],
        turns=[replace(turn, message=at) for at, turn in turns.items()],
        tools=[],
        worded=tools_in(chat),
    )


def tools_in(chat: Chat) -> int:
    """How many tool calls and replies a chat has."""
    calls = sum(len(message.get("tool_calls", ())) for message in chat.messages)
    return chat.worded + calls + sum(message["role"] == "tool" for message in chat.messages)


def counted(chats: Chats, seen: Counter[str]) -> Chats:
    """The chats; `seen` counts their turns, and what of tools is text, once all were read."""

    def read() -> Iterator[Chat]:
        seen.clear()
        for chat in chats():
            seen["turns"] += len(chat.turns)
            seen["worded"] += chat.worded
            yield chat

    return read


def _lines(turns: pd.DataFrame) -> Lines:
    names = ("episode_id", "position", "role", "is_action", "text")
    columns = (turns[name].tolist() for name in names)
    return {(e, p): (role, acts, text) for e, p, role, acts, text in zip(*columns, strict=True)}


def _tables(paths: list[Path], reading: Reading) -> Iterator[tuple[pd.DataFrame, list[Episode]]]:
    """The turns of some whole episodes at a time, and these."""
    from aria_dvc.records.readers import iter_log
    from aria_dvc.records.sources import prefixes_of
    from aria_dvc.records.tables import in_parts, turns_table

    for path, prefix in zip(paths, prefixes_of(paths), strict=True):
        for part in in_parts(iter_log(path, replace(reading, prefix=prefix))):
            yield turns_table(part), part


def _row(
    place: dict[tuple[Any, ...], int], columns: dict[str, np.ndarray], key: Key
) -> dict[str, Any]:
    at = place.get(key)
    if at is None:
        raise _no_credit(*key)
    return {name: values[at] for name, values in columns.items()}


def _no_credit(episode: str, position: int) -> AriaError:
    return AriaError(
        f"--credit: no credit of episode {episode}, position {position}: make the table of "
        "this very log (aria credit), with the same --agent and --no-moves"
    )


def _no_actions(count: int, of: int, episode: str, position: int) -> AriaError:
    return AriaError(
        f"--credit: {count} of {of} rows are no actions of this log (the first: episode {episode}, "
        f"position {position}): give the very log that the table was made of, with the same "
        "--agent and --no-moves"
    )


def _other_text(episode: str) -> AriaError:
    return AriaError(
        f"--credit: episode {episode} says something else there than when its "
        "credit was computed: make the table anew (aria credit)"
    )


def rows_of(paths: list[Path], reading: Reading, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a credit table that are of actions of these logs, as they are read.

    Raises AriaError where there is none, or its text or outcome is another than the log's.
    """
    from aria_dvc.credit.table import sha_of

    keys = list(zip(table["episode_id"], table["position"], strict=True))
    told = dict(zip(keys, table["text_sha"], strict=True))
    returned = _last_returns(table)
    found: set[tuple[str, int]] = set()
    for turns, episodes in _tables(paths, reading):
        for episode in episodes:
            _check_outcome(episode, returned)
        for key, (_, is_action, text) in _lines(turns).items():
            if is_action and key in told:
                if told[key] != sha_of(text):
                    raise _other_text(key[0])
                found.add(key)
    if not found:
        raise _no_actions(len(table), len(table), *keys[0])
    return table[[key in found for key in keys]].reset_index(drop=True)


def _last_returns(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(episode, role) -> the return of its last credited turn."""
    last = table.sort_values("position").groupby(["episode_id", "role"]).tail(1)
    known = last[last["return"].notna()]
    names = zip(known["episode_id"], known["role"], strict=True)
    return dict(zip(names, known["return"].tolist(), strict=True))


def check_outcomes_differ(table: pd.DataFrame) -> None:
    """Refuse a credit table that only discount and noise tell apart.

    Raises:
        AriaError: all episodes of a role ended alike.
    """
    outcomes: dict[str, set[float]] = {}
    for (_, role), returned in _last_returns(table).items():
        outcomes.setdefault(role, set()).add(returned)
    for role, found in outcomes.items():
        if len(found) == 1:
            raise AriaError(
                f"all episodes ended alike for {role} ({found.pop():g}), so that no credit tells "
                "its turns apart: add episodes of different outcome, or name the others by --agent"
            )


def _check_outcome(episode: Episode, returned: Mapping[tuple[str, str], float]) -> None:
    """Raises AriaError where no discount makes the one of the other: a button may come after."""
    for role, reward in episode.rewards.items():
        told = returned.get((episode.episode_id, role), reward)
        if not math.isclose(told, reward, abs_tol=1e-6) and not 0 < told * reward <= reward**2:
            raise AriaError(
                f"--credit: episode {episode.episode_id} ended with {told:g} for {role} when its "
                f"credit was computed, and with {reward:g} as it is read now: give the same "
                "--outcome, or make the table anew (aria credit)"
            )


def check_table(paths: list[Path], reading: Reading, table: pd.DataFrame) -> None:
    """Compare a credit table with the logs that it shall be of; their outcomes may be unknown.

    Raises AriaError unless its rows are the logs' actions, all of them, with their very texts; of
    an episode without an outcome any utterance may have a row.
    """
    from aria_dvc.credit.table import sha_of

    keys = zip(table["episode_id"].tolist(), table["position"].tolist(), strict=True)
    left = dict(zip(keys, table["text_sha"].tolist(), strict=True))
    for turns, _ in _tables(paths, replace(reading, need_rewards=False)):
        acting = set(turns.loc[turns["is_action"], "episode_id"])
        for key, (_, is_action, text) in _lines(turns).items():
            if key in left and (is_action or key[0] not in acting):
                if left.pop(key) != sha_of(text):
                    raise _other_text(key[0])
            elif is_action:
                raise _no_credit(*key)
    if left:
        raise _no_actions(len(left), len(table), *next(iter(left)))
