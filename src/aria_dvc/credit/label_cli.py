"""`aria label`: the intention of every utterance of a log that outgrows memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.credit.settings import EMBEDDER
from aria_dvc.errors import AriaError
from aria_dvc.outputs import check_outputs, table_with
from aria_dvc.records.parquet_names import check_parquet_name

if TYPE_CHECKING:
    import pyarrow as pa

    from aria_dvc.credit.blocks import Survey
    from aria_dvc.credit.labeller import Labeller

SAMPLE = 20_000
USAGE = """\
Writes the intention of every utterance of LOG, the table that `aria read` wrote: of the nearest
cluster of a fit (--fitted), or of K clusters of a sample of LOG (--k). A text that was clustered
keeps its label. Some thousand utterances are held at a time, and what was clustered.

  aria read games.jsonl.zst --out turns.parquet
  aria label turns.parquet --fitted fitted/ --out labels.parquet
  aria label turns.parquet --k 20 --workers 8 --out labels.parquet
"""


def add_label_parser(subparsers: Any) -> None:
    """Add the subcommand `label`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser(
        "label",
        help="intentions of a log that outgrows memory",
        description=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("log", type=Path, help="table of turns, written by `aria read`")
    add("--out", type=Path, required=True, metavar="FILE", help="Parquet file to write")
    by = parser.add_mutually_exclusive_group(required=True)
    by.add_argument("--fitted", type=Path, metavar="DIR", help="folder that `aria fit` wrote")
    by.add_argument("--k", type=int, help="cluster a sample of LOG into so many intentions")
    add("--sample", type=int, metavar="N", help=f"utterances to cluster, with --k ({SAMPLE})")
    add("--seed", type=int, help="draws the sample (0)")
    add("--embed", help=f"embedding model, with --k ({EMBEDDER}); a fit has its own")
    several = "processes with one core each, by Ray Data (extra `ray`); default this one alone"
    add("--workers", type=int, metavar="N", help=several)
    cluster = "on a running Ray cluster (default: the one that this machine belongs to)"
    add("--ray", nargs="?", const="auto", metavar="ADDRESS", help=cluster)
    parser.set_defaults(run=run_label)


def run_label(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: options that have no effect or are out of range; see `survey`, `by_fit`,
            `by_sample` and `labelled_on_ray`.
    """
    _check(args)
    from aria_dvc.credit.blocks import survey
    from aria_dvc.credit.labeller import in_parts
    from aria_dvc.files import write_parquet_parts

    found = survey(args.log.resolve())
    labeller = _labeller(args, found)
    tables = _with_progress(_tables(args, labeller, found), found.rows)
    rows = write_parquet_parts(args.out, in_parts(tables))
    print(f"{rows} utterances, {labeller.intentions} intentions: {args.out}")


def _check(args: argparse.Namespace) -> None:
    from aria_dvc.credit.labeller import COLUMNS

    read = {"the log": args.log, "--fitted": [args.fitted] if args.fitted else []}
    check_parquet_name(args.out, "name it labels.parquet, say")
    check_outputs({"--out": (args.out, table_with(COLUMNS))}, read)
    if args.fitted is not None:
        for option in ("sample", "seed", "embed"):
            if getattr(args, option) is not None:
                raise AriaError(f"--{option}: --fitted knows that already: leave one of them out")
    for option, least in (("sample", 1), ("workers", 1), ("seed", 0)):
        value = getattr(args, option)
        if value is not None and value < least:
            raise AriaError(f"--{option}: {value} is below {least}")


def _labeller(args: argparse.Namespace, found: Survey) -> Labeller:
    from aria_dvc.credit.labeller import by_fit, by_sample

    if args.fitted is not None:
        return by_fit(found, args.fitted)
    return by_sample(found, args.k, args.sample or SAMPLE, args.seed or 0, args.embed)


def _tables(args: argparse.Namespace, labeller: Labeller, found: Survey) -> Iterable[pa.Table]:
    if args.workers is None and args.ray is None:
        return map(labeller, found.blocks)
    from aria_dvc.credit.on_ray import labelled_on_ray

    return labelled_on_ray(labeller, found.blocks, args.workers, args.ray)


def _with_progress(tables: Iterable[pa.Table], total: int) -> Iterator[pa.Table]:
    from aria_dvc.progress import progress_bar

    done = 0
    with progress_bar("labelling") as update:
        for table in tables:
            done += len(table)
            update(done, total)
            yield table
