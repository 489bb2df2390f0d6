"""Tables: ART's trajectory groups, as Parquet, and the credit table's numbers as CSV has them.

ART has one row a turn, of which its last message is trained.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aria_dvc.exports.calls import as_json, for_art
from aria_dvc.exports.turns import Chat, Chats, Turn

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PART = 1000


def art(chats: Chats, counts: Counter[str]) -> Iterator[tuple[str, pa.Table]]:
    """(role, rows): the reward of a row is the advantage of its turn, a group those of one task.

    ART has one number a trajectory and compares it within its group.
    """
    import pyarrow as pa

    groups: dict[tuple[str, str], int] = {}
    waiting: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for chat in chats():
        group = groups.setdefault((chat.role, chat.group_id), len(groups))
        rows = waiting[chat.role]
        rows += [_row(chat, turn, group) for turn in chat.turns]
        counts["turns"] += len(chat.turns)
        if len(rows) >= PART:
            yield chat.role, pa.Table.from_pylist(rows, schema=_schema())
            rows.clear()
    counts["groups"] = len(groups)
    for role, rows in waiting.items():
        if rows:
            yield role, pa.Table.from_pylist(rows, schema=_schema())


def _row(chat: Chat, turn: Turn, group: int) -> dict[str, Any]:
    said = chat.messages[: turn.message + 1]
    message: list[dict[str, Any]] = [
        {**for_art(m), "trainable": i == turn.message} for i, m in enumerate(said)
    ]
    own = {"episode_id": chat.episode_id, "turn": int(turn.row["turn"])}
    metrics = {"credit": float(turn.row["credit"]), "outcome": chat.reward}
    return {
        "group_index": group,
        "group_metadata": json.dumps({"group_id": chat.group_id, "role": chat.role}),
        "reward": turn.advantage,
        "metrics": json.dumps(metrics),
        "metadata": json.dumps(own),
        "tools": as_json(chat.tools) if chat.tools else None,
        "messages": message,
    }


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    names = ("role", "content", "tool_calls", "tool_call_id")
    message = pa.struct([*((name, text) for name in names), ("trainable", pa.bool_())])
    return pa.schema(
        [
            ("group_index", pa.int64()),
            ("group_metadata", text),
            ("group_metrics", text),
            ("group_logs", pa.list_(text)),
            ("reward", pa.float64()),
            ("metrics", text),
            ("metadata", text),
            ("tools", text),
            ("logs", pa.list_(text)),
            ("messages", pa.list_(message)),
        ]
    )


def with_all_digits(table: pd.DataFrame) -> pd.DataFrame:
    """The table with floats as texts that give them back to the last bit; `write_csv` rounds."""
    floats = table.select_dtypes("float")
    return table.assign(
        **{name: [None if x != x else repr(x) for x in floats[name].tolist()] for name in floats}
    )
