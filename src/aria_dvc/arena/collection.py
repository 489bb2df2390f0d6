"""Many games at once, of several kinds too: each is a coroutine that waits for its players only.

An error of the machinery ends the run, and what was finished stays in the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest

from aria_dvc.arena.assignments import Assignment, check_players
from aria_dvc.arena.one_game import play_episode
from aria_dvc.arena.replay import Beginnings
from aria_dvc.arena.series import Series
from aria_dvc.arena.stats import Stats
from aria_dvc.errors import AriaError
from aria_dvc.progress import progress_bar
from aria_dvc.records.episodes import Episode
from aria_dvc.settings.machine import Pace

logger = logging.getLogger(__name__)
LONGEST_WATCH_S = 10.0


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
        finished = []
        for one in series:
            kept = held.enter_context(one.journal.held()) if one.journal else {}
            finished.append(matching(kept, one.assignments))
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
        series, match = collection.series, collection.beginnings.match(assignment)
        episode = await play_episode(series, assignment, match, collection.stats)
        if series.trim:
            episode = series.trim(assignment, episode)
        if series.journal:
            series.journal.append(episode)
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
