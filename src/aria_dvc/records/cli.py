"""`aria read`: check logs of any layout and write them as one table, in bounded memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from aria_dvc.outputs import table_with
from aria_dvc.records.episodes import Episode
from aria_dvc.records.names import PLAYABLE
from aria_dvc.records.options import add_reading_options, check_files, reading_of
from aria_dvc.records.parquet_names import check_parquet_name
from aria_dvc.records.reading import Reading

USAGE = """\
Reads LOGS of any layout (docs/formats/), checks every entry and writes one row an utterance: the
table of turns (docs/data.md), which is itself a log. Only some thousand utterances are held at a
time.
A log is a file, compressed (gzip, zstd) or not, a folder, or - for standard input.

  aria read games.jsonl.zst --out turns.parquet
  aria read trajectories.json --agent assistant --on-error skip --out turns.parquet
"""


def add_read_parser(subparsers: Any) -> None:
    """Add the subcommand `read`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "read",
        help="check logs of any layout and write them as one table",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("logs", nargs="+", type=Path, help="dialogues; - is standard input")
    add("--out", type=Path, required=True, metavar="FILE", help="Parquet file to write")
    add("--game", choices=sorted(PLAYABLE), help="what the logs are of; default what they say")
    add_reading_options(parser)
    parser.set_defaults(run=run_read)


def run_read(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `iter_log`, `kept_tables` and `check_outputs`.
    """
    from aria_dvc.records.kept import KEPT, kept_tables
    from aria_dvc.records.schemas import write_parts

    is_mine = table_with(("episode_id", "position", "role", "text", "is_action"))
    check_files(args, {"--out": (args.out, is_mine)}, {"the log": args.logs})
    check_parquet_name(args.out, "name it turns.parquet, say")
    counts = {"episodes": 0, "groups": 0}
    with reading_of(args) as reading:
        episodes = _counted(read_all(args.logs, replace(reading, game=args.game)), counts)
        rows = write_parts(args.out, kept_tables(episodes), KEPT)
    groups = f" in {counts['groups']} groups" if counts["groups"] < counts["episodes"] else ""
    print(f"{counts['episodes']} episodes{groups}, {rows} utterances: {args.out}")


def read_all(paths: list[Path], reading: Reading) -> Iterator[Episode]:
    """The episodes of several logs; with several files ids become `file:id`.

    Raises:
        AriaError: see `iter_log`; a log given twice.
    """
    from aria_dvc.records.readers import iter_log
    from aria_dvc.records.sources import prefixes_of

    for path, prefix in zip(paths, prefixes_of(paths), strict=True):
        yield from iter_log(path, replace(reading, prefix=prefix))


def _counted(episodes: Iterator[Episode], counts: dict[str, int]) -> Iterator[Episode]:
    groups = set()
    for episode in episodes:
        groups.add(episode.group_id)
        counts.update(episodes=counts["episodes"] + 1, groups=len(groups))
        yield episode
