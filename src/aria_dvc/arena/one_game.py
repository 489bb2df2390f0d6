"""One game from its first turn to its outcome: asking, asking again, giving up, and the record.

What a player cannot do (an illegal move, again and again) is data: the episode ends and records
the failure. What the machinery cannot do (a server that is gone) is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from aria_dvc.arena.assignments import Assignment
from aria_dvc.arena.series import Series
from aria_dvc.arena.stats import Stats
from aria_dvc.chat import Line, Message
from aria_dvc.errors import AriaError
from aria_dvc.games.base import IllegalMove, Match
from aria_dvc.games.parsing import cut
from aria_dvc.players.base import Player, PlayerFailure, Reply, Request, Sampling
from aria_dvc.records.episodes import (
    BrokenOff,
    Episode,
    Generation,
    PlayerName,
    Record,
    Refused,
    Tokens,
    Utterance,
)
from aria_dvc.seeds import derived_seed

# Failures of a player that belong to its play, not to the machinery.
OWN_FAULTS = frozenset({"context_full", "request_refused", "no_answer"})
NOTHING_SAID = "(no reply)"


@dataclass
class _Usage:
    """What one role's turns cost in one episode."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasks: Counter[str] = field(default_factory=Counter)

    def add(self, reply: Reply) -> None:
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens


async def play_episode(
    series: Series, assignment: Assignment, match: Match, stats: Stats
) -> Episode:
    """Play `match`, which is that of the assignment, from where it stands to its outcome."""
    prompts = {role: match.system_prompt(role) for role in series.game.roles}
    cast = series.cast(assignment)
    usages = {role: _Usage() for role in cast}
    said: dict[int, _AcceptedReply] = {}  # by position in the dialogue
    turn = 0
    refused: list[Refused] = []
    while (role := match.to_move) is not None:
        one = _Turn(series, assignment, match, stats, role, turn, usages[role])
        position = len(match.lines)  # lines of others may follow at once
        taken = await one.take()
        if taken is not None:
            said[position] = taken
        refused += one.refused
        turn += 1
    for player in set(cast.values()):
        player.finished(assignment.episode_id)
    return Episode(
        episode_id=assignment.episode_id,
        game=series.game.name,
        utterances=[Utterance(role, text) for role, text in match.lines or _silence(match)],
        rewards=dict(match.outcome.rewards) if match.outcome else {},
        prompts=prompts,
        info=_record(series, assignment, match, usages, said, refused).to_json(),
    )


@dataclass(frozen=True)
class _AcceptedReply:
    """The reply that became a line of the dialogue, and how many re-asks came before it."""

    reply: Reply
    reasks: int


@dataclass
class _Turn:
    """One turn: ask, re-ask after illegal moves, forfeit in the end."""

    series: Series
    assignment: Assignment
    match: Match
    stats: Stats
    role: str
    turn: int
    usage: _Usage
    refused: list[Refused] = field(default_factory=list)

    async def take(self) -> _AcceptedReply | None:
        """Play the role's move, or forfeit with the last text; None if that left no line."""
        hint, kind = "", "no_reply"
        last: _AcceptedReply | None = None
        for attempt in range(self.series.settings.max_reasks + 1):
            try:
                reply = await self._ask(attempt, hint)
                if reply.text.strip():
                    last = _AcceptedReply(reply, attempt)
                self.match.play(reply.text)
                return _AcceptedReply(reply, attempt)
            except IllegalMove as error:
                hint, kind = error.hint, error.kind
                self.usage.reasks[kind] += 1
                self.refused.append(Refused(self.role, kind, cut(reply.text)))
                self.stats.refused += 1
            except PlayerFailure as failure:
                if failure.kind not in OWN_FAULTS:
                    raise AriaError(
                        f"player {self._player.name} as {self.role}: {failure}"
                    ) from None
                kind = failure.kind
                break
        position = len(self.match.lines)
        self.match.forfeit(kind, last.reply.text.strip() if last else "")
        if len(self.match.lines) == position:
            return None
        self._note_last_line(position)
        return last

    def _note_last_line(self, position: int) -> None:
        """The text that the role gave up with is the line at `position` of the dialogue."""
        for index in reversed(range(len(self.refused))):
            if self.refused[index].text:
                self.refused[index] = replace(self.refused[index], position=position)
                break

    async def _ask(self, attempt: int, hint: str) -> Reply:
        reads_chat = getattr(self._player, "reads_chat", True)
        request = Request(
            episode_id=self.assignment.episode_id,
            role=self.role,
            messages=with_hint(self.match.messages(self.role), hint) if reads_chat else [],
            match=self.match,
            seed=derived_seed(self.assignment.seed, self.role, self.turn, attempt),
            episode_seed=self._character,
        )
        reply = await self._player.reply(request)
        self.usage.add(reply)
        self.stats.count_reply(reply)
        return reply

    @property
    def _player(self) -> Player:
        return self.series.cast(self.assignment)[self.role]

    @property
    def _character(self) -> int:
        own = self.assignment.character
        return self.assignment.seed if own is None else own


def _reworded(match: Match, said: Mapping[int, _AcceptedReply]) -> list[int]:
    """Where the dialogue has other words than a player said, or the note that it said none."""
    if not match.lines:
        return [0]
    return [at for at, one in said.items() if match.lines[at][1] != one.reply.text.strip()]


def _silence(match: Match) -> list[Line]:
    """A log has no dialogue without any text: the line of a role that never said a thing."""
    failure = match.outcome.failure if match.outcome else None
    return [(failure.role if failure else match.roles[0], NOTHING_SAID)]


def with_hint(messages: list[Message], hint: str) -> list[Message]:
    """The chat with `hint` at the end of its last message, for one retry only."""
    if not hint:
        return messages
    last = messages[-1]
    return [*messages[:-1], {**last, "content": f"{last['content']}\n\n[{hint}]"}]


def _record(
    series: Series,
    assignment: Assignment,
    match: Match,
    usages: Mapping[str, _Usage],
    said: Mapping[int, _AcceptedReply],
    refused: list[Refused],
) -> Record:
    """Everything that is kept of how a finished match was played."""
    outcome = match.outcome
    assert outcome is not None
    failure, players = outcome.failure, series.cast(assignment).items()
    return Record(
        config=dict(assignment.config),
        seed=assignment.seed,
        group_id=assignment.group_id,
        reward_rule=series.reward,
        players={role: PlayerName(player.name, player.model) for role, player in players},
        tokens={r: Tokens(u.prompt_tokens, u.completion_tokens) for r, u in usages.items()},
        reasks={role: dict(usage.reasks) for role, usage in usages.items()},
        failure=BrokenOff(failure.role, failure.kind) if failure else None,
        reason=outcome.reason,
        utilities=dict(outcome.utilities),
        details=dict(outcome.details),
        reasked=[position for position, one in said.items() if one.reasks],
        reworded=_reworded(match, said),
        cut=[position for position, one in said.items() if one.reply.cut],
        refused=refused,
        grounded={role: list(carried_out) for role, carried_out in match.grounded.items()},
        told=[match.told.get(place, "") for place in range(len(match.lines))] if match.told else [],
        sampling={
            role: player.sampling
            for role, player in players
            if role in match.roles and isinstance(player, Sampling)
        },
        generations=[
            Generation(position, one.reply.token_ids, one.reply.logprobs)
            for position, one in said.items()
            if one.reply.token_ids is not None
        ],
    )
