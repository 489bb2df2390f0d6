"""All cuts at once: partitions, numbering, fixed labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from tests.intention_data import embeddings, same_partition

from aria_dvc.errors import AriaError
from aria_dvc.intentions.cuts import cut_all, nested_labels, with_fixed_answers


def tree_of(n, seed=0, duplicates=0.0):
    points = embeddings(n, 5, "overlapping", seed, duplicates)
    return hierarchy.linkage(points.astype(np.float64), "ward")


@pytest.mark.parametrize("duplicates", [0.0, 0.4])
def test_partitions_equal_fcluster(duplicates):
    tree = tree_of(150, duplicates=duplicates)
    cuts = cut_all(tree)
    for k in cuts.ks:
        assert same_partition(cuts.at(k), hierarchy.fcluster(tree, k, "maxclust"))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 1000), st.integers(2, 30))
def test_one_cluster_splits_and_the_earliest_part_keeps_its_label(n, seed, k_max):
    cuts = cut_all(tree_of(n, seed), k_max)
    labels = np.concatenate([np.zeros((n, 1), int), cuts.labels], axis=1)
    for k in range(1, labels.shape[1]):
        moved = labels[:, k] != labels[:, k - 1]
        assert set(labels[moved, k]) == {k}
        (parent,) = set(labels[moved, k - 1])
        assert np.argmax(labels[:, k] == parent) < np.argmax(labels[:, k] == k)


def test_k_is_capped_at_the_distinct_points():
    cuts = cut_all(hierarchy.linkage(np.array([[0.0], [0.0], [1.0], [5.0]]), "ward"), 100)
    assert cuts.distinct == 3
    assert cuts.ks.tolist() == [2, 3]
    with pytest.raises(AriaError, match="no cut at k = 4"):
        cuts.at(4)


@pytest.mark.parametrize("n", [1, 4])
def test_equal_utterances_have_one_cluster(n):
    cuts = cut_all(
        np.column_stack([np.zeros((n - 1, 3)), np.zeros(n - 1)]) if n > 1 else np.empty((0, 4))
    )
    assert cuts.at(1).tolist() == [0] * n


def test_k_max_must_fit_a_byte():
    with pytest.raises(AriaError, match=r"2\.\.256"):
        cut_all(tree_of(10), 257)


def test_matrix_and_compact_form_agree():
    cuts = cut_all(tree_of(80), 20)
    back = nested_labels(cuts.labels, cuts.ks)
    np.testing.assert_array_equal(back.labels, cuts.labels)
    assert cuts.labels.dtype == np.uint8


def test_cuts_that_are_not_nested_are_refused():
    with pytest.raises(AriaError, match="not nested"):
        nested_labels(np.array([[0, 0], [1, 0]]), np.array([2, 3]))


def test_answers_keep_fixed_labels_beyond_the_questions():
    cuts = cut_all(tree_of(120), 100)
    is_question = np.arange(240) % 2 == 0
    answer = np.arange(240) // 2 % 3
    both = with_fixed_answers(cuts, is_question, answer)
    for k in (2, 50, 100):
        np.testing.assert_array_equal(both.at(k)[is_question], cuts.at(k))
        np.testing.assert_array_equal(both.at(k)[~is_question], 100 + answer[~is_question])
    assert both.labels.dtype == np.uint8


def test_answers_need_room():
    cuts = cut_all(tree_of(30), 20)
    mask = np.ones(31, bool)
    mask[3] = False
    with pytest.raises(AriaError, match="no room"):
        with_fixed_answers(cuts, mask, np.zeros(31, int), base=10)
    with pytest.raises(AriaError, match="is_question"):
        with_fixed_answers(cuts, np.ones(31, bool), np.zeros(31, int))
