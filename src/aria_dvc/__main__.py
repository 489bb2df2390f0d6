"""Commands beside the pipeline: `python -m aria_dvc credit | serve-reward-model`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from aria_dvc.credit.cli import add_credit_parser
from aria_dvc.errors import AriaError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; an AriaError is one line on standard error and exit status 1."""
    parser = argparse.ArgumentParser(prog="python -m aria_dvc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add_credit_parser(commands)
    _add_scorer(commands)
    options = parser.parse_args(argv)
    try:
        options.run(options)
    except AriaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _add_scorer(commands: argparse._SubParsersAction) -> None:
    from aria_dvc.learning.scorer_server import add_scorer_parser

    add_scorer_parser(commands)


if __name__ == "__main__":
    sys.exit(main())
