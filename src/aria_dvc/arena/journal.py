"""Finished episodes on disk the moment they finish, so that a restart plays only the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.cache.folder import LAYOUT, cache_folder, note_use
from aria_dvc.cache.lines import CheckedLines
from aria_dvc.cache.locks import FolderLock
from aria_dvc.files import write_json
from aria_dvc.records.episodes import Episode, Utterance

WHOLE = 0  # the part that is written to where one process plays all games
_KEY, _PART = 21, 3  # hexadecimal digits: the hash, and the part behind it


class Journal:
    """Append-only files of finished episodes, each checked by a sum and synced to disk.

    A folder's name is a hash of everything that the episodes depend on, so a journal is found
    again only by a run that would play the same episodes, and the part: of processes side by side
    each writes to one of its own, and all parts are read, however many wrote them. What is damaged
    counts as not played.

    synced: see `CheckedLines`; without it many short episodes do not wait for the disk.
    part: which one is written to.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        folder: Path | None = None,
        synced: bool = True,
        part: int = WHOLE,
    ) -> None:
        text = orjson.dumps([LAYOUT, inputs], option=orjson.OPT_SORT_KEYS)
        self._root = cache_folder() / "collect" if folder is None else folder
        self._key = hashlib.sha256(text).hexdigest()[:_KEY]
        self.inputs = dict(inputs)
        self.folder = self._root / f"{self._key}{part:0{_PART}x}"
        self.path = self.folder / "episodes.jsonl"
        self._lines, self.lock = CheckedLines(self.path, synced), FolderLock(self.folder)

    @contextmanager
    def held(self) -> Iterator[dict[str, Episode]]:
        """The right to append to this part, and the finished episodes by id.

        What of it a crash has torn or the disk has damaged is set right first. This process may
        have taken `lock` before, to be refused before it loads a model.

        Raises:
            AriaError: another process plays these games.
        """
        with self.lock.held():
            write_json(self.folder / "inputs.json", self.inputs)
            own = self._lines.mend("their episodes are played again")
            yield _by_id([*self._of_others(), *own])

    def read(self) -> dict[str, Episode]:
        """Finished episodes of all parts by id; needs no right and waits for nobody."""
        if self.folder.is_dir():
            note_use(self.folder)
        return _by_id([*self._of_others(), *self._lines.read()])

    def _of_others(self) -> Iterator[dict[str, Any]]:
        """What stands in the other parts."""
        for path in sorted(self._root.glob(f"{self._key}{'?' * _PART}/{self.path.name}")):
            if path != self.path:
                note_use(path.parent)
                yield from CheckedLines(path).read()

    def append(self, episode: Episode) -> None:
        """Add one finished episode; if `synced`, it is on disk when this returns."""
        self._lines.add(_entry(episode))


def _entry(episode: Episode) -> dict[str, Any]:
    return {
        "episode_id": episode.episode_id,
        "game": episode.game,
        "utterances": [[utterance.role, utterance.text] for utterance in episode.utterances],
        "rewards": episode.rewards,
        "prompts": episode.prompts,
        "info": episode.info,
    }


def _by_id(entries: Iterable[dict[str, Any]]) -> dict[str, Episode]:
    """Episodes by id; of several of one id the last."""
    return {entry["episode_id"]: _episode(entry) for entry in entries}


def _episode(entry: dict[str, Any]) -> Episode:
    said = [Utterance(role, text) for role, text in entry.pop("utterances")]
    return Episode(utterances=said, **entry)
