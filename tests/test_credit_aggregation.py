"""From tables to credit: the paper's numbers on a dialogue that can be done by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aria_dvc.credit.chain import choose_k, chosen_labels, credit, labelled
from aria_dvc.credit.settings import Aggregate, CreditSettings, SelectK
from aria_dvc.errors import AriaError
from aria_dvc.files import write_parquet
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions, labels_table, read_cuts
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.tables import turns_table

SELECT = SelectK()
ARIA = Aggregate(method="aria", gamma=0.5, folds=2)
POINTS = {
    "a": [0.0, 0.0],
    "a'": [0.1, 0.0],
    "b": [5.0, 0.0],
    "b'": [5.1, 0.0],
    "Yes.": [9.0, 9.0],
    "Yes!": [9.0, 8.0],
}


def log(*dialogues: tuple[str, float]) -> tuple[pd.DataFrame, np.ndarray]:
    """Single-agent games of space-separated questions, each answered Yes."""
    episodes = []
    for index, (questions, reward) in enumerate(dialogues):
        said = [
            Utterance(r, t)
            for q in questions.split()
            for r, t in (("agent", q), ("oracle", "Yes."))
        ]
        episodes.append(Episode(f"e{index}", "twenty_questions", said, {"agent": reward}))
    turns = turns_table(episodes)
    return turns, np.array([POINTS[text] for text in turns["text"]], np.float32)


def run(turns, vectors, k, select=SELECT, aggregate=ARIA):
    settings = CreditSettings(k or "auto", select_k=select, aggregate=aggregate)
    log = Log.of(turns, vectors, aggregate.gamma)
    space = find_intentions(log, settings.cluster)
    selection, curve = choose_k(log, space, settings)
    labels = chosen_labels(log, space.cuts, selection)
    return *credit(log.with_labels(labels), settings), selection, curve


def cuts_of(turns, vectors):
    log = Log.of(turns, vectors)
    return log, find_intentions(log, CreditSettings().cluster).cuts


def test_credit_by_hand():
    """At k = 2 the intentions are {a, a'} and {b, b'}; gamma = 1/2."""
    turns, vectors = log(("a b", 1.0), ("a' b'", 0.0), ("b a", 1.0))
    rewards, quality, selection, _ = run(turns, vectors, k=2)
    assert selection["selected_k"] == 2
    assert rewards["return"].tolist() == [0.5, 1.0, 0.0, 0.0, 0.5, 1.0]
    assert rewards["reward"].tolist() == [0.25, 0.5, 0.25, 0.5, 0.5, 1.0]
    assert rewards["cell_size"].tolist() == [2, 2, 2, 2, 1, 1]
    assert rewards["live"].tolist() == [True, True, True, True, False, False]
    assert quality["variance_after"] < quality["variance_before"]


def test_answers_have_fixed_labels_at_every_k():
    turns, vectors = log(("a b", 1.0), ("a' b'", 0.0))
    made, nested = cuts_of(turns, vectors)
    answers = nested.labels[~made.clustered]
    assert (answers == answers[0, 0]).all()
    questions = nested.labels[made.clustered]
    assert not set(np.unique(questions)) & set(np.unique(answers))
    assert nested.ks.tolist() == [2, 3, 4], "four distinct questions cap k"


def test_answers_that_differ_in_wording_keep_no_cell_alive():
    turns, _ = log(("a b", 1.0), ("a b", 0.0))
    turns.loc[1, "text"] = "Yes!"
    vectors = np.array([POINTS[text] for text in turns["text"]], np.float32)
    rewards, _, _, curve = run(turns, vectors, k=None)
    assert (curve["live_share"] == 0).all()
    assert not rewards["live"].any()


def test_k_above_the_distinct_utterances_is_capped_and_said():
    turns, vectors = log(("a b", 1.0), ("a' b'", 0.0))
    *_, selection, _ = run(turns, vectors, k=50)
    assert selection["selected_k"] == 4
    assert selection["capped_from"] == 50


def test_every_other_method_is_recorded():
    turns, vectors = log(("a b", 1.0), ("a' b'", 0.0), ("b a", 1.0))
    *_, selection, curve = run(turns, vectors, k=None)
    assert set(selection["runners_up"]) == {
        "calinski_harabasz",
        "davies_bouldin",
        "split_score",
        "cross_validated",
    }
    wanted = ["k", "silhouette", "calinski_harabasz", "davies_bouldin", "split_score", "cells"]
    assert curve.columns[:7].tolist() == [*wanted, "singleton_share"]


def test_per_role_has_a_k_for_each():
    said = [("alice", "a"), ("bob", "b"), ("alice", "a'"), ("bob", "b'")]
    episodes = [
        Episode(
            f"e{i}", "bargaining", [Utterance(*line) for line in said], {"alice": r, "bob": 1 - r}
        )
        for i, r in enumerate((1.0, 0.0, 1.0))
    ]
    turns = turns_table(episodes)
    vectors = np.array([POINTS[text] for text in turns["text"]], np.float32)
    select = SelectK(per_role=True)
    *_, selection, curve = run(turns, vectors, None, select)
    assert set(selection["per_role"]) == {"alice", "bob"}
    assert set(curve["role"]) == {"all", "alice", "bob"}
    r2 = curve.dropna(subset="r2").groupby("role")["r2"].first()
    assert r2.nunique() == 3, "held-out R2 is that of the role's own actions"


@pytest.mark.parametrize(
    "dialogues",
    [
        [("a b", 1.0)],
        [("a", 1.0)],
        [("a", 1.0), ("a", 1.0)],
        [("a b", 1.0), ("a' b", 1.0)],
    ],
    ids=["one episode", "one turn", "equal utterances", "equal rewards"],
)
def test_degenerate_logs_have_a_credit(dialogues):
    turns, vectors = log(*dialogues)
    rewards, quality, selection, _ = run(turns, vectors, k=None)
    assert np.isfinite(rewards["reward"]).all()
    assert selection["selected_k"] >= 1
    assert quality["episodes"] == len(dialogues)


def test_one_episode_has_no_cross_validated_k():
    turns, vectors = log(("a b", 1.0))
    select = SelectK("cross_validated")
    with pytest.raises(AriaError, match="at least 2 episodes"):
        run(turns, vectors, None, select=select)


def test_equal_rewards_have_no_variance_ratio():
    turns, vectors = log(*[("a", 0.1), ("b", 0.1)] * 4)
    _, quality, _, curve = run(turns[:-2], vectors[:-2], k=None)
    assert curve["variance_ratio"].isna().all()
    assert quality["variance_ratio"] is None


def test_labels_survive_the_file(tmp_path):
    turns, vectors = log(("a b", 1.0), ("a' b'", 0.0), ("b a", 1.0))
    _, nested = cuts_of(turns, vectors)
    write_parquet(tmp_path / "labels.parquet", labels_table(turns, nested))
    back = read_cuts(tmp_path / "labels.parquet")
    assert np.array_equal(back.labels, nested.labels)
    assert np.array_equal(back.ks, nested.ks)


@pytest.mark.parametrize("method", ["shrinkage", "prefix", "regression", "kernel"])
def test_every_method_gives_every_action_a_credit(method):
    played = ["a b", "a' b'", "b a", "b a'"] * 5
    turns, vectors = log(*((questions, float(i % 2)) for i, questions in enumerate(played)))
    aggregate = replace(ARIA, method=method)
    rewards, quality, *_ = run(turns, vectors, None, aggregate=aggregate)
    assert np.isfinite(rewards["reward"]).all()
    assert quality["method"] == method


def test_the_three_steps_in_a_row_are_the_chain():
    turns, vectors = log(("a b", 1.0), ("a' b'", 0.0), ("b a", 1.0))
    rewards, quality, *_ = run(turns, vectors, 2)
    settings = CreditSettings(2, aggregate=ARIA)
    both = credit(labelled(Log.of(turns, vectors, ARIA.gamma), settings), settings)
    pd.testing.assert_frame_equal(both[0], rewards)
    assert both[1] == quality


def test_rows_out_of_order_are_refused():
    turns, vectors = log(("a b", 1.0), ("a b", 0.0))
    for order in ([1, 0, 2, 3, 4, 5, 6, 7], [0, 4, 1, 2, 3, 5, 6, 7], [0, 0, 2, 3, 4, 5, 6, 7]):
        with pytest.raises(AriaError, match="sort by episode, position"):
            Log.of(turns.iloc[order], vectors)
    with pytest.raises(AriaError, match="8 turns but 7 embeddings"):
        Log.of(turns, vectors[:-1])


def test_views_outlive_a_change_of_labels_alone():
    turns, vectors = log(("a b", 1.0), ("a b", 0.0))
    first = Log.of(turns, vectors)
    turn = first.turn
    assert first.with_labels(np.arange(8)).turn is turn
    some = first.with_labels(np.arange(8)).where(np.arange(8) >= 4)
    assert some.turn.tolist() == [1, 1, 2, 2]
    assert some.labels.tolist() == [4, 5, 6, 7]
    assert some.action_frame()["episode_id"].tolist() == ["e1", "e1"]
