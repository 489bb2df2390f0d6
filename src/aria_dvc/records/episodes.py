"""Episodes in memory: who said what, what it was worth to whom, and how it was played."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

import orjson

from aria_dvc.records.names import KNOWLEDGE, PLAYABLE

if TYPE_CHECKING:
    import numpy as np


SYSTEM = "system"  # the role of instructions among the messages of a log; it never acts


@dataclass(slots=True)
class Utterance:
    """One utterance; `embedding` ((d,) float32) only if the log carried one.

    embedded: what its intention is found in, if that is not the text (see games/decided.py).
    given: somebody else's credit of it, where one is asked for (see given.py).
    message: what it was read from, where that calls tools or is a tool's reply, as OpenAI writes it
        but for the role: content (text), and tool_calls, or tool_call_id and name.
    """

    role: str
    text: str
    embedding: np.ndarray | None = None
    embedded: str | None = None
    given: float | None = None
    message: dict[str, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Episode:
    """One finished dialogue.

    rewards: final reward R of every role that acts (an utterance is an action if its role has one).
    prompts: system prompt per role, where the log has one.
    info: whatever else is recorded, as JSON; `record` is its typed form.
    preamble: the log's system messages before the first utterance; `prompts` holds what they say.
    named: speakers that the log calls by a name -> the role that they speak in (assistant, user).
    tools: the schemas of tools as the log has them, a list or its JSON; None where it has none.
    """

    episode_id: str
    game: str
    utterances: list[Utterance]
    rewards: dict[str, float]
    prompts: dict[str, str] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    preamble: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    tools: Any = field(default=None, compare=False, repr=False)

    def numbered(self) -> Iterator[tuple[int, Utterance]]:
        """Every utterance and its position: its place among all messages of the log, from 0."""
        return enumerate(self.utterances, start=len(self.preamble))

    @property
    def group_id(self) -> str:
        """Equal for episodes of one configuration that were played together; else the own id."""
        return self.record.group_id or self.episode_id

    @property
    def target(self) -> str:
        """What was to be guessed, in a guessing game; else empty."""
        named = self.record.config.get("target") if self.game in KNOWLEDGE else None
        return named if isinstance(named, str) else ""

    @property
    def failure(self) -> BrokenOff | None:
        """Who broke it off, in a game of ours; what other logs call a failure may be anything."""
        return self.record.failure if self.game in PLAYABLE else None

    @property
    def record(self) -> Record:
        """What `info` says; a change of it does not change `info`."""
        return Record.from_json(self.info)


@dataclass(frozen=True, slots=True)
class PlayerName:
    """Who played a role: the spec of params.yaml, and the model behind it.

    given: what a user's own log says instead of such a pair; None where it says that.
    """

    name: str | None = None
    model: str | None = None
    given: Any = None

    @classmethod
    def from_json(cls, value: Any) -> Self:
        said = value if isinstance(value, dict) else {}
        name, model = (text if isinstance(text := said.get(k), str) else None for k in _PLAYER)
        found = cls(name, model)
        return found if _bytes(found.to_json()) == _bytes(value) else cls(name, model, value)

    def to_json(self) -> Any:
        pairs = {"name": self.name, "model": self.model}
        known = {key: value for key, value in pairs.items() if value is not None}
        return known if self.given is None else self.given


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a role's prompts, and of what was generated for it, re-asks included."""

    prompt: int
    completion: int

    @classmethod
    def from_json(cls, value: Any) -> Self:
        return cls(value["prompt"], value["completion"])

    def to_json(self) -> dict[str, int]:
        return {"prompt": self.prompt, "completion": self.completion}


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """Which role could not go on, and the kind of failure."""

    role: str
    kind: str = ""

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        return None if value is None else cls(**{key: _str(v) for key, v in _dict(value).items()})

    def to_json(self) -> dict[str, str]:
        return {"role": self.role, **({"kind": self.kind} if self.kind else {})}


@dataclass(frozen=True, slots=True)
class Generation:
    """How the utterance at `position` was sampled: (t,) token ids and their log-probabilities."""

    position: int
    token_ids: list[int]
    logprobs: list[float] | None

    @classmethod
    def from_json(cls, value: Any) -> Self:
        return cls(value["position"], value["token_ids"], value["logprobs"])

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("position", "token_ids", "logprobs")}


@dataclass(frozen=True, slots=True)
class Refused:
    """A text that was no legal move, and the kind of its fault.

    position: where it stands in the dialogue, as the last line of a role that gave up with it; None
    where it does not stand there, since the role was asked again.
    """

    role: str
    kind: str
    text: str
    position: int | None = None

    @classmethod
    def from_json(cls, value: Any) -> Self:
        role, kind, text = (_str(value[name]) for name in ("role", "kind", "text"))
        position = value.get("position")
        return cls(role, kind, text, None if position is None else _int(position))

    def to_json(self) -> dict[str, Any]:
        said = {"role": self.role, "kind": self.kind, "text": self.text}
        return said if self.position is None else {**said, "position": self.position}


@dataclass(frozen=True, slots=True)
class SampledWith:
    """How a language model's tokens were drawn: softmax(logits / temperature) cut to `top_p`."""

    temperature: float = 1.0
    top_p: float = 1.0

    @classmethod
    def from_json(cls, value: Any) -> Self:
        return cls(_number(value["temperature"]), _number(value["top_p"]))

    def to_json(self) -> dict[str, float]:
        return {"temperature": self.temperature, "top_p": self.top_p}


@dataclass(slots=True)
class Record:
    """What is known about how an episode was played, beside the dialogue.

    config: of the game. seed: of the episode. reward_rule: one of REWARD_RULES.
    group_id: equal for episodes that share a configuration and were assigned together.
    players, tokens, reasks: by role; re-asks by the kind of illegal move.
    failure: who broke the game off. reason: how it ended. utilities: by role. details: numbers.
    reasked: positions of utterances that came after a re-ask, whose hint is not in the dialogue.
    reworded: positions of utterances that stand in other words than were said: a move without its
        message, a text without its label, silence.
    cut: positions of utterances that ended at the limit of tokens.
    refused: every text of every role that was no legal move, in the order said.
    grounded: by role, of each of its utterances whether the environment carried it out.
    told: of each utterance, what the game told its hearers, or empty; none where it told nothing.
    sampling: of roles that a language model played; of others, and in older files, temperature 1.
    generations: token ids of our own policy, if they were asked for.
    policy_version: whose games these are, in online training.
    extra: everything else, and what a user's own log has under these names in another form.
    keys: the names in the order read, so that writing gives the same bytes; None if not read.
    """

    config: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    group_id: str | None = None
    reward_rule: str | None = None
    players: dict[str, PlayerName] = field(default_factory=dict)
    tokens: dict[str, Tokens] = field(default_factory=dict)
    reasks: dict[str, dict[str, int]] = field(default_factory=dict)
    failure: BrokenOff | None = None
    reason: str | None = None
    utilities: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    reasked: list[int] = field(default_factory=list)
    reworded: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    grounded: dict[str, list[bool]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    sampling: dict[str, SampledWith] = field(default_factory=dict)
    generations: list[Generation] = field(default_factory=list)
    policy_version: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_json(cls, info: Mapping[str, Any]) -> Self:
        """The record that `info` (`Episode.info`, or the `info` column parsed) holds."""
        record = cls(keys=tuple(info))
        for name, value in info.items():
            found = _read(name, value)
            if found is _ODD:
                record.extra[name] = value
            else:
                setattr(record, name, found)
        return record

    def to_json(self) -> dict[str, Any]:
        """JSON-able; what was read comes out as it was, in the same order."""
        names = [spec.name for spec in fields(self) if spec.name not in ("extra", "keys")]
        if self.keys is None:
            names = [name for name in names if name not in _OPTIONAL or getattr(self, name)]
        else:
            later = [n for n in names if n not in self.keys and getattr(self, n) != _default(n)]
            names = [*self.keys, *later]
        mine = {n: self.extra[n] if n in self.extra else _plain(getattr(self, n)) for n in names}
        return {**mine, **self.extra}


_PLAYER = ("name", "model")
_OPTIONAL = (
    "reworded",
    "refused",
    "grounded",
    "told",
    "sampling",
    "generations",
    "group_id",
    "policy_version",
)
_ODD = object()


def without_broken_off(episodes: list[Episode]) -> list[Episode]:
    """Leaves out episodes that somebody without a reward broke off, such as a model as oracle.

    Their outcome says nothing about those who acted.
    """
    failures = [episode.failure for episode in episodes]
    return [
        episode
        for episode, failure in zip(episodes, failures, strict=True)
        if failure is None or failure.role in episode.rewards
    ]


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _int(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _ints(value: Any) -> list[int]:
    return [_int(item) for item in _list(value)]


def _bools(value: Any) -> list[bool]:
    found = _list(value)
    if not all(isinstance(item, bool) for item in found):
        raise TypeError(value)
    return found


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _by_role(read: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    return lambda value: {role: read(of_role) for role, of_role in _dict(value).items()}


_READ: dict[str, Callable[[Any], Any]] = {
    "config": _dict,
    "seed": _int,
    "group_id": _str,
    "reward_rule": _str,
    "players": _by_role(PlayerName.from_json),
    "tokens": _by_role(Tokens.from_json),
    "reasks": _by_role(_dict),
    "failure": BrokenOff.from_json,
    "reason": _str,
    "utilities": _dict,
    "details": _dict,
    "reasked": _ints,
    "reworded": _ints,
    "cut": _ints,
    "refused": lambda value: [Refused.from_json(item) for item in _list(value)],
    "grounded": _by_role(_bools),
    "told": lambda value: [_str(item) for item in _list(value)],
    "sampling": _by_role(SampledWith.from_json),
    "generations": lambda value: [Generation.from_json(item) for item in _list(value)],
    "policy_version": _str,
}


def _read(name: str, value: Any) -> Any:
    """The field's typed value; _ODD where it would not be written back as it was."""
    if name not in _READ:
        return _ODD
    try:
        found = _READ[name](value)
    except (AttributeError, KeyError, TypeError):
        return _ODD
    return found if _bytes(_plain(found)) == _bytes(value) else _ODD


def _plain(value: Any) -> Any:
    """The JSON-able form of a field."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.to_json() if hasattr(value, "to_json") else value


def _bytes(value: Any) -> bytes:
    return orjson.dumps(value)


def _default(name: str) -> Any:
    spec = next(spec for spec in fields(Record) if spec.name == name)
    return spec.default if spec.default_factory is MISSING else spec.default_factory()
