"""`aria credit` on tiny logs, end to end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.credit_dialogues import ANY_GAME

from aria_dvc.__main__ import main
from aria_dvc.credit.labelling import nearest_cluster, unseen_labels
from aria_dvc.credit.logs import read_logs
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import EMBED_BATCH
from aria_dvc.credit.table import COLUMNS
from aria_dvc.intentions.log import Log

TOPICS = ["the weather", "the price", "the colour"]


def write_log(
    path: Path, episodes: int, seed: int, rewards: bool = True, vectors: bool = True
) -> Path:
    """JSON lines; asking for the price is what wins."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(episodes):
        asked = rng.integers(0, 3, rng.integers(2, 5))
        messages = []
        for topic in asked:
            for role, text in (("buyer", f"what about {TOPICS[topic]}?"), ("shop", "yes, good")):
                message = {"role": role, "content": text}
                if vectors:
                    vector = np.eye(4)[topic if role == "buyer" else 3] + rng.normal(0, 0.01, 4)
                    message["embedding"] = vector.tolist()
                messages.append(message)
        line = {"episode_id": f"e{number}", "messages": messages}
        if rewards:
            line["rewards"] = {"buyer": float((asked == 1).any())}
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def run(*arguments: object) -> int:
    return main(["credit", *(str(argument) for argument in arguments)])


def k_of(method: str) -> tuple[object, ...]:
    """A k for a method that has intentions."""
    return ("--k", 4) if make_method(method).uses_labels else ()


@pytest.mark.parametrize("method", ANY_GAME)
def test_credit_of_the_fitted_log(tmp_path, method):
    log, out = write_log(tmp_path / "log.jsonl", 24, seed=0), tmp_path / "credit.parquet"
    quality = tmp_path / "quality.json"
    options = ("--method", method, "--out", out, *k_of(method), "--quality", quality)
    assert run(log, *options) == 0
    table = pd.read_parquet(out)
    assert list(table.columns) == list(COLUMNS)
    assert set(table["role"]) == {"buyer"}
    assert np.isfinite(table["credit"]).all()
    last = table.groupby("episode_id").tail(1)
    assert set(last["return"]) == {0.0, 1.0}
    assert "method" in json.loads(quality.read_text())["r2"]


@pytest.mark.parametrize("method", ["aria", "shrinkage", "regression"])
def test_outcomes_of_the_scored_log_are_not_looked_at(tmp_path, method):
    log = write_log(tmp_path / "log.jsonl", 24, seed=0)
    known = write_log(tmp_path / "known.jsonl", 6, seed=1)
    blind = write_log(tmp_path / "blind.jsonl", 6, seed=1, rewards=False)
    tables = []
    for scored in (known, blind):
        out = tmp_path / f"{scored.stem}.parquet"
        options = ("--score", scored, "--method", method, "--out", out, *k_of(method))
        assert run(log, *options) == 0
        tables.append(pd.read_parquet(out))
    pd.testing.assert_frame_equal(
        tables[0].drop(columns="return"), tables[1].drop(columns="return")
    )
    assert tables[0]["return"].notna().all()
    assert tables[1]["return"].isna().all()


def test_the_better_question_gets_the_higher_credit(tmp_path):
    log = write_log(tmp_path / "log.jsonl", 60, seed=0)
    scored = write_log(tmp_path / "new.jsonl", 20, seed=5, rewards=False)
    out = tmp_path / "credit.parquet"
    assert run(log, "--score", scored, "--method", "regression", "--out", out) == 0
    table = pd.read_parquet(out).query("position == 0").reset_index(drop=True)
    first = [json.loads(line)["messages"][0]["content"] for line in scored.open()]
    price = np.array(["price" in text for text in first])
    assert table["credit"][price].min() > table["credit"][~price].max()


@pytest.mark.parametrize("names", [("a.jsonl", "b.jsonl"), ("1/log.jsonl", "2/log.jsonl")])
def test_several_logs_keep_their_episodes_apart(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    logs = [write_log(tmp_path / name, 5, seed=3) for name in names]
    out = tmp_path / "credit.parquet"
    assert run(*logs, "--method", "constant", "--out", out) == 0
    assert pd.read_parquet(out)["episode_id"].nunique() == 10


def test_a_log_given_twice_is_refused(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 5, seed=3)
    again = tmp_path / "." / "sub" / ".." / "log.jsonl"
    (tmp_path / "sub").mkdir()
    assert run(log, again, "--method", "constant", "--out", tmp_path / "out.parquet") == 1
    assert "given twice" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--quality"])
def test_a_folder_is_never_replaced(tmp_path, capsys, option):
    folder, log = tmp_path / "mine", write_log(tmp_path / "log.jsonl", 5, seed=3)
    folder.mkdir()
    (folder / "precious").touch()
    options = ("--method", "constant", "--out", tmp_path / "out.parquet", option, folder)
    assert run(log, *options) == 1
    assert "is a folder" in capsys.readouterr().err
    assert (folder / "precious").exists()
    assert not (tmp_path / "out.parquet").exists()


def rewritten(path: Path, **changes: object) -> Path:
    """The same log with keys of every line set anew."""
    lines = [{**json.loads(line), **changes} for line in path.open()]
    path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    return path


def test_only_dialogues_of_the_fitted_kind_are_scored(tmp_path, capsys):
    log, out = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "out.parquet"
    said = [{"role": "customer", "content": "Hello"}, {"role": "clerk", "content": "Hi"}]
    other = rewritten(write_log(tmp_path / "new.jsonl", 3, 4, rewards=False), messages=said)
    options = ("--method", "constant", "--out", out)
    assert run(log, "--score", other, *options) == 1
    assert "buyer, the fitted roles; the log has clerk, customer" in capsys.readouterr().err
    log = rewritten(log, game="bargaining")
    other = rewritten(write_log(tmp_path / "new.jsonl", 3, 4), game="negotiation")
    assert run(log, "--score", other, *options) == 1
    assert "fitted on bargaining, to score negotiation" in capsys.readouterr().err
    assert not out.exists()
    assert run(log, "--score", other, "--game", "negotiation", *options) == 0


def test_moves_are_left_out_of_the_scored_log_too(tmp_path):
    log = rewritten(write_log(tmp_path / "log.jsonl", 9, seed=3), info={"moves": [2]})
    new = write_log(tmp_path / "new.jsonl", 4, 4, rewards=False)
    rewritten(new, info={"moves": [0, 3]})
    out = tmp_path / "out.parquet"
    options = ("--score", new, "--method", "prefix", "--out", out)
    assert run(log, *options) == 0
    every = pd.read_parquet(out)
    assert run(log, *options, "--no-moves") == 0
    kept = pd.read_parquet(out)
    assert set(every["position"]) - set(kept["position"]) == {0}
    assert len(kept) == len(every) - 4
    assert kept["turns"].tolist() == every.query("position > 0")["turns"].tolist()


@pytest.mark.parametrize("method", ANY_GAME)
def test_a_single_episode_has_a_credit(tmp_path, method):
    log, out = write_log(tmp_path / "log.jsonl", 1, seed=3), tmp_path / "out.parquet"
    quality = tmp_path / "quality.json"
    assert run(log, "--method", method, "--out", out, "--quality", quality) == 0
    assert np.isfinite(pd.read_parquet(out)["credit"]).all()
    assert json.loads(quality.read_text()) == {"method": method, "episodes": 1}


def test_vectors_of_a_log_are_scaled_and_give_way_to_a_named_model(tmp_path, monkeypatch):
    log, asked = write_log(tmp_path / "log.jsonl", 5, seed=3), []
    vectors = read_logs([log], 0.95).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)

    def embed(texts, source, batch_size, normalize, endpoints):
        asked.append((source, batch_size, normalize, endpoints))
        return np.ones((len(texts), 2), np.float32)

    monkeypatch.setattr("aria_dvc.intentions.embedding.embed_texts", embed)
    options = ("--method", "kernel", "--out", tmp_path / "out.parquet")
    assert run(log, *options) == run(log, *options, "--embed", "mine") == 0
    assert asked == [("mine", EMBED_BATCH, True, {})]


def test_a_k_that_is_too_large_is_capped_aloud(tmp_path, caplog):
    said = [{"role": "buyer", "content": c, "embedding": [1, i]} for i, c in enumerate("abc")]
    log = rewritten(write_log(tmp_path / "log.jsonl", 3, seed=3), messages=said)
    options = ("--out", tmp_path / "out.parquet", "--method", "aria", "--k", 90)
    assert run(log, *options) == 0
    assert "more than its 3 distinct utterances; k = 3 is used" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--folds", "1"), "--folds is 1"),
        (("--gamma", "2"), "--gamma is 2.0"),
        (("--seed", "-1"), "--seed is -1: folds are dealt by a whole number from 0 on"),
        (("--score", "absent.jsonl"), "absent.jsonl"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, change, message):
    log = write_log(tmp_path / "log.jsonl", 5, seed=3)
    assert run(log, "--method", "constant", "--out", tmp_path / "out.parquet", *change) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.parquet").exists()


IDLE = [
    ("--method prefix --k 7", "--k is for methods that look at intentions, such as aria"),
    ("--method gigpo --anchor state --k 7", "--k is for methods that look at intentions"),
    ("--method prefix --embed nonsense", "--embed is for methods that look at meaning"),
    ("--method prefix --objective sum", "--objective is for --method progress, not --method"),
    ("--anchor state --method progress", "--anchor is for --method gigpo, not --method progress"),
    ("--objective prefix", "--objective is for --method progress, not --method gae"),  # a default
    (
        "--method prefix --folds 9",
        "--folds is for credit that holds out and for --quality, not -",
    ),
    ("--method prefix --seed 0", "--seed is for credit that holds out and for --quality, not -"),
]
ACTING = [
    "--method aria --k 7 --embed none",
    "--method gigpo --anchor intentions --k 7",
    "--method progress --objective sum --folds 9 --seed 3 --embed none",
    "--method prefix --gamma 0.5 --game bargaining",
]


@pytest.mark.parametrize(("options", "problem"), IDLE)
@pytest.mark.parametrize("command", ["credit", "export"])
def test_what_would_have_no_effect_is_refused_before_a_log_is_read(
    tmp_path, capsys, command, options, problem
):
    target = ["--to", "kto"] if command == "export" else []
    given = [str(tmp_path / "no log"), *target, "--out", str(tmp_path / "out"), *options.split()]
    assert main([command, *given]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
    assert line.endswith(": leave it out")


@pytest.mark.parametrize("options", ACTING)
@pytest.mark.parametrize("command", ["credit", "export"])
def test_what_has_an_effect_is_not_refused(tmp_path, capsys, command, options):
    target = ["--to", "kto"] if command == "export" else []
    given = [str(tmp_path / "no log"), *target, "--out", str(tmp_path / "out"), *options.split()]
    assert main([command, *given]) == 1
    assert "no log" in capsys.readouterr().err


def test_folds_act_on_the_quality_and_not_on_other_logs(tmp_path, capsys):
    options = ("--out", tmp_path / "out", "--folds", 9, "--method")
    assert run("no log", *options, "prefix", "--quality", tmp_path / "quality.json") == 1
    assert "no log" in capsys.readouterr().err
    assert run("no log", *options, "regression", "--score", "other") == 1
    assert "not --method regression with --score: leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "refused"), [("--k 7", "k"), ("--folds 9", "folds")])
def test_a_fit_refuses_what_has_no_effect(tmp_path, capsys, options, refused):
    given = ["no log", "--out", str(tmp_path / "out"), "--method", "regression", *options.split()]
    assert main(["fit", *given]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: --{refused} is for ")
    assert line.endswith("not --method regression in a fit: leave it out")


def test_a_log_without_outcomes_cannot_be_fitted(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 5, seed=3, rewards=False)
    assert run(log, "--method", "constant", "--out", tmp_path / "out.parquet") == 1
    assert "reward" in capsys.readouterr().err


@pytest.mark.parametrize("option", [(), ("--score",)])
def test_vectors_of_different_length_are_refused(tmp_path, capsys, option):
    log = write_log(tmp_path / "log.jsonl", 5, seed=3)
    other = write_log(tmp_path / "other.jsonl", 3, seed=4)
    lines = [json.loads(line) for line in other.open()]
    for line in lines:
        for message in line["messages"]:
            message["embedding"] = message["embedding"][:3]
    other.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    options = (*option, other, "--method", "kernel", "--out", tmp_path / "out.parquet")
    assert run(log, *options) == 1
    assert "differ in length" in capsys.readouterr().err


def test_the_nearest_mean_decides_the_label():
    vectors = np.array([[0, 0], [0, 2], [10, 0], [10, 2]], np.float32)
    new = np.array([[1, 1], [9, 1], [5, 1]], np.float32)
    assert nearest_cluster(vectors, np.array([7, 7, 3, 3]), new).tolist() == [7, 3, 3]


def log_of(texts, vectors, labels, game="dialogue", answered=False) -> Log:
    """One labelled episode; every second utterance is an answer, or none is."""
    n = len(texts)
    is_action = np.arange(n) % 2 == 0 if answered else np.ones(n, bool)
    role = np.where(is_action, "agent", "oracle")
    text = np.array(texts, dtype=object)
    points = np.array(vectors, np.float32)
    return Log(np.zeros(n, int), role, is_action, text, points, np.array(labels), np.ones(n), game)


def test_what_was_clustered_keeps_its_label_though_another_mean_is_nearer():
    known = log_of("abc", [[0.0], [6], [7]], [0, 0, 1])
    labels = unseen_labels(known, log_of("ab", [[6.0], [6.1]], [0, 0]))
    assert labels.tolist() == [0, 1]


def test_answers_with_fixed_labels_get_the_label_of_their_kind():
    asked = ("Is it big?", "Yes.", "Is it red?", "No.")
    known = log_of(asked, [[0.0], [5], [1], [5]], [0, 100, 1, 101], "twenty_questions", True)
    texts = ("Is it large?", "no, never", "Is it pink?", "It depends.")
    new = log_of(texts, [[0.1], [0], [0.9], [0]], [0] * 4, "twenty_questions", True)
    assert unseen_labels(known, new).tolist() == [0, 101, 1, -1]


def spelled_anew(path: Path, how: str) -> Path:
    """Another name of a file."""
    other = path.parent / f"other-{path.name}"
    if how == "symbolic":
        other.symlink_to(path)
    elif how == "hard":
        other.hardlink_to(path)
    elif how == "spelling":
        (path.parent / "sub").mkdir(exist_ok=True)
        return path.parent / "sub" / ".." / path.name
    elif how == "relative":
        return Path(os.path.relpath(path))
    return path if how in ("same", "spelling", "relative") else other


@pytest.mark.parametrize("how", ["same", "symbolic", "hard", "spelling", "relative"])
@pytest.mark.parametrize("option", ["--out", "--quality"])
@pytest.mark.parametrize("source", ["log", "scored"])
def test_no_output_is_an_input(tmp_path, capsys, how, option, source):
    files = {name: write_log(tmp_path / f"{name}.jsonl", 5, seed=3) for name in ("log", "scored")}
    before = {name: path.read_bytes() for name, path in files.items()}
    outputs = {"--out": tmp_path / "out.parquet", "--quality": tmp_path / "quality.json"}
    outputs[option] = spelled_anew(files[source], how)
    options = [part for pair in outputs.items() for part in pair]
    assert run(files["log"], "--score", files["scored"], "--method", "constant", *options) == 1
    error = capsys.readouterr().err
    assert f"{option}: {outputs[option]} is the same file as" in error
    assert error.count("\n") == 1
    assert {name: path.read_bytes() for name, path in files.items()} == before
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("names", [("a.x", "a.x"), ("a.x", "sub/../a.x"), ("a.x", "A.X")])
def test_no_two_outputs_are_one_file(tmp_path, capsys, names):
    (tmp_path / "sub").mkdir()
    log = write_log(tmp_path / "log.jsonl", 5, seed=3)
    out, quality = (f"{tmp_path}/{name}" for name in names)
    assert run(log, "--method", "constant", "--out", out, "--quality", quality) == 1
    assert "is the same file as --out" in capsys.readouterr().err


def test_two_names_of_one_output_that_exists_are_one_file(tmp_path, capsys):
    log, out = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "out.parquet"
    assert run(log, "--method", "constant", "--out", out) == 0
    linked = spelled_anew(out, "hard")
    assert run(log, "--method", "constant", "--out", out, "--quality", linked) == 1
    assert "error: --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "content"),
    [("--out", "a thesis"), ("--out", '{"r2": 1}'), ("--quality", "[1]"), ("--quality", "{}")],
)
def test_a_file_of_another_kind_is_never_overwritten(tmp_path, capsys, option, content):
    log, mine = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "mine"
    mine.write_text(content)
    assert run(log, "--method", "constant", "--out", tmp_path / "out.parquet", option, mine) == 1
    assert "exists and is not what this command writes" in capsys.readouterr().err
    assert mine.read_text() == content


@pytest.mark.parametrize("cut", [b"", b"PAR1"])
def test_a_damaged_table_is_somebody_elses(tmp_path, capsys, cut):
    """With the magic at its end Parquet's reader fails in another way than without."""
    log, mine = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "mine.parquet"
    assert run(log, "--method", "constant", "--out", mine) == 0
    damaged = mine.read_bytes()[:-20] + (12).to_bytes(4, "little") + cut
    mine.write_bytes(damaged)
    assert run(log, "--method", "constant", "--out", mine) == 1
    assert "exists and is not what this command writes" in capsys.readouterr().err
    assert mine.read_bytes() == damaged


def test_of_a_file_that_stands_there_no_more_is_read_than_tells_its_kind(tmp_path, capsys):
    log, mine = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "mine.parquet"
    mine.touch()
    os.truncate(mine, 2**40)  # a hole: none of it is on the disk
    assert run(log, "--method", "constant", "--out", mine) == 1
    assert "exists and is not what this command writes" in capsys.readouterr().err


def test_links_devices_and_what_lies_below_a_file_are_no_outputs(tmp_path, capsys):
    log, target = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "precious.parquet"
    (tmp_path / "link").symlink_to(target)
    assert run(log, "--method", "constant", "--out", tmp_path / "link") == 1
    assert "link is a link to" in capsys.readouterr().err
    assert run(log, "--method", "constant", "--out", "/dev/null") == 1
    assert "is no regular file" in capsys.readouterr().err
    for below in (log / "out.parquet", log / "new" / "out.parquet"):
        assert run(log, "--method", "constant", "--out", below) == 1
        assert f"error: --out: {below}: {log} is a file" in capsys.readouterr().err


def test_own_outputs_are_written_anew(tmp_path):
    log, out = write_log(tmp_path / "log.jsonl", 5, seed=3), tmp_path / "out.parquet"
    for _ in range(2):
        assert run(log, "--out", out, "--quality", tmp_path / "q.json", "--seed", 3) == 0
