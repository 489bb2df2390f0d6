"""A seeded two-dimensional UMAP of embeddings, for pictures only."""

from __future__ import annotations

import warnings

import numpy as np


def project(vectors: np.ndarray, max_points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two-dimensional positions of (a sample of) distinct vectors.

    Args:
        vectors: (n, d) float32.
        max_points: at most so many rows are drawn, sampled with `seed`.

    Returns:
        (m,) int64 indices of the drawn rows and their (m, 2) float32 positions. With fewer than
        five distinct rows the positions are the first two coordinates, since UMAP needs
        neighbours.
    """
    _, distinct = np.unique(vectors, axis=0, return_index=True)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(distinct)[:max_points])
    if len(rows) < 5:
        return rows, np.resize(vectors[rows], (len(rows), 2)).astype(np.float32)
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # n_jobs is forced to 1 by the seed, as intended
        mapper = umap.UMAP(
            n_neighbors=min(15, len(rows) - 1), init="pca", random_state=seed, metric="cosine"
        )
        return rows, mapper.fit_transform(vectors[rows]).astype(np.float32)
