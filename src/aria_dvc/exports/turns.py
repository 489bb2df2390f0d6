"""The chats of a log as each trained role saw them, with the credit of its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.chat import Message
from aria_dvc.errors import AriaError
from aria_dvc.learning.examples import Dialogue, dialogues
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
    """What one role saw and said: it is `assistant`, everybody else is `user`.

    turns: one for every message of the assistant's that has a credit; moves that are left out of
    credit have none. Utterances of a side that follow one another are one message, whose credit is
    that of the last of them that has one.
    """

    episode_id: str
    group_id: str
    role: str
    reward: float
    messages: list[Message]
    turns: list[Turn]


Chats = Callable[[], Iterator[Chat]]  # reads the log anew at each call
Lines = dict[tuple[str, int], tuple[str, bool, str]]  # (episode, position): role, is_action, text


def chats_of(paths: list[Path], reading: Reading, table: pd.DataFrame) -> Chats:
    """The chats of logs, in their order, with the rows of their credit table.

    Raises, while it is read:
        AriaError: as `iter_log`; a table of other texts than the log's.
    """
    place = dict(zip(zip(*(table[n] for n in NAMES), strict=True), range(len(table)), strict=True))
    columns = {name: table[name].to_numpy() for name in TELL}

    def read() -> Iterator[Chat]:
        for turns, episodes in _tables(paths, reading):
            finals, lines = _final_rewards(turns), _lines(turns)
            for found in dialogues(turns, episodes):
                own = [
                    Turn(at, lines[key][2], _row(place, columns, key))
                    for at, key in _credited(found, lines)
                ]
                reward = finals[found.episode_id, found.role]
                group = str(own[0].row["group_id"])
                yield Chat(found.episode_id, group, found.role, reward, found.messages, own)

    return read


def counted(chats: Chats, seen: Counter[str]) -> Chats:
    """The chats; `seen` holds the number of their turns once they were read to the end."""

    def read() -> Iterator[Chat]:
        seen["turns"] = 0
        for chat in chats():
            seen["turns"] += len(chat.turns)
            yield chat

    return read


def _lines(turns: pd.DataFrame) -> Lines:
    names = ("episode_id", "position", "role", "is_action", "text")
    columns = (turns[name].tolist() for name in names)
    return {(e, p): (role, acts, text) for e, p, role, acts, text in zip(*columns, strict=True)}


def _credited(found: Dialogue, lines: Lines) -> Iterator[tuple[int, tuple[str, int]]]:
    """The assistant's messages that have a credit, each with the last action that is in it."""
    said = [i for i, message in enumerate(found.messages) if message["role"] == "assistant"]
    for at, position in zip(said, found.positions, strict=True):
        key = found.episode_id, position
        while key in lines and lines[key][0] == found.role:
            if lines[key][1]:
                yield at, key
                break
            key = key[0], key[1] - 1


def _tables(paths: list[Path], reading: Reading) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    from aria_dvc.records.readers import iter_log
    from aria_dvc.records.sources import prefixes_of
    from aria_dvc.records.tables import episodes_table, in_parts, turns_table

    for path, prefix in zip(paths, prefixes_of(paths), strict=True):
        for part in in_parts(iter_log(path, replace(reading, prefix=prefix))):
            yield turns_table(part), episodes_table(part)


def _final_rewards(turns: pd.DataFrame) -> dict[tuple[str, str], float]:
    acting = turns[turns["is_action"]].drop_duplicates(["episode_id", "role"])
    keys = zip(acting["episode_id"], acting["role"], strict=True)
    return dict(zip(keys, acting["reward"].tolist(), strict=True))


def _row(
    place: dict[tuple[Any, ...], int], columns: dict[str, np.ndarray], key: tuple[str, int]
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

    Raises AriaError where there is none, or its text is another than the log's.
    """
    from aria_dvc.credit.table import sha_of

    keys = list(zip(table["episode_id"], table["position"], strict=True))
    told = dict(zip(keys, table["text_sha"], strict=True))
    found: set[tuple[str, int]] = set()
    for turns, _ in _tables(paths, reading):
        for key, (_, is_action, text) in _lines(turns).items():
            if is_action and key in told:
                if told[key] != sha_of(text):
                    raise _other_text(key[0])
                found.add(key)
    if not found:
        raise _no_actions(len(table), len(table), *keys[0])
    return table[[key in found for key in keys]].reset_index(drop=True)


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
