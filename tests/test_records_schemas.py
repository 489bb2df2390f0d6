"""Tables of the wrong shape end in one line; docs/data.md says what the code checks."""

from pathlib import Path

import numpy as np
import pytest

from aria_dvc.errors import AriaError
from aria_dvc.files import write_parquet
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions, labels_table, read_space, tree_table
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.schemas import (
    EMBEDDINGS,
    EPISODES,
    EVALUATION,
    LABELS,
    TREE,
    TURNS,
    data_dictionary,
    read_table,
    write_table,
)
from aria_dvc.records.tables import embeddings_table, episodes_table, read_vectors, turns_table

DICTIONARY = Path(__file__).parent.parent / "docs" / "data.md"


def episodes(*names: str) -> list[Episode]:
    said = [Utterance("alice", "Hi"), Utterance("bob", "Ho")]
    return [Episode(name, "bargaining", said, {"alice": 1.0}) for name in names]


def test_the_data_dictionary_is_that_of_the_code():
    found = DICTIONARY.read_text("utf-8")
    assert found == data_dictionary(), "python -m aria_dvc.records.schemas > docs/data.md"


def test_tables_come_back_as_they_were_written(tmp_path):
    found = episodes("a", "b")
    for table, schema in ((turns_table(found), TURNS), (episodes_table(found), EPISODES)):
        write_table(tmp_path / "t", table, schema)
        assert read_table(tmp_path / "t", schema).equals(table)


def test_a_column_too_few_too_many_or_of_another_type(tmp_path):
    turns, path = turns_table(episodes("a")), tmp_path / "turns.parquet"
    for table, problem in (
        (turns.drop(columns="turn"), "has no column turn"),
        (turns.assign(mood="good"), "has a column mood that turns do not have"),
        (turns.astype({"turn": "int64"}), "column turn holds int64, not int32"),
    ):
        with pytest.raises(AriaError, match=problem):
            write_table(path, table, TURNS)
        assert not path.exists()
        write_parquet(path, table)
        with pytest.raises(AriaError, match=f"turns.parquet: {problem}.*run the stage prepare"):
            read_table(path, TURNS)
        path.unlink()


def test_what_is_missing_or_no_parquet_names_its_stage(tmp_path):
    with pytest.raises(AriaError, match="is missing: run the stage evaluate"):
        read_table(tmp_path / "eval.parquet", EVALUATION)
    (tmp_path / "eval.parquet").write_text("episode,won")
    with pytest.raises(
        AriaError, match=r"is not Parquet, or damaged \(.*\): run the stage evaluate again"
    ):
        read_table(tmp_path / "eval.parquet", EVALUATION)


@pytest.mark.parametrize(
    ("names", "problem"),
    [(("a", "b"), "has 4 rows for 6 turns"), (("a", "c", "b"), "row 2 is position 0 of episode c")],
)
def test_vectors_of_other_turns_are_refused(tmp_path, names, problem):
    turns, others = turns_table(episodes("a", "b", "c")), turns_table(episodes(*names))
    vectors = np.ones((len(others), 3), np.float32)
    write_table(tmp_path / "v", embeddings_table(others, vectors), EMBEDDINGS)
    assert read_vectors(tmp_path / "v", others).shape == vectors.shape
    with pytest.raises(AriaError, match=f"{problem}.*run the stage embed again"):
        read_vectors(tmp_path / "v", turns)


def test_labels_and_tree_make_the_space_again(tmp_path):
    turns = turns_table(episodes("a", "b"))
    space = find_intentions(Log.of(turns, np.eye(4, dtype=np.float32)), SETTINGS)
    write_table(tmp_path / "labels", labels_table(turns, space.cuts), LABELS)
    write_table(tmp_path / "tree", tree_table(space.tree), TREE)
    again = read_space(tmp_path / "labels", tmp_path / "tree", turns)
    np.testing.assert_array_equal(again.cuts.labels, space.cuts.labels)
    np.testing.assert_array_equal(again.tree, space.tree)
    assert again.distinct == 4
    with pytest.raises(AriaError, match="run the stage cluster again"):
        read_space(tmp_path / "labels", tmp_path / "tree", turns[:-1])


class SETTINGS:
    k_max, linkage, exact_limit = 3, "ward", 100
