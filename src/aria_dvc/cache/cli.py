"""`aria cache`: what may be computed again, listed, verified and pruned."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from aria_dvc.cache.folder import VARIABLE, cache_folder
from aria_dvc.errors import AriaError

ABOUT = f"""\
The cache holds what may be computed again: journals of games, checkpoints and results of
trainings, vectors of texts, names that a model gave. It is .aria_cache, or what the environment
variable {VARIABLE} names.

  aria cache list                   number, size and age by kind
  aria cache verify                 check every sum; exit status 1 if something is damaged
  aria cache prune --gib 5          remove what was used longest ago until 5 GiB are left
  aria cache prune --days 30        remove what was not used for 30 days

What a running process holds is never removed, nor what is not the cache's.
"""
DAY_S = 86400


def add_cache_parser(subparsers: Any) -> None:
    """Add the subcommand `cache`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "cache",
        help="list, verify or prune what may be computed again",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="number, size and age by kind").set_defaults(run=run_list)
    actions.add_parser("verify", help="check every sum").set_defaults(run=run_verify)
    prune = actions.add_parser("prune", help="remove what was used longest ago")
    prune.add_argument("--gib", type=_positive, help="until at most so much is left")
    prune.add_argument("--days", type=_positive, help="what was not used for so long")
    prune.set_defaults(run=run_prune)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no bound: give a number from 0 on")
    return value


def run_list(args: argparse.Namespace) -> None:
    """Print one line a kind."""
    from aria_dvc.cache.entries import entries

    found, now = entries(_folder()), time.time()
    print(f"{_folder().resolve()}")
    for kind in sorted({entry.kind for entry in found}):
        ages = [(now - one.used) / DAY_S for one in found if one.kind == kind]
        size = sum(one.size for one in found if one.kind == kind)
        print(
            f"{len(ages):6d} {kind:21s} {_told(size):>10s}   "
            f"used {_ago(int(max(0.0, min(ages))), int(max(0.0, *ages)))}"
        )
    print(f"{len(found):6d} {'in all':21s} {_told(sum(one.size for one in found)):>10s}")


def run_verify(args: argparse.Namespace) -> None:
    """Print what is damaged.

    Raises:
        AriaError: something is.
    """
    from aria_dvc.cache.entries import damages

    count = 0
    for damage in damages(_folder()):
        print(f"damaged: {damage}")
        count += 1
    if count:
        raise AriaError(
            f"{count} damaged in {_folder()}: each is computed again by the run that needs it; if "
            "they come back, see the disk"
        )
    print(f"{_folder()}: nothing is damaged")


def run_prune(args: argparse.Namespace) -> None:
    """Print what was removed.

    Raises:
        AriaError: no bound is given.
    """
    from aria_dvc.cache.prune import GIB, prune

    if args.gib is None and args.days is None:
        raise AriaError("aria cache prune: give --gib, --days or both")
    most = None if args.gib is None else args.gib * GIB
    pruned = prune(_folder(), most, None if args.days is None else args.days * DAY_S)
    for entry in pruned.in_use:
        print(f"kept, in use: {entry.path}")
    print(f"removed {len(pruned.removed)} ({_told(pruned.freed)}); {_told(pruned.left)} are left")


def _folder() -> Path:
    folder = cache_folder()
    if not folder.is_dir():
        raise AriaError(f"{folder} is no folder: run where the pipeline runs, or set {VARIABLE}")
    return folder


def _ago(least: int, most: int) -> str:
    """When the last and the first of some were used, in whole days since."""
    if least < most:
        return f"{least} to {most} days ago"
    return {0: "less than a day ago", 1: "1 day ago"}.get(most, f"{most} days ago")


def _told(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
