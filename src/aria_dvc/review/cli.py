"""`aria review`: what a branch changes, as Markdown for its pull request."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aria_dvc.outputs import beginning_with, check_outputs

USAGE = """\
Compares the newest commit with the last one that it shares with BASE: figures that moved beyond
their intervals, params, stages that ran, pictures, warnings, and whether dvc.lock is fresh.
Markdown of at most 40 lines. Nothing is run or checked out; data need not be here.

  aria review main
  aria review origin/main --out review.md
"""


def add_review_parser(subparsers: Any) -> None:
    """Add the subcommand `review`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "review",
        help="what a branch changes, for its pull request",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("base", metavar="BASE", help="branch, tag or commit to compare with")
    add("--out", type=Path, metavar="FILE", help="write the Markdown there instead of printing it")
    where = "where the repository is shown, for pictures; default GitHub's variables, then `origin`"
    add("--address", metavar="URL", help=where)
    parser.set_defaults(run=run_review)


def run_review(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `commits` and `gather`; the output is somebody else's file.
    """
    from aria_dvc.aside import written_aside
    from aria_dvc.review.comment import MARK, comment
    from aria_dvc.review.commits import commits, web_address
    from aria_dvc.review.gathered import gather

    if args.out:
        check_outputs({"--out": (args.out, beginning_with(MARK.encode()))}, {})
    text = comment(gather(commits(args.base)), args.address or web_address())
    if not args.out:
        print(text, end="")
        return
    with written_aside(args.out) as aside:
        aside.write_text(text, "utf-8")
