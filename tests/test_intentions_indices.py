"""Indices of all cuts against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics
from tests.intention_data import KINDS, embeddings

from aria_dvc.intentions import indices
from aria_dvc.intentions.cuts import cut_all, nested_labels
from aria_dvc.intentions.linkage import linkage


def expected(score, points, labels):
    return score(points.astype(np.float64), labels)


def assert_equal_sklearn(points, cuts, curves, ks):
    for k in ks:
        labels, at = cuts.at(k), k - 2
        want = expected(metrics.silhouette_score, points, labels)
        assert curves.silhouette[at] == pytest.approx(want, abs=1e-6)
        want = expected(metrics.calinski_harabasz_score, points, labels)
        assert curves.calinski_harabasz[at] == pytest.approx(want, rel=1e-9)
        want = expected(metrics.davies_bouldin_score, points, labels)
        assert curves.davies_bouldin[at] == pytest.approx(want, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("small", [0, 4096])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_sklearn(kind, small, monkeypatch):
    monkeypatch.setattr(indices, "_SMALL", small)
    points = embeddings(1300, 24, kind, duplicates=0.3)
    cuts = cut_all(linkage(points))
    assert_equal_sklearn(points, cuts, indices.index_curves(points, cuts), (2, 3, 17, 60, 100))


def test_tight_groups_far_apart_keep_their_digits(monkeypatch):
    monkeypatch.setattr(indices, "_SMALL", 0)
    rng = np.random.default_rng(3)
    centres = 100.0 * rng.standard_normal((30, 16))
    points = np.repeat(centres, 40, axis=0) + 1e-3 * rng.standard_normal((1200, 16))
    cuts = cut_all(linkage(points), 40)
    assert_equal_sklearn(points, cuts, indices.index_curves(points, cuts), (2, 29, 30, 31, 40))


def test_inertia_is_the_within_cluster_sum_of_squares():
    points = embeddings(200, 4, "overlapping").astype(np.float64)
    cuts = cut_all(linkage(points), 12)
    curves = indices.index_curves(points, cuts)
    for k in cuts.ks:
        groups = [points[cuts.at(k) == label] for label in range(k)]
        want = sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups)
        assert curves.inertia[k - 2] == pytest.approx(want, rel=1e-12)


def test_one_role_only():
    points = embeddings(600, 8, "separated", duplicates=0.2)
    cuts = cut_all(linkage(points), 10)
    rows = np.arange(600) % 3 == 0
    curves = indices.index_curves(points, cuts, rows=rows)
    want = metrics.silhouette_score(points[rows].astype(np.float64), cuts.at(10)[rows])
    assert curves.silhouette[-1] == pytest.approx(want, abs=1e-9)


def test_clusters_without_members_do_not_matter():
    points = embeddings(300, 8, "separated")
    cuts = cut_all(linkage(points), 12)
    rows = ~np.isin(cuts.finest, [1, 2, 5, 11])
    part = nested_labels(cuts.labels[rows], cuts.ks)
    curves = indices.index_curves(points[rows], part)
    for name in ("silhouette", "calinski_harabasz", "davies_bouldin", "inertia"):
        same = getattr(indices.index_curves(points, cuts, rows=rows), name)
        np.testing.assert_array_equal(getattr(curves, name), same)
    for k in (6, 12):
        want = metrics.silhouette_score(points[rows].astype(np.float64), cuts.at(k)[rows])
        assert curves.silhouette[k - 2] == pytest.approx(want, abs=1e-9)
        want = metrics.davies_bouldin_score(points[rows].astype(np.float64), cuts.at(k)[rows])
        assert curves.davies_bouldin[k - 2] == pytest.approx(want, rel=1e-9)


def test_all_singletons_and_all_equal():
    points = np.array([[0.0], [1.0], [3.0]])
    cuts = cut_all(linkage(points))
    curves = indices.index_curves(points, cuts)
    assert curves.silhouette[-1] == 0.0
    assert curves.calinski_harabasz[-1] == 1.0
    equal = np.ones((4, 2))
    curves = indices.index_curves(equal, cut_all(linkage(equal)))
    assert curves.ks.tolist() == [1]
    assert np.isnan(curves.silhouette).all()


def test_large_logs_judge_a_sample():
    points = embeddings(900, 8, "separated")
    cuts = cut_all(linkage(points), 10)
    whole, some = (indices.index_curves(points, cuts, sample=s) for s in (900, 500))
    drawn = np.sort(np.random.default_rng(0).choice(900, 500, replace=False))
    for found, rows in ((whole, np.arange(900)), (some, drawn)):
        alone = indices.index_curves(points, cuts, rows=rows)
        np.testing.assert_array_equal(found.silhouette, alone.silhouette)
    np.testing.assert_allclose(whole.silhouette, some.silhouette, atol=0.05)
    np.testing.assert_array_equal(whole.davies_bouldin, some.davies_bouldin)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(threads):
    points = embeddings(2600, 16, "overlapping")
    cuts = cut_all(linkage(points), 30)
    np.testing.assert_array_equal(
        indices.index_curves(points, cuts, threads=threads).silhouette,
        indices.index_curves(points, cuts, threads=2).silhouette,
    )
