"""The float32 lower bounds that the exact tree rests on."""

import numpy as np
import pytest

from aria_dvc.intentions import ward
from aria_dvc.intentions.workers import Workers, rounds_of_pairs


def searched(points, weights, candidates=8):
    state = ward._State(points, weights, candidates)
    ward._search_all_pairs(state, Workers(None))
    return state


def exact(points, weights):
    """(m, m) Ward distances in extended precision, infinite on the diagonal."""
    x = points.astype(np.longdouble)
    squared = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    pull = weights[:, None] * weights / (weights[:, None] + weights)
    out = (pull * squared).astype(np.float64)
    np.fill_diagonal(out, np.inf)
    return out


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e12])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("seed", range(3))
def test_no_bound_exceeds_its_distance(seed, scale, offset):
    rng = np.random.default_rng(seed)
    points = scale * (rng.standard_normal((200, 64)) + offset)
    points[100:] = points[:100] + scale * 1e-4 * rng.standard_normal((100, 64))
    weights = rng.integers(1, 50, 200).astype(np.float64)
    state, distances = searched(points, weights), exact(points, weights)
    for i in range(200):
        listed = state.near[i]
        assert (state.key[i] <= distances[i, listed]).all()
        others = np.setdiff1d(np.arange(200), [*listed, i])
        assert state.floor[i] <= distances[i, others].min()


def test_bounds_are_close_enough_to_decide():
    rng = np.random.default_rng(1)
    points, weights = rng.standard_normal((300, 384)), np.ones(300)
    state, distances = searched(points, weights), exact(points, weights)
    nearest = distances.min(axis=1)
    assert (state.key[:, 0] > 0.999 * nearest).all()
    assert (state.floor > nearest).mean() > 0.99


@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_rounds_cover_every_pair_once_and_no_block_twice(blocks):
    rounds = list(rounds_of_pairs(blocks))
    pairs = [pair for some in rounds for pair in some]
    assert sorted(pairs) == [(i, j) for i in range(blocks) for j in range(i, blocks)]
    for some in rounds:
        used = [block for i, j in some for block in {i, j}]
        assert len(used) == len(set(used))
