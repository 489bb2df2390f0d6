"""A seeded two-dimensional UMAP of embeddings, for pictures only."""

from __future__ import annotations

import warnings

import numpy as np


def project(vectors: np.ndarray, max_points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two-dimensional positions of (a sample of) distinct vectors.

    Args:
        vectors: (n, d) float32.
        max_points: at most so many rows are drawn, sampled with `seed`, the likelier the more rows
            are equal to one: what is said over and over is on the map.

    Returns:
        (m,) int64 indices of the drawn rows and their (m, 2) float32 positions. With fewer than
        five distinct rows or a single dimension, too little for UMAP, the positions are the first
        two coordinates (0 for one that is missing).
    """
    _, distinct, count = np.unique(vectors, axis=0, return_index=True, return_counts=True)
    rng, size = np.random.default_rng(seed), min(max_points, len(distinct))
    rows = np.sort(rng.choice(distinct, size, replace=False, p=count / count.sum()))
    if len(rows) < 5 or vectors.shape[1] < 2:
        points = np.zeros((len(rows), 2), np.float32)
        points[:, : vectors.shape[1]] = vectors[rows, :2]
        return rows, points
    return rows, _mapped(vectors[rows], seed)


def _mapped(points: np.ndarray, seed: int) -> np.ndarray:
    """(m, 2) float32: the map of (m, d) distinct points, five at least.

    UMAP's own search of neighbours would be compiled in every run, which takes longer than all
    else here.
    """
    import umap
    from sklearn.neighbors import NearestNeighbors

    count = min(15, len(points) - 1)
    nearest = NearestNeighbors(n_neighbors=count, metric="cosine").fit(points)
    distances, places = nearest.kneighbors(points)
    # A point is its own first neighbour, at 0 but for rounding, which UMAP would take for a scale.
    distances[places == np.arange(len(points))[:, None]] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # n_jobs is forced to 1 by the seed, as intended
        mapper = umap.UMAP(
            n_neighbors=count,
            init="pca",
            random_state=seed,
            metric="cosine",
            precomputed_knn=(places, distances.astype(np.float32)),
        )
        mapped: np.ndarray = mapper.fit_transform(points).astype(np.float32)
    return mapped
