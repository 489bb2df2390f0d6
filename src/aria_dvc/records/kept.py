"""The table that `aria read` writes: a log's turns, and all that makes it the same log again.

It is the table of turns with two columns more: whom a speaker with a name of its own speaks as, and
the vectors that the log carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode
from aria_dvc.records.log_vectors import log_vectors_table
from aria_dvc.records.schemas import TURNS, Column
from aria_dvc.records.tables import in_parts, log_tables

if TYPE_CHECKING:
    import pandas as pd

_SPEAKS_AS = "the role in which a speaker with a name speaks (assistant, user); else empty"
KEPT = replace(
    TURNS,
    name="turns of aria read",
    columns=(
        *TURNS.columns,
        Column("speaks_as", "text", _SPEAKS_AS, needed=False),
        Column("embedding", "float32 vector", "the vector that the log carries", needed=False),
    ),
)


def kept_tables(episodes: Iterable[Episode]) -> Iterator[pd.DataFrame]:
    """`log_tables` with the columns of KEPT: one row an utterance, in parts of whole episodes.

    Raises:
        AriaError: episodes of several logs of which not all carry vectors, or of several lengths.
    """
    width: int | None = None
    first, second = tee(episodes)  # of which it holds one part
    for table, part in zip(log_tables(first), in_parts(second), strict=True):
        found = {0 if u.embedding is None else len(u.embedding) for e in part for u in e.utterances}
        if len(found | {width} - {None}) > 1:
            raise AriaError(
                "the logs' embeddings differ in length, or some have none: read the logs one by one"
            )
        (width,) = found
        named = [e.named.get(u.role, "") for e in part for u in e.utterances]
        yield table.assign(speaks_as=named, **({"embedding": _vectors(part)} if width else {}))


def _vectors(episodes: list[Episode]) -> pd.Series:
    """The vectors of all their utterances, as Arrow holds them."""
    import pandas as pd

    column = log_vectors_table(episodes).column("embedding")
    return pd.Series(column, dtype=pd.ArrowDtype(column.type))
