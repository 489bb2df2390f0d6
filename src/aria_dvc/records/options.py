"""The options of every command that reads logs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from aria_dvc.aside import check_named
from aria_dvc.errors import AriaError
from aria_dvc.outputs import Mine, check_outputs
from aria_dvc.records.reading import Reading, Rejected, is_rejects


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add --agent, --group-by, --outcome, --no-moves, --on-error and --rejected."""
    add = parser.add_argument
    agent = "who is credited, by role or name; may be given again (default: all with a reward)"
    add("--agent", action="append", metavar="ROLE", help=agent)
    group = "the field (info.scenario) or column whose value is an episode's group"
    add("--group-by", metavar="FIELD", help=f"{group}; default what the log has")
    test = "of Guess My City dialogues: by the game's own test for a win, or as recorded"
    add("--outcome", choices=("win_test", "recorded"), default="win_test", help=test)
    add("--no-moves", action="store_true", help="leave buttons (CaSiNo's) out of credit")
    skip = "stop at the first entry that cannot be read, or skip and count them"
    add("--on-error", choices=("stop", "skip"), default="stop", help=f"{skip} (%(default)s)")
    file = "where skipped entries go (JSON lines); default beside the output: NAME.rejected.jsonl"
    add("--rejected", type=Path, metavar="FILE", help=file)


def rejected_file(args: argparse.Namespace) -> Path | None:
    """Where skipped entries go; None where nothing is skipped.

    Raises:
        AriaError: a file is named though nothing is skipped.
    """
    if args.on_error == "skip":
        return args.rejected or args.out.with_name(f"{args.out.name}.rejected.jsonl")
    if args.rejected is not None:
        raise AriaError("--rejected: nothing is skipped: add --on-error skip, or leave it out")
    return None


def check_files(
    args: argparse.Namespace,
    outputs: Mapping[str, tuple[Path, Mine]],
    inputs: Mapping[str, list[Path]],
) -> None:
    """Refuse outputs, the file of skipped entries among them, that would cost somebody a file.

    Raises:
        AriaError: as `check_outputs` and `check_named`.
    """
    if args.out is not None:
        check_named(args.out)
    path = rejected_file(args)
    if path is not None:
        outputs = {**outputs, "--rejected": (path, _holds_rejects)}
    check_outputs(outputs, inputs)


def _holds_rejects(path: Path) -> bool:
    with path.open("rb") as file:
        return is_rejects(file.readline())


@contextmanager
def reading_of(args: argparse.Namespace) -> Iterator[Reading]:
    """What the options say; skipped entries are written and counted at the end."""
    path = rejected_file(args)
    rejected = None if path is None else Rejected(path)
    yield Reading(
        agents=tuple(args.agent or ()),
        group_by=args.group_by,
        outcome=args.outcome,
        moves=not args.no_moves,
        rejected=rejected,
        progress="reading",
    )
    if rejected is not None:
        rejected.close()
