"""Candidate lists of nearest clusters, filled from tiles of float32 products (compiled loops)."""

from __future__ import annotations

import numpy as np
from numba import njit

_LOOSE = {"nnan", "nsz", "reassoc", "contract", "arcp"}
_CHUNK = 64


@njit(cache=True, nogil=True)
def insert(near, key, node, value):
    """Put (node, value) into the ascending candidate list; the last one falls out."""
    t = key.shape[0] - 1
    while t > 0 and key[t - 1] > value:
        key[t] = key[t - 1]
        near[t] = near[t - 1]
        t -= 1
    key[t] = value
    near[t] = node


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _bounds_in_chunk(products, norms, inverse, norm, inv, start, stop):
    """Turn products into lower bounds in place; returns the smallest."""
    low = np.float32(np.inf)
    for c in range(start, stop):
        value = (norm + norms[c] - np.float32(2.0) * products[c]) / (inv + inverse[c])
        products[c] = value
        low = min(low, value)
    return low


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def _any_below(values, limits, start, stop):
    hits = 0
    for c in range(start, stop):
        hits += values[c] < limits[c]
    return hits > 0


@njit(cache=True, nogil=True)
def scan_rows(products, norm_r, inv_r, norm_c, inv_c, node_c, near, key):
    """Lower bounds of a tile (r, c) from its float32 products; update the rows' lists (r, q)."""
    columns = products.shape[1]
    last = key.shape[1] - 1
    for r in range(products.shape[0]):
        row = products[r]
        for start in range(0, columns, _CHUNK):
            stop = min(start + _CHUNK, columns)
            low = _bounds_in_chunk(row, norm_c, inv_c, norm_r[r], inv_r[r], start, stop)
            if low < key[r, last]:
                for c in range(start, stop):
                    if row[c] < key[r, last]:
                        insert(near[r], key[r], node_c[c], row[c])


@njit(cache=True, nogil=True)
def scan_columns(bounds, node_r, near, key):
    """The same tile seen from its columns: update their lists (c, q)."""
    columns = bounds.shape[1]
    last = key.shape[1] - 1
    worst = key[:, last].copy()
    for r in range(bounds.shape[0]):
        row = bounds[r]
        for start in range(0, columns, _CHUNK):
            stop = min(start + _CHUNK, columns)
            if _any_below(row, worst, start, stop):
                for c in range(start, stop):
                    if row[c] < worst[c]:
                        insert(near[c], key[c], node_r[r], row[c])
                        worst[c] = key[c, last]


@njit(cache=True, nogil=True)
def join_lists(near, key):
    """Merge candidate lists (p, b, q) of p column ranges into the first."""
    for p in range(1, near.shape[0]):
        for r in range(near.shape[1]):
            for t in range(near.shape[2]):
                if key[p, r, t] >= key[0, r, near.shape[2] - 1]:
                    break
                insert(near[0, r], key[0, r], near[p, r, t], key[p, r, t])
