"""Intentions of utterances by the block: by a fit, or by clusters of a sample of the log.

A `Labeller` holds what a block needs beside its rows: the clustered utterances with their vectors
and labels. It goes to other processes as it is. No vector is cached: those of a log that outgrows
memory would outgrow the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from aria_dvc.credit.blocks import Block, Survey, draw, log_of_rows, read_block
from aria_dvc.credit.fitted import load_fit, vectors_of
from aria_dvc.credit.labelling import unseen_labels
from aria_dvc.credit.logs import NO_GAME
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, Cluster
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.records.names import FIXED_ANSWERS

PART_ROWS = 100_000  # of a row group that is written
COLUMNS = {
    "episode_id": "the episode",
    "position": "the message's place in its episode of the log, from 0; system messages count",
    "role": "who speaks",
    "intention": "of the nearest cluster; of a text that was clustered, its own; -1 for a kind of "
    "fixed answer that no clustered dialogue has",
}


@dataclass
class Labeller:
    """Labels the blocks of the table at `path`, each by itself.

    embed: the embedding model of the clustered utterances. known: these, labelled. acting: the
    roles that act; they decide what is an answer with a fixed label.
    """

    path: Path
    embed: str
    known: Log
    acting: tuple[str, ...]

    @property
    def intentions(self) -> int:
        """How many there are."""
        return len(np.unique(self.known.labels))

    def __call__(self, block: Block) -> pa.Table:
        """The labels of a block's utterances (COLUMNS).

        Raises AriaError as `read_block` does, and for vectors that are not finite.
        """
        rows = read_block(self.path, block)
        vectors = self._vectors(rows["text"].to_pylist())
        log = log_of_rows(rows, vectors, self.acting, self.known.game)
        labels = unseen_labels(self.known, log)
        return rows.drop_columns("text").append_column("intention", pa.array(labels, pa.int64()))

    def _vectors(self, texts: list[str]) -> np.ndarray:
        """(n, d) float32 unit vectors; those of clustered texts are exactly the clustered ones."""
        known = self._row_of
        new = vectors_of({text for text in texts if text not in known}, self.embed)
        return np.stack([new[t] if t in new else self.known.vectors[known[t]] for t in texts])

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.known.text)}


def by_fit(found: Survey, folder: Path) -> Labeller:
    """Label as the intentions of a fitted credit do.

    Raises:
        AriaError: no fit there, one without intentions or of another game, or of other roles where
            these decide what is clustered.
    """
    fitted = load_fit(folder)
    method, game = fitted.about["aggregate"]["method"], fitted.known.game
    if not fitted.method.uses_labels:
        raise AriaError(f"{folder}: {method} finds no intentions: fit --method aria, or use --k")
    if game != found.game and NO_GAME not in (game, found.game):
        raise AriaError(f"fitted on {game}, to label {found.game}: label one game at a time")
    if game in FIXED_ANSWERS and not set(fitted.acting) & set(found.roles):
        raise AriaError(
            f"{found.path}: nobody there is {', '.join(fitted.acting)}, who asks in the fit; "
            f"the log has {', '.join(found.roles)}: name the roles alike"
        )
    return Labeller(found.path, fitted.about["embed"], fitted.known, tuple(fitted.acting))


def by_sample(
    found: Survey, k: int, size: int, seed: int = 0, embed: str | None = None
) -> Labeller:
    """Label by the k clusters of some of the log's own utterances, drawn at random.

    Raises:
        AriaError: a k that the sample has not, or nothing to cluster.
    """
    from aria_dvc.intentions.embedding import embed_texts
    from aria_dvc.intentions.space import find_intentions

    if not 2 <= k <= Cluster.k_max:
        raise AriaError(f"--k: {k} is outside 2..{Cluster.k_max}")
    rows, source = draw(found, size, seed), embed or EMBEDDER
    vectors = embed_texts(rows["text"].to_pylist(), source, EMBED_BATCH, True, {})
    log = log_of_rows(rows, vectors, found.acting, found.game)
    cuts = find_intentions(log, Cluster()).cuts
    if k not in cuts.ks:
        held = f"--k: the {len(log)} drawn utterances hold {cuts.ks[-1]} distinct ones"
        raise AriaError(f"{held}: lower --k or raise --sample")
    return Labeller(found.path, source, log.with_labels(cuts.at(k)), found.acting)


def in_parts(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The tables, joined to some PART_ROWS rows each."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= PART_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
