"""Many games at once, of several kinds too: each is a coroutine that waits for its players only.

What a player cannot do (an illegal move, again and again) is data: the episode ends and records
the failure. What the machinery cannot do (a server that is gone) ends the run, and what was
finished stays in the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from aria_dvc.arena.assignments import Assignment, check_players
from aria_dvc.arena.journal import Journal
from aria_dvc.arena.replay import Beginnings
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


@dataclass(frozen=True)
class Series:
    """Games to play, of one kind and by one reward rule.

    Args:
        players: one for every role of the game and its environment, or for every name that the
            assignments give; they may be the same.
        reward: the game's reward rule.
        journal: finished episodes are taken from it, new ones are added to it.
        trim: gives what of a finished episode is journalled and returned; None: all of it.
    """

    game: Game
    assignments: Sequence[Assignment]
    players: Mapping[str, Player]
    settings: PlaySettings
    reward: str = "win"
    journal: Journal | None = None
    trim: Callable[[Assignment, Episode], Episode] | None = None


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
    """One series played from code that is not asynchronous (see `play_all`)."""
    one = Series(game, assignments, players, settings, reward, journal)
    (episodes,) = collect_series([one], pace, title=title)
    return episodes


def collect_series(series: Sequence[Series], pace: Pace, *, title: str = "") -> list[list[Episode]]:
    """Play all series (`play_all`) from code that is not asynchronous; players are closed."""

    async def run() -> list[list[Episode]]:
        try:
            return await play_all(series, pace, title=title)
        finally:
            for player in {player for one in series for player in one.players.values()}:
                await player.close()

    return asyncio.run(run())


async def play_all(series: Sequence[Series], pace: Pace, *, title: str = "") -> list[list[Episode]]:
    """Play the games of all series by turns, at most `pace.in_flight` at once.

    Returns:
        The episodes of every series, in the order of its assignments.

    Raises:
        AriaError: a role has no player, a player could not be reached within its deadline, or
            another process plays the same games.
    """
    for one in series:
        if not all(assignment.players for assignment in one.assignments):
            check_players(one.game, one.players)
    title = title or ", ".join(dict.fromkeys(one.game.name for one in series))
    with ExitStack() as held, progress_bar(title) as update:
        kept = [held.enter_context(one.journal.held()) if one.journal else {} for one in series]
        finished = [
            matching(episodes, one.assignments) for one, episodes in zip(series, kept, strict=True)
        ]
        total, resumed = sum(len(one.assignments) for one in series), sum(map(len, finished))
        stats = Stats(title, total, resumed, update)
        found = [_Collection(one, done, stats) for one, done in zip(series, finished, strict=True)]
        await _run_all(found, pace, stats)
    logger.info(stats.summary())
    return [[one.finished[a.episode_id] for a in one.series.assignments] for one in found]


def matching(
    episodes: Mapping[str, Episode], assignments: Sequence[Assignment]
) -> dict[str, Episode]:
    """Those of the episodes that are among the assignments, of that configuration and seed."""
    found = {}
    for assignment in assignments:
        episode = episodes.get(assignment.episode_id)
        if episode is None:
            continue
        record = episode.record
        if (record.config, record.seed) == (dict(assignment.config), assignment.seed):
            found[episode.episode_id] = episode
    return found


@dataclass
class _Collection:
    """A series under way."""

    series: Series
    finished: dict[str, Episode]
    stats: Stats

    def __post_init__(self) -> None:
        self.beginnings = Beginnings(self.series.game, self.series.reward)

    @property
    def missing(self) -> list[Assignment]:
        return [one for one in self.series.assignments if one.episode_id not in self.finished]

    def cast(self, assignment: Assignment) -> dict[str, Player]:
        """Who has each role of an episode, the environment's included."""
        game, players = self.series.game, self.series.players
        roles = [role for role in (*game.roles, game.environment) if role]
        return {role: players[assignment.players.get(role, role)] for role in roles}


async def _run_all(found: Sequence[_Collection], pace: Pace, stats: Stats) -> None:
    """Play what is missing with `in_flight` workers; the first error ends them all."""
    games = ([(one, assignment) for assignment in one.missing] for one in found)
    queue = (game for by_turns in zip_longest(*games) for game in by_turns if game)
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_watch(pace, stats))
            workers = [group.create_task(_work(queue)) for _ in range(pace.in_flight)]
            await asyncio.gather(*workers)
            watch.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors, found, stats) from None


def _first(errors: BaseExceptionGroup, found: Sequence[_Collection], stats: Stats) -> BaseException:
    """The first of several errors; one for the user also tells what was kept."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, AriaError):
        return error
    kept = f"; {stats.done} of {stats.total} episodes are kept and will not be played again"
    names = ", ".join(dict.fromkeys(one.series.game.name for one in found))
    return AriaError(f"{names}: {error}{kept if all(one.series.journal for one in found) else ''}")


async def _work(queue: Iterator[tuple[_Collection, Assignment]]) -> None:
    for collection, assignment in queue:
        episode = await play_episode(collection, assignment)
        if collection.series.trim:
            episode = collection.series.trim(assignment, episode)
        if collection.series.journal:
            collection.series.journal.append(episode)
        collection.finished[assignment.episode_id] = episode
        collection.stats.count_episode(episode)


async def _watch(pace: Pace, stats: Stats) -> None:
    """End a run in which nothing moves."""
    limit = pace.deadline_s
    while True:
        await asyncio.sleep(min(LONGEST_WATCH_S, limit / 4))
        if stats.idle() > limit:
            raise AriaError(
                f"no player has answered for {limit:.0f} s: see that servers answer, "
                "or raise pace.deadline_s in params.yaml"
            )


async def play_episode(collection: _Collection, assignment: Assignment) -> Episode:
    """One game from its first turn that is not replayed to its outcome."""
    series = collection.series
    match = collection.beginnings.match(assignment)
    prompts = {role: match.system_prompt(role) for role in series.game.roles}
    cast = collection.cast(assignment)
    usages = {role: _Usage() for role in cast}
    said: dict[int, _AcceptedReply] = {}  # by position in the dialogue
    turn = 0
    refused: list[Refused] = []
    while (role := match.to_move) is not None:
        one = _Turn(collection, assignment, match, role, turn, usages[role])
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
    refused: list[Refused] = field(default_factory=list)

    async def take(self) -> _AcceptedReply | None:
        """Play the role's move, or forfeit with the last text; None if that left no line."""
        hint, kind = "", "no_reply"
        last: _AcceptedReply | None = None
        for attempt in range(self.collection.series.settings.max_reasks + 1):
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
                self.collection.stats.refused += 1
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
        self.collection.stats.count_reply(reply)
        return reply

    @property
    def _player(self) -> Player:
        return self.collection.cast(self.assignment)[self.role]

    @property
    def _character(self) -> int:
        own = self.assignment.character
        return self.assignment.seed if own is None else own


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
        reward_rule=collection.series.reward,
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
        grounded={role: list(carried_out) for role, carried_out in match.grounded.items()},
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
