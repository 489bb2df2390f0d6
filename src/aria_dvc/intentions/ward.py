"""Exact Ward tree of weighted points without an n x n array.

Nearest-neighbour candidates come from blocked float32 matrix products; whatever decides a merge is
recomputed in float64. All pairs that are each other's nearest are merged at once (Ward's distance
is reducible, so the order of such merges does not change the tree), and only clusters whose
neighbour has gone look again: first into their own short candidate lists, then, those with the
lowest bounds first, at all active clusters by another blocked product.

The error bound. Let u = 2^-24, c a float64 centre, x = fl(c) its float32 image, so that
|x_k - c_k| <= u |c_k|, and n_a = |c_a|^2. Writing g for the float32 product of x_a and x_b,

    |g - x_a.x_b| <= gamma_d |x_a| |x_b|,   gamma_d = d u / (1 - d u),

for any order of summation, fused or not, and |x_a.x_b - c_a.c_b| <= (2u + u^2) |c_a| |c_b|. With
|c_a| |c_b| <= (n_a + n_b) / 2 the computed squared distance n_a + n_b - 2 g is off by at most
(gamma_d (1 + u)^2 + 2u + u^2) (n_a + n_b). Rounding the two norms to float32, adding them and
subtracting 2 g costs at most 4u (n_a + n_b) more, the division by 1/s_a + 1/s_b a relative 4u of a
value no larger than 2 (n_a + n_b). So with slack = (d + 32) u / (1 - (d + 32) u),

    ((1 - slack) n_a + (1 - slack) n_b - 2 g) / (1/s_a + 1/s_b) <= Ward's distance,

where centres are taken relative to the mean of all points and scaled by a power of two to lengths
of at most one. Underflow and the float64 rounding of that shift are covered by a small constant
taken off each norm. A list keeps the q smallest of these bounds, hence every cluster outside it
is at least as far as the largest one kept: the list's floor. A neighbour is accepted only if its
float64 distance is below the floor; a near-tie is thus any pair that the bound cannot separate,
and it is decided in float64: among the candidates, or, where even a fresh list's floor is too low
(many nearly equal points), among all clusters whose bound is below the best distance known.

Ties. Two float64 distances that agree to 40 bits count as equal; among equals the cluster whose
earliest point comes first is the nearer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.intentions import kernels, tiles
from aria_dvc.intentions.workers import Workers, rounds_of_pairs, workers

CANDIDATES = 48
BLOCK = 1024
_RANGES = 4
_HARD = 32


@dataclass(frozen=True)
class Merges:
    """Merges of m points in an order where parts come before wholes.

    pairs: (m - 1, 2) int32 nodes; point i is node i, merge t makes node m + t.
    heights: (m - 1,) float64 merge heights, not necessarily ascending.
    tied: whether some merge had an equally near alternative.
    """

    pairs: np.ndarray
    heights: np.ndarray
    tied: bool


class _State:
    """The arrays that the kernels share; see `kernels` for their meaning."""

    def __init__(self, points: np.ndarray, weights: np.ndarray, candidates: int) -> None:
        m, d = points.shape
        self.active, self.next_node, self.tied = m, m, False
        self.centre = points.astype(np.float64)
        self.frame = _frame(self.centre, weights)
        self.coarse = np.empty((m, d), np.float32)
        self.size = weights.astype(np.float64)
        self.norm, self.inverse = np.empty(m, np.float32), np.empty(m, np.float32)
        q = min(candidates, max(1, m - 1))
        self.near = np.full((m, q), -1, np.int32)
        self.key = np.full((m, q), np.inf)
        self.known = np.zeros((m, q), np.bool_)
        self.floor, self.reach = np.full(m, np.inf), np.zeros(m)
        self.nearest = np.full(m, -1, np.int32)
        self.state, self.ties = np.zeros(m, np.uint8), np.zeros(m, np.bool_)
        self.parent = np.arange(2 * m, dtype=np.int32)
        self.slot = np.arange(2 * m, dtype=np.int32)
        self.first = np.arange(2 * m, dtype=np.int32)
        self.node_of = np.arange(m, dtype=np.int32)
        self.place = np.full(2 * m, -1, np.int32)
        self.merges = np.empty((m - 1, 2), np.int32)
        self.heights = np.empty(m - 1)
        kernels.set_all_coarse(
            m, self.centre, self.size, self.coarse, self.norm, self.inverse, self.frame
        )

    @property
    def rows(self) -> tuple:
        return (
            *(self.centre, self.coarse, self.size, self.norm, self.inverse, self.near, self.key),
            *(self.known, self.floor, self.nearest, self.reach, self.state, self.ties),
        )


def ward_merges(
    points: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    threads: int | None = None,
    candidates: int = CANDIDATES,
) -> Merges:
    """Exact Ward merges of (m, d) distinct points that stand for `weights` (m,) points each."""
    weights = np.ones(len(points)) if weights is None else np.asarray(weights)
    with workers(threads) as pool:
        return merge_all(points, weights, pool, candidates)


def merge_all(
    points: np.ndarray, weights: np.ndarray, pool: Workers, candidates: int = CANDIDATES
) -> Merges:
    """`ward_merges` on a pool that is already running."""
    if len(points) < 2:
        return Merges(np.empty((0, 2), np.int32), np.empty(0), False)
    state = _State(points, weights, candidates)
    _search_all_pairs(state, pool)
    while state.active > 1:
        _refresh(state, pool)
        if _merge(state) * 64 < state.active and state.active > 1:
            _ask_again(state, pool)
    return Merges(state.merges, np.sqrt(2.0 * state.heights), state.tied)


def _frame(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float, float, float]:
    """What makes float32 images: mean (d,), scale, relative and absolute error of squared lengths.

    The scale is a power of two that brings all lengths to one or below.
    """
    dimensions = points.shape[1]
    mean = np.einsum("i,ij->j", weights, points) / weights.sum()
    longest = max(_length(rows - mean) for rows in np.array_split(points, len(points) // 1024 + 1))
    scale = float(2.0 ** np.ceil(np.log2(longest))) if longest > 0 else 1.0
    units = (dimensions + 32) * 2.0**-24
    rounding = 8 * np.sqrt(dimensions) * 2.0**-52 * float(np.abs(points).max()) / scale
    return mean, 1.0 / scale, units / (1.0 - units), rounding + 1e-30


def _length(rows: np.ndarray) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))


def _search_all_pairs(state: _State, pool: Workers) -> None:
    """Fill every list from the upper triangle of blocks, each tile serving rows and columns."""
    m, q = state.near.shape
    block = min(BLOCK, max(64, -(-m // 8)))
    spans = [slice(start, min(start + block, m)) for start in range(0, m, block)]
    near, key = np.full((m, q), -1, np.int32), np.full((m, q), np.inf, np.float32)

    def tile(i: int, j: int) -> None:
        r, c = spans[i], spans[j]
        products = state.coarse[r] @ state.coarse[c].T
        if i == j:
            np.fill_diagonal(products, -np.float32(1e30))
        tiles.scan_rows(
            *(products, state.norm[r], state.inverse[r], state.norm[c], state.inverse[c]),
            *(state.node_of[c], near[r], key[r]),
        )
        if i != j:
            tiles.scan_columns(products, state.node_of[r], near[c], key[c])

    for pairs in rounds_of_pairs(len(spans)):
        pool.run(tile, pairs)
    _store(state, np.arange(m), near, key)


def _search(state: _State, pool: Workers, slots: np.ndarray) -> None:
    """Fill the lists of `slots` (b,) from all active clusters."""
    q, active = state.near.shape[1], state.active
    step = -(-active // _RANGES)
    spans = [slice(start, min(start + step, active)) for start in range(0, active, step)]
    rows = np.ascontiguousarray(state.coarse[slots])
    near = np.full((len(spans), slots.size, q), -1, np.int32)
    key = np.full((len(spans), slots.size, q), np.inf, np.float32)

    def scan(part: int) -> None:
        for start in range(spans[part].start, spans[part].stop, BLOCK):
            c = slice(start, min(start + BLOCK, spans[part].stop))
            products = rows @ state.coarse[c].T
            own = (slots >= c.start) & (slots < c.stop)
            products[own, slots[own] - c.start] = -np.float32(1e30)
            tiles.scan_rows(
                *(products, state.norm[slots], state.inverse[slots], state.norm[c]),
                *(state.inverse[c], state.node_of[c], near[part], key[part]),
            )

    pool.run(scan, [(part,) for part in range(len(spans))])
    tiles.join_lists(near, key)
    _store(state, slots, near[0], key[0])


def _store(state: _State, slots: np.ndarray, near: np.ndarray, key: np.ndarray) -> None:
    unit = state.frame[1] ** -2
    kernels.store_lists(
        *(slots, near, key, unit, state.near, state.key, state.known, state.floor, state.state)
    )


def _refresh(state: _State, pool: Workers, slots: np.ndarray | None = None) -> None:
    """Look for the nearest cluster of every touched slot (or `slots`) among its candidates."""
    if slots is None:
        slots = kernels.mark_touched(state.active, state.parent, state.nearest, state.state)

    def part(some: np.ndarray) -> None:
        kernels.refresh(
            *(some, state.parent, state.slot, state.first, state.centre, state.size, state.near),
            *(state.key, state.known, state.floor, state.nearest, state.reach, state.state),
            state.ties,
        )

    pieces = max(1, min(8, slots.size // 64))
    pool.run(part, [(some,) for some in np.array_split(slots, pieces)])


def _merge(state: _State) -> int:
    """Merge all reciprocal pairs; returns their number."""
    pairs = kernels.reciprocal_pairs(
        state.active, state.node_of, state.slot, state.nearest, state.state
    )
    if not len(pairs) and not (state.state[: state.active] == kernels.STALE).any():
        # Equal distances point in a circle where a union tied with a neighbour chosen before it.
        s = state.reach[: state.active].argmin()
        pairs = np.array([[state.node_of[s], state.nearest[s]]], np.int32)
    state.active, state.next_node, tied = kernels.merge_pairs(
        *(pairs, state.active, state.next_node, state.parent, state.slot, state.first),
        *(state.node_of, state.rows, state.frame, state.place, state.merges, state.heights),
    )
    state.tied = state.tied or bool(tied)
    return len(pairs)


def _ask_again(state: _State, pool: Workers) -> None:
    """Search for the stale slots with the lowest floors; in float64 where bounds fail."""
    _refresh(state, pool)
    stale = np.flatnonzero(state.state[: state.active] == kernels.STALE)
    batch = max(32, state.active // 16)
    if stale.size > batch:
        stale = stale[np.argpartition(state.reach[stale], batch)[:batch]]
    if stale.size == 0:
        return
    _search(state, pool, stale)
    _refresh(state, pool, stale)
    hard = stale[state.state[stale] == kernels.STALE]
    pool.run(_search_exactly, [(state, hard[at : at + _HARD]) for at in range(0, hard.size, _HARD)])


def _search_exactly(state: _State, slots: np.ndarray) -> None:
    """Decide the nearest cluster of slots whose float32 bounds cannot: by float64 throughout."""
    q = state.near.shape[1]
    near, key = np.empty((slots.size, q), np.int32), np.empty((slots.size, q))
    rows, unit = state.coarse[slots], state.frame[1] ** -2
    kernels.start_exact(
        *(slots, state.parent, state.slot, state.first, state.centre, state.size, state.near),
        *(state.key, state.known, state.floor, near, key),
    )
    for start in range(0, state.active, BLOCK):
        products = rows @ state.coarse[start : min(start + BLOCK, state.active)].T
        kernels.scan_exact(
            *(products, slots, start, state.norm, state.inverse, unit, state.node_of),
            *(state.first, state.centre, state.size, near, key),
        )
    kernels.settle(
        *(slots, near, key, state.near, state.key, state.known, state.floor),
        *(state.nearest, state.reach, state.state, state.ties),
    )
