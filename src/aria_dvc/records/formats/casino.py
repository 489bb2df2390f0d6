"""CaSiNo dialogues: one JSON list of {chat_logs, participant_info}."""

from __future__ import annotations

from typing import Any

from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.formats.base import ROLE_NAMES, BadEntry, Layout, is_number, list_of

CASINO_MAX_POINTS = 36.0
BUTTONS = ("Submit-Deal", "Accept-Deal", "Reject-Deal", "Walk-Away")


def _read_casino(entry: dict[str, Any]) -> Episode:
    roles = _casino_roles(entry)
    said = []
    for index, line in enumerate(list_of(entry, "chat_logs")):
        role = roles.get(str(line.get("id"))) if isinstance(line, dict) else None
        if role is None:
            raise BadEntry(f"chat_logs[{index}] needs the id of one of the participants")
        said.append(Utterance(role, line.get("text") or ""))
    moves = [place for place, line in enumerate(said) if str(line.text).strip() in BUTTONS]
    return Episode("", "", said, {}, {}, {"moves": moves})


def _casino_roles(entry: dict[str, Any]) -> dict[str, str]:
    people = entry["participant_info"]
    if not isinstance(people, dict) or len(people) != 2:
        raise BadEntry("participant_info must describe two people")
    return dict(zip(sorted(people), ROLE_NAMES, strict=True))


def _casino_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    rewards = {}
    for person, role in _casino_roles(entry).items():
        points = _points(entry["participant_info"][person])
        if points is not None and not is_number(points):
            raise BadEntry(f"points_scored of {person} is {points!r}: a number is needed")
        if points is not None:
            rewards[role] = points / CASINO_MAX_POINTS
    return rewards


def _points(person: Any) -> Any:
    outcomes = (person.get("outcomes") or {}) if isinstance(person, dict) else None
    if not isinstance(outcomes, dict):
        raise BadEntry("participant_info needs outcomes: {points_scored: number} for each person")
    return outcomes.get("points_scored")


LAYOUT = Layout(
    "casino",
    frozenset({"chat_logs", "participant_info"}),
    "casino",
    _read_casino,
    _casino_rewards,
)
