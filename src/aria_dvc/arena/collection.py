"""Many games at once: every game is a coroutine that waits for nothing but its own players.

What a player cannot do (an illegal move, again and again) is data: the episode ends and records
the failure. What the machinery cannot do (a server that is gone) ends the run, and what was
finished stays in the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from aria_dvc.arena.assignments import Assignment, check_players
from aria_dvc.arena.journal import Journal
from aria_dvc.arena.stats import Stats
from aria_dvc.chat import Line, Message
from aria_dvc.errors import AriaError
from aria_dvc.games.base import Game, IllegalMove, Match
from aria_dvc.games.parsing import cut
from aria_dvc.players.base import Player, PlayerFailure, Reply, Request, Sampling
from aria_dvc.progress import progress_bar
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
from aria_dvc.settings import Pace, PlaySettings

logger = logging.getLogger(__name__)
# Failures of a player that belong to its play, not to the machinery.
OWN_FAULTS = frozenset({"context_full", "request_refused", "no_answer"})
NOTHING_SAID = "(no reply)"
LONGEST_WATCH_S = 10.0


@dataclass
class _Usage:
    """What one role's turns cost in one episode."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasks: Counter[str] = field(default_factory=Counter)

    def add(self, reply: Reply) -> None:
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens


def collect_episodes(
    game: Game,
    assignments: Sequence[Assignment],
    players: Mapping[str, Player],
    settings: PlaySettings,
    pace: Pace,
    *,
    reward: str = "win",
    journal: Journal | None = None,
    title: str = "",
) -> list[Episode]:
    """Play all assignments (`play_all`) from code that is not asynchronous; players are closed."""

    async def run() -> list[Episode]:
        try:
            return await play_all(
                game,
                assignments,
                players,
                settings,
                pace,
                reward=reward,
                journal=journal,
                title=title,
            )
        finally:
            for player in set(players.values()):
                await player.close()

    return asyncio.run(run())


async def play_all(
    game: Game,
    assignments: Sequence[Assignment],
    players: Mapping[str, Player],
    settings: PlaySettings,
    pace: Pace,
    *,
    reward: str = "win",
    journal: Journal | None = None,
    title: str = "",
) -> list[Episode]:
    """Play all assignments, at most `pace.in_flight` at once.

    Args:
        players: one for every role of the game and its environment, or for every name that the
            assignments give; they may be the same.
        reward: the game's reward rule.
        journal: finished episodes are taken from it, new ones are added to it.

    Returns:
        The episodes in the order of `assignments`.

    Raises:
        AriaError: a role has no player, a player could not be reached within its deadline, or
            another process plays the same games.
    """
    if not all(assignment.players for assignment in assignments):
        check_players(game, players)
    title = title or game.name
    with journal.held() if journal else nullcontext(), progress_bar(title) as update:
        finished = from_journal(journal, assignments)
        collection = _Collection(game, players, settings, pace, reward, journal, finished)
        stats = Stats(title, len(assignments), len(finished), update)
        await _run_all(collection, [a for a in assignments if a.episode_id not in finished], stats)
    logger.info(stats.summary())
    return [finished[assignment.episode_id] for assignment in assignments]


def from_journal(journal: Journal | None, assignments: Sequence[Assignment]) -> dict[str, Episode]:
    """Journal episodes that are among the assignments, same configuration and seed included."""
    done = journal.read() if journal else {}
    found = {}
    for assignment in assignments:
        episode = done.get(assignment.episode_id)
        if episode is None:
            continue
        record = episode.record
        if (record.config, record.seed) == (dict(assignment.config), assignment.seed):
            found[episode.episode_id] = episode
    return found


@dataclass
class _Collection:
    """What all games of one collection share."""

    game: Game
    players: Mapping[str, Player]
    settings: PlaySettings
    pace: Pace
    reward: str
    journal: Journal | None
    finished: dict[str, Episode]

    def cast(self, assignment: Assignment) -> dict[str, Player]:
        """Who has each role of an episode, the environment's included."""
        roles = [role for role in (*self.game.roles, self.game.environment) if role]
        return {role: self.players[assignment.players.get(role, role)] for role in roles}


async def _run_all(collection: _Collection, todo: Iterable[Assignment], stats: Stats) -> None:
    """Play `todo` with `in_flight` workers; the first error ends them all."""
    queue = iter(todo)
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_watch(collection, stats))
            workers = [
                group.create_task(_work(collection, queue, stats))
                for _ in range(collection.pace.in_flight)
            ]
            await asyncio.gather(*workers)
            watch.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors, collection, stats) from None


def _first(errors: BaseExceptionGroup, collection: _Collection, stats: Stats) -> BaseException:
    """The first of several errors; one for the user also tells what was kept."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, AriaError):
        return error
    kept = f"; {stats.done} of {stats.total} episodes are kept and will not be played again"
    return AriaError(f"{collection.game.name}: {error}{kept if collection.journal else ''}")


async def _work(collection: _Collection, queue: Iterator[Assignment], stats: Stats) -> None:
    for assignment in queue:
        episode = await play_episode(collection, assignment, stats)
        if collection.journal:
            collection.journal.append(episode)
        collection.finished[assignment.episode_id] = episode
        stats.count_episode(episode)


async def _watch(collection: _Collection, stats: Stats) -> None:
    """End a run in which nothing moves."""
    limit = collection.pace.deadline_s
    while True:
        await asyncio.sleep(min(LONGEST_WATCH_S, limit / 4))
        if stats.idle() > limit:
            raise AriaError(
                f"no player has answered for {limit:.0f} s: see that servers answer, "
                "or raise pace.deadline_s in params.yaml"
            )


async def play_episode(collection: _Collection, assignment: Assignment, stats: Stats) -> Episode:
    """One game from its first turn to its outcome."""
    match = collection.game.start(assignment.config, collection.reward)
    prompts = {role: match.system_prompt(role) for role in collection.game.roles}
    cast = collection.cast(assignment)
    usages = {role: _Usage() for role in cast}
    said: dict[int, _AcceptedReply] = {}  # by position in the dialogue
    turn = 0
    refused: list[Refused] = []
    while (role := match.to_move) is not None:
        one = _Turn(collection, assignment, match, role, turn, usages[role], stats)
        taken = await one.take()
        if taken is not None:
            said[len(match.lines) - 1] = taken
        refused += one.refused
        turn += 1
    for player in set(cast.values()):
        player.finished(assignment.episode_id)
    return Episode(
        episode_id=assignment.episode_id,
        game=collection.game.name,
        utterances=[Utterance(role, text) for role, text in match.lines or _silence(match)],
        rewards=dict(match.outcome.rewards) if match.outcome else {},
        prompts=prompts,
        info=_record(collection, assignment, match, usages, said, refused).to_json(),
    )


@dataclass(frozen=True)
class _AcceptedReply:
    """The reply that became a line of the dialogue, and how many re-asks came before it."""

    reply: Reply
    reasks: int


@dataclass
class _Turn:
    """One turn: ask, re-ask after illegal moves, forfeit in the end."""

    collection: _Collection
    assignment: Assignment
    match: Match
    role: str
    turn: int
    usage: _Usage
    stats: Stats
    refused: list[Refused] = field(default_factory=list)

    async def take(self) -> _AcceptedReply | None:
        """Play the role's move, or forfeit with the last text; None if that left no line."""
        hint, kind = "", "no_reply"
        last: _AcceptedReply | None = None
        for attempt in range(self.collection.settings.max_reasks + 1):
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
        lines = len(self.match.lines)
        self.match.forfeit(kind, last.reply.text.strip() if last else "")
        if len(self.match.lines) == lines:
            return None
        self._note_last_line()
        return last

    def _note_last_line(self) -> None:
        """The text that the role gave up with is the last line of the dialogue."""
        for index in reversed(range(len(self.refused))):
            if self.refused[index].text:
                position = len(self.match.lines) - 1
                self.refused[index] = replace(self.refused[index], position=position)
                break

    async def _ask(self, attempt: int, hint: str) -> Reply:
        episode_id = self.assignment.episode_id
        request = Request(
            episode_id=episode_id,
            role=self.role,
            messages=with_hint(self.match.messages(self.role), hint),
            match=self.match,
            seed=derived_seed(self.assignment.seed, self.role, self.turn, attempt),
            episode_seed=self.assignment.seed,
        )
        reply = await self._player.reply(request)
        self.usage.add(reply)
        self.stats.count_reply(reply)
        return reply

    @property
    def _player(self) -> Player:
        return self.collection.cast(self.assignment)[self.role]


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
    collection: _Collection,
    assignment: Assignment,
    match: Match,
    usages: Mapping[str, _Usage],
    said: Mapping[int, _AcceptedReply],
    refused: list[Refused],
) -> Record:
    """Everything that is kept of how a finished match was played."""
    outcome = match.outcome
    assert outcome is not None
    failure, players = outcome.failure, collection.cast(assignment).items()
    return Record(
        config=dict(assignment.config),
        seed=assignment.seed,
        group_id=assignment.group_id,
        reward_rule=collection.reward,
        players={role: PlayerName(player.name, player.model) for role, player in players},
        tokens={r: Tokens(u.prompt_tokens, u.completion_tokens) for r, u in usages.items()},
        reasks={role: dict(usage.reasks) for role, usage in usages.items()},
        failure=BrokenOff(failure.role, failure.kind) if failure else None,
        reason=outcome.reason,
        utilities=dict(outcome.utilities),
        details=dict(outcome.details),
        reasked=[position for position, one in said.items() if one.reasks],
        cut=[position for position, one in said.items() if one.reply.cut],
        refused=refused,
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
