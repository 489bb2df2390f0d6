"""Finished episodes on disk the moment they finish, so that a restart plays only the rest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.cache import cache_folder
from aria_dvc.files import write_json
from aria_dvc.records.episodes import Episode, Utterance


class Journal:
    """An append-only file of finished episodes, one JSON object a line, each synced to disk.

    The folder's name is a hash of everything that the episodes depend on, so a journal is found
    again only by a run that would play the same episodes. A line that a crash has torn is dropped.
    """

    def __init__(self, inputs: Mapping[str, Any], folder: Path | None = None) -> None:
        text = orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS)
        root = cache_folder() / "collect" if folder is None else folder
        self.folder = root / hashlib.sha256(text).hexdigest()[:24]
        self.path = self.folder / "episodes.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "inputs.json", dict(inputs))

    def read(self) -> dict[str, Episode]:
        """Finished episodes by id; afterwards the file ends with a whole line."""
        if not self.path.exists():
            return {}
        raw = self.path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            os.truncate(self.path, len(whole))
        episodes = [_episode(orjson.loads(line)) for line in whole.splitlines()]
        return {episode.episode_id: episode for episode in episodes}

    def append(self, episode: Episode) -> None:
        """Add one finished episode; it is on disk when this returns."""
        line = orjson.dumps(_entry(episode)) + b"\n"
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _entry(episode: Episode) -> dict[str, Any]:
    return {
        "episode_id": episode.episode_id,
        "game": episode.game,
        "utterances": [[utterance.role, utterance.text] for utterance in episode.utterances],
        "rewards": episode.rewards,
        "prompts": episode.prompts,
        "info": episode.info,
    }


def _episode(entry: dict[str, Any]) -> Episode:
    said = [Utterance(role, text) for role, text in entry.pop("utterances")]
    return Episode(utterances=said, **entry)
