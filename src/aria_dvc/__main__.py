"""The command `aria`: what is of use beside the pipeline, which `dvc repro` runs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

from aria_dvc import __version__
from aria_dvc.audit.cli import add_audit_parser
from aria_dvc.cache.cli import add_cache_parser
from aria_dvc.credit.cli import add_credit_parser
from aria_dvc.credit.fit_cli import add_fit_parser
from aria_dvc.credit.label_cli import add_label_parser
from aria_dvc.exports.cli import add_export_parser
from aria_dvc.failures import one_line
from aria_dvc.handover.cli import add_card_parser, add_merge_parser
from aria_dvc.plan.cli import add_plan_parser
from aria_dvc.progress import warnings_to_stderr
from aria_dvc.records.cli import add_read_parser
from aria_dvc.review.cli import add_review_parser
from aria_dvc.shown import printable
from aria_dvc.suggestions import did_you_mean
from aria_dvc.truth.cli import add_truth_parser

INTERRUPTED = 128 + signal.SIGINT
SHELLS = ("bash", "zsh", "fish", "tcsh")
USAGE = """\
Which turns of a dialogue were worth something, when only its end was rewarded? For logs of
dialogues with outcomes, without DVC and without a language model:

  aria read LOG --out turns.parquet              can it be read, and what is in it?
  aria audit LOG                                 what can it teach?
  aria credit LOG --out credit.parquet           what was each turn worth?
  aria export LOG --credit credit.parquet --to kto --out kto/

LOG is a file or a folder: messages with a reward, tau-bench, verl, verifiers, ART, tables
(docs/formats/). docs/tutorial.md walks from a log to a trained adapter. `aria COMMAND --help` has
examples and options. The pipeline itself is run by `dvc repro`.
"""


class Parser(argparse.ArgumentParser):
    """A mistake is one line: what is wrong, what was meant perhaps, where the help is.

    Options are given in full: `--out` is never taken for an `--outcome` where there is no `--out`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with status 2."""
        self.exit(2, f"error: {self.prog}: {printable(message)}: see {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but a command says itself what it does not know."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{unknown[0]}: unknown {self._nearest(unknown[0])}")
        return found, unknown

    def _nearest(self, word: str) -> str:
        if not word.startswith("-"):
            return "further argument"
        return f"option{did_you_mean(word.split('=')[0], self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = did_you_mean(str(value), [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"there is no {value}{hint}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what `failures.one_line` knows is that line and exit status 1.

    An interruption is status 130.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # a name in the log may be of no letter it can write
        sys.stdout.reconfigure(errors="backslashreplace")
    options = make_parser().parse_args(argv)
    warnings_to_stderr()
    try:
        options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        line = one_line(error)
        if line is None:
            raise
        if isinstance(error, BrokenPipeError):
            line = "nobody reads what is printed any more: what had not been printed is lost"
            # or Python tries once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: {line}", file=sys.stderr)
        return 1
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command and of everything below it."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="aria", description=USAGE, formatter_class=plain)
    parser.add_argument("--version", action="version", version=f"aria {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_credit_parser(commands)
    add_audit_parser(commands)
    add_fit_parser(commands)
    add_export_parser(commands)
    add_read_parser(commands)
    add_label_parser(commands)
    add_truth_parser(commands)
    add_plan_parser(commands)
    add_review_parser(commands)
    add_card_parser(commands)
    add_merge_parser(commands)
    add_cache_parser(commands)
    _add_scorer(commands)
    _add_completion(commands)
    return parser


def _add_scorer(commands: argparse._SubParsersAction) -> None:
    from aria_dvc.serving.scorer_server import add_scorer_parser
    from aria_dvc.serving.serve import add_serve_parser

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


def run() -> NoReturn:
    """The command itself. An interruption ends it by the signal: a shell's loop ends with it."""
    status = main()
    if status == INTERRUPTED and os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(status)


if __name__ == "__main__":
    run()
