"""Equal rows once: duplicates of an utterance become one point with a weight.

A third of the utterances of a real log are exact duplicates ("yes", "is it alive?"). Every
quadratic step of this package works on the distinct rows and carries their counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.errors import AriaError

_CHUNK_BYTES = 1 << 24
_LARGEST = 1e100


@dataclass(frozen=True)
class Distinct:
    """Distinct rows of an (n, d) array.

    first: (m,) int64, ascending: the row at which each distinct point appears first.
    point: (n,) int64: the distinct point of every row.
    count: (m,) int64: how many rows share it.
    """

    first: np.ndarray
    point: np.ndarray
    count: np.ndarray


def check_points(points: np.ndarray) -> np.ndarray:
    """A C-ordered float32 or float64 (n, d) view or copy of `points`.

    Raises:
        AriaError: not two-dimensional, without columns, or with NaN or infinite values.
    """
    points = np.asarray(points)
    if points.ndim != 2 or (points.shape[0] and not points.shape[1]):
        raise AriaError(
            f"embeddings: expected an array (utterances, dimensions), got shape {points.shape}; "
            "pass one row per utterance"
        )
    if points.dtype not in (np.float32, np.float64):
        wide = points.dtype.kind in "iu" and points.dtype.itemsize > 2
        points = points.astype(np.float64 if wide else np.float32)
    _check_finite(points)
    return np.ascontiguousarray(points)


def _check_finite(points: np.ndarray) -> None:
    for start, rows in _chunks(points):
        if max(float(rows.max()), -float(rows.min())) <= _LARGEST:
            continue
        bad = ~(np.abs(rows.astype(np.float64)) <= _LARGEST).all(axis=1)
        raise AriaError(
            f"embeddings: row {start + int(np.argmax(bad))} has a NaN, infinite or enormous value; "
            "embed that utterance again or drop its episode"
        )


def find_distinct(points: np.ndarray) -> Distinct:
    """Group the equal rows of `points` (n, d); -0.0 equals 0.0."""
    keys = _row_hashes(points)
    _, first, point = np.unique(keys, return_index=True, return_inverse=True)
    if not _groups_are_equal(points, first, point):
        _, first, point = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    point = rank[point.reshape(-1)]
    return Distinct(first[order], point, np.bincount(point, minlength=order.size))


def _row_hashes(points: np.ndarray) -> np.ndarray:
    """(n,) uint64: the dot product of each row's words with fixed odd numbers, modulo 2^64."""
    word = np.uint32 if points.dtype == np.float32 else np.uint64
    rng = np.random.default_rng(20250601)
    odd = rng.integers(0, 2**63, points.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.empty(len(points), np.uint64)
    for start, rows in _chunks(points):
        words = (rows + 0.0).view(word).astype(np.uint64)
        words ^= words >> np.uint64(15)
        keys[start : start + len(rows)] = words @ odd
    return keys


def _groups_are_equal(points: np.ndarray, first: np.ndarray, point: np.ndarray) -> bool:
    """Whether every row equals the first row with its hash (false only on a hash collision)."""
    leader = first[point.reshape(-1)]
    repeated = np.flatnonzero(leader != np.arange(len(points)))
    step = max(1, _CHUNK_BYTES // max(1, points[:1].nbytes))
    for start in range(0, repeated.size, step):
        rows = repeated[start : start + step]
        if not np.array_equal(points[rows], points[leader[rows]]):
            return False
    return True


def _chunks(points: np.ndarray):
    step = max(1, _CHUNK_BYTES // max(1, points.itemsize * max(1, points.shape[1])))
    for start in range(0, len(points), step):
        yield start, points[start : start + step]
