"""`aria credit`: the credit of every action of a log, without DVC."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.credit.options import (
    add_credit_options,
    check_credit_options,
    is_typed,
    settings_of,
)
from aria_dvc.credit.settings import EMBEDDER
from aria_dvc.embedder_specs import embedder_weights
from aria_dvc.outputs import Mine, object_with, table_with
from aria_dvc.records.options import add_reading_options, check_files, reading_of, rejected_file
from aria_dvc.records.parquet_names import check_parquet_name
from aria_dvc.records.reading import Reading
from aria_dvc.shown import printable

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.log import Log

# Options that `aria audit` has too, and `aria export` of a finished table does not.
AUDITED = ("group_by", "k", "gamma", "folds", "embed", "seed")
USAGE = """\
Fits on LOGS and writes one row an action of LOGS: its credit (q, what is expected with the action),
the baseline of its history (v, without it), their difference, and by what cell (docs/exports.md has
every column). The position is the message's place in its episode, from 0, system messages included.
Credit and baseline are out of fold where the method is not defined in sample. With --score the rows
are those of other logs, whose outcomes are not looked at (by gae as by regression). A log is a file
of any layout (docs/formats/), compressed or not, a folder of such files, or - for standard input.
It ends with five lines: intentions, variance, skill (with --quality), what was written, what next.

  aria credit games.json --out credit.parquet
  aria credit trajectories.json --agent assistant --out credit.parquet
  aria credit games.json --score new.json --out credit.parquet
"""


def add_credit_parser(subparsers: Any) -> None:
    """Add the subcommand `credit`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "credit",
        help="credit of every action of a log, without DVC",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("logs", nargs="+", type=Path, help="dialogues with outcomes, to fit on")
    add("--score", nargs="+", type=Path, metavar="LOG", help="credit these dialogues instead")
    add("--out", type=Path, required=True, metavar="FILE", help="Parquet file to write")
    add("--quality", type=Path, metavar="FILE", help="also write the metrics of the fit (JSON)")
    add_credit_options(parser)
    add_reading_options(parser)
    parser.set_defaults(run=run_credit)


def run_credit(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `credit_of`, `read_logs` and `check_outputs`; options out of range.
    """
    check_credit_options(args, "with --score" if args.score else "", bool(args.quality))
    _check_files(args)
    from aria_dvc.credit.chain import quality_of
    from aria_dvc.files import write_json, write_parquet

    with reading_of(args) as reading:
        table, fitted = credit_table_of(args, reading, args.score)
    write_parquet(args.out, table)
    quality = None
    if args.quality:
        quality = quality_of(_with_meaning(fitted, args.embed), settings_of(args))
        write_json(args.quality, quality)
    _tell(args, table, fitted, quality)


def _tell(
    args: argparse.Namespace, table: pd.DataFrame, fitted: Log, quality: dict[str, Any] | None
) -> None:
    from aria_dvc.credit.summary import Told, summary

    files = " and ".join(str(path) for path in (args.out, args.quality) if path)
    audit = _command("audit", args.logs, args, AUDITED)
    of_credit = f"{audit} --credit {shlex.quote(f'{args.out}:advantage')}"
    export = _command("export", args.score or args.logs, args)
    export += f" --credit {shlex.quote(str(args.out))} --to kto --out kto/"
    settings, scored = settings_of(args), bool(args.score)
    told = Told(table, fitted, settings, quality, files, audit, of_credit, export, scored)
    for line in summary(told):
        print(printable(line))


def _command(
    name: str, logs: list[Path], args: argparse.Namespace, further: Sequence[str] = ()
) -> str:
    """A command that reads the same logs in the same way; LOG for what was standard input.

    further: options of the same name and meaning, which it gets where they were typed.
    """
    words = ["aria", name, *("LOG" if str(path) == "-" else str(path) for path in logs)]
    for agent in args.agent or ():
        words += ["--agent", agent]
    for option in ("game", *further):
        if is_typed(args, option):
            words += [f"--{option.replace('_', '-')}", str(getattr(args, option))]
    if args.outcome != "win_test":
        words += ["--outcome", args.outcome]
    if args.no_moves:
        words.append("--no-moves")
    if rejected := rejected_file(args):
        words += ["--on-error", "skip", "--rejected", str(rejected)]
    return shlex.join(words)


def _with_meaning(log: Log, embed: str | None) -> Log:
    """The log with vectors: the best baseline looks at meaning, whatever the method does."""
    from aria_dvc.credit.logs import embedded

    if log.acting_episodes < 2:
        return log
    return embedded([log], embed or EMBEDDER)[0]


def credit_table_of(
    args: argparse.Namespace, reading: Reading, score: list[Path] | None = None
) -> tuple[pd.DataFrame, Log]:
    """The credit table of `args.logs`, or of the logs in `score`, and the fitted log.

    Raises:
        AriaError: see `credit_of` and `read_logs`; options out of range.
    """
    from aria_dvc.credit.logs import credit_of, read_logs

    settings = settings_of(args)
    own, gamma = args.embed is None, settings.aggregate.gamma
    options: dict[str, Any] = {"gamma": gamma, "game": args.game, "own_vectors": own}
    fitted = read_logs(args.logs, reading=reading, **options)
    scored = None
    if score:
        scored = read_logs(score, need_rewards=False, reading=reading, **options)
    return credit_of(fitted, settings, scored, args.embed)


def _check_files(args: argparse.Namespace) -> None:
    from aria_dvc.credit.table import COLUMNS

    outputs: dict[str, tuple[Path, Mine]] = {"--out": (args.out, table_with(COLUMNS))}
    if args.quality:
        outputs["--quality"] = (args.quality, object_with(("method", "episodes")))
    inputs = {"the log": args.logs, "--score": args.score or []}
    if args.embed:
        inputs["--embed"] = [Path(embedder_weights(args.embed))]
    check_files(args, outputs, inputs)
    check_parquet_name(args.out)
