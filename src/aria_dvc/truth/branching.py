"""Games that go on from the turns of other games: with the action that was taken, or another one.

Everything that the first game held fixed stays as it was: its configuration (a hidden target with
it), its players, and what these draw once a game (the opponent that `scripted:varied` is). What
comes after the turn is drawn anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aria_dvc.arena.assignments import Assignment
from aria_dvc.arena.journal import Journal
from aria_dvc.arena.replay import replayed, unlike
from aria_dvc.arena.sessions import Games
from aria_dvc.chat import Line, view
from aria_dvc.errors import AriaError
from aria_dvc.games.base import Game, IllegalMove, Match, Outcome
from aria_dvc.records.episodes import Episode, Record
from aria_dvc.seeds import derived_seed
from aria_dvc.truth.turns import Turn

if TYPE_CHECKING:
    from aria_dvc.params import Params

RECORDED = 0  # the draw that is the recorded action; others count from 1


@dataclass(frozen=True)
class Branch:
    """Continuations of one game from one turn.

    draw: RECORDED, or which of the actions that are drawn at the turn.
    action: what is said at the turn; None where it is still to be drawn.
    numbers: of the continuations, among those of the draw.
    """

    turn: Turn
    draw: int
    action: str | None
    numbers: range

    @cached_property
    def _record(self) -> Record:
        return self.turn.episode.record

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is replayed."""
        said = [] if self.action is None else [(self.turn.role, self.action)]
        return (*self.turn.history, *said)

    def name(self, number: int) -> str:
        """The id of one continuation."""
        return f"{self.turn.name}.{self.draw}.{number}"

    def assignments(self, seed: int) -> Iterator[Assignment]:
        """One a continuation; each has a seed of its own, which follows from what it is alone."""
        record, lines = self._record, self.lines
        players = {role: player.name or "" for role, player in record.players.items()}
        for number in self.numbers:
            name = self.name(number)
            own = derived_seed(seed, name, self.action)
            group = record.group_id or self.turn.episode.episode_id
            yield Assignment(name, record.config, own, group, players, lines, record.seed)


@dataclass(frozen=True)
class Branching(Games):
    """The continuations of `branches`; log: names the games that they go on from."""

    branches: tuple[Branch, ...]
    log: str

    def _wanted(self, params: Params) -> list[Assignment]:
        which, parts = self.share
        mine = [b for b in self.branches if derived_seed(b.turn.name) % parts == which]
        seed = self._seed(params)
        return [assignment for branch in mine for assignment in branch.assignments(seed)]

    def trim(self, assignment: Assignment, episode: Episode) -> Episode:
        """What is said from the branch on, and how it ends."""
        info = {name: episode.info[name] for name in ("config", "seed", "failure")}
        said = episode.utterances[len(assignment.lines) :]
        return replace(episode, utterances=said, prompts={}, info=info)

    def _inputs(self, params: Params) -> dict[str, Any]:
        return {**super()._inputs(params), "log": self.log}

    def journal(self, params: Params) -> Journal:
        """Where its games are kept; they do not wait for the disk."""
        return Journal(self._inputs(params), synced=False)


def end_of(game: Game, turn: Turn, reward: str) -> Outcome | None:
    """The game's outcome if the action of `turn` ended it; None if it went on.

    Raises:
        AriaError: the game as it is now does not take the lines as they stand, or tells the
            turn's speaker otherwise.
    """
    record, lines = turn.episode.record, turn.history
    is_last = turn.place == len(turn.episode.utterances) - 1
    if is_last and record.failure is not None and record.failure.role == turn.role:
        match = replayed(game, record.config, reward, lines)
        match.forfeit(record.failure.kind, turn.text)
    else:
        match = replayed(game, record.config, reward, (*lines, (turn.role, turn.text)))
    _check_chat(game, turn, match)
    return match.outcome


def _check_chat(game: Game, turn: Turn, match: Match) -> None:
    """What is played on from must be what was played: rules are said otherwise from time to time.

    Raises:
        AriaError: the chat that the turn's speaker saw is not the one that it would see in `match`.
    """
    episode, prompt = turn.episode, match.system_prompt(turn.role)
    told = dict(enumerate(episode.record.told))
    then = view(turn.history, turn.role, episode.prompts.get(turn.role, prompt), told)
    if view(turn.history, turn.role, prompt, match.told) != then:
        raise unlike(game, turn.place, "what its speaker is told has changed since")


def is_end(game: Game, turn: Turn, reward: str, action: str) -> bool:
    """Whether an action that was drawn at `turn` ended the game there."""
    match = replayed(game, turn.episode.record.config, reward, turn.history)
    try:
        match.play(action)
    except IllegalMove:  # with which its speaker forfeited
        return True
    return match.outcome is not None


def played_by(episodes: Sequence[Episode]) -> dict[str, dict[str, float]]:
    """Role -> who played it in any of the games.

    Raises:
        AriaError: the games were not played here, so that nobody can go on with them.
    """
    found: dict[str, dict[str, float]] = {}
    for episode in episodes:
        record = episode.record
        if record.seed is None or not record.config or not record.players:
            raise AriaError(
                f"truth: episode {episode.episode_id} does not say by whom and with which seed it "
                "was played: name a log of games that were played here"
            )
        for role, player in record.players.items():
            found.setdefault(role, {})[player.name or ""] = 1.0
    return found
