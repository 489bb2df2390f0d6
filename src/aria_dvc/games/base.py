"""What a game is: a state machine that any players can drive by text.

A `Match` is one game in play. The caller asks `to_move`, gets that role's text from a player and
calls `play`; only `play` changes the state, and only by what its strict parser reads in the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aria_dvc.chat import Line, Message, view
from aria_dvc.errors import AriaError
from aria_dvc.suggestions import did_you_mean

Config = dict[str, Any]  # JSON-able parameters of one match, e.g. {"money": 100, "delta_a": 0.9}


class IllegalMove(Exception):
    """A text that the game cannot take. `kind` is a short snake_case name, `hint` a re-ask."""

    def __init__(self, kind: str, hint: str) -> None:
        super().__init__(hint)
        self.kind = kind
        self.hint = hint


@dataclass(frozen=True)
class Failure:
    """Why a match ended early: which role could not go on, and the kind."""

    role: str
    kind: str


@dataclass(frozen=True)
class Outcome:
    """The end of a match.

    rewards: final R per playing role under the game's reward rule, see rewards.py.
    utilities: the role's own utility (empty for single-agent games).
    reason: how it ended, e.g. "agreement", "no_deal", "outside_option", "solved", "turn_limit",
        "failure".
    details: numbers worth keeping (efficiency, fairness, round, price, shares).
    """

    rewards: dict[str, float]
    reason: str
    utilities: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


class Match(ABC):
    """One game in play between `roles`; `lines` is everything said so far.

    told: by place of a line, what the game tells those who hear it.
    grounded: by role, of each of its lines whether the environment carried it out; no entry where
    no environment does that.
    """

    game: str
    config: Config
    roles: Sequence[str]

    def __init__(self, config: Config) -> None:
        self.config = config
        self.lines: list[Line] = []
        self.grounded: dict[str, list[bool]] = {}
        self.told: dict[int, str] = {}
        self.outcome: Outcome | None = None

    @property
    @abstractmethod
    def to_move(self) -> str | None:
        """The role whose turn it is; None when the match is over."""

    @abstractmethod
    def system_prompt(self, role: str) -> str:
        """What a language model in `role` is told about the rules and its own position."""

    @abstractmethod
    def play(self, text: str) -> None:
        """Take the text of `to_move`.

        Raises:
            IllegalMove: the text is not a legal move; the state is unchanged.
        """

    @abstractmethod
    def forfeit(self, kind: str, text: str = "") -> None:
        """End the match because `to_move` could not make a legal move (`kind`).

        That is worth 0 to its role, and to another one what an end without a deal is worth.
        The last unusable `text` is kept as that role's final line, cleaned and cut.
        """

    def messages(self, role: str) -> list[Message]:
        """The chat that a language model in `role` sees now."""
        return view(self.lines, role, self.system_prompt(role), self.told)


class Game(ABC):
    """A kind of match: names, roles and the grids of configurations."""

    name: str
    category: str  # whose policy plays it: "adversarial", "single_agent" or "household"
    roles: tuple[str, ...]  # roles that act and are rewarded: ("alice", "bob") or ("agent",)
    environment: str | None  # the role that answers (e.g. "oracle"), or None

    @abstractmethod
    def grids(self) -> Mapping[str, Sequence[Config]]:
        """Named grids of configurations; every game has "default"."""

    def grid(self, name: str) -> Sequence[Config]:
        """The configurations of one grid.

        Raises:
            AriaError: the game has no such grid.
        """
        grids = self.grids()
        if name not in grids:
            raise AriaError(f"{self.name} has no grid {name}{did_you_mean(name, grids)}")
        return grids[name]

    def winnable(self, config: Config, role: str) -> bool:
        """Whether `role` can win against an opponent that never agrees to its own loss."""
        return True

    def task_kind(self, config: Config) -> str | None:
        """The kind of task that a configuration is, for figures by kind; None without kinds."""
        return None

    @abstractmethod
    def start(self, config: Config, reward: str = "win") -> Match:
        """A fresh match. `reward` names the reward rule (rewards.py); other games ignore it.

        Raises:
            AriaError: the configuration is not one of this game's.
        """


def refuse_unknown_keys(game: str, config: Config, known: list[str]) -> None:
    """Raises AriaError for a key that the game does not have, with the nearest one."""
    for key in config:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise AriaError(f"{game}: the configuration has an unknown key {key}{hint}")
