"""How every stage script starts: own code, checked params and arguments, one line on failure."""

from __future__ import annotations

import argparse
import errno
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aria_dvc.cache.prune import keep_within
from aria_dvc.errors import AriaError
from aria_dvc.memory import is_out_of_memory
from aria_dvc.models.quiet import quiet_libraries
from aria_dvc.params import Params, load_params
from aria_dvc.progress import log_to_stderr
from aria_dvc.suggestions import did_you_mean

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

    items: names in ITEMS. An argument that params.yaml does not know, every AriaError, a full
    disk and a lack of memory end in one line on standard error and exit status 1.
    """
    quiet_libraries()
    log_to_stderr()
    arguments = _arguments(main, items)
    try:
        _assert_own_code()
        params = load_params()
        for item, value in zip(items, arguments, strict=True):
            _check(item, value, ITEMS[item](params))
        main(params, *arguments)
        keep_within(params.pace.cache_limit_gib)
    except AriaError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted: run again to go on from what is finished")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _fail("out of memory: lower the sizes in params.yaml or use a larger machine")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _fail(f"{error.filename or 'output'}: disk full: free some space and run again")


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


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(1)


def _assert_own_code() -> None:
    """A queued experiment must run its own snapshot, never an installed or another copy."""
    own, package = Path.cwd() / "src", Path(__file__).parents[1]
    if not package.resolve().is_relative_to(own.resolve()):
        raise AriaError(
            f"aria_dvc was imported from {package}, not from {own}: "
            "run stages from the repository's root, as dvc.yaml does"
        )
