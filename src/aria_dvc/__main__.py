"""The command `aria`: what is of use beside the pipeline, which `dvc repro` runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from aria_dvc import __version__
from aria_dvc.audit.cli import add_audit_parser
from aria_dvc.cache.cli import add_cache_parser
from aria_dvc.credit.cli import add_credit_parser
from aria_dvc.credit.fit_cli import add_fit_parser
from aria_dvc.exports.cli import add_export_parser
from aria_dvc.failures import one_line
from aria_dvc.handover.cli import add_card_parser, add_merge_parser
from aria_dvc.progress import warnings_to_stderr
from aria_dvc.records.cli import add_read_parser
from aria_dvc.review.cli import add_review_parser
from aria_dvc.truth.cli import add_truth_parser

SHELLS = ("bash", "zsh", "fish", "tcsh")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what `failures.one_line` knows is that line and exit status 1."""
    options = make_parser().parse_args(argv)
    warnings_to_stderr()
    try:
        options.run(options)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        line = one_line(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        if isinstance(error, BrokenPipeError):  # what is left over cannot be written at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command and of everything below it."""
    parser = argparse.ArgumentParser(prog="aria", description=__doc__)
    parser.add_argument("--version", action="version", version=f"aria {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_credit_parser(commands)
    add_audit_parser(commands)
    add_fit_parser(commands)
    add_export_parser(commands)
    add_read_parser(commands)
    add_truth_parser(commands)
    add_review_parser(commands)
    add_card_parser(commands)
    add_merge_parser(commands)
    add_cache_parser(commands)
    _add_scorer(commands)
    _add_completion(commands)
    return parser


def _add_scorer(commands: argparse._SubParsersAction) -> None:
    from aria_dvc.learning.scorer_server import add_scorer_parser
    from aria_dvc.learning.serve import add_serve_parser

    add_serve_parser(commands)
    add_scorer_parser(commands)


def _add_completion(commands: argparse._SubParsersAction) -> None:
    text = "print a script that completes this command, e.g. for eval in ~/.bashrc"
    parser = commands.add_parser("completion", help=text, description=text)
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=_print_completion)


def _print_completion(options: argparse.Namespace) -> None:
    import shtab

    print(shtab.complete(make_parser(), shell=options.shell))


if __name__ == "__main__":
    sys.exit(main())
