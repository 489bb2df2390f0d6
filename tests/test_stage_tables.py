"""Tables between stages that are damaged, mixed up or of another run: one clear line each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from stored_log import NAME, STAGES, entries, params_of, run_to, write_entries

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json, write_parquet
from aria_dvc.params import Params
from aria_dvc.pipeline.frames import category_frames
from aria_dvc.pipeline.paths import LogFiles, files_of
from aria_dvc.records.schemas import CONTRIBUTIONS, EMBEDDINGS, write_table
from aria_dvc.records.stored import read_evaluation, read_turns
from aria_dvc.records.tables import embeddings_table, read_vectors

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder in which all stages up to `aggregate` have run, and contributions lie."""
    folder = tmp_path_factory.mktemp("finished")
    before = Path.cwd()
    os.chdir(folder)
    try:
        files = run_to("aggregate", write_entries(folder / "log.jsonl", entries()))
        actions = pd.read_parquet(files.rewards)[["episode_id", "position"]]
        told = actions.assign(contribution=0.25, reward=0.75, value=0.5)
        write_table(files.contributions, told, CONTRIBUTIONS)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def files(finished, tmp_path, monkeypatch) -> LogFiles:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return files_of(params_of(tmp_path / "log.jsonl"), NAME)


def frame(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Change:
    def apply(path: Path) -> None:
        table = change(pd.read_parquet(path))
        if "embedding" in table:
            write_parquet(path, embeddings_table(table, np.stack(table["embedding"])))
        else:
            write_parquet(path, table)

    return apply


def at(row: int, **values: object) -> Change:
    """Other values in one row."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        for name, value in values.items():
            column = table[name].astype(object)
            column.iloc[row] = value
            kind = table[name].dtype
            table[name] = column if value is None else column.astype(kind)
        return table

    return frame(change)


def rows(*order: int) -> Change:
    """The rows in another order, or fewer or more of them."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        rest = [n for n in range(len(table)) if n > max(order)]
        return table.iloc[[*order, *rest]].reset_index(drop=True)

    return frame(change)


def text(content: bytes) -> Change:
    return lambda path: path.write_bytes(content) and None


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def json_with(**values: object) -> Change:
    return lambda path: write_json(path, {**read_json(path), **values})


def vectors_with(value: float) -> Change:
    def change(path: Path) -> None:
        table = pd.read_parquet(path)
        matrix = np.stack(table["embedding"])
        matrix[5, 2] = value
        write_table(path, embeddings_table(table, matrix), EMBEDDINGS)

    return change


def no_vector(path: Path) -> None:
    table = pd.read_parquet(path)
    cells = [None if n == 3 else list(row) for n, row in enumerate(table["embedding"])]
    kind = pa.list_(pa.float32(), 8)
    columns = {"episode_id": table["episode_id"], "position": table["position"]}
    arrow = {name: pa.array(column) for name, column in columns.items()}
    write_parquet(path, pa.table({**arrow, "embedding": pa.array(cells, kind)}))


# name: (the table, what is done to it, the stage that reads it, what the line says)
WRONG: dict[str, tuple[str, Change, str, str]] = {
    "turns sorted anew": (
        "turns",
        rows(4, 5, 6, 7, 1, 0, 2, 3),
        "embed",
        "row 5 (episode_id e0, position 0, role alice): position out of order",
    ),
    "an episode's turns apart": (
        "turns",
        rows(0, 1, 4, 5, 6, 7, 2, 3),
        "cluster",
        "row 6 (episode_id e0, position 2, role alice): the rows of its episode are not together",
    ),
    "a turn twice": (
        "turns",
        rows(0, 1, 1, 2, 3),
        "cluster",
        "row 2 (episode_id e0, position 1, role bob): position out of order",
    ),
    "a turn fewer": (
        "turns",
        rows(0, 1, 3),
        "cluster",
        "row 0 (episode_id e0, position 0, role alice): turns does not count the role's own",
    ),
    "turns without a text": ("turns", at(2, text=None), "embed", "row 2 (episode_id e0, position"),
    "an empty text": ("turns", at(2, embedded=""), "embed", "role alice): embedded is empty"),
    "two rewards": (
        "turns",
        at(2, reward=0.5),
        "aggregate",
        "row 2 (episode_id e0, position 2, role alice): another reward than the role has before",
    ),
    "an action without reward": (
        "turns",
        at(1, reward=np.nan),
        "aggregate",
        "row 1 (episode_id e0, position 1, role bob): an action without a reward",
    ),
    "two games": ("turns", at(7, game="chess"), "embed", "another game than in the first row"),
    "two groups": ("turns", at(2, group_id="other"), "embed", "another group_id"),
    "no turns": ("turns", frame(lambda table: table[:0]), "embed", "has no rows"),
    "turns that count wrongly": ("turns", at(2, turn=1), "select_k", "turn does not count the"),
    "no parquet": ("turns", text(b"episode_id,text"), "cluster", "is not Parquet, or damaged"),
    "vectors sorted anew": (
        "embeddings",
        frame(lambda table: table[::-1].reset_index(drop=True)),
        "cluster",
        "row 0 is position 3 of episode e11 where the turns have position 0 of e0",
    ),
    "vectors of fewer turns": (
        "embeddings",
        frame(lambda table: table[:-4]),
        "select_k",
        "has 44 rows for 48 turns",
    ),
    "a vector that is NaN": (
        "embeddings",
        vectors_with(np.nan),
        "cluster",
        "row 5: the vector holds NaN or an infinite number",
    ),
    "a vector that is infinite": (
        "embeddings",
        vectors_with(np.inf),
        "aggregate",
        "row 5: the vector holds NaN or an infinite number",
    ),
    "a row without a vector": ("embeddings", no_vector, "cluster", "have no vector"),
    "vectors cut off": ("embeddings", cut, "cluster", "is not Parquet, or damaged"),
    "vectors of the log twice": (
        "log_vectors",
        rows(0, 0, 1),
        "embed",
        "row 1 (episode_id e0, position 0): stands there twice",
    ),
    "vectors of the log missing": (
        "log_vectors",
        rows(0, 2),
        "embed",
        "row 1 (episode_id e0, position 1, role bob): this turn has no vector there",
    ),
    "labels sorted anew": (
        "labels",
        rows(1, 0),
        "select_k",
        "row 0 is position 1 of episode e0 where the turns have position 0 of e0",
    ),
    "a k missing": (
        "labels",
        frame(lambda table: table.drop(columns="k4")),
        "aggregate",
        "its cuts are not k2, k3, .. in this order without a gap",
    ),
    "cuts that are not nested": ("labels", at(0, k2=1), "aggregate", "its cuts are not nested"),
    "a label too large": ("labels", at(3, k6=9), "aggregate", "column k6 has a label above 5"),
    "labels of another type": (
        "labels",
        frame(lambda table: table.astype({"k2": "int64"})),
        "select_k",
        "column k2 holds int64, not uint8",
    ),
    "a tree of fewer": (
        "tree",
        frame(lambda table: table[:-1]),
        "select_k",
        "46 merges are no tree of the 48 clustered turns",
    ),
    "a tree sorted anew": (
        "tree",
        frame(lambda table: table[::-1].reset_index(drop=True)),
        "select_k",
        "row 0: it merges a cluster that is not there yet",
    ),
    "a merge twice": ("tree", at(1, left=0, right=1), "select_k", "it merges a cluster again"),
    "a negative height": ("tree", at(0, height=-1.0), "select_k", "row 0: its height is below"),
    "a wrong size": ("tree", at(3, size=40), "select_k", "row 3: its size is not that of its two"),
    "an unknown k": (
        "selected_k",
        json_with(selected_k=77),
        "aggregate",
        "selected_k: 77 is no k (the cuts are 2..6)",
    ),
    "a k that is text": ("selected_k", json_with(selected_k="3"), "aggregate", "'3' is no k"),
    "a role of another log": (
        "selected_k",
        json_with(per_role={"carol": {"selected_k": 3}}),
        "aggregate",
        "the log has no role carol",
    ),
    "an empty selection": ("selected_k", text(b""), "aggregate", "broken JSON"),
    "a selection that is a list": ("selected_k", text(b"[]"), "aggregate", "no JSON object"),
    "rewards sorted anew": (
        "rewards",
        rows(2, 1, 0),
        "learning",
        "row 0 (episode_id e0, position 2, role alice): the turns have another position there",
    ),
    "rewards of fewer actions": (
        "rewards",
        frame(lambda table: table[:-1]),
        "learning",
        "has 47 rows for 48 actions of the turns",
    ),
    "a reward that is NaN": (
        "rewards",
        at(4, reward=np.nan),
        "learning",
        "row 4 (episode_id e1, position 0, role alice): column reward has no value",
    ),
    "a cell of another size": ("rewards", at(0, cell_size=99), "learning", "cell_size is not the"),
    "contributions of fewer actions": (
        "contributions",
        frame(lambda table: table[:-1]),
        "estimator",
        "has 47 rows for 48 turns",
    ),
    "contributions sorted anew": (
        "contributions",
        rows(2, 1, 0),
        "estimator",
        "row 0 is position 2 of episode e0 where the turns have position 0 of e0",
    ),
    "a contribution that is NaN": (
        "contributions",
        at(4, reward=np.nan),
        "estimator",
        "row 4 (episode_id e1, position 0): column reward has no value",
    ),
    "contributions without q": (
        "contributions",
        frame(lambda table: table.drop(columns="reward")),
        "estimator",
        "has no column reward",
    ),
    "episodes of another run": (
        "episodes",
        frame(lambda table: table.assign(episode_id="x" + table["episode_id"])),
        "learning",
        "its episodes are not those of the turns (episode 0 is xe0, there e0)",
    ),
    "an episode twice": ("episodes", rows(0, 0, 1), "learning", "stands there twice"),
    "a role without its row": (
        "episodes",
        rows(0, 2),
        "learning",
        "(episode_id e0, role bob): has a reward in the turns but no row here",
    ),
    "info that is no JSON": (
        "episodes",
        at(3, info="{'a': 1}"),
        "learning",
        "row 3 (episode_id e1, role bob): info is no JSON object",
    ),
    "info that is a list": ("episodes", at(3, info="[1]"), "learning", "info is no JSON object"),
    "info that closes early": ("episodes", at(3, info="{},{}"), "learning", "no JSON object"),
}


def read_by(reader: str, params: Params) -> None:
    """What a stage reads, or the stages that learn."""
    if reader == "learning":
        category_frames(params, "adversarial", None)
    elif reader == "estimator":
        category_frames(params, "adversarial", None, "estimator")
    else:
        STAGES[reader].main(params, NAME)


REMEDY = {"selected_k": "select_k", "log_vectors": "collect", "embeddings": "embed"}
REMEDY |= {"turns": "prepare", "episodes": "prepare", "labels": "cluster", "tree": "cluster"}
REMEDY |= {"rewards": "aggregate", "contributions": "progress"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_table_is_refused_by_name_row_and_stage(files, tmp_path, name):
    table, harm, reader, expected = WRONG[name]
    path = getattr(files, table)
    harm(path)
    params = params_of(tmp_path / "log.jsonl")
    with pytest.raises(AriaError) as caught:
        read_by(reader, params)
    message = str(caught.value)
    wrong = files.turns if "turn has no vector" in expected else path
    assert str(path) in message or str(wrong) in message
    assert expected in message
    # Where the turns have lost a row, what belongs to them no longer does.
    remedy = REMEDY[table]
    assert f"run the stage {remedy}" in message
    assert "\n" not in message


def test_a_missing_table_names_its_stage(files, tmp_path):
    for table, reader in (("turns", "cluster"), ("selected_k", "aggregate"), ("tree", "select_k")):
        path = getattr(files, table)
        path.rename(tmp_path / "away")
        with pytest.raises(AriaError, match=f"{path} is missing: run the stage {REMEDY[table]}"):
            STAGES[reader].main(params_of(tmp_path / "log.jsonl"), NAME)
        (tmp_path / "away").rename(path)


def test_the_tables_as_written_are_right(files, tmp_path):
    turns = read_turns(files.turns)
    assert read_vectors(files.embeddings, turns).shape == (48, 8)
    (log,) = category_frames(params_of(tmp_path / "log.jsonl"), "adversarial", None)
    assert len(log.rewards) == 48


@pytest.mark.parametrize("broken", [(0,), (5,), (11,), (3, 4)])
def test_a_log_with_vectors_loses_the_episodes_that_were_broken_off(tmp_path, monkeypatch, broken):
    """In games that are played here; the vectors of the others stay with their texts."""
    monkeypatch.chdir(tmp_path)
    found = entries(broken=broken)
    files = run_to("embed", write_entries(tmp_path / "log.jsonl", found), "bargaining")
    turns = read_turns(files.turns)
    assert turns["episode_id"].nunique() == 12 - len(broken)
    vector_of = {m["content"]: m["embedding"] for entry in found for m in entry["messages"]}
    expected = np.array([vector_of[text] for text in turns["text"]])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(read_vectors(files.embeddings, turns), expected, atol=1e-6)


def test_an_evaluation_of_another_policy_is_refused(tmp_path):
    row = {"game": "bargaining", "variant": "aria", "role": "alice", "episode": "0", "config": "{}"}
    row |= {"seed": 1, "opponent": "scripted:fair", "won": True, "reward": 1.0, "utility": 1.0}
    row |= {"opponent_utility": 0.0, "no_deal": False, "reason": "agreement", "turns": 1}
    row |= {"executed": None}
    row |= {"failure_role": "", "failure_kind": "", "refused": 0, "completion_tokens": 3}
    path = tmp_path / "aria.parquet"
    write_parquet(path, pd.DataFrame([row]))
    assert len(read_evaluation(path, "aria")) == 1
    with pytest.raises(AriaError, match=r"row 0 \(episode_id 0, role alice\): not a game of other"):
        read_evaluation(path, "other")
    write_parquet(path, pd.DataFrame([row, row]))
    with pytest.raises(AriaError, match="stands there twice: run the stage evaluate again"):
        read_evaluation(path, "aria")
