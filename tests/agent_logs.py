"""One good entry of every format that agents and trainers write, and files that hold it."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

Entry = dict[str, Any]


def call(name: str, arguments: Any, number: int = 1) -> Entry:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


CHAT: list[Entry] = [
    {"role": "system", "content": "Help with flights."},
    {"role": "user", "content": [{"type": "text", "text": "To Seattle,"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "tool_calls": [call("search", '{"to":"SEA","n":2}')]},
    {"role": "tool", "tool_call_id": "call_1", "name": "search", "content": ""},
    {"role": "assistant", "content": "Nothing found."},
    {"role": "assistant", "content": "Shall I look further?"},
    {"role": "user", "content": "Please."},
]
OPENAI: Entry = {"episode_id": "c1", "messages": CHAT, "reward": 0.5, "info": {"scenario": "sea"}}
NAMED: Entry = {
    "messages": [
        {"role": "user", "name": "Ann", "content": "Plan it."},
        {"role": "assistant", "name": "planner", "content": "First the flight."},
        {"role": "assistant", "name": "critic", "content": "Too dear."},
    ],
    "rewards": {"assistant": 1},
    "group_id": "plan",
}
TAU: Entry = {"task_id": 3, "trial": 1, "reward": 1.0, "traj": CHAT, "info": {"source": "user"}}
VERL: Entry = {
    "input": "system\nYou use tools.\nuser\nWhat is 2 + 2?\nassistant\n",
    "output": "Let me see.\nuser\n<tool_response>\n4\n</tool_response>\nassistant\nIt is 4.",
    "gts": "4",
    "score": -1.5,
    "step": 7,
}
VERIFIERS: Entry = {
    "id": "ep1",
    "env": {"id": "math"},
    "task": {"type": "Math", "data": {"idx": 4, "prompt": "2 + 2?"}, "key": "k4"},
    "ok": True,
    "traces": [
        {
            "version": 1,
            "id": "tr1",
            "task": {"type": "Math", "data": {"idx": 4}},
            "agent": {"config": {"model": "m"}, "name": "agent", "trainable": True},
            "nodes": [
                {"message": {"role": "system", "content": "Reckon."}},
                {"parent": 0, "message": {"role": "user", "content": "2 + 2?"}},
                {"parent": 1, "message": {"role": "assistant", "content": "Example: 1."}},
                {
                    "parent": 2,
                    "sampled": True,
                    "message": {
                        "role": "assistant",
                        "tool_calls": [
                            {"id": "c", "type": "function", "name": "add", "arguments": '{"a":2}'}
                        ],
                    },
                },
                {"parent": 3, "message": {"role": "tool", "tool_call_id": "c", "content": "4"}},
                {
                    "parent": 4,
                    "sampled": True,
                    "message": {"role": "assistant", "content": "4."},
                },
            ],
            "rewards": {"right": {"score": 1.0, "weight": 2.0}, "short": {"score": 0.25}},
        }
    ],
}
ART: Entry = {
    "group_index": 2,
    "reward": 3.5,
    "messages": [
        {"role": "user", "content": "2 + 2?", "trainable": False},
        {"role": "assistant", "content": "An example.", "trainable": False},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": json.dumps([call("add", '{"b":2,"a":2}')]),
            "trainable": True,
        },
        {"role": "tool", "content": "4", "tool_call_id": "call_1", "trainable": False},
    ],
}
ROWS: list[Entry] = [
    {"episode_id": "r1", "role": "user", "text": 'Two, "or" three?', "reward": None, "part": "x"},
    {"episode_id": "r1", "role": "agent", "text": "Three,\nplease.", "reward": 1.0, "part": "x"},
    {"episode_id": "r2", "role": "user", "text": "Bye.", "reward": None, "part": "y"},
    {"episode_id": "r2", "role": "agent", "text": "Bye.", "reward": 0.0, "part": "y"},
]
ENTRIES: dict[str, Entry] = {
    "openai": OPENAI,
    "named": NAMED,
    "tau_bench": TAU,
    "verl": VERL,
    "verifiers": VERIFIERS,
    "art": ART,
}


def changed(name: str, change: Entry) -> Entry:
    """An entry with what stands at paths like `messages.1.role` set, or dropped (`null` path)."""
    entry = copy.deepcopy(ENTRIES[name])
    for place, value in change.get("set", {}).items():
        holder, last = _holder(entry, place)
        holder[last] = value
    for place in change.get("drop", ()):
        holder, last = _holder(entry, place)
        del holder[last]
    return entry


def _holder(value: Any, place: str) -> tuple[Any, Any]:
    *parts, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in parts:
        value = value[part]
    return value, last


def lines(path: Path, *entries: Entry) -> Path:
    path.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
    return path


def csv_bytes(rows: list[Entry], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet_file(path: Path, rows: list[Entry]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd")
    return path


def saved_dataset(folder: Path, *shards: list[Entry]) -> Path:
    """A folder as `datasets.Dataset.save_to_disk` (5.2) writes it."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05d}-of-{len(shards):05d}.arrow" for i in range(len(shards))]
    for name, rows in zip(names, shards, strict=True):
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_stream(folder / name, table.schema) as stream:
            stream.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def packed(content: bytes, how: str) -> bytes:
    if how == "gz":
        return gzip.compress(content)
    found = pa.compress(content, codec="zstd", asbytes=True)
    return bytes(found)


def trajectories(tasks: int = 4, trials: int = 3) -> list[Entry]:
    """Runs as tau-bench writes them: two calls at once, their replies, one more call, an answer.

    Trials of a task differ in the ids of calls and in the answer, which the reward is for.
    """
    return [_trajectory(task, trial) for task in range(tasks) for trial in range(trials)]


def _trajectory(task: int, trial: int) -> Entry:
    first = [call("search", '{"to": "SEA", "n": 2}', 1), call("user", '{"id": 0}', 2)]
    calls = [{**one, "id": f"{one['id']}_{task}_{trial}"} for one in first]
    replies = [_reply(one, text) for one, text in zip(calls, ("[]", ""), strict=True)]
    book = {**call("book", '{"flight": "F1"}', 3), "id": f"call_3_{task}_{trial}"}
    chat = [
        {"role": "system", "content": "Help with flights."},
        {"role": "user", "content": f"To Seattle, please ({task})."},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *replies,
        {"role": "assistant", "content": "I try it.", "tool_calls": [book]},
        _reply(book, "Error: full"),
        {"role": "assistant", "content": ("Nothing is free.", "Booked!", "Wait.")[trial % 3]},
        {"role": "user", "content": "###STOP###"},
    ]
    return {"task_id": task, "trial": trial, "reward": float(trial % 3 == 0), "traj": chat}


def _reply(to: Entry, text: str) -> Entry:
    named = {"tool_call_id": to["id"], "name": to["function"]["name"]}
    return {"role": "tool", **named, "content": text}


SCHEMA: Entry = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Flights to a place.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
    },
}
