"""How every stage script starts: own code, checked params and arguments, one line on failure."""

from __future__ import annotations

import argparse
import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aria_dvc.cache.prune import keep_within
from aria_dvc.errors import AriaError
from aria_dvc.failures import one_line
from aria_dvc.memory import share_one_heap
from aria_dvc.models.quiet import quiet_libraries
from aria_dvc.params import Params, load_params
from aria_dvc.pipeline import paths
from aria_dvc.progress import log_to_stderr
from aria_dvc.suggestions import did_you_mean

logger = logging.getLogger(__name__)
Main = Callable[..., None]
# What a stage may be asked to work on, and where params.yaml names the choices.
ITEMS: dict[str, Callable[[Params], Sequence[str]]] = {
    "log": lambda params: list(params.logs),
    "category": lambda params: params.categories,
    "variant": lambda params: list(params.variants),
    "online_variant": lambda params: params.online.variants,
}


def run_stage(main: Main, *items: str) -> None:
    """Run `main(params, *arguments)`: one argument of the command line for each of `items`.

    items: names in ITEMS. An argument that params.yaml does not know, every AriaError, and what
    `failures.one_line` knows (a full disk, a damaged file, a lack of memory) end in one line on
    standard error and exit status 1; a bug ends in its traceback.
    """
    share_one_heap()
    quiet_libraries()
    log_to_stderr()
    arguments = _arguments(main, items)
    try:
        _assert_own_code()
        params = load_params()
        _assert_installed(params.trackers)
        for item, value in zip(items, arguments, strict=True):
            _check(item, value, ITEMS[item](params))
            if item == "category":
                _tell_of_leftovers(params, value)
        main(params, *arguments)
        keep_within(params.pace.cache_limit_gib)
    except (Exception, KeyboardInterrupt) as error:
        line = one_line(error)
        if line is None:
            raise
        _fail(line)


def _arguments(main: Main, items: Sequence[str]) -> list[str]:
    """What stands on the command line; `--help` shows the script's docstring."""
    about: Any = inspect.getmodule(main)
    parser = argparse.ArgumentParser(description=about.__doc__ if about else None)
    for item in items:
        name = item.replace("_", " ")
        parser.add_argument(item, help=f"a {name} of params.yaml")
    given = parser.parse_args()
    return [getattr(given, item) for item in items]


def _check(item: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise AriaError(
            f"params.yaml has no {item.replace('_', ' ')} {value}{did_you_mean(value, known)}"
        )


def _tell_of_leftovers(params: Params, category: str) -> None:
    """DVC hashes folders with all that lies in them, a clone of this run has not got that."""
    if left := paths.leftovers(params, category):
        logger.warning(
            "%s: of what params.yaml no longer names: run `dvc checkout`, which takes it away, and "
            "`dvc repro` again, or a clone of this run learns anew",
            ", ".join(map(str, left)),
        )


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(1)


def _assert_installed(trackers: Sequence[str]) -> None:
    """Every stage looks, so that the first one stops, before hours of play."""
    for name in trackers:
        found = find_spec(name)
        if found is None or found.origin is None:  # a folder of that name is no package
            raise AriaError(
                f"params.yaml: trackers: {name} is not installed: pip install {name}, "
                "or take it off the list"
            )


def _assert_own_code() -> None:
    """A queued experiment must run its own snapshot, never an installed or another copy."""
    own, package = Path.cwd() / "src", Path(__file__).parents[1]
    if not package.resolve().is_relative_to(own.resolve()):
        raise AriaError(
            f"aria_dvc was imported from {package}, not from {own}: "
            "run stages from the repository's root, as dvc.yaml does"
        )
