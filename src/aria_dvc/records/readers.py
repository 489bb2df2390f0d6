"""Raw logs of every accepted layout, recognised by content, as checked episodes.

Layouts (see `LAYOUTS`):
    published_adversarial  JSON lines with `alice_actions` and `bob_actions`
    published_single       JSON lines with `actions` and `obs` (or `next_observations`)
    messages               JSON lines with `messages: [{role, content}]` and `rewards: {role: R}`
    guess_my_city          one JSON list of {conversation, done, word}
    casino                 one JSON list of CaSiNo dialogues ({chat_logs, participant_info})

Every problem is an AriaError that names the file, the line (or list entry) and the remedy.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode, Utterance

CASINO_MAX_POINTS = 36.0
ROLE_NAMES = ("alice", "bob")


class _BadEntry(Exception):
    """What is wrong with one entry; the caller adds where."""


@dataclass(frozen=True)
class Layout:
    """How one layout is recognised (keys that an entry has) and turned into an episode.

    read: the episode without its rewards. rewards: those of the roles that have one.
    """

    name: str
    keys: frozenset[str]
    game: str | None
    read: Callable[[dict[str, Any]], Episode]
    rewards: Callable[[dict[str, Any]], dict[str, Any]]


def read_log(path: str | Path, game: str | None = None, need_rewards: bool = True) -> list[Episode]:
    """All episodes of a log, in file order.

    Args:
        path: JSON lines, or one JSON list.
        game: the game's name for the episodes; default what the layout or the entry says.
        need_rewards: False leaves out the rewards of an entry where they are absent or odd (to
            score unseen dialogues).

    Raises:
        AriaError: unreadable file, broken or non-UTF-8 JSON, unknown layout, missing keys, lists
            of different lengths, an empty game, no action, a reward outside [0, 1], NaN or
            ragged embeddings, a duplicate id.
    """
    path = Path(path)
    episodes: list[Episode] = []
    seen: dict[str, str] = {}
    for number, (where, entry) in enumerate(_entries(path)):
        layout = _layout_of(entry, where)
        try:
            episode = layout.read(entry)
            _complete(episode, entry, game or layout.game, number)
            _check_texts(episode)
            episode.rewards = _rewards(episode, layout.rewards, entry, need_rewards)
            _check_vectors(episode, _width(episodes[0] if episodes else episode))
        except _BadEntry as problem:
            raise AriaError(f"{where}: {problem}") from None
        if episode.episode_id in seen:
            raise AriaError(
                f"{where}: episode_id {episode.episode_id} was already used at "
                f"{seen[episode.episode_id]}: give every episode its own id"
            )
        seen[episode.episode_id] = where
        episodes.append(episode)
    if not episodes:
        raise AriaError(f"{path}: no episodes: give a log with at least one dialogue")
    return episodes


def log_vectors(path: str | Path) -> np.ndarray | None:
    """The embeddings that a log carries, (n, d) float32 in dialogue order; None if it has none.

    Raises AriaError as `read_log` does.
    """
    said = [utterance for episode in read_log(path) for utterance in episode.utterances]
    vectors = [utterance.embedding for utterance in said if utterance.embedding is not None]
    return np.stack(vectors) if vectors else None


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) for every entry of a JSON list or of JSON lines (read line by line)."""
    try:
        with path.open("rb") as file:
            if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                file.seek(0)
            if _first_byte(file) == b"[":
                for index, entry in enumerate(_parse(file.read(), str(path)), start=1):
                    yield _an_object(entry, f"{path}: entry {index}")
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    where = f"{path}: line {number}"
                    yield _an_object(_parse(line, where), where)
    except OSError as error:
        raise AriaError(f"{path}: cannot be read ({error.strerror}): check the path") from None


def _first_byte(file: BinaryIO) -> bytes:
    """The next byte that is not white space; the file is put back to where it was."""
    start = file.tell()
    byte = file.read(1)
    while byte.isspace():
        byte = file.read(1)
    file.seek(start)
    return byte


def _parse(raw: bytes, where: str) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        broken = f"broken JSON ({error.msg} at column {error.colno}): one JSON object a line"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AriaError(f"{where}: not UTF-8 (byte {error.start}): save the log as UTF-8") from None
    raise AriaError(f"{where}: {broken}, without NaN or Infinity")


def _an_object(entry: Any, where: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict):
        raise AriaError(f"{where}: a JSON object is expected, got {type(entry).__name__}")
    return where, entry


def _layout_of(entry: dict[str, Any], where: str) -> Layout:
    for layout in LAYOUTS:
        if layout.keys <= entry.keys():
            return layout
    best = max(LAYOUTS, key=lambda layout: len(layout.keys & entry.keys()))
    missing = ", ".join(sorted(best.keys - entry.keys()))
    known = "; ".join(f"{layout.name}: {', '.join(sorted(layout.keys))}" for layout in LAYOUTS)
    if best.keys & entry.keys():
        raise AriaError(f"{where}: missing key {missing} of the {best.name} layout")
    raise AriaError(f"{where}: unknown layout; an entry needs the keys of one of: {known}")


def _complete(episode: Episode, entry: dict[str, Any], game: str | None, number: int) -> None:
    """Fill what the entry or the caller knows: id, game, recorded information."""
    given = entry.get("episode_id")
    episode.episode_id = f"{number:06d}" if given is None else str(given)
    episode.game = game or str(entry.get("game") or "dialogue")
    if isinstance(entry.get("info"), dict):
        episode.info.update(entry["info"])


def _check_texts(episode: Episode) -> None:
    if not episode.utterances:
        raise _BadEntry("empty game: a dialogue needs at least one utterance; remove the entry")
    for position, utterance in enumerate(episode.utterances):
        if not isinstance(utterance.text, str) or not utterance.text.strip():
            raise _BadEntry(
                f"utterance {position} ({utterance.role}) has no text: "
                "give a non-empty string or remove the entry"
            )


def _rewards(
    episode: Episode,
    read: Callable[[dict[str, Any]], dict[str, Any]],
    entry: dict[str, Any],
    needed: bool,
) -> dict[str, float]:
    """The checked final rewards of an entry; none instead of odd ones unless they are needed."""
    try:
        rewards = read(entry)
        bounded = episode.info.get("reward_rule") != "utility"
        for role, reward in rewards.items():
            _check_reward(role, reward, bounded)
        if not rewards:
            raise _BadEntry("no reward: give a final reward for at least one role")
        if not rewards.keys() & {utterance.role for utterance in episode.utterances}:
            raise _BadEntry("no action: a role with a reward must say something")
    except _BadEntry:
        if needed:
            raise
        return {}
    return rewards


def _check_reward(role: str, reward: Any, bounded: bool) -> None:
    """Final rewards lie in [0, 1]; only a utility recorded as such may be any finite number."""
    if not _is_number(reward) or not math.isfinite(reward):
        raise _BadEntry(f"reward of {role} is {reward!r}: a finite number is needed")
    if bounded and not 0.0 <= reward <= 1.0:
        raise _BadEntry(f"reward of {role} is {reward}, outside [0, 1]: rescale the final rewards")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_vectors(episode: Episode, width: int) -> None:
    """Every utterance carries a vector of `width` numbers, as the log's first does (0: none)."""
    for position, utterance in enumerate(episode.utterances):
        found = 0 if utterance.embedding is None else len(utterance.embedding)
        if found != width:
            raise _BadEntry(
                f"utterance {position} ({utterance.role}) has an embedding of {found} numbers "
                f"where the log starts with {width}: embed all of the log with one model, or none"
            )


def _width(episode: Episode) -> int:
    first = episode.utterances[0].embedding
    return 0 if first is None else len(first)


def _vector(value: Any, where: str) -> np.ndarray | None:
    """A (d,) float32 vector, or None where the log has none."""
    if value is None:
        return None
    try:
        vector = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.empty(0, np.float32)
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise _BadEntry(f"embedding of {where} must be a list of finite numbers")
    return vector


def _list(entry: dict[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    if not isinstance(value, list):
        raise _BadEntry(f"{key} must be a list, got {type(value).__name__}")
    return value


def _same_length(entry: dict[str, Any], left: str, right: str) -> None:
    if len(_list(entry, left)) != len(_list(entry, right)):
        raise _BadEntry(
            f"{left} has {len(entry[left])} elements and {right} has {len(entry[right])}: "
            "they must have the same length"
        )


def _utterances(entry: dict[str, Any], role: str, key: str, vectors: str) -> list[Utterance]:
    texts = _list(entry, key)
    if entry.get(vectors) is None:
        return [Utterance(role, text) for text in texts]
    _same_length(entry, key, vectors)
    return [
        Utterance(role, text, _vector(value, f"{key}[{i}]"))
        for i, (text, value) in enumerate(zip(texts, entry[vectors], strict=True))
    ]


def _read_adversarial(entry: dict[str, Any]) -> Episode:
    placed: dict[int, Utterance] = {}
    # `bob_actions_embeddings` is spelled so in the published logs.
    for role, vectors in (("alice", "alice_action_embeddings"), ("bob", "bob_actions_embeddings")):
        _same_length(entry, f"{role}_actions", f"{role}_ids")
        said = _utterances(entry, role, f"{role}_actions", vectors)
        for position, utterance in zip(entry[f"{role}_ids"], said, strict=True):
            if not isinstance(position, int) or position in placed:
                raise _BadEntry(f"{role}_ids: position {position!r} is not a free whole number")
            placed[position] = utterance
    if sorted(placed) != list(range(len(placed))):
        raise _BadEntry("alice_ids and bob_ids must together count 0, 1, 2, ... without gaps")
    prompts = {
        role: entry[key]
        for role, key in (("alice", "player_1_system_prompt"), ("bob", "player_2_system_prompt"))
        if isinstance(entry.get(key), str)
    }
    return Episode("", "", [placed[i] for i in sorted(placed)], {}, prompts)


def _adversarial_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    return {r: entry[f"{r}_reward"] for r in ROLE_NAMES if entry.get(f"{r}_reward") is not None}


def _read_single(entry: dict[str, Any]) -> Episode:
    observed = "obs" if entry.get("obs") is not None else "next_observations"
    actions = _utterances(entry, "agent", "actions", "action_embeddings")
    answers = _utterances(entry, "oracle", observed, "obs_embeddings")
    if not len(actions) - 1 <= len(answers) <= len(actions):
        raise _BadEntry(
            f"actions has {len(actions)} elements and {observed} has {len(answers)}: "
            "one observation follows every action (the last may have none)"
        )
    said = [u for pair in zip(actions, answers, strict=False) for u in pair]
    said += actions[len(answers) :]
    prompt = entry.get("system_prompt")
    return Episode("", "", said, {}, {"agent": prompt} if isinstance(prompt, str) else {})


def _single_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    """Published final rewards run from -1 (failure) to 0 (success); R runs from 0 to 1."""
    reward = entry.get("reward")
    if reward is None:
        return {}
    if not _is_number(reward) or not -1 <= reward <= 0:
        raise _BadEntry(f"reward is {reward!r}: this layout has a number between -1 and 0")
    return {"agent": float(reward) + 1.0}


def _read_messages(entry: dict[str, Any]) -> Episode:
    said = []
    for index, message in enumerate(_list(entry, "messages")):
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise _BadEntry(f"messages[{index}] needs the keys role and content")
        if message["role"] == "system":
            continue
        vector = _vector(message.get("embedding"), f"messages[{index}]")
        said.append(Utterance(str(message["role"]), message["content"], vector))
    prompts = entry.get("system_prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
        raise _BadEntry("system_prompts must map roles to texts")
    return Episode("", "", said, {}, prompts)


def _message_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    rewards = entry.get("rewards") or {}
    if not isinstance(rewards, dict):
        raise _BadEntry("rewards must map every acting role to a number")
    rewards = {role: reward for role, reward in rewards.items() if reward is not None}
    said = [str(message["role"]) for message in entry["messages"] if message["role"] != "system"]
    unheard = rewards.keys() - set(said)
    if unheard:
        raise _BadEntry(f"rewards names {', '.join(sorted(unheard))}, who says nothing")
    return rewards


def _read_city(entry: dict[str, Any]) -> Episode:
    said = []
    for index, turn in enumerate(_list(entry, "conversation")):
        if not isinstance(turn, str):
            raise _BadEntry(f"conversation[{index}] must be a string")
        question, mark, answer = turn.partition("?")
        said.append(Utterance("agent", (question + mark).strip()))
        if answer.strip():
            said.append(Utterance("oracle", answer.strip()))
    return Episode("", "", said, {}, {}, {"config": {"target": entry.get("word")}})


def _city_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    done = entry.get("done")
    if done is None:
        return {}
    if done not in (True, False):
        raise _BadEntry(f"done is {done!r}: true or false is needed")
    return {"agent": float(done)}


def _read_casino(entry: dict[str, Any]) -> Episode:
    roles = _casino_roles(entry)
    said = []
    for index, line in enumerate(_list(entry, "chat_logs")):
        role = roles.get(str(line.get("id"))) if isinstance(line, dict) else None
        if role is None:
            raise _BadEntry(f"chat_logs[{index}] needs the id of one of the participants")
        said.append(Utterance(role, line.get("text") or ""))
    return Episode("", "", said, {})


def _casino_roles(entry: dict[str, Any]) -> dict[str, str]:
    people = entry["participant_info"]
    if not isinstance(people, dict) or len(people) != 2:
        raise _BadEntry("participant_info must describe two people")
    return dict(zip(sorted(people), ROLE_NAMES, strict=True))


def _casino_rewards(entry: dict[str, Any]) -> dict[str, Any]:
    rewards = {}
    for person, role in _casino_roles(entry).items():
        points = _points(entry["participant_info"][person])
        if points is not None and not _is_number(points):
            raise _BadEntry(f"points_scored of {person} is {points!r}: a number is needed")
        if points is not None:
            rewards[role] = points / CASINO_MAX_POINTS
    return rewards


def _points(person: Any) -> Any:
    outcomes = (person.get("outcomes") or {}) if isinstance(person, dict) else None
    if not isinstance(outcomes, dict):
        raise _BadEntry("participant_info needs outcomes: {points_scored: number} for each person")
    return outcomes.get("points_scored")


LAYOUTS = (
    Layout(
        "published_adversarial",
        frozenset({"alice_actions", "bob_actions", "alice_ids", "bob_ids"}),
        None,
        _read_adversarial,
        _adversarial_rewards,
    ),
    Layout("messages", frozenset({"messages"}), None, _read_messages, _message_rewards),
    Layout(
        "guess_my_city",
        frozenset({"conversation", "word"}),
        "guess_my_city",
        _read_city,
        _city_rewards,
    ),
    Layout(
        "casino",
        frozenset({"chat_logs", "participant_info"}),
        "casino",
        _read_casino,
        _casino_rewards,
    ),
    Layout("published_single", frozenset({"actions"}), None, _read_single, _single_rewards),
)
