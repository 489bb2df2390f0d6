"""`aria label`: a table of turns labelled block by block, in one process and by Ray."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.test_exports import log_file

from aria_dvc.__main__ import main
from aria_dvc.credit import blocks
from aria_dvc.credit.blocks import Survey, draw, survey
from aria_dvc.credit.labeller import Labeller, by_sample
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.on_ray import labelled_on_ray
from aria_dvc.errors import AriaError

COLUMNS = ["episode_id", "position", "role", "intention"]


def letters_of(texts: list[str]) -> np.ndarray:
    """(n, 8) unit vectors by how often some letters occur."""
    found = np.array([[text.count(c) for c in "aeiou 0?"] for text in texts], np.float32) + 0.1
    return found / np.linalg.norm(found, axis=1, keepdims=True)


class ByLetters(Labeller):
    """A labeller that asks no model, in another process either."""

    def _vectors(self, texts: list[str]) -> np.ndarray:
        return letters_of(texts)


@pytest.fixture(autouse=True)
def letters(monkeypatch):
    """An encoder that counts letters, in place of a model; blocks of seven rows."""
    embed = lambda texts, *_, **__: letters_of(texts)  # noqa: E731
    monkeypatch.setattr("aria_dvc.intentions.embedding.embed_texts", embed)
    monkeypatch.setattr("aria_dvc.models.sentences.load_encoder", lambda name: letters_of)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 7)


def turns(folder: Path, **options: int) -> Path:
    """The table that `aria read` makes of a log of two roles."""
    folder.mkdir(exist_ok=True)
    out = folder / "turns.parquet"
    assert main(["read", str(log_file(folder, **options)), "--out", str(out)]) == 0
    return out


def fit(folder: Path, table: Path, method: str = "aria") -> Path:
    out = folder / "fitted"
    k = ["--k", "3"] if make_method(method).uses_labels else []
    assert main(["fit", str(table), "--method", method, *k, "--out", str(out)]) == 0
    return out


def label(table: Path, *options: object) -> pd.DataFrame:
    out = table.with_name("labels.parquet")
    assert main(["label", str(table), *map(str, options), "--out", str(out)]) == 0
    return pd.read_parquet(out)


def refused(capsys: pytest.CaptureFixture[str], table: Path, *options: object) -> str:
    out = table.with_name("labels.parquet")
    capsys.readouterr()
    assert main(["label", str(table), *map(str, options), "--out", str(out)]) == 1
    assert not out.exists()
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def test_a_fitted_log_gets_its_own_labels_again(tmp_path):
    table = turns(tmp_path)
    folder = fit(tmp_path, table)
    found = label(table, "--fitted", folder)
    assert list(found) == COLUMNS
    kept, rows = pd.read_parquet(folder / "turns.parquet"), pd.read_parquet(table)
    assert found["intention"].tolist() == kept["label"].tolist()
    pd.testing.assert_frame_equal(found[COLUMNS[:3]], rows[COLUMNS[:3]])


def test_other_dialogues_get_the_intentions_of_their_credit(tmp_path):
    """As `aria credit --score` labels the whole log at once, from its own cache."""
    table, other = turns(tmp_path / "a"), turns(tmp_path / "b", episodes=5, seed=9)
    folder = fit(tmp_path, table)
    out = tmp_path / "credit.parquet"
    line = ["credit", table, "--score", other, "--k", 3, "--method", "aria", "--out", out]
    assert main(list(map(str, line))) == 0
    wanted = pd.read_parquet(out)
    found = label(other, "--fitted", folder).merge(
        wanted, on=COLUMNS[:3], suffixes=("", "_credited"), validate="1:1"
    )
    assert len(found) == len(wanted) > 20
    assert found["intention"].tolist() == found["intention_credited"].tolist()


def test_the_clusters_of_a_sample_label_all(tmp_path):
    table = turns(tmp_path)
    once = label(table, "--k", 3, "--sample", 15, "--seed", 1)
    assert len(once) == pq.read_metadata(table).num_rows > 15
    assert set(once["intention"]) == {0, 1, 2}
    again = label(table, "--k", 3, "--sample", 15, "--seed", 1)
    assert once["intention"].tolist() == again["intention"].tolist()
    said = pd.read_parquet(table)["text"]
    assert (once.groupby(said)["intention"].nunique() == 1).all()


def test_a_sample_is_drawn_evenly_and_in_order(tmp_path):
    found = survey(turns(tmp_path))
    whole = draw(found, 10**6, 0)
    assert whole["text"].to_pylist() == pd.read_parquet(found.path)["text"].tolist()
    place = {key: row for row, key in enumerate(keys(whole))}
    halves = np.zeros(2)
    for seed in range(20):
        rows = [place[key] for key in keys(draw(found, 30, seed))]
        assert len(rows) == 30
        assert rows == sorted(set(rows))
        halves += np.bincount(np.array(rows) >= found.rows // 2, minlength=2)
    assert abs(halves[0] - halves[1]) < 100  # of 600, four standard deviations


def keys(table: pa.Table) -> list[tuple[str, int]]:
    columns = (table["episode_id"].to_pylist(), table["position"].to_pylist())
    return list(zip(*columns, strict=True))


def test_answers_keep_their_fixed_labels(tmp_path):
    """In Twenty Questions only the questions are clustered, whatever blocks the answers lie in."""
    table = turns(tmp_path)
    rows = pd.read_parquet(table)
    answers = rows["role"] == "bob"
    rows["game"] = "twenty_questions"
    rows.loc[answers, "is_action"] = False
    rows.loc[answers, "reward"] = np.nan
    rows.loc[answers, "text"] = np.resize(["Yes.", "No.", "Hm."], answers.sum())
    write(table, rows)
    found = label(table, "--k", 3)
    wanted = np.resize([100, 101, 102], answers.sum()).tolist()
    assert found[answers]["intention"].tolist() == wanted
    assert found[~answers]["intention"].max() == 2
    by_fitted = label(table, "--fitted", fit(tmp_path, table))
    assert by_fitted[answers]["intention"].tolist() == wanted


def write(path: Path, rows: pd.DataFrame, **options: int) -> None:
    table = pa.Table.from_pandas(rows, preserve_index=False)
    pq.write_table(table, path, **options)


def test_row_groups_may_part_an_episode(tmp_path):
    table = turns(tmp_path)
    whole = label(table, "--k", 3)
    write(table, pd.read_parquet(table), row_group_size=5)
    assert len(survey(table).blocks) > 10
    assert label(table, "--k", 3)["intention"].tolist() == whole["intention"].tolist()


def test_what_is_no_table_of_turns_says_how_to_get_one(tmp_path, capsys, monkeypatch):
    table = turns(tmp_path)
    remedy = "run `aria read "
    log = tmp_path / "log.jsonl"
    assert "log.jsonl: not Parquet, or damaged" in (said := refused(capsys, log, "--k", 3))
    assert remedy in said
    short = tmp_path / "short.parquet"
    write(short, pd.read_parquet(table).drop(columns="role"))
    assert f"no table of turns: {remedy}" in refused(capsys, short, "--k", 3)
    write(short, pd.read_parquet(table)[:0])
    assert "no utterance: give a log with dialogues" in refused(capsys, short, "--k", 3)
    monkeypatch.setattr(blocks, "MOST_ROWS", 3)
    assert "a row group of " in refused(capsys, table, "--k", 3)
    assert "no such file" in refused(capsys, tmp_path / "none.parquet", "--k", 3)


def test_a_table_that_is_damaged_inside_is_told(tmp_path, capsys):
    table = turns(tmp_path)
    content = bytearray(table.read_bytes())
    at = pq.read_metadata(table).row_group(0).column(8).data_page_offset
    content[at : at + 40] = bytes(40)
    table.write_bytes(content)
    assert f"{table}: not Parquet, or damaged" in refused(capsys, table, "--k", 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--k 1", "--k: 1 is outside 2..100"),
        ("--k 90 --sample 20", "utterances hold "),
        ("--k 3 --sample 0", "--sample: 0 is below 1"),
        ("--k 3 --workers 0", "--workers: 0 is below 1"),
        ("--k 3 --seed -1", "--seed: -1 is below 0"),
        ("--fitted x --sample 5", "--sample: --fitted knows that already"),
        ("--fitted x", "no fitted credit there"),
    ],
)
def test_options_out_of_range_are_one_line(tmp_path, capsys, options, said):
    assert said in refused(capsys, turns(tmp_path), *options.split())


def test_labels_have_no_name_of_another_format(tmp_path, capsys):
    out = tmp_path / "labels.csv"
    assert main(["label", str(turns(tmp_path)), "--k", "3", "--out", str(out)]) == 1
    assert "labels.csv would hold Parquet: name it labels.parquet" in capsys.readouterr().err
    assert not out.exists()


def test_a_fit_of_something_else_is_refused(tmp_path, capsys):
    table = turns(tmp_path)
    folder = fit(tmp_path, table, "regression")
    said = refused(capsys, table, "--fitted", folder)
    assert "regression finds no intentions: fit --method aria, or use --k" in said
    rows = pd.read_parquet(table)
    write(table, rows.assign(game="bargaining"))
    shutil.rmtree(folder)
    fit(tmp_path, table)
    write(table, rows.assign(game="negotiation"))
    said = refused(capsys, table, "--fitted", folder)
    assert "fitted on bargaining, to label negotiation" in said
    write(table, rows.assign(game=np.resize(["bargaining", "negotiation"], len(rows))))
    assert "several games (bargaining, negotiation)" in refused(capsys, table, "--k", 3)


def test_an_output_that_is_the_log_is_refused(tmp_path, capsys):
    table = turns(tmp_path)
    assert main(["label", str(table), "--k", "3", "--out", str(table)]) == 1
    assert "is the same file as the log" in capsys.readouterr().err


def test_nobody_loses_a_fit_or_a_table_of_another_kind(tmp_path, capsys):
    table = turns(tmp_path)
    folder = fit(tmp_path, table)
    options = ["label", str(table), "--fitted", str(folder), "--out"]
    kept = folder / "turns.parquet"
    before = kept.read_bytes()
    assert main([*options, str(kept)]) == 1
    assert f"{kept} lies in {folder}, which is read" in capsys.readouterr().err
    assert kept.read_bytes() == before
    mine = tmp_path / "mine.parquet"
    pd.DataFrame({"my_thesis": [1]}).to_parquet(mine)
    assert main([*options, str(mine)]) == 1
    assert "exists and is not what this command writes" in capsys.readouterr().err
    assert main([*options, str(tmp_path / "labels.parquet")]) == 0
    assert main([*options, str(tmp_path / "labels.parquet")]) == 0


def by_letters(found: Survey, labeller: Labeller) -> ByLetters:
    return ByLetters(found.path, labeller.embed, labeller.known, labeller.acting)


def test_without_ray_the_remedy_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    said = refused(capsys, turns(tmp_path), "--k", 3, "--workers", 2)
    assert "--workers and --ray need Ray: pip install '.[ray]'" in said


@pytest.fixture(scope="module")
def ray():
    """Ray, with this module's classes sent to its workers whole."""
    ray = pytest.importorskip("ray", reason="ray is not installed (extra `ray`)")
    from ray import cloudpickle

    module = __import__("sys").modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield ray
    cloudpickle.unregister_pickle_by_value(module)


def test_two_ray_workers_label_as_one_process_does(tmp_path, ray):
    found = survey(turns(tmp_path))
    labeller = by_letters(found, by_sample(found, 3, 15))
    alone = pa.concat_tables(map(labeller, found.blocks))
    several = pa.concat_tables(labelled_on_ray(labeller, found.blocks, 2, None))
    assert len(found.blocks) > 5
    assert several.equals(alone)


def test_what_a_ray_worker_meets_is_one_line(tmp_path, ray):
    found = survey(turns(tmp_path))
    labeller = by_letters(found, by_sample(found, 3, 15))
    found.path.unlink()
    with pytest.raises(AriaError, match=r"turns\.parquet: no such file"):
        list(labelled_on_ray(labeller, found.blocks, 2, None))


def test_a_cluster_that_is_not_there_is_one_line(tmp_path, capsys, ray):
    said = refused(capsys, turns(tmp_path), "--k", 3, "--ray", "127.0.0.1:1")
    assert "--ray: no cluster at 127.0.0.1:1" in said
