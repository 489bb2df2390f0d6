"""What in a log is in doubt (an error), and what is merely odd (a warning, once a log and kind).

In doubt: two names that only blanks, case or invisible characters tell apart, entries that fit two
layouts, texts without anything to see. Odd: what is left out, or may not be what was meant.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from aria_dvc.records.episodes import SYSTEM, Episode
from aria_dvc.records.formats.base import BadEntry
from aria_dvc.records.formats.openai import EMPTY

logger = logging.getLogger(__name__)
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"  # fillers and an empty braille cell
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def is_unicode(text: str) -> bool:
    """Whether a file or a request can hold it: not half of a character, a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_visible(text: str) -> bool:
    """Whether there is anything to see in a text: white space and invisible marks are not."""
    return (text[:1].isascii() and text[:1].isalnum()) or any(_has_ink(char) for char in text)


def _has_ink(char: str) -> bool:
    return unicodedata.category(char)[0] not in "CZ"


@lru_cache(4096)
def _squeezed(name: str) -> str:
    """A name without blanks at its ends, doubled ones and invisible characters."""
    seen = "".join(
        c
        for c in unicodedata.normalize("NFC", name)
        if c.isspace() or (_has_ink(c) and c not in _FILLERS)
    )
    return " ".join(seen.split())


Names = dict[str, tuple[str, str]]


@dataclass
class Oddities:
    """The names that a log has used so far, and what is odd in it, with its first place.

    roles: by their folded form, (name, where). ids: likewise; squeezed: ids without blanks.
    """

    roles: Names = field(default_factory=lambda: {SYSTEM: (SYSTEM, "")})
    ids: Names = field(default_factory=dict)
    squeezed: Names = field(default_factory=dict)
    layout: str = ""
    odd: dict[str, list[str]] = field(default_factory=dict)
    _undo: list[Callable[[], Any]] = field(default_factory=list)

    def begin(self) -> None:
        """One more entry comes, of one episode or several."""
        self._undo = [partial(setattr, self, "layout", self.layout)]

    def forget(self) -> None:
        """Let go of all that the last entry brought: it is not taken."""
        while self._undo:
            self._undo.pop()()

    def look_at(self, episode: Episode, entry: dict[str, Any], layout: str, where: str) -> None:
        """Take in one more episode.

        Raises BadEntry where the meaning of a name is in doubt.
        """
        self._roles_of(episode, entry, where)
        self._id_of(episode, where)
        for kind in (*_of_entry(episode, entry), *self._of_layout(layout)):
            self._note(kind, where)

    def tell(self) -> None:
        """A warning for every kind."""
        for kind, places in ((kind, places) for kind, places in self.odd.items() if places):
            more = f" (and in {len(places) - 1} more)" if len(places) > 1 else ""
            logger.warning("%s: %s%s", places[0], kind, more)

    def _roles_of(self, episode: Episode, entry: dict[str, Any], where: str) -> None:
        rewarded = sorted(_keys(entry, "rewards"))
        said = (utterance.role for utterance in episode.utterances)
        for role in dict.fromkeys((*said, *rewarded, *episode.prompts)):
            name, first = self._first(self.roles, _squeezed(role).casefold(), role, where)
            if name != role:
                raise BadEntry(
                    f"role {role!r} beside {name!r}{_at(first)}: they differ in case or blanks "
                    "alone: spell a role in one way"
                )

    def _id_of(self, episode: Episode, where: str) -> None:
        name = episode.episode_id
        close, first = self._first(self.squeezed, _squeezed(name), name, where)
        if close != name:
            raise BadEntry(
                f"episode_id {_spelt(name)} beside {_spelt(close)}{_at(first)}: they differ in "
                "blanks or invisible characters alone: give every episode its own id"
            )
        alike, first = self._first(self.ids, name.casefold(), name, where)
        if alike != name:
            kind = "episode ids that differ in case alone: they count as different episodes"
            self._note(kind, where)

    def _note(self, kind: str, where: str) -> None:
        places = self.odd.setdefault(kind, [])
        places.append(where)
        self._undo.append(places.pop)

    def _first(self, names: Names, key: str, name: str, where: str) -> tuple[str, str]:
        """The name that stood first under a key, and its place."""
        if key not in names:
            names[key] = (name, where)
            self._undo.append(partial(names.pop, key))
        return names[key]

    def _of_layout(self, layout: str) -> Iterator[str]:
        self.layout = self.layout or layout
        if layout != self.layout:
            yield f"an entry of the {layout} layout in a log that starts with {self.layout}"


def _keys(entry: dict[str, Any], name: str) -> set[str]:
    """The keys of an object in an entry; none if there is no such object."""
    value = entry.get(name)
    return set(value) if isinstance(value, dict) else set()


def _messages(entry: dict[str, Any]) -> list[dict[str, Any]]:
    messages = entry.get("messages")
    listed = messages if isinstance(messages, list) else []
    return [message for message in listed if isinstance(message, dict)]


def _any_has(entry: dict[str, Any], key: str) -> bool:
    return any(message.get(key) for message in _messages(entry))


def _spelt(name: str) -> str:
    """A name with its blanks and everything that looks alike in sight."""
    return ascii(name).replace(" ", "\u2423")


def _at(where: str) -> str:
    return f" ({where})" if where else ""


def _of_entry(episode: Episode, entry: dict[str, Any]) -> Iterator[str]:
    info = entry.get("info")
    if info is not None and not isinstance(info, dict):
        yield "info is no JSON object and is left out"
    if "grounded" in episode.record.extra:
        yield "info.grounded is no list of true and false by role and tells nothing of commands"
    if "told" in episode.record.extra:
        yield "info.told is no list of texts, one an utterance, and tells nobody anything"
    if thought := next((key for key in _THOUGHTS if _any_has(entry, key)), None):
        yield f"{thought} of a message is not read: what was not said is not credited"
    spoken = {utterance.role for utterance in episode.utterances}
    if silent := sorted(_keys(entry, "system_prompts") - spoken):
        yield f"a system prompt for {', '.join(silent)}, who says nothing there"
    if entry.get("system") and "messages" in entry:
        yield "system beside messages is not read: make it the first of the messages"
    if any(message.get("weight") == 0 for message in _messages(entry)):
        yield "weight 0 of a message is not read: leave its role without a reward, or name agents"
    if _any_has(entry, "reward") and all(one.given is None for one in episode.utterances):
        yield (
            "reward of a message is not read, rewards are of whole episodes: `aria audit --credit "
            "reward` judges such credit"
        )
    if any(said.text == EMPTY and said.message is None for said in episode.utterances):
        yield f"a message that neither says nor calls anything: it is read as {EMPTY}"
    if branches := episode.info.get("branches_left_out"):
        yield f"a trace of several branches: its last one is read, {branches} are left out"
    texts = (utterance.text for utterance in episode.utterances)
    if any(not text.isprintable() and _CONTROL.search(text) for text in texts):
        yield "control characters in an utterance; they are kept"
    if any(not utterance.text.strip(_FILLERS).strip() for utterance in episode.utterances):
        yield "an utterance of fillers, which look like blanks"
    if names := sorted(name for name in spoken if name != name.strip()):
        yield f"role {names[0]!r} begins or ends with blanks"
