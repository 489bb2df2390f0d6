"""Series of games side by side: where models play on the CPU, each process has cores of its own.

A forward pass of a small model is hundreds of short operations, which gain little from many
threads; on two cores two processes play as much as one with two threads (benchmarks/README.md).
The processes only fill the journals, from which the episodes are then read, so that a run that was
cut short goes on where it was.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from aria_dvc.arena.sessions import Games, play_together
from aria_dvc.cache.folder import VARIABLE as CACHE_VARIABLE
from aria_dvc.cache.folder import cache_folder
from aria_dvc.cores import cores_of_lane, lanes
from aria_dvc.errors import AriaError
from aria_dvc.models.quiet import quiet_libraries
from aria_dvc.progress import log_to_stderr
from aria_dvc.records.episodes import Episode

if TYPE_CHECKING:
    from aria_dvc.params import Params

LOOK_S = 1.0  # how often a process looks whether the one that started it is still there


def play_side_by_side(params: Params, sessions: Sequence[Games], title: str) -> list[list[Episode]]:
    """The episodes of every session, in order. Every process plays a share of each.

    Raises:
        AriaError: a player is unknown or cannot be reached, or a process died.
    """
    workers = processes(params, sessions)
    missing = _missing(params, sessions, workers) if workers > 1 else []
    if len(missing) > 1:
        with ExitStack() as held:
            for session in sessions:  # against a run with another number of processes
                held.enter_context(session.own_journal(params).lock.held())
            _play_apart(params, missing, title)
    return play_together(params, sessions, title)


def processes(params: Params, sessions: Sequence[Games]) -> int:
    """How many processes play; 1 where no model plays in process, and by default on a GPU."""
    if not any(session.plays_in_process for session in sessions):
        return 1
    return lanes(params.pace.processes)


def _missing(params: Params, sessions: Sequence[Games], workers: int) -> list[tuple[Games, ...]]:
    """The shares, of `workers`, of which the journals do not hold all games."""
    finished = [session.journal(params).read() for session in sessions]
    shares = zip(*(session.dealt(workers) for session in sessions), strict=True)
    return [
        share
        for share in shares
        if any(one.kept(params, found) is None for one, found in zip(share, finished, strict=True))
    ]


def _play_apart(params: Params, shares: Sequence[Sequence[Games]], title: str) -> None:
    """Fill the journals, each share in a process of its own, which share the cache's memory and
    the cores."""
    workers = len(shares)
    pace = params.pace.model_copy(update={"cache_gib": params.pace.cache_gib / workers})
    shared = params.model_copy(update={"pace": pace})
    threads = cores_of_lane(workers)
    try:
        with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=threads):
            joblib.Parallel(batch_size=1, pre_dispatch="all")(
                joblib.delayed(_play)(shared, share, title, os.getpid(), str(cache_folder()))
                for share in shares
            )
    except TerminatedWorkerError:
        raise AriaError(
            "a process that played games was ended, most likely for lack of memory: set "
            "pace.processes: 1 in params.yaml, or lower pace.in_flight; run again to go on"
        ) from None


def _play(
    params: Params, share: Sequence[Games], title: str, parent: int, cache_of_parent: str
) -> None:
    _watch(parent)
    os.environ[CACHE_VARIABLE] = cache_of_parent  # a process is used again as it was
    quiet_libraries()
    log_to_stderr(bars=False)
    play_together(params, share, title)


@cache
def _watch(parent: int) -> None:
    """Start `_end_with` once a process."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """Without this a killed run would leave processes that write what its restart writes too."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)
