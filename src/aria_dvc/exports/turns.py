"""The chats of a log as each trained role saw them, with the credit of its actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.chat import Message
from aria_dvc.credit.table import COLUMNS
from aria_dvc.errors import AriaError
from aria_dvc.learning.examples import dialogues
from aria_dvc.records.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("episode_id", "position")
TELL = ("group_id", "role", "turn", "text_sha", "cell", "anchor", "return", "credit", "advantage")


@dataclass(frozen=True)
class Turn:
    """One action: the number of its message in the chat, and its row of the credit table."""

    message: int
    row: dict[str, Any]

    @property
    def advantage(self) -> float:
        return float(self.row["advantage"])


@dataclass(frozen=True)
class Chat:
    """What one role saw and said: it is `assistant`, everybody else is `user`.

    turns: one for every message of the assistant's. Utterances of a side that follow one another
    are one message, whose credit is that of the last of them.
    """

    episode_id: str
    group_id: str
    role: str
    reward: float
    messages: list[Message]
    turns: list[Turn]


Chats = Callable[[], Iterator[Chat]]  # reads the log anew at each call


def chats_of(paths: list[Path], reading: Reading, table: pd.DataFrame) -> Chats:
    """The chats of logs, in their order, with the rows of their credit table.

    Raises, while it is read:
        AriaError: as `iter_log`; a table of other texts than the log's.
    """
    place = dict(zip(zip(*(table[n] for n in NAMES), strict=True), range(len(table)), strict=True))
    columns = {name: table[name].to_numpy() for name in TELL}

    def read() -> Iterator[Chat]:
        for turns, episodes in _tables(paths, reading):
            finals = _final_rewards(turns)
            for found in dialogues(turns, episodes):
                rows = [_row(place, columns, found.episode_id, p) for p in found.positions]
                said = [i for i, m in enumerate(found.messages) if m["role"] == "assistant"]
                own = [Turn(i, row) for i, row in zip(said, rows, strict=True)]
                reward = finals[found.episode_id, found.role]
                group = str(rows[0]["group_id"])
                yield Chat(found.episode_id, group, found.role, reward, found.messages, own)

    return read


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
    place: dict[tuple[Any, ...], int], columns: dict[str, np.ndarray], episode: str, position: int
) -> dict[str, Any]:
    at = place.get((episode, position))
    if at is None:
        raise AriaError(
            f"--credit: no credit of episode {episode}, position {position}: make the table of "
            "this very log (aria credit), with the same --agent"
        )
    return {name: values[at] for name, values in columns.items()}


def read_credit(path: Path) -> pd.DataFrame:
    """A table that `aria credit` wrote.

    Raises:
        AriaError: no Parquet file, or without one of the columns.
    """
    from aria_dvc.files import read_parquet

    table = read_parquet(path)
    if missing := [name for name in COLUMNS if name not in table]:
        raise AriaError(f"{path}: no column {missing[0]}: give what `aria credit` writes")
    return table


def check_texts(chats: Chats) -> None:
    """Raises AriaError where the table's texts are not those of the log's last lines."""
    from aria_dvc.credit.table import sha_of

    for chat in chats():
        for turn in chat.turns:
            said = chat.messages[turn.message]["content"]
            if turn.row["text_sha"] == sha_of(said) or "\n" in said:
                continue
            raise AriaError(
                f"--credit: episode {chat.episode_id} says something else there than when its "
                "credit was computed: make the table anew (aria credit)"
            )
