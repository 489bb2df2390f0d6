"""`aria truth`: true values of the actions of a log that was played here, without DVC."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from aria_dvc.errors import AriaError
from aria_dvc.outputs import check_outputs, table_with
from aria_dvc.records.names import PlayerKind
from aria_dvc.settings.dialogues import BASE_MODEL, TruthParams

if TYPE_CHECKING:
    from aria_dvc.params import Params

USAGE = """\
Draws turns of LOG, games that were played here, and plays on from each: with the action that was
taken, for Q, and with others that the same player draws there, for V. Writes one row a turn: Q, V
and A = Q - V with standard errors and halves, discounted and plain (docs/data.md). Players,
servers and settings are those of params.yaml; what is given here stands before what it says.

  aria truth data/raw/adversarial/bargaining.jsonl --turns 100 --out truth.parquet
  aria truth scripted.jsonl --players scripted --turns 2000 --out truth.parquet

A command that was stopped goes on where it was, also with more turns, draws or continuations.
"""
_NUMBERS = ("turns", "continuations", "draws", "draw_continuations")


def add_truth_parser(subparsers: Any) -> None:
    """Add the subcommand `truth`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "truth",
        help="true values of actions of a log that was played, by playing on from there",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("log", type=Path, help="games that were played, as `collect` writes them")
    add("--out", type=Path, required=True, metavar="FILE", help="Parquet file to write")
    for name in _NUMBERS:
        about = TruthParams.model_fields[name].description
        add(f"--{name.replace('_', '-')}", type=int, metavar="N", help=about)
    add("--gamma", type=float, help="discount per own turn; default aggregate.gamma")
    add("--seed", type=int, help="draws turns and continuations; default seed")
    kinds = get_args(PlayerKind)
    add("--players", nargs="+", choices=kinds, help="whose turns; default prepare.players")
    add("--model", default=BASE_MODEL, help="behind policy and base (%(default)s)")
    add("--adapter", type=Path, metavar="FOLDER", help="LoRA adapter of policy")
    add("--params", type=Path, default=Path("params.yaml"), metavar="FILE", help="%(default)s")
    parser.set_defaults(run=run_truth)


def run_truth(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `truth_table`, `load_params` and `check_outputs`; options out of range.
    """
    outputs = {"--out": (args.out, table_with(("episode_id", "position", "q", "v", "advantage")))}
    check_outputs(outputs, {"the log": args.log, "--params": args.params})
    from aria_dvc.params import load_params
    from aria_dvc.progress import log_to_stderr
    from aria_dvc.records.readers import read_log
    from aria_dvc.records.schemas import TRUTH, write_table
    from aria_dvc.truth.table import Question, truth_table

    log_to_stderr()
    params = load_params(args.params)
    if args.seed is not None:
        params = params.model_copy(update={"seed": args.seed})
    players = args.players or params.prepare.players
    asked = Question(
        _settings(args, params), _gamma(args, params), players, args.model, args.adapter
    )
    write_table(args.out, truth_table(params, read_log(args.log), asked), TRUTH)


def _settings(args: argparse.Namespace, params: Params) -> TruthParams:
    """The block `truth` with what the options change of it."""
    given = {name: getattr(args, name) for name in _NUMBERS if getattr(args, name) is not None}
    try:
        settings = TruthParams.model_validate({**params.truth.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise AriaError(f"--{option} {first['input']}: {first['msg']}") from None
    if settings.turns == 0:
        raise AriaError("--turns: say how many turns; truth.turns in params.yaml is 0")
    return settings


def _gamma(args: argparse.Namespace, params: Params) -> float:
    gamma = params.aggregate.gamma if args.gamma is None else float(args.gamma)
    if not 0 < gamma <= 1:
        raise AriaError(f"--gamma {gamma} is outside 0..1; the paper uses 0.95")
    return gamma
