"""The exact tree against SciPy's float64 tree."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from tests.intention_data import KINDS, embeddings, reference_cuts

from aria_dvc.errors import AriaError
from aria_dvc.intentions import average
from aria_dvc.intentions.cuts import cut_all
from aria_dvc.intentions.distinct import find_distinct
from aria_dvc.intentions.linkage import linkage
from aria_dvc.intentions.tree import scipy_tree
from aria_dvc.intentions.ward import ward_merges

FAST = [(900, 48, kind, share, seed) for kind in KINDS for share in (0.0, 0.3) for seed in (0, 1)]
SLOW = [
    (n, d, kind, share, seed)
    for n, d in ((2500, 384), (1500, 1536), (6000, 384))
    for kind in KINDS
    for share in (0.0, 0.33)
    for seed in range(3)
]


def own_tree(points, method="ward", **options):
    """The tree by the blocked algorithm, whatever the size."""
    return linkage(points, method, small=0, **{"tied": 0, **options})


def assert_same_labels(points, method="ward", **options):
    ours, reference = cut_all(own_tree(points, method, **options)), reference_cuts(points, method)
    np.testing.assert_array_equal(ours.ks, reference.ks)
    np.testing.assert_array_equal(ours.labels, reference.labels)
    np.testing.assert_allclose(ours.heights[1:], reference.heights[1:], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("n", "d", "kind", "share", "seed"), FAST)
def test_labels_equal_scipy(n, d, kind, share, seed):
    assert_same_labels(embeddings(n, d, kind, seed, share))


def test_average_linkage_stays_in_its_blocks_where_one_cluster_holds_most_points(monkeypatch):
    rows, plain = [], average._Clusters._distances
    monkeypatch.setattr(average, "_ELEMENTS", 1 << 14)
    monkeypatch.setattr(
        average._Clusters, "_distances", lambda self, r: rows.append(r.size) or plain(self, r)
    )
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(600, 16)), 6 * rng.normal(size=(200, 16))])
    points = points.astype(np.float32)
    merges = average.average_merges(points, dense=100, threads=1)
    tree = scipy_tree(merges.pairs, merges.heights, find_distinct(points))
    expected = reference_cuts(points, "average").labels
    np.testing.assert_array_equal(cut_all(tree).labels, expected)
    assert max(rows) <= (1 << 14) // len(points)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "kind", "share", "seed"), SLOW)
def test_labels_equal_scipy_on_many_large_data_sets(n, d, kind, share, seed):
    assert_same_labels(embeddings(n, d, kind, seed, share))


@pytest.mark.parametrize("kind", KINDS)
def test_tree_equals_scipy_without_duplicates(kind):
    points = embeddings(700, 24, kind)
    expected = hierarchy.linkage(points.astype(np.float64), "ward")
    ours = own_tree(points)
    np.testing.assert_array_equal(ours[:, [0, 1, 3]], expected[:, [0, 1, 3]])
    np.testing.assert_allclose(ours[:, 2], expected[:, 2], rtol=1e-9)


def test_tree_with_duplicates_is_valid_and_merges_them_at_zero():
    points = embeddings(400, 12, "overlapping", duplicates=0.4)
    tree = own_tree(points)
    assert hierarchy.is_valid_linkage(tree)
    assert hierarchy.is_monotonic(tree)
    assert np.count_nonzero(tree[:, 2] == 0) == 400 - len(np.unique(points, axis=0))


def test_float64_differences_below_float32_decide():
    rng = np.random.default_rng(5)
    points = np.repeat(rng.standard_normal((60, 8)), 3, axis=0)
    points += 1e-9 * rng.standard_normal(points.shape)
    assert_same_labels(points)


def test_noisy_copies_of_one_utterance():
    points = np.repeat(embeddings(30, 256, "structureless"), 40, axis=0)
    noise = 1e-4 * np.random.default_rng(2).standard_normal(points.shape)
    assert_same_labels((points + noise).astype(np.float32))


def test_far_off_centre_points():
    assert_same_labels(embeddings(500, 16, "overlapping") + np.float32(300.0))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 10_000))
def test_small_random_inputs(n, d, seed):
    assert_same_labels(np.random.default_rng(seed).standard_normal((n, d)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", ["ward", "average"])
def test_ties_fall_as_in_scipy(seed, method):
    points = np.random.default_rng(seed).integers(0, 4, (180, 3)).astype(np.float32)
    assert_same_labels(points, method, tied=4096)


def test_collinear_points_fall_as_in_scipy():
    assert_same_labels(np.arange(64.0)[:, None] * np.array([[1.0, 2.0]]), tied=4096)


def test_ties_beyond_the_limit_go_to_the_earliest_utterance():
    cuts = cut_all(own_tree(np.array([[0.0], [1.0], [2.0], [3.0], [10.0]])))
    assert cuts.at(4).tolist() == [0, 0, 2, 3, 1]
    assert cuts.at(3).tolist() == [0, 0, 2, 2, 1]


def test_many_equal_distances_are_decided_exhaustively():
    points = np.eye(200, dtype=np.float32)
    tree = own_tree(points)
    np.testing.assert_allclose(tree[:100, 2], np.sqrt(2.0))
    np.testing.assert_array_equal(tree, own_tree(points, threads=3))


def corners_of_a_cube():
    return np.array(list(itertools.product([0, 1], repeat=8)), np.float32)


def points_on_a_circle():
    angles = 2 * np.pi * np.arange(97) / 97
    return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


@pytest.mark.parametrize("candidates", [1, 2, 16])
@pytest.mark.parametrize(
    "points", [np.eye(200, dtype=np.float32), corners_of_a_cube(), points_on_a_circle()]
)
def test_more_ties_than_candidates_end_in_a_tree_of_the_same_heights(points, candidates):
    few, all_others = (ward_merges(points, candidates=c) for c in (candidates, len(points)))
    np.testing.assert_array_equal(np.sort(few.heights), np.sort(all_others.heights))
    if points.shape == (200, 200):  # each tie is between first points, so there is one tree
        np.testing.assert_array_equal(few.pairs, all_others.pairs)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    points = embeddings(1500, 32, "structureless", duplicates=0.2)
    np.testing.assert_array_equal(own_tree(points, threads=threads), own_tree(points, threads=2))


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_merge(n):
    assert linkage(np.zeros((n, 3))).shape == (0, 4)


def test_all_equal():
    tree = own_tree(np.ones((5, 2)))
    assert tree[:, 2].tolist() == [0.0] * 4
    assert cut_all(tree).ks.tolist() == [1]


def test_negative_zero_is_zero():
    assert find_distinct(np.array([[0.0, 1.0], [-0.0, 1.0]])).first.size == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_broken_values_are_refused_with_their_row(bad):
    points = np.zeros((4, 2))
    points[2, 1] = bad
    with pytest.raises(AriaError, match="row 2"):
        linkage(points)


def test_unknown_method_and_shape():
    with pytest.raises(AriaError, match="choose one of ward, average"):
        linkage(np.zeros((4, 2)), "single")
    with pytest.raises(AriaError, match="shape"):
        linkage(np.zeros(4))
