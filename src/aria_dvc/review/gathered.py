"""All that a review tells, gathered from two commits and the working tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aria_dvc.errors import AriaError
from aria_dvc.review.commits import Commits
from aria_dvc.review.estimates import Change, changes
from aria_dvc.review.freshness import Freshness, freshness
from aria_dvc.review.health import warnings_in
from aria_dvc.review.locks import LOCK, Ran, ran, read_lock

PARAMS = "params.yaml"
DETAILS = "metrics/details/"
HEALTH = "metrics/details/health.json"
MAIN = "evaluation"  # the file whose figures need no name before them
PICTURES = (".png", ".svg")


@dataclass(frozen=True)
class Pair:
    """A value that differs; None where a commit has none."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Review:
    """estimates: figures with intervals, moved or not. numbers: metrics without one that differ.

    pictures: path -> A, D or M. warnings: text -> whether it is new. dirty: the working tree has
    edits that no commit has.
    """

    commits: Commits
    estimates: list[Change]
    numbers: list[Pair]
    params: list[Pair]
    stages: list[Ran]
    pictures: dict[str, str]
    warnings: dict[str, bool]
    fresh: Freshness
    dirty: bool


def gather(these: Commits) -> Review:
    """Compare two commits; whether dvc.lock is fresh is asked of the working tree.

    Raises:
        AriaError: a file of a commit cannot be read, or DVC refuses the repository.
    """
    locks = [read_lock(these.read(at, LOCK), f"{LOCK} of {at[:10]}") for at in these.both]
    params, numbers = _differing(these)
    changed = these.changed("metrics")
    return Review(
        commits=these,
        estimates=changes(*(_figures(these, commit) for commit in these.both)),
        numbers=numbers,
        params=params,
        stages=ran(*locks),
        pictures={path: how for path, how in changed.items() if path.endswith(PICTURES)},
        warnings=_warnings(these),
        fresh=freshness(these.root),
        dirty=these.is_dirty(),
    )


def _figures(these: Commits, commit: str) -> dict[str, Any]:
    """All files of metrics/details/, those of the evaluation without the file's name."""
    paths = [path for path in these.names(commit, DETAILS) if path.endswith(".json")]
    found = {Path(path).stem: these.read_json(commit, path) for path in paths if path != HEALTH}
    return {**(found.pop(MAIN, None) or {}), **found}


def _differing(these: Commits) -> tuple[list[Pair], list[Pair]]:
    """What `dvc params diff` and `dvc metrics diff` find, the latter without the evaluation's."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    sides = {"a_rev": these.base, "b_rev": these.head}
    try:
        with Repo(str(these.root)) as repo:
            params = repo.params.diff(**sides, targets=[PARAMS]).get("diff", {})
            metrics = repo.metrics.diff(**sides).get("diff", {})
    except DvcException as error:
        raise AriaError(f"dvc diff: {error}: mend it, then run again") from None
    others = {name: found for name, found in metrics.items() if Path(name).stem != MAIN}
    return _pairs(params, ""), [pair for name in others for pair in _pairs(others, name)]


def _pairs(diff: dict[str, Any], only: str) -> list[Pair]:
    """The pairs of one file, or of all; of metrics, with the name of their file."""
    prefix = f"{Path(only).stem}: " if only else ""
    return [
        Pair(f"{prefix}{key}", found.get("old"), found.get("new"))
        for name, values in sorted(diff.items())
        if name == only or not only
        for key, found in sorted(values.items())
    ]


def _warnings(these: Commits) -> dict[str, bool]:
    """The newer run's warnings in words, and whether the older one did not have them."""
    before, after = (_listed(these, commit) for commit in these.both)
    return {text: text not in before for text in after}


def _listed(these: Commits, commit: str) -> list[str]:
    return warnings_in(these.read_json(commit, HEALTH), f"{HEALTH} of {commit[:10]}")
