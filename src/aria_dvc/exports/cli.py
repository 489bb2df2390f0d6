"""`aria export`: the credit of a log as the files that a trainer reads."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aria_dvc.aside import written_aside
from aria_dvc.credit.cli import credit_table_of
from aria_dvc.credit.options import (
    DECIDING,
    add_credit_options,
    check_acts,
    check_credit_options,
    is_typed,
)
from aria_dvc.errors import AriaError
from aria_dvc.exports.scales import Scale, check_numbers
from aria_dvc.files import read_json, write_json
from aria_dvc.outputs import (
    beginning_with,
    check_not_below_file,
    check_not_within,
    is_inside,
    is_same,
    names_in,
    table_with,
)
from aria_dvc.records.options import add_reading_options, check_files, reading_of, rejected_file
from aria_dvc.records.parquet_names import check_parquet_name
from aria_dvc.records.reading import Reading, Rejected
from aria_dvc.shown import printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from aria_dvc.exports.chats import Record

USAGE = """\
Writes LOGS with the credit of every action, for a trainer: one file for each trained role, which
is the assistant there, everybody else being the user. parquet and csv write the credit table.

  aria export games.json --to swift --out swift/
  aria export trajectories.json --agent assistant --to kto --out kto/
  aria export games.json --credit credit.parquet --to dpo --out pairs/
  aria export games.json --to tinker --model smollm2-135m-instruct --out data/
"""
TABLES = ("parquet", "csv")
TARGETS = ("swift", "kto", "dpo", "tinker", "art", "traces", *TABLES)
CSV_START = b"episode_id,group_id,position,role"  # of a credit table
WRITTEN = ".aria-export.json"  # in the folder: names of the files that are ours
FILES = (".jsonl", ".json", ".parquet", ".csv")  # what a folder is not called
HINTS = {
    "swift": "train with `--is_binary_loss_scale false`, without which any weight counts as 1",
    "tinker": "for the loss `cross_entropy`: each line is a Datum",
    "art": "ART's own reader forgets which message is trained: it is the last one of every row",
    "traces": "credits are in info.turn_rewards; token ids and their advantages are the trainer's",
}


def add_export_parser(subparsers: Any) -> None:
    """Add the subcommand `export`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "export",
        help="the credit of a log as files for a trainer",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("logs", nargs="+", type=Path, help="dialogues with outcomes")
    add("--to", required=True, choices=TARGETS, help="who shall read it")
    add("--out", type=Path, required=True, help="folder to write; of parquet and csv the file")
    add("--credit", type=Path, metavar="FILE", help="what `aria credit` wrote of this very log")
    beta = "swift, tinker: temperature of weights exp(A / beta), in deviations of the advantage"
    add("--beta", type=float, help=f"{beta} ({Scale.beta})")
    least = "kto, dpo: what differs by less has no sign, in the same unit"
    add("--least", type=float, help=f"{least} ({Scale.least})")
    add("--model", help="tinker: the model to train, for its tokenizer")
    signed = "tinker: weigh by the advantage in units of its spread, which may be negative"
    add("--signed", action="store_true", help=signed)
    add_credit_options(parser)
    add_reading_options(parser)
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `credit_of`, `read_logs`, `chats_of`, `check_table` and the targets.
    """
    _check(args)
    from aria_dvc.credit.written import read_credit
    from aria_dvc.exports.turns import chats_of, check_table, counted, rows_of

    counts: Counter[str] = Counter()
    with reading_of(args) as reading:
        of_logs = replace(reading, game=args.game, warn=False)
        if not args.credit:
            table, _ = credit_table_of(args, reading)
        elif args.to in TABLES:
            table = read_credit(args.credit)
            check_table(args.logs, of_logs, table)
        else:
            given = read_credit(args.credit)
            table = rows_of(args.logs, of_logs, given)
            if others := len(given) - len(table):
                counts["further rows of --credit, which are no actions here"] = others
    if args.to in TABLES:
        _write_table(args, table)
        return
    again = replace(of_logs, progress=None, rejected=_unwritten(reading))
    chats = chats_of(args.logs, again, table)
    seen: Counter[str] = Counter()
    with written_aside(args.out, _written_before(args.out)) as aside:
        files = write_files(aside, args.to, records_of(args, counted(chats, seen), table, counts))
        if not files:
            why = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise AriaError(f"--to {args.to}: nothing is left to write ({why}): lower --least")
        write_json(aside / WRITTEN, sorted(files.values()))
    if joined := len(table) - seen["turns"]:
        counts["joined to the next of the same side, whose credit they get"] = joined
    if seen["worded"]:
        counts["tool calls and replies that are not the role's own, as text"] = seen["worded"]
    _tell(args, counts, files, len(table))


def records_of(
    args: argparse.Namespace, chats: Any, table: pd.DataFrame, counts: Counter[str]
) -> Iterator[Record] | Iterator[tuple[str, pa.Table]]:
    """(role, record) of the target."""
    from aria_dvc.exports import chats as by_chat
    from aria_dvc.exports.pairs import dpo
    from aria_dvc.exports.scales import scale_of
    from aria_dvc.exports.tables import art
    from aria_dvc.exports.tokens import tinker
    from aria_dvc.exports.turns import check_outcomes_differ
    from aria_dvc.params_checks import OF_GUESSING_GAMES

    if args.to == "traces":
        return by_chat.traces(chats, Scale({}), counts)
    scale = scale_of(table, *_numbers(args))
    if args.method not in OF_GUESSING_GAMES:  # they tell what a question brought, however it ends
        check_outcomes_differ(table)
    if args.to == "art":
        return art(chats, counts)
    if args.to == "tinker":
        return tinker(chats, scale, counts, args.model, args.signed)
    lines = {"swift": by_chat.swift, "kto": by_chat.kto, "dpo": dpo}
    return lines[args.to](chats, scale, counts)


def write_files(folder: Path, target: str, records: Iterator[Any]) -> dict[str, str]:
    """Write each role's records into a file of its own: role -> the file's name.

    What goes wrong on the way leaves no file (see `written_aside`).
    """
    folder.mkdir(parents=True)
    with ExitStack() as open_files:
        writers: dict[str, Any] = {}
        names: dict[str, str] = {}
        for role, record in records:
            if role not in writers:
                names[role] = file_name(role, target, set(names.values()))
                opened = _open(folder / names[role], record)
                writers[role] = open_files.enter_context(opened)
            _write(writers[role], record)
    return names


def file_name(role: str, target: str, taken: set[str]) -> str:
    """A name that every system takes: letters, digits and dashes of the role's."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", role).strip("-")[:60] or "role"
    suffix = _suffix(target)
    name, number = f"{plain}{suffix}", 2
    while name.lower() in {other.lower() for other in taken}:
        name, number = f"{plain}-{number}{suffix}", number + 1
    return name


def _suffix(target: str) -> str:
    return ".parquet" if target == "art" else ".jsonl"


def _open(path: Path, first: Any) -> Any:
    if isinstance(first, dict):
        return path.open("wb")
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, first.schema, compression="zstd")


def _write(writer: Any, record: Any) -> None:
    if isinstance(record, dict):
        writer.write(_line(record) + b"\n")
    else:
        writer.write_table(record)


def _line(record: Any) -> bytes:
    try:
        return orjson.dumps(record)
    except TypeError:  # a number of more than 64 bits, in a schema of a tool, say
        from aria_dvc.exports.calls import as_json

        return as_json(record).encode()


def _unwritten(reading: Reading) -> Rejected | None:
    """What skips again, at the second reading, the entries that were told at the first."""
    return None if reading.rejected is None else Rejected(reading.rejected.path)


def _write_table(args: argparse.Namespace, table: pd.DataFrame) -> None:
    from aria_dvc.exports.tables import with_all_digits
    from aria_dvc.files import write_csv, write_parquet

    if args.to == "parquet":
        write_parquet(args.out, table)
    else:
        write_csv(args.out, with_all_digits(table))
    print(f"{len(table)} turns: {args.out}")


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a log is read."""
    _check_options(args)
    for path in args.logs:
        if str(path) == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
            raise AriaError(f"{path}: a log is read twice: write it into a file first")
    inputs = {"the log": args.logs, "--credit": [args.credit] if args.credit else []}
    if args.to in TABLES:
        from aria_dvc.credit.table import COLUMNS

        mine = table_with(COLUMNS) if args.to == "parquet" else beginning_with(CSV_START)
        check_files(args, {"--out": (args.out, mine)}, inputs)
        if not args.out.suffix:
            name = f"{args.out}.{args.to}"
            raise AriaError(f"--out: {args.out}: of --to {args.to} it is a file: name it {name}")
        if args.to == "parquet":
            check_parquet_name(args.out)
        elif args.out.suffix.lower() == ".parquet":
            raise AriaError(f"--out: {args.out} would hold CSV: name it credit.csv, say")
        return
    check_files(args, {}, inputs)
    _check_folder(args)


def _check_folder(args: argparse.Namespace) -> None:
    """Refuse to write a folder where none can be, or where it would cost somebody a file."""
    check_not_below_file("--out", args.out)
    if args.out.exists() and not args.out.is_dir():
        raise AriaError(f"--out: {args.out} is a file: name a folder to write into")
    if args.out.suffix in FILES and not args.out.exists():
        raise AriaError(
            f"--out: of --to {args.to} it is a folder, with a file for each role: name it "
            f"{args.out.with_suffix('')}/"
        )
    inside = {path: "is read" for path in (*args.logs, args.credit) if path is not None}
    if (rejected := rejected_file(args)) is not None:
        inside[rejected] = "gets what is skipped"
    for path, why in inside.items():
        if is_same(args.out, path) or is_inside(path, args.out):
            raise AriaError(f"--out: {args.out} holds {path}, which {why}: name another folder")
    for log in args.logs:
        check_not_within("--out", args.out, log)
    if others := sorted(names_in(args.out) - {WRITTEN, *_written_before(args.out)}):
        raise AriaError(
            f"--out: {args.out} holds {others[0]}, which aria export did not write: name another "
            "folder"
        )


def _written_before(folder: Path) -> list[str]:
    """What an earlier export says that it wrote."""
    try:
        found = read_json(folder / WRITTEN)
    except (FileNotFoundError, ValueError):
        return []
    return [str(name) for name in found] if isinstance(found, list) else []


def _check_options(args: argparse.Namespace) -> None:
    """Refuse numbers out of range, and options that would have no effect."""
    check_numbers(*_numbers(args))
    if args.to == "tinker" and args.model is None:
        raise AriaError("--to tinker: name the model to train by --model, for its tokenizer")
    if args.model is not None:
        from aria_dvc.models.packaged import packaged_language_model

        packaged_language_model(args.model)  # before the log is read
    weighs = args.to == "swift" or (args.to == "tinker" and not args.signed)
    acts = {
        "signed": ("--to tinker", args.to == "tinker"),
        "model": ("--to tinker", args.to == "tinker"),
        "beta": ("--to swift, or tinker without --signed", weighs),
        "least": ("--to kto or dpo", args.to in ("kto", "dpo")),
    }
    check_acts(args, acts, "tinker --signed" if acts["signed"][1] and args.signed else args.to)
    if not args.credit:
        check_credit_options(args)
    elif any(is_typed(args, option) for option in (*DECIDING, "group_by")):
        raise AriaError(
            "--credit names a finished table, so --method, --k, --gamma, --group-by and the like "
            "have no effect: leave them out, or leave out --credit"
        )


def _numbers(args: argparse.Namespace) -> tuple[float, float]:
    """beta and least."""
    beta = args.beta if is_typed(args, "beta") else Scale.beta
    return beta, args.least if is_typed(args, "least") else Scale.least


def _tell(args: argparse.Namespace, counts: Counter[str], files: dict[str, str], rows: int) -> None:
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"{rows} actions: {said}")
    for role, name in files.items():
        print(printable(f"{role}: {args.out / name}"))
    if hint := HINTS.get(args.to):
        print(hint)
