"""The columns of the credit table: what they are by definition, on logs small enough to count."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from tests.credit_dialogues import dialogues

import aria_dvc
from aria_dvc.credit.cells import cell_codes
from aria_dvc.credit.table import COLUMNS

# Texts of two roles; alice's final reward is the number.
LOG = [
    ("a", "g1", ["hi", "yes", "deal"], 1.0),
    ("b", "g1", ["hi", "yes", "deal"], 0.0),
    ("c", "g2", ["hi", "yes", "bye"], 1.0),
    ("d", "g2", ["oh", "no", "bye"], 0.5),
]


def entries(log=LOG) -> list[dict]:
    return [
        {
            "episode_id": name,
            "group_id": group,
            "messages": [
                {"role": ("alice", "bob")[i % 2], "content": t} for i, t in enumerate(said)
            ],
            "rewards": {"alice": reward},
        }
        for name, group, said, reward in log
    ]


@pytest.fixture
def table() -> pd.DataFrame:
    return aria_dvc.credit(entries(), method="prefix", gamma=1.0)


def test_names_and_counts(table):
    assert list(table.columns) == list(COLUMNS)
    assert table["group_id"].tolist() == ["g1"] * 4 + ["g2"] * 4
    assert table["turn"].tolist() == [1, 2] * 4
    assert set(table["turns"]) == {2}
    assert (table["intention"] == -1).all()
    assert table["text_sha"][1] == hashlib.sha256(b"deal").hexdigest()


def test_cells_and_anchors_are_of_equal_histories(table):
    firsts, seconds = table.iloc[::2], table.iloc[1::2]
    assert firsts["n_cell"].tolist() == [3, 3, 3, 1]
    assert seconds["n_cell"].tolist() == [2, 2, 1, 1]
    assert firsts["anchor"].nunique() == 1
    assert seconds["anchor"].nunique() == 2
    assert seconds["anchor"].iloc[0] == seconds["anchor"].iloc[2]
    assert seconds["cell"].iloc[0] != seconds["cell"].iloc[2]


def test_the_standard_error_is_the_pooled_deviation_over_the_root_of_n(table):
    values = {"hi": [1, 0, 1], "deal": [1, 0]}
    squares = sum(float(((np.array(v) - np.mean(v)) ** 2).sum()) for v in values.values())
    pooled = np.sqrt(squares / (8 - 5))  # actions less cells
    np.testing.assert_allclose(table["standard_error"], pooled / np.sqrt(table["n_cell"]))


def test_the_advantage_is_the_credit_less_a_baseline_that_knows_no_action(table):
    np.testing.assert_allclose(table["advantage"], table["credit"] - table["baseline"])
    # In sample: all first actions share the empty history.
    np.testing.assert_allclose(table["baseline"].iloc[::2], 2.5 / 4)


@pytest.mark.parametrize("history", [None, 2, 3])
def test_an_anchor_is_the_cell_without_its_action(history):
    log = dialogues(30, topics=2)
    cell, anchor = (cell_codes(log, log.labels, history, action) for action in (True, False))
    pairs = pd.DataFrame({"cell": cell, "anchor": anchor, "label": log.labels[log.actions]})
    assert (pairs.groupby("cell")[["anchor", "label"]].nunique() == 1).all(axis=None)
    assert not pairs[["anchor", "label"]].drop_duplicates().duplicated().any()
    assert len(pairs[["anchor", "label"]].drop_duplicates()) == pairs["cell"].nunique()


def test_scored_actions_count_the_fitted_members_of_their_cells():
    new = entries([("x", "g", ["hi", "yes", "deal"], 0.0), ("y", "g", ["what", "no", "bye"], 0.0)])
    found = aria_dvc.credit(entries(), score=new, method="prefix", gamma=1.0)
    assert found["n_cell"].tolist() == [3, 2, 0, 0]
    assert np.isfinite(found[["credit", "baseline", "advantage"]]).all(axis=None)
    assert found["standard_error"].isna().tolist() == [False, False, True, True]
