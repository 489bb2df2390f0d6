"""The embeddings that came with a user's log, kept beside its dialogues for `embed`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.records.episodes import Episode
from aria_dvc.records.schemas import LOG_VECTORS, check_file, whole_parquet

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def log_vectors_table(episodes: Sequence[Episode]) -> pa.Table:
    """episode_id, position, embedding of every utterance; no rows if the log carries none."""
    import pyarrow as pa

    rows = [
        (episode.episode_id, position, utterance.embedding)
        for episode in episodes
        for position, utterance in episode.numbered()
        if utterance.embedding is not None
    ]
    width = len(rows[0][2]) if rows else 1
    matrix = np.array([vector for _, _, vector in rows], np.float32)
    flat = pa.array(matrix.reshape(-1), type=pa.float32())
    return pa.table(
        {
            "episode_id": pa.array([row[0] for row in rows], type=pa.string()),
            "position": pa.array([row[1] for row in rows], type=pa.int32()),
            "embedding": pa.FixedSizeListArray.from_arrays(flat, width),
        }
    )


def vectors_of(turns: pd.DataFrame, path: Path) -> np.ndarray | None:
    """(n, d) float32 vectors of the rows of `turns`; None if the log carried none.

    Episodes that were left out since the log was read leave their vectors out.

    Raises:
        AriaError: another schema, vectors that are not finite, or an utterance without one.
    """
    import pandas as pd
    import pyarrow.parquet as pq

    from aria_dvc.records.tables import read_vectors

    check_file(path, LOG_VECTORS)
    with whole_parquet(path, LOG_VECTORS):
        keys = pq.read_table(path, columns=["episode_id", "position"]).to_pandas()
    if not len(keys):
        return None
    LOG_VECTORS.check_values(keys, path)
    LOG_VECTORS.refuse(keys.duplicated().to_numpy(), keys, path, "stands there twice")
    vectors = read_vectors(path, schema=LOG_VECTORS)
    row_of = keys.reset_index().set_index(["episode_id", "position"])["index"]
    rows = row_of.reindex(pd.MultiIndex.from_frame(turns[["episode_id", "position"]]))
    lacking = rows.isna().to_numpy()
    LOG_VECTORS.refuse(lacking, turns, path, "this turn has no vector there")
    order = rows.to_numpy(np.int64)
    in_order = len(order) == len(vectors) and bool((order == np.arange(len(order))).all())
    return vectors if in_order else vectors[order]
