"""Dialogues as training sequences: one per episode and acting role, every turn of it at once.

The textbook sums log pi(a_t | h_t) turn by turn and so encodes the same history again at every
turn. A causal model sees h_t when it reads position t of the whole dialogue, so one sequence
serves all turns, each token carrying the index of the action that it belongs to. The token ids
come from the renderer that the players sample with, segment by segment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from aria_dvc.chat import Line, Message, Renderer, view
from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Record

if TYPE_CHECKING:
    import pandas as pd

NO_ACTION = -1
Key = tuple[str, str, int]  # (log, episode_id, position): one action


def keys_of(log: str, table: pd.DataFrame) -> list[Key]:
    """The key of every row of one of a log's tables."""
    places = zip(table["episode_id"], table["position"], strict=True)
    return [(log, str(episode), int(at)) for episode, at in places]


def keyed_rows(log: str, table: pd.DataFrame) -> Iterator[tuple[Key, Any]]:
    """Every row with its key."""
    return zip(keys_of(log, table), table.itertuples(index=False), strict=True)


class SampledAt(NamedTuple):
    """How an action's tokens were drawn: softmax(logits / temperature), cut to its nucleus."""

    temperature: float = 1.0
    top_p: float = 1.0


PLAIN = SampledAt()


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One role's dialogue, or a window of it.

    input_ids: (L,) int64 token ids.
    action: (L,) int32, the index into `keys` of the action that a token belongs to, end-of-turn
        token included; -1 for everything else and for actions that another window trains.
    keys: (A,) the actions, in the order of the dialogue.
    sampled: how the actions were sampled.
    scores: (L,) float32 arrays by name: what an objective wants to know of every trained token
        besides the action's value, e.g. its log-probability before the first step.
    """

    log: str
    episode_id: str
    role: str
    input_ids: np.ndarray
    action: np.ndarray
    keys: tuple[Key, ...]
    sampled: SampledAt = PLAIN
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.input_ids)

    def silent(self) -> Example:
        """The same tokens without any action to train."""
        return replace(self, action=np.full_like(self.action, NO_ACTION), keys=())


@dataclass(slots=True)
class Examples:
    """Training sequences and what truncation did to them.

    cut: actions whose history was cut to its most recent turns; dropped: actions that are
    themselves longer than the limit.
    """

    items: list[Example]
    cut: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class LogFrames:
    """The tables of one log: its name, and frames as records/schemas.py describes them."""

    name: str
    turns: pd.DataFrame
    episodes: pd.DataFrame
    rewards: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What one role saw and said. positions: (A,) of its messages, as the turns table has them.

    Consecutive utterances of one side are one message; its action is the last of them.
    """

    log: str
    episode_id: str
    role: str
    messages: list[Message]
    positions: list[int] = field(default_factory=list)
    sampled: SampledAt = PLAIN


def dialogues(turns: pd.DataFrame, episodes: pd.DataFrame) -> Iterator[Dialogue]:
    """The dialogues of every acting role, in the order of `turns`.

    Args:
        turns: rows in dialogue order (see records/tables.py).
        episodes: system prompt per (episode_id, role), a missing one counts as empty; and `info`,
            which says how a role's utterances were sampled.
    """
    prompts = {
        (row.episode_id, row.role): row.system_prompt or ""
        for row in episodes[["episode_id", "role", "system_prompt"]].itertuples(index=False)
    }
    infos = dict(zip(episodes["episode_id"], episodes["info"], strict=True))
    for episode_id, rows in turns.groupby("episode_id", sort=False):
        info = orjson.loads(infos.get(episode_id, "{}"))
        sampled, told = sampling_of(info), told_of(info)
        lines: list[Line] = list(zip(rows["role"], rows["text"], strict=True))
        position = rows["position"].tolist()
        for role in dict.fromkeys(rows.loc[rows["is_action"], "role"]):
            messages = view(lines, role, prompts.get((episode_id, role), ""), told)
            yield Dialogue(
                log=str(rows["game"].iloc[0]),
                episode_id=str(episode_id),
                role=str(role),
                messages=messages,
                positions=[position[place] for place in _last_lines(lines, role)],
                sampled=sampled.get(role, PLAIN),
            )


def told_of(info: Mapping[str, Any]) -> dict[int, str]:
    """Place of a line -> what the game told its hearers, from what is recorded of an episode."""
    return dict(enumerate(Record.from_json({"told": info.get("told", [])}).told))


def sampling_of(info: Mapping[str, Any]) -> dict[str, SampledAt]:
    """role -> how its utterances were sampled, from what is recorded of an episode.

    A role is missing that no language model of ours played, or whose model was greedy: nothing
    was drawn then, and training scores the plain distribution. A log of the user's own may have
    anything under this name.
    """
    recorded = info.get("sampling")
    found = recorded if isinstance(recorded, dict) else {}
    return {
        role: SampledAt(float(how.get("temperature", 1.0)), float(how.get("top_p", 1.0)))
        for role, how in found.items()
        if isinstance(how, dict) and _is_sampling(how)
    }


def _is_sampling(how: dict[str, Any]) -> bool:
    values = [how.get("temperature", 1.0), how.get("top_p", 1.0)]
    return all(isinstance(value, int | float) and value > 0 for value in values) and values[1] <= 1


def _last_lines(lines: Sequence[Line], role: str) -> list[int]:
    """Places of the lines by `role` that are not followed by another of its lines."""
    speakers = [speaker for speaker, _ in lines] + [None]
    return [i for i in range(len(lines)) if speakers[i] == role != speakers[i + 1]]


def build_examples(
    found: Iterator[Dialogue] | Sequence[Dialogue], renderer: Renderer, max_tokens: int
) -> Examples:
    """Tokenise dialogues; split those longer than `max_tokens` into windows.

    Every action is trained exactly once. While the dialogue fits, its history is complete. After
    that a window starts with the system prompt and the most recent whole exchanges, leaves room
    for about as many new tokens as it repeats, and trains only the new actions: what they see is
    a chat that a player with the same limit could be given, never half an utterance.
    """
    result = Examples([])
    for dialogue in found:
        _add_windows(dialogue, renderer, max_tokens, result)
    return result


def _add_windows(dialogue: Dialogue, renderer: Renderer, max_tokens: int, result: Examples) -> None:
    done = 0  # actions placed so far
    whole = _encode(dialogue, renderer, 0)
    while done < len(dialogue.positions):
        start = 0 if done == 0 else _window_start(dialogue, renderer, max_tokens, done)
        ids, action = whole if not start else _encode(dialogue, renderer, start)
        last = _last_fitting(action, max_tokens)
        if start is None or last < done:
            result.dropped += 1
            done += 1
            continue
        result.items.append(_example(dialogue, ids, action, done, last))
        result.cut += (last + 1 - done) if start else 0
        done = last + 1


def _encode(
    dialogue: Dialogue, renderer: Renderer, start: int, end: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and action indices of the system prompt and the messages from `start` to `end`."""
    head = 1 if dialogue.messages[0]["role"] == "system" else 0
    messages = dialogue.messages[:head] + dialogue.messages[max(head, start) : end]
    skipped = sum(m["role"] == "assistant" for m in dialogue.messages[head : max(head, start)])
    ids: list[int] = []
    action: list[int] = []
    index = skipped
    for text, is_action in renderer.segments(messages):
        tokens = renderer.encode(text)
        ids += tokens
        action += [index if is_action else NO_ACTION] * len(tokens)
        index += is_action
    return np.array(ids, dtype=np.int64), np.array(action, dtype=np.int32)


def _last_fitting(action: np.ndarray, max_tokens: int) -> int:
    """Index of the last action whose final token lies within `max_tokens`; -1 if none does."""
    inside = action[:max_tokens].max(initial=NO_ACTION)
    if len(action) > max_tokens and action[max_tokens] == inside:
        inside -= 1
    return int(inside)


def _window_start(
    dialogue: Dialogue, renderer: Renderer, max_tokens: int, first: int
) -> int | None:
    """First message of a window in which action `first` ends near the middle, or fits at all.

    None if the other side said nothing after the beginning.
    """
    starts = [i for i, m in enumerate(dialogue.messages) if m["role"] == "user"]
    ends = [i for i, m in enumerate(dialogue.messages) if m["role"] == "assistant"]
    candidates = [i for i in starts if 0 < i < ends[first]]
    if not candidates:
        return None

    def fits(candidate: int) -> bool:
        ids, _ = _encode(dialogue, renderer, candidate, ends[first] + 1)
        return len(ids) <= max_tokens // 2

    # the later a window starts, the shorter it is
    found = bisect_left(candidates, True, key=fits)
    return candidates[min(found, len(candidates) - 1)]


def _example(
    dialogue: Dialogue, ids: np.ndarray, action: np.ndarray, first: int, last: int
) -> Example:
    """Actions first..last as an example; nothing after the last one is kept."""
    end = int(np.flatnonzero(action == last)[-1]) + 1
    kept = np.where(action[:end] >= first, action[:end] - first, NO_ACTION).astype(np.int32)
    keys = [(dialogue.log, dialogue.episode_id, p) for p in dialogue.positions[first : last + 1]]
    return Example(
        dialogue.log,
        dialogue.episode_id,
        dialogue.role,
        ids[:end],
        kept,
        tuple(keys),
        dialogue.sampled,
    )


def with_values(
    examples: Sequence[Example], values: Mapping[Key, float], keep_zero: bool = False
) -> list[tuple[Example, np.ndarray]]:
    """Pair each example with its actions' values, (A,) float32, NaN where there is none.

    An action without a value trains nothing: the example ends after its last one with a value, and
    is left out if there is none. Nor does (unless `keep_zero`) an action of value 0: tokens that
    only such actions need are cut, all of them perhaps, but the actions still count in their batch.
    """
    paired = []
    for example in examples:
        weight = np.array([values.get(key, np.nan) for key in example.keys], dtype=np.float32)
        known = np.flatnonzero(~np.isnan(weight))
        if known.size:
            end = int(known[-1]) + 1
            trained = known if keep_zero else known[weight[known] != 0.0]
            last = int(trained[-1]) if trained.size else -1
            paired.append((_until(example, last, end), weight[:end]))
    return paired


def _until(example: Example, last: int, end: int) -> Example:
    """`example` with its first `end` actions, without the tokens after its action `last`."""
    tokens = int(np.flatnonzero(example.action == last)[-1]) + 1 if last >= 0 else 0
    return replace(
        example,
        input_ids=example.input_ids[:tokens],
        action=example.action[:tokens],
        keys=example.keys[:end],
        scores={name: values[:tokens] for name, values in example.scores.items()},
    )


def frames_examples(frames: Sequence[LogFrames], renderer: Renderer, max_tokens: int) -> Examples:
    """The examples of several logs' tables, one log after the other.

    Raises:
        AriaError: no action fits into `max_tokens`.
    """
    result = build_examples(frames_dialogues(frames), renderer, max_tokens)
    if result.dropped and not result.items:
        raise AriaError(
            f"none of {result.dropped} actions fits into max_tokens: {max_tokens}: raise it above "
            "the length of the system prompt and one exchange"
        )
    return result


def frames_dialogues(frames: Sequence[LogFrames]) -> list[Dialogue]:
    """The dialogues of several logs' tables, one log after the other."""
    return [found for log in frames for found in dialogues(log.turns, log.episodes)]


def digest(paired: Sequence[tuple[Example, np.ndarray]]) -> Any:
    """A hash object over ids, actions and values: equal inputs train equal models."""
    import hashlib

    state = hashlib.sha256()
    for example, values in paired:
        named = (example.log, example.episode_id, example.role, tuple(example.sampled))
        state.update(repr(named).encode())
        for array in (example.input_ids, example.action, values):
            state.update(np.ascontiguousarray(array).tobytes())
    return state
