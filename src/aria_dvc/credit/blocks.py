"""A table of turns in blocks of rows, for logs that outgrow memory.

A block is read by itself, so that any process that sees the file can take any block. The blocks
follow from the file alone: whoever does the work, the same utterances come together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aria_dvc.errors import AriaError, naming
from aria_dvc.intentions.log import Log
from aria_dvc.records.kept import KEPT
from aria_dvc.shown import brief

BLOCK_ROWS = 4096
MOST_ROWS = 200_000  # of a row group, which is read as a whole; `aria read` writes some 20,000
COLUMNS = ["episode_id", "position", "role", "text"]
_SURVEYED = ["game", "role", "is_action"]


@dataclass(frozen=True)
class Block:
    """Rows start to stop of one row group."""

    group: int
    start: int
    stop: int


@dataclass(frozen=True)
class Survey:
    """What a table of turns holds. roles: who speaks. acting: who has an action; both sorted."""

    path: Path
    rows: int
    game: str
    roles: tuple[str, ...]
    acting: tuple[str, ...]
    blocks: tuple[Block, ...]


def survey(path: Path) -> Survey:
    """Look through a table of turns, a few columns of it and a little at a time.

    Raises:
        AriaError: the file is no such table, is damaged, has no rows, several games, or a row group
            too large to be read as a whole.
    """
    with _opened(path) as file:
        _check_layout(file, path)
        found: dict[str, set[str]] = {"game": set(), "role": set(), "acting": set()}
        for batch in file.iter_batches(columns=_SURVEYED):
            acts = batch.column("role").filter(batch.column("is_action"))
            for name, values in (("acting", acts), *zip(("game", "role"), batch, strict=False)):
                found[name].update(pc.unique(values).to_pylist())
        rows, blocks = file.metadata.num_rows, tuple(_blocks(file))
    if not rows:
        raise AriaError(f"{path}: no utterance: give a log with dialogues")
    if len(found["game"]) > 1:
        games = ", ".join(sorted(map(str, found["game"])))
        raise AriaError(f"{path}: several games ({games}): label one game at a time")
    roles, acting = (tuple(sorted(found[name])) for name in ("role", "acting"))
    return Survey(path, rows, found["game"].pop(), roles, acting, blocks)


def read_block(path: Path, block: Block) -> pa.Table:
    """The rows of a block: who says what, and where (COLUMNS).

    Raises AriaError for a file that is damaged or gone.
    """
    with _opened(path) as file:
        table = file.read_row_group(block.group, columns=COLUMNS)
    rows = table.slice(block.start, block.stop - block.start)
    if rows["text"].null_count:
        raise AriaError(f"{path}: a row without a text: {_remedy(path)}")
    return rows


def draw(found: Survey, size: int, seed: int) -> pa.Table:
    """`size` of the table's utterances (all if it has no more), each as likely, in its order."""
    rng = np.random.default_rng(seed)
    count = min(size, found.rows)
    rows = np.sort(rng.choice(found.rows, count, replace=False, shuffle=False))
    ends = np.cumsum([block.stop - block.start for block in found.blocks])
    parts, begin = [], 0
    for block, end in zip(found.blocks, ends.tolist(), strict=True):
        mine = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, end)]
        if len(mine):
            parts.append(read_block(found.path, block).take(pa.array(mine - begin)))
        begin = end
    return pa.concat_tables(parts)


def log_of_rows(rows: pa.Table, vectors: np.ndarray, acting: Sequence[str], game: str) -> Log:
    """Rows of a block, which need be no whole episodes, for what looks at meaning and role alone.

    vectors: (n, d) float32. acting: the roles that act. The log has neither episodes nor returns.
    """
    count = len(rows)
    role = np.array(rows["role"].to_pylist(), dtype=str)
    text = np.array(rows["text"].to_pylist(), dtype=object)
    none = np.zeros(count, np.int64)
    acts = np.isin(role, acting)
    return Log(none, role, acts, text, vectors, none, np.full(count, np.nan), game)


def _blocks(file: pq.ParquetFile) -> Iterator[Block]:
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        for start in range(0, rows, BLOCK_ROWS):
            yield Block(group, start, min(start + BLOCK_ROWS, rows))


def _check_layout(file: pq.ParquetFile, path: Path) -> None:
    try:
        KEPT.check(file.schema_arrow, path)
    except AriaError:
        raise AriaError(f"{path}: no table of turns: {_remedy(path)}") from None
    groups = range(file.num_row_groups)
    most = max((file.metadata.row_group(group).num_rows for group in groups), default=0)
    if most > MOST_ROWS:
        raise AriaError(
            f"{path}: a row group of {most} rows would have to fit into memory: {_remedy(path)}"
        )


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """The file, with its name and the remedy in what Arrow says of a damaged one."""
    try:
        with naming(path), pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise AriaError(
            f"{path}: not Parquet, or damaged ({brief(error)}): {_remedy(path)}"
        ) from None


def _remedy(path: Path) -> str:
    return f"run `aria read {path} --out turns.parquet`, or on the log itself, and label that"
