"""The choice of k."""

import numpy as np
import pytest
from tests.intention_data import dialogues, log_of, nested_of

from aria_dvc.credit.curves import cell_curves
from aria_dvc.credit.selection import (
    curve_frame,
    drawn_curve,
    labels_by_role,
    select_k,
    split_score_choice,
)
from aria_dvc.errors import AriaError
from aria_dvc.intentions.indices import Indices


@pytest.fixture
def curve():
    data = dialogues(60, 6, 9, 2)
    cells = cell_curves(log_of(data), nested_of(data))
    values = np.array([0.1, 0.4, 0.4, 0.2, np.nan, 0.0, 0.0, 0.0])
    indices = Indices(cells.ks, values, values[::-1], 1 - values, values)
    return curve_frame(indices, cells)


def test_silhouette_takes_the_smallest_best_k(curve):
    chosen = select_k(curve, distinct=9)
    assert chosen.k == 3
    assert chosen.choices["davies_bouldin"] == 3
    assert chosen.choices["calinski_harabasz"] == 7
    assert set(chosen.record()["runners_up"]) == {
        "calinski_harabasz",
        "davies_bouldin",
        "split_score",
    }


def test_integer_overrides_and_is_capped(curve):
    assert select_k(curve, distinct=9, k=5).record()["k"] == 5
    capped = select_k(curve, distinct=9, k=80)
    assert (capped.k, capped.capped_from, capped.overridden) == (9, 80, True)
    with pytest.raises(AriaError, match="k_max"):
        select_k(curve, distinct=500, k=80)
    for k in (0, 1):
        with pytest.raises(AriaError, match="outside"):
            select_k(curve, distinct=9, k=k)
    alone = curve.iloc[:1].assign(k=1)
    assert select_k(alone, distinct=1, k=1).k == 1, "where all utterances are equal"


def test_davies_bouldin_ignores_clusters_of_one_point_each(curve):
    curve["davies_bouldin"] = [0.5, 0.3, 0.4, 0.6, 0.6, 0.6, 0.6, 0.0]
    assert select_k(curve, method="davies_bouldin", distinct=9).k == 3


def test_clusters_of_one_point_each_are_drawn_as_a_gap(curve):
    curve["davies_bouldin"] = [0.5, 0.3, 0.4, 0.6, 0.6, 0.6, 0.6, 0.0]
    curve["calinski_harabasz"] = [7.0, 9.0, 8.0, 6.0, 5.0, 4.0, 3.0, 1.0]
    drawn = drawn_curve(curve)
    for column in ("davies_bouldin", "calinski_harabasz"):
        assert np.isnan(drawn[column].iloc[-1])
        assert drawn[column].iloc[:-1].tolist() == curve[column].iloc[:-1].tolist()
    assert curve["davies_bouldin"].iloc[-1] == 0, "what select_k writes stays"
    assert drawn["silhouette"].equals(curve["silhouette"])


def test_cross_validated_reads_r2(curve):
    with pytest.raises(AriaError, match="R2"):
        select_k(curve, method="cross_validated", distinct=9)
    curve["r2"] = np.linspace(-1, 1, len(curve))
    assert select_k(curve, method="cross_validated", distinct=9).k == 9
    curve["r2"] = np.nan
    with pytest.raises(AriaError, match="at least 2 episodes"):
        select_k(curve, method="cross_validated", distinct=9)
    assert select_k(curve, method="cross_validated", distinct=9, k=4).k == 4


def test_unknown_settings(curve):
    with pytest.raises(AriaError, match="elbow"):
        select_k(curve, method="elbow", distinct=9)
    with pytest.raises(AriaError, match="eps"):
        select_k(curve, method="split_score", distinct=9, eps=0.0)


@pytest.mark.parametrize(
    ("scores", "tau", "complete", "expected"),
    [
        ([0.5, 0.001, 0.5, 0.001, 0.001, 0.001, np.nan], 2, False, (5, True)),
        ([0.5, 0.5, 0.5, 0.5, 0.001, 0.001, np.nan], 2, False, (8, False)),
        ([0.5, 0.5, 0.5, 0.5, 0.001, 0.001, np.nan], 2, True, (6, True)),
        ([0.01, 0.01, 0.01, 0.0, 0.0, 0.0, np.nan], 1, False, (5, True)),
        ([0.5, 0.5, 0.5, 0.5, 0.5, 0.001, np.nan], 0, False, (7, True)),
        ([np.nan], 10, True, (2, True)),
        ([np.nan], 10, False, (2, False)),
    ],
)
def test_split_score_rule(scores, tau, complete, expected):
    ks = np.arange(2, 2 + len(scores))
    assert split_score_choice(ks, np.array(scores), 0.01, tau, complete) == expected


def test_split_score_falls_back_to_the_largest_k(curve):
    curve["split_score"] = 1.0
    chosen = select_k(curve, method="split_score", distinct=500)
    assert (chosen.k, chosen.converged) == (9, False)


def test_per_role_columns_and_labels():
    data = dialogues(60, 6, 9, 2)
    nested = nested_of(data)
    cells = cell_curves(log_of(data), nested)
    unknown = np.full(cells.ks.size, np.nan)
    frame = curve_frame(Indices(cells.ks, unknown, unknown, unknown, unknown), cells, role=1)
    np.testing.assert_array_equal(frame["cells"], cells.cells[:, 2])
    labels = labels_by_role(nested, data["role"], {0: 3, 1: 7})
    np.testing.assert_array_equal(labels[data["role"] == 0], nested.at(3)[data["role"] == 0])
    np.testing.assert_array_equal(labels[data["role"] == 1], nested.at(7)[data["role"] == 1])


def test_curves_over_different_k_are_refused(curve):
    data = dialogues(10, 3, 4, 0)
    cells = cell_curves(log_of(data), nested_of(data))
    values = np.zeros(2)
    with pytest.raises(AriaError, match="same k"):
        curve_frame(Indices(np.array([2, 3]), values, values, values, values), cells)
