"""The columns of the credit table: what they are by definition, on logs small enough to count."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.credit_dialogues import dialogues

import aria_dvc
from aria_dvc.credit.cells import cell_codes
from aria_dvc.credit.methods.base import fit_values
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import Aggregate
from aria_dvc.credit.table import COLUMNS, credit_rows

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


def rows_of(log, name, **options):
    """The credit table of a log that is its own fit, and the method."""
    method = make_method(name, Aggregate(**options))
    values = fit_values(method, log)
    position = np.arange(len(log)) - np.flatnonzero(np.diff(log.episode, prepend=-1))[log.episode]
    ids = np.array([f"e{i}" for i in range(log.episodes)], dtype=object)
    named = replace(log, episode_ids=ids, position=position)
    return credit_rows(named, named, values, method), method


@pytest.mark.parametrize("history", [0, 1, 2, 3])
def test_cells_of_recent_histories_are_those_whose_means_are_the_credit(history):
    """0 is chosen by cross-validation; the table then has the cells of what was chosen."""
    log = dialogues(60, topics=2)
    found, method = rows_of(log, "aria_recent", history=history)
    assert method.span == (history or method.history_)
    means = found.groupby("cell")["return"].transform("mean")
    np.testing.assert_allclose(found["credit"], means)
    np.testing.assert_allclose(
        found["baseline"], found.groupby("anchor")["return"].transform("mean")
    )
    assert (found["n_cell"] == found.groupby("cell")["cell"].transform("size")).all()


@pytest.mark.parametrize(("anchor", "back"), [("observation", 1), ("intentions", 2)])
def test_anchors_of_gigpo_are_those_that_it_compares(anchor, back):
    log = dialogues(60, topics=2)
    found, _ = rows_of(log, "gigpo", anchor=anchor)
    said = log.labels if anchor == "intentions" else log.text
    past = [tuple(said[max(row - back, row - log.place[row]) : row]) for row in log.actions]
    pairs = pd.DataFrame({"anchor": found["anchor"], "past": past}).drop_duplicates()
    assert len(pairs) == pairs["anchor"].nunique() == pairs["past"].nunique()


@pytest.mark.parametrize(("name", "known"), [("aria", True), ("group", False), ("gigpo", False)])
def test_only_means_of_cells_have_a_standard_error(name, known):
    found, _ = rows_of(dialogues(40, topics=2), name)
    assert found["standard_error"].notna().all() == known
    assert found["standard_error"].isna().all() != known
