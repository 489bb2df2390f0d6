"""tau-bench trajectories: one JSON list of {task_id, trial, reward, traj}.

`traj` is a chat with tools. The trials of a task are a group. The reward is the assistant's. A run
that broke down has an empty `traj`, which is refused, or left out and counted by `--on-error skip`.
"""

from __future__ import annotations

from typing import Any

from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.base import THE_AGENT, BadEntry, Layout, list_of
from aria_dvc.records.formats.messages import assistants, shared_prompt
from aria_dvc.records.formats.openai import chat_of


def _read(entry: dict[str, Any]) -> Episode:
    if not list_of(entry, "traj"):
        raise BadEntry("traj is empty: that run broke down before it began; remove the entry")
    task, trial = _whole(entry, "task_id"), _whole(entry, "trial")
    episode = chat_of(entry["traj"])
    episode.episode_id = f"task{task}" if trial is None else f"task{task}-trial{trial}"
    episode.prompts = shared_prompt(episode, assistants(episode))
    episode.info = {"group_id": str(task)}
    return episode


def _whole(entry: dict[str, Any], key: str) -> int | str | None:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise BadEntry(f"{key} is {value!r}: give a whole number or a text")
    return value


def _rewards(entry: dict[str, Any]) -> dict[str, Any]:
    return {} if entry.get("reward") is None else {THE_AGENT: entry["reward"]}


LAYOUT = Layout("tau_bench", frozenset({"task_id", "traj"}), None, _read, _rewards)
