"""`aria fit`: a credit method fitted on a log, in a folder for `aria serve` and the adapters."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aria_dvc.credit.options import add_credit_options, check_credit_options, settings_of
from aria_dvc.errors import AriaError
from aria_dvc.outputs import check_not_below_file, check_not_within, names_in
from aria_dvc.records.options import add_reading_options, check_files, reading_of

USAGE = """\
Fits a credit method on LOGS and keeps it in a folder (JSON, Parquet, safetensors; with the texts of
the log). Texts are embedded anew, by --embed, so that other texts can be embedded alike. Dialogues
without an outcome are scored by gae as by regression.

  aria fit games.json --out fitted/
  aria serve fitted/
"""


def add_fit_parser(subparsers: Any) -> None:
    """Add the subcommand `fit`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "fit",
        help="fit a credit and keep it, for aria serve",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("logs", nargs="+", type=Path, help="dialogues with outcomes")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    add_credit_options(parser, own_vectors=False)
    add_reading_options(parser)
    parser.set_defaults(run=run_fit)


def run_fit(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `read_logs`; a folder of something else; options without effect.
    """
    check_credit_options(args, "in a fit")
    check_files(args, {}, {"the log": args.logs})
    from aria_dvc.credit.fitted import FILES, fit, is_fit, save_fit
    from aria_dvc.credit.logs import read_logs
    from aria_dvc.credit.summary import stand_in

    check_not_below_file("--out", args.out)
    if args.out.exists() and not is_fit(args.out):
        raise AriaError(f"--out: {args.out} exists and is no fitted credit: name another folder")
    if others := sorted(names_in(args.out) - FILES):
        raise AriaError(
            f"--out: {args.out} holds {others[0]}, which aria fit did not write: name another "
            "folder"
        )
    for log in args.logs:
        check_not_within("--out", args.out, log)
    settings = settings_of(args)
    with reading_of(args) as reading:
        gamma = settings.aggregate.gamma
        log = read_logs(args.logs, gamma, game=args.game, own_vectors=False, reading=reading)
    fitted = fit(log, settings, args.embed)
    save_fit(args.out, fitted, settings, args.embed)
    said = f"{fitted.acting_episodes} episodes, {len(fitted.actions)} actions"
    print(f"{settings.aggregate.method} on {said}: {args.out}")
    if other := stand_in(settings):
        print(f"other dialogues get the values of {other}")
