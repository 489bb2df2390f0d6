"""`aria audit`: what a log can teach, and what somebody's credit of it is made of."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from aria_dvc.credit.settings import EMBEDDER, Aggregate, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.outputs import Mine, object_with
from aria_dvc.records.names import PLAYABLE
from aria_dvc.records.options import add_reading_options, check_files, reading_of

COLUMNS_OF_CREDIT = ("credit", "advantage", "return")
USAGE = """\
Tells what LOGS hold, how much of the returns of unseen groups any estimator predicts, and, with
--credit, what a given credit of each turn consists of: clock, length, role, task, and what it knows
of the future. A table in the terminal; --json and --html write the same.

  aria audit games.json --html audit.html
  aria audit rollouts.jsonl --credit turn_rewards --json audit.json
  aria audit games.json --credit credit.parquet:advantage
"""


def add_audit_parser(subparsers: Any) -> None:
    """Add the subcommand `audit`; its parsed arguments carry the function to call as `run`."""
    default = Aggregate()
    parser = subparsers.add_parser(
        "audit",
        help="what a log can teach, and whether a given credit is any good",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("logs", nargs="+", type=Path, help="dialogues with outcomes")
    where = "key of messages, column of a table, or list in info with a credit of every turn; or "
    where += "what `aria credit` wrote of these logs: FILE.parquet (credit) or FILE.parquet:COLUMN"
    add("--credit", metavar="COLUMN", help=where)
    add("--json", type=Path, dest="out", metavar="FILE", help="also write all figures (JSON)")
    add("--html", type=Path, metavar="FILE", help="also write a page")
    add("--out", type=_no_out, dest="no_out", help=argparse.SUPPRESS)
    add("--k", type=int, help="number of intentions; default by silhouette")
    add("--gamma", type=float, default=default.gamma, help="discount per own turn (%(default)s)")
    add("--folds", type=int, default=default.folds, help="folds by group of episodes (%(default)s)")
    add("--embed", help=f"embedding model; default the logs' own vectors, else {EMBEDDER}")
    add("--game", choices=sorted(PLAYABLE), help="what the logs are of; default what they say")
    add("--seed", type=int, default=0, help="deals the folds (%(default)s)")
    add_reading_options(parser)
    parser.set_defaults(run=run_audit)


def _no_out(name: str) -> NoReturn:
    """What other commands call --out has two names here."""
    raise argparse.ArgumentTypeError(f"--html {name} writes a page, --json {name} the figures")


def run_audit(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `audit` and `check_outputs`; options out of range.
    """
    _check(args)
    from aria_dvc.aside import written_aside
    from aria_dvc.audit.given import with_credit_of
    from aria_dvc.audit.page import page, show
    from aria_dvc.audit.report import audit
    from aria_dvc.files import write_json
    from aria_dvc.records.cli import read_all

    settings, named = _settings(args), _in_a_table(args.credit)
    with reading_of(args) as reading:
        how = replace(reading, game=args.game, column=None if named else args.credit)
        episodes = read_all(args.logs, how)
        if named:
            episodes = with_credit_of(*named, episodes)
        report = audit(episodes, settings, args.credit, args.embed)
    if args.out:
        write_json(args.out, report)
    if args.html:
        with written_aside(args.html) as aside:
            aside.write_text(page(report), "utf-8")
    show(report)


def _in_a_table(credit: str | None) -> tuple[Path, str] | None:
    """File and column, where a credit table is named."""
    file, found, column = (credit or "").rpartition(".parquet")
    if not found or (column and column[0] != ":"):
        return None
    column = column[1:] or COLUMNS_OF_CREDIT[0]
    if column not in COLUMNS_OF_CREDIT:
        known = ", ".join(COLUMNS_OF_CREDIT)
        raise AriaError(f"--credit: {column} is no credit of a table (known: {known})")
    return Path(file + found), column


def _settings(args: argparse.Namespace) -> CreditSettings:
    try:
        credit = Aggregate("aria", args.gamma, args.folds)
        return CreditSettings("auto" if args.k is None else args.k, args.seed, aggregate=credit)
    except AriaError as problem:
        raise AriaError(f"--{problem}") from None


def _check(args: argparse.Namespace) -> None:
    if args.on_error == "skip" and args.out is None and args.rejected is None:
        raise AriaError("--on-error skip: name a file for what is skipped by --rejected")
    outputs: dict[str, tuple[Path, Mine]] = {}
    if args.out:
        outputs["--json"] = (args.out, object_with(("contents", "signal", "advice")))
    if args.html:
        outputs["--html"] = (args.html, _is_page)
    table = _in_a_table(args.credit)
    check_files(args, outputs, {"the log": args.logs, "--credit": [table[0]] if table else []})


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return b"<title>Audit</title>" in file.read(200)
