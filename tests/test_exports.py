"""`aria export`: every target's file, by what its trainer documents of it."""

from __future__ import annotations

import errno
import json
import os
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from learning_tiny import save_tiny_base

from aria_dvc.__main__ import main
from aria_dvc.credit.table import COLUMNS
from aria_dvc.exports.cli import file_name
from aria_dvc.models.loading import load_tokenizer
from aria_dvc.records.readers import read_log

ANSWERS = ("I take it", "no deal", "half each")
WORTH = {"I take it": 1.0, "no deal": 0.0, "half each": 0.5}


def log_file(folder: Path, episodes: int = 24, seed: int = 0, roles: int = 2) -> Path:
    """Two parties: the first opens alike in every episode, answers decide its reward."""
    rng, lines = np.random.default_rng(seed), []
    for number in range(episodes):
        first, second = rng.choice(ANSWERS, 2)
        lower = rng.choice(("50?", "45?")) if roles == 2 else "50?"
        said = [("alice", "hello"), ("bob", "60?"), ("alice", first), ("bob", lower)]
        said.append(("alice", second))
        rewards = {"alice": WORTH[first] / 2 + WORTH[second] / 2}
        if roles == 2:
            rewards["bob"] = float(rng.random())
        messages = [{"role": "system", "content": "Sell the lamp."}]
        messages += [{"role": role, "content": text} for role, text in said]
        line = {"episode_id": f"e{number}", "messages": messages, "rewards": rewards}
        lines.append({**line, "group_id": f"g{number % 6}"})
    path = folder / "log.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", "utf-8")
    return path


def export(log: Path, target: str, *options: object) -> Path:
    out = log.parent / (f"table.{target}" if target in ("csv", "parquet") else target)
    more = [str(option) for option in options]
    given = ["--to", target, "--method", "prefix", "--out", str(out)]
    assert main(["export", str(log), *given, *more]) == 0
    return out


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


def credit_of(log: Path) -> pd.DataFrame:
    out = log.parent / "credit.parquet"
    assert main(["credit", str(log), "--method", "prefix", "--out", str(out)]) == 0
    return pd.read_parquet(out)


def test_swift_has_a_positive_weight_a_turn_and_a_file_a_role(tmp_path, capsys):
    log = log_file(tmp_path)
    out, table = export(log, "swift"), credit_of(log)
    assert sorted(path.name for path in out.glob("[!.]*")) == ["alice.jsonl", "bob.jsonl"]
    assert "--is_binary_loss_scale false" in capsys.readouterr().out
    for role in ("alice", "bob"):
        chats, own = lines_of(out / f"{role}.jsonl"), table[table["role"] == role]
        weights = [m["loss_scale"] for c in chats for m in c["messages"] if "loss_scale" in m]
        assert min(weights) > 0
        expected = np.exp(own["advantage"] / own["advantage"].std(ddof=0)).clip(1 / 20, 20)
        np.testing.assert_allclose(weights, expected)
    for chat in lines_of(out / "bob.jsonl"):
        said = [message["role"] for message in chat["messages"]]
        assert said == ["system", "user", "assistant", "user", "assistant", "user"]
        assert chat["messages"][2]["content"] == "60?"
        assert all(("loss_scale" in m) == (m["role"] == "assistant") for m in chat["messages"])


@pytest.mark.parametrize("target", ["swift", "kto", "traces", "art"])
def test_actions_in_a_row_that_become_one_message_are_counted(tmp_path, capsys, target):
    log = log_file(tmp_path, roles=1)
    export(log, target)
    assert "joined" not in capsys.readouterr().out
    found = lines_of(log)
    for entry in found:
        entry["messages"].insert(3, {"role": "alice", "content": "Anybody there?"})
    log.write_text("\n".join(map(json.dumps, found)), "utf-8")
    export(log, target)
    said = f"{len(found)} joined to the next of the same side"
    assert said in capsys.readouterr().out


def test_kto_labels_by_the_advantage_and_drops_small_ones(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    out, table = export(log, "kto", "--least", 0.5), credit_of(log)
    rows = lines_of(out / "alice.jsonl")
    kept = table[table["advantage"].abs() >= 0.5 * table["advantage"].std(ddof=0)]
    assert [row["label"] for row in rows] == (kept["advantage"] > 0).tolist()
    assert f"{len(table) - len(kept)} too small" in capsys.readouterr().out
    assert 0 < len(kept) < len(table)
    for row in rows:
        assert [m["role"] for m in row["completion"]] == ["assistant"]
        assert row["prompt"][-1]["role"] == "user"


def test_an_advantage_of_nothing_has_no_sign_however_little_is_asked(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    table = credit_of(log)
    nothing = table["advantage"].abs() < 1e-12
    # every episode opens so: its first turn has no advantage
    assert nothing[table["turn"] == 1].all()
    for rounding in (0.0, 1e-16, -1e-16):
        changed = table.assign(advantage=table["advantage"].mask(nothing, rounding))
        changed.to_parquet(tmp_path / "credit.parquet")
        out = tmp_path / f"kto{rounding}"
        given = ["--credit", str(tmp_path / "credit.parquet"), "--to", "kto", "--least", "0"]
        capsys.readouterr()
        assert main(["export", str(log), *given, "--out", str(out)]) == 0
        rows = lines_of(out / "alice.jsonl")
        assert [row["label"] for row in rows] == (table["advantage"][~nothing] > 0).tolist()
        assert f"{nothing.sum()} too small to have a sign" in capsys.readouterr().out


def test_dpo_pairs_only_turns_of_the_same_prompt(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    rows = lines_of(export(log, "dpo") / "alice.jsonl")
    # The second turn's prompt is the same in all episodes, the third's in those of one answer.
    assert len(rows) == 1 + len(ANSWERS)
    assert f"{len(rows)} pairs" in capsys.readouterr().out
    first = [row for row in rows if len(row["prompt"]) == 4]
    assert [row["chosen"][0]["content"] for row in first] == ["I take it"]
    assert [row["rejected"][0]["content"] for row in first] == ["no deal"]
    said = [json.loads(line)["messages"] for line in log.open()]
    chats = {json.dumps([m["content"] for m in c[:4]]) for c in said}
    assert len(chats) == len(ANSWERS)


def test_no_pair_is_made_up(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    found = [json.loads(line) for line in log.open()]
    for number, entry in enumerate(found):
        entry["messages"][1]["content"] = f"hello {number}"
        entry["messages"][0]["content"] = f"Sell lamp {number}."
    log.write_text("\n".join(json.dumps(entry) for entry in found), "utf-8")
    out = tmp_path / "dpo"
    options = ["--method", "group", "--to", "dpo", "--out", str(out)]
    assert main(["export", str(log), *options]) == 1
    error = capsys.readouterr().err
    assert "no two turns answer the same prompt in different ways" in error
    assert not out.exists()


@pytest.mark.parametrize("signed", [False, True])
def test_tinker_weighs_the_tokens_of_actions_alone(tmp_path, signed):
    base = save_tiny_base(tmp_path / "model")
    log = log_file(tmp_path, roles=1)
    options = ["--model", base.folder, *(["--signed"] if signed else [])]
    rows, table = lines_of(export(log, "tinker", *options) / "alice.jsonl"), credit_of(log)
    spread = table["advantage"].std(ddof=0)
    tokenizer = load_tokenizer(base)
    for row, (_, own) in zip(rows, table.groupby("episode_id", sort=False), strict=True):
        (chunk,) = row["model_input"]["chunks"]
        target, weights = (row["loss_fn_inputs"][n]["data"] for n in ("target_tokens", "weights"))
        assert chunk["tokens"][1:] == target[:-1]
        assert len(chunk["tokens"]) == len(target) == len(weights)
        said = tokenizer.decode([t for t, w in zip(target, weights, strict=True) if w])
        power = own["advantage"].to_numpy() / spread
        assert power[0] == 0  # every episode opens so: signed, the opening weighs nothing
        assert said.count("<|im_end|>") == (2 if signed else 3)
        assert said.startswith("hello<|im_end|>") is not signed
        expected = power[1:] if signed else np.exp(power).clip(1 / 20, 20)
        kept = np.array([w for w in weights if w])
        changes = kept[np.r_[True, np.diff(kept) != 0]]
        np.testing.assert_allclose(changes, expected[np.r_[True, np.diff(expected) != 0]])
        assert all(
            not w for t, w in zip(target, weights, strict=True) if tokenizer.decode([t]) == "6"
        )


def test_tinker_needs_a_tokenizer(tmp_path, capsys):
    log = log_file(tmp_path)
    options = ["--method", "prefix", "--to", "tinker", "--out", str(tmp_path / "t")]
    assert main(["export", str(log), *options]) == 1
    assert "name the model to train by --model" in capsys.readouterr().err


def test_art_has_a_row_a_turn_that_our_own_reader_takes(tmp_path):
    log = log_file(tmp_path, roles=1)
    out, table = export(log, "art") / "alice.parquet", credit_of(log)
    rows = pq.read_table(out).to_pylist()
    np.testing.assert_allclose([row["reward"] for row in rows], table["advantage"])
    for row in rows:
        marked = [message["trainable"] for message in row["messages"]]
        assert marked == [False] * (len(marked) - 1) + [True]
    groups = pd.DataFrame({"index": [row["group_index"] for row in rows]})
    assert (groups.groupby(table["group_id"].to_numpy())["index"].nunique() == 1).all()
    found = read_log(out)
    assert len(found) == len(table)
    assert [e.rewards["assistant"] for e in found] == pytest.approx(table["advantage"].tolist())


def test_traces_come_back_with_their_outcome_and_carry_their_credit(tmp_path):
    log = log_file(tmp_path)
    out, table = export(log, "traces"), credit_of(log)
    for role in ("alice", "bob"):
        path = out / f"{role}.jsonl"
        own = table[table["role"] == role]
        info = [line["traces"][0]["info"] for line in lines_of(path)]
        assert [x for i in info for x in i["turn_rewards"]] == own["credit"].tolist()
        assert [x for i in info for x in i["turn_advantages"]] == own["advantage"].tolist()
        last = own.groupby("episode_id", sort=False)["return"].last().tolist()
        assert [e.rewards["assistant"] for e in read_log(path)] == pytest.approx(last)
        assert [e.group_id for e in read_log(path)][:3] == ["g0", "g1", "g2"]


@pytest.mark.parametrize("target", ["parquet", "csv"])
def test_tables_are_the_credit_table(tmp_path, target):
    log = log_file(tmp_path)
    out, table = export(log, target), credit_of(log)
    found = (pd.read_parquet if target == "parquet" else pd.read_csv)(out)
    assert list(found.columns) == list(COLUMNS)
    pd.testing.assert_frame_equal(found, table, check_dtype=False, rtol=1e-14)


def test_a_credit_table_may_be_given_and_must_be_of_this_log(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    credit_of(log)
    table = tmp_path / "credit.parquet"
    fresh = export(log, "swift").joinpath("alice.jsonl").read_bytes()
    options = ["--credit", str(table), "--to", "swift", "--out", str(tmp_path / "swift")]
    assert main(["export", str(log), *options]) == 0
    assert fresh == (tmp_path / "swift" / "alice.jsonl").read_bytes()
    other = log.read_text().replace("half each", "half")
    log.write_text(other, "utf-8")
    assert main(["export", str(log), *options]) == 1
    assert "says something else there" in capsys.readouterr().err
    log.write_text(other.replace('"e3"', '"new"'), "utf-8")
    assert main(["export", str(log), *options]) == 1
    assert "--credit: " in capsys.readouterr().err


@pytest.mark.parametrize("target", ["parquet", "csv"])
def test_a_table_is_written_only_of_the_log_that_it_is_of(tmp_path, capsys, target):
    log = log_file(tmp_path)
    table, path, out = credit_of(log), tmp_path / "credit.parquet", tmp_path / f"out.{target}"
    given, text = ["--credit", path, "--to", target, "--out", out], log.read_text()
    log.write_text(text.replace("half each", "half"), "utf-8")
    assert "says something else there" in refused(capsys, log, *given)
    log.write_text(text.replace('"e3"', '"new"'), "utf-8")
    assert "no credit of episode new, position 1" in refused(capsys, log, *given)
    log.write_text("".join(text.splitlines(keepends=True)[:-1]), "utf-8")
    said = f"5 of {len(table)} rows are no actions of this log (the first: episode e23, position 1)"
    assert said in refused(capsys, log, *given)
    log.write_text(text, "utf-8")
    table.iloc[:-1].to_parquet(path)
    assert "no credit of episode e23, position 5" in refused(capsys, log, *given)
    table.to_parquet(path)
    assert "rows are no actions" in refused(capsys, log, *given, "--agent", "alice")
    assert "absent" in refused(capsys, tmp_path / "absent.jsonl", *given)
    assert not out.exists()
    assert main(["export", str(log), *map(str, given)]) == 0


def test_a_table_of_dialogues_without_outcome_is_written(tmp_path):
    log, new, path = log_file(tmp_path), tmp_path / "new.jsonl", tmp_path / "credit.parquet"
    lines = [json.loads(line) for line in log.open()]
    for line in lines[:4]:
        del line["rewards"]
    new.write_text("\n".join(json.dumps(line) for line in lines[:6]), "utf-8")
    options = ["--score", str(new), "--method", "prefix", "--out", str(path)]
    assert main(["credit", str(log), *options]) == 0
    out = tmp_path / "out.csv"
    assert main(["export", str(new), "--credit", str(path), "--to", "csv", "--out", str(out)]) == 0
    assert len(pd.read_csv(out)) == len(pd.read_parquet(path)) == 30


def refused(capsys, log: Path, *options: object) -> str:
    assert main(["export", str(log), *map(str, options)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--to", "swift", "--beta", "inf"], "--beta must be above 0"),
        (["--to", "kto", "--least", "nan"], "--least not below it"),
        (["--to", "kto", "--model", "x"], "--model is for --to tinker, not kto"),
        (["--to", "dpo", "--signed"], "--signed is for --to tinker, not dpo"),
        (
            ["--to", "kto", "--beta", "9"],
            "--beta is for --to swift, or tinker without --signed, not",
        ),
        (["--to", "csv", "--beta", "1", "--least", "3"], "--beta is for --to swift"),
        (["--to", "csv", "--least", "0"], "--least is for --to kto or dpo, not csv: leave it out"),
        (["--to", "art", "--least", "3"], "--least is for --to kto or dpo, not art"),
        (
            ["--to", "tinker", "--model", "x", "--signed", "--beta", "2"],
            "without --signed, not tinker --signed: leave it out",
        ),
        (["--to", "kto", "--credit", "c.parquet", "--seed", "0"], "have no effect"),
        (["--to", "kto", "--credit", "c.parquet", "--group-by", "scene"], "have no effect"),
        (["--to", "csv", "--method", "gae", "--out", "c.parquet"], "would hold CSV"),
        (["--to", "csv", "--method", "gae", "--out", "c/"], "it is a file: name it c.csv"),
        (["--to", "kto", "--credit", "c.csv"], "there is no file c.csv"),
        (["--to", "tinker"], "name the model to train by --model"),
        (["--to", "kto", "--credit", "c.parquet", "--gamma", "0.5"], "have no effect"),
    ],
)
def test_options_are_refused_before_anything_is_read(tmp_path, capsys, options, problem):
    out = () if "--out" in options else ("--out", tmp_path / "out")
    assert problem in refused(capsys, tmp_path / "no log", *options, *out)


def test_a_file_without_a_record_is_not_written(tmp_path, capsys):
    log, out = log_file(tmp_path, roles=1), tmp_path / "kto"
    given = ["--to", "kto", "--method", "prefix", "--out", out]
    assert "nothing is left to write" in refused(capsys, log, *given, "--least", 50)
    assert not out.exists()


def test_moves_that_are_left_out_of_credit_are_not_trained(tmp_path):
    log = log_file(tmp_path, roles=1)
    found = [json.loads(line) for line in log.open()]
    for entry in found:  # alice says something and presses a button, bob answers, she presses one
        button, answer = {"role": "alice", "content": "Submit"}, {"role": "bob", "content": "no"}
        entry["messages"] += [button, answer, button]
        entry["info"] = {"moves": [5, 7]}
    log.write_text("\n".join(json.dumps(entry) for entry in found), "utf-8")
    base = save_tiny_base(tmp_path / "model")
    chats = lines_of(export(log, "swift", "--no-moves") / "alice.jsonl")
    for chat, entry in zip(chats, found, strict=True):
        weights = [m["loss_scale"] for m in chat["messages"] if m["role"] == "assistant"]
        assert [weight > 0 for weight in weights] == [True, True, True, False]
        said = entry["messages"][5]["content"]
        assert chat["messages"][-3]["content"] == f"{said}\nSubmit"
    rows = lines_of(export(log, "tinker", "--no-moves", "--model", base.folder) / "alice.jsonl")
    tokenizer = load_tokenizer(base)
    for row, entry in zip(rows, found, strict=True):  # what she presses last is not in it
        target, weights = (row["loss_fn_inputs"][n]["data"] for n in ("target_tokens", "weights"))
        assert weights[-1] > 0
        said = entry["messages"][5]["content"]
        assert tokenizer.decode(target).endswith(f"assistant\n{said}\nSubmit<|im_end|>")
    kto = lines_of(export(log, "kto", "--no-moves", "--least", 0) / "alice.jsonl")
    assert len(kto) == 2 * len(found)  # every episode opens so, which is neither good nor bad
    credit = tmp_path / "credit.parquet"
    options = ["--method", "prefix", "--no-moves", "--out", str(credit)]
    assert main(["credit", str(log), *options]) == 0
    given = ["--to", "swift", "--credit", str(credit), "--out", str(tmp_path / "swift")]
    assert main(["export", str(log), *given, "--no-moves"]) == 0


def test_the_texts_of_several_lines_are_compared_too(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    log.write_text(log.read_text().replace("no deal", "no\\ndeal"), "utf-8")
    credit_of(log)
    log.write_text(log.read_text().replace("no\\ndeal", "no\\nreal"), "utf-8")
    given = ["--to", "swift", "--credit", tmp_path / "credit.parquet", "--out", tmp_path / "s"]
    assert "says something else there" in refused(capsys, log, *given)


def test_a_damaged_credit_table_is_refused(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    table, path = credit_of(log), tmp_path / "credit.parquet"
    given = ["--to", "swift", "--credit", path, "--out", tmp_path / "swift"]
    pd.concat([table, table.iloc[:1]]).to_parquet(path)
    assert "stands there twice" in refused(capsys, log, *given)
    table.assign(advantage=table["advantage"].where(table.index > 0)).to_parquet(path)
    assert "advantage is null" in refused(capsys, log, *given)
    table.assign(advantage=np.inf).to_parquet(path)
    assert "no finite number" in refused(capsys, log, *given)
    table.iloc[:0].to_parquet(path)
    assert "there is no action in it" in refused(capsys, log, *given)
    for column in ("advantage", "return", "turn", "anchor"):
        table.assign(**{column: "high"}).to_parquet(path)
        assert f"{column} is no number" in refused(capsys, log, *given)
    table.assign(turn=table["turn"].where(table.index > 0)).to_parquet(path)
    assert "turn is null" in refused(capsys, log, *given)
    path.unlink()
    assert "there is no file" in refused(capsys, log, *given)


def test_nobody_loses_a_file(tmp_path, capsys):
    log = log_file(tmp_path)
    for out, problem in ((log, "is a file"), (tmp_path, f"holds {log}, which is read")):
        options = ["--to", "swift", "--method", "prefix", "--out", str(out)]
        assert main(["export", str(log), *options]) == 1
        assert problem in capsys.readouterr().err
    for command in (["export", "--to", "traces"], ["fit"]):
        options = ["--method", "prefix", "--out", str(tmp_path / "out")]
        assert main([*command, *options, str(tmp_path)]) == 1
        assert f"lies in {tmp_path}, which is read" in capsys.readouterr().err
        options = ["--method", "prefix", "--out", str(below := log / "new" / "out")]
        assert main([*command, *options, str(log)]) == 1
        assert f"--out: {below}: {log} is a file" in capsys.readouterr().err
    inside = tmp_path / "out" / "bob.jsonl"
    skip = ["--on-error", "skip", "--rejected", str(inside)]
    options = ["--to", "swift", "--method", "prefix", "--out", str(inside.parent), *skip]
    assert main(["export", str(log), *options]) == 1
    assert f"holds {inside}, which gets what is skipped" in capsys.readouterr().err
    inside.parent.mkdir()
    credit_of(log).to_parquet(inside)
    options = ["--to", "swift", "--credit", str(inside), "--out", str(inside.parent)]
    assert main(["export", str(log), *options]) == 1
    assert f"holds {inside}, which is read" in capsys.readouterr().err
    table = tmp_path / "thesis.parquet"
    pd.DataFrame({"mine": [1]}).to_parquet(table)
    options = ["--to", "parquet", "--method", "prefix", "--out", str(table)]
    assert main(["export", str(log), *options]) == 1
    assert "exists and is not what this command writes" in capsys.readouterr().err
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in (".notes", "thesis.txt", "alice.jsonl"):
        (mine / name).write_text("x")
        (mine / ".aria-export.json").write_text("[1]")
        assert f"{name}, which aria export did not write" in refused(
            capsys, tmp_path / "no log", "--to", "swift", "--out", mine
        )
        assert (mine / name).read_text() == "x"
        (mine / name).unlink()
    os.mkfifo(pipe := tmp_path / "pipe")
    for once in ("-", str(pipe)):
        assert main(["export", once, "--to", "kto", "--out", str(tmp_path / "k")]) == 1
        assert "read twice" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["export", "--to", "kto"], ["fit"], ["credit"]])
@pytest.mark.parametrize("out", [".", ".."])
def test_a_folder_that_one_is_in_is_no_name_to_write(tmp_path, monkeypatch, capsys, command, out):
    log = log_file(tmp_path)
    (tmp_path / "here" / "there").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "there")
    for more in ([], ["--on-error", "skip"]):
        assert main([*command, str(log), "--method", "prefix", "--out", out, *more]) == 1
        assert f"error: {out} has no name to write under" in capsys.readouterr().err
    assert not list((tmp_path / "here" / "there").iterdir())


def next_export(said: str) -> list[str]:
    """The export that `aria credit` names as what comes next."""
    (line,) = (line for line in said.splitlines() if "aria export" in line)
    return shlex.split(line[line.index("aria export") :])[1:]


def test_what_is_skipped_stays_told_by_the_export_that_comes_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log = log_file(tmp_path, episodes=60, roles=1)
    rejected = tmp_path / "credit.parquet.rejected.jsonl"
    log.write_text(log.read_text() + '{"messages": 3}\n')
    given = [str(log), "--on-error", "skip", "--group-by", "group_id", "--method", "prefix"]
    given += ["--quality", str(tmp_path / "quality.json"), "--out", "credit.parquet"]
    assert main(["credit", *given]) == 0
    told = rejected.read_bytes()
    assert told.count(b"\n") == 1
    assert main(next_export(capsys.readouterr().out)) == 0
    assert rejected.read_bytes() == told
    out = tmp_path / "table.csv"
    skip = ["--on-error", "skip", "--credit", "credit.parquet", "--out", str(out)]
    assert main(["export", str(log), "--to", "csv", *skip]) == 0
    assert Path(f"{out}.rejected.jsonl").read_bytes() == told


def test_an_export_that_fails_leaves_the_last_one_whole(tmp_path, monkeypatch):
    log = log_file(tmp_path)
    out = export(log, "kto")
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("aria_dvc.aside.sync", full)
    given = ["--method", "prefix", "--to", "kto", "--agent", "alice", "--out", str(out)]
    assert main(["export", str(log), *given]) == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    monkeypatch.undo()
    assert main(["export", str(log), *given]) == 0
    assert {path.name for path in out.iterdir()} == {"alice.jsonl", ".aria-export.json"}


def test_a_speakers_name_does_not_steer_the_terminal(tmp_path, capsys):
    log = log_file(tmp_path)
    log.write_text(log.read_text().replace("bob", "b\\u001b[31mob"))
    export(log, "traces")
    assert "\x1b" not in capsys.readouterr().out


def test_a_table_whose_outcomes_are_others_is_refused(tmp_path, capsys):
    log, credit = log_file(tmp_path), tmp_path / "credit.parquet"
    credit_of(log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[3]["rewards"]["alice"] = new = float(not lines[3]["rewards"]["alice"])
    log.write_text("\n".join(map(json.dumps, lines)))
    said = refused(capsys, log, "--to", "traces", "--credit", credit, "--out", tmp_path / "out")
    assert "episode e3 ended with" in said
    assert f"and with {new:g} as it is read now: give the same --outcome" in said


def test_a_table_in_csv_is_no_credit_to_read(tmp_path, capsys):
    log = log_file(tmp_path)
    out = export(log, "csv")
    csv = out.rename(tmp_path / "credit.csv")
    said = refused(capsys, log, "--to", "kto", "--credit", csv, "--out", tmp_path / "out")
    assert f"{csv} is no Parquet: give what `aria credit` wrote" in said


def test_an_export_for_another_trainer_replaces_the_last_one(tmp_path):
    log = log_file(tmp_path)
    credit_of(log)
    out = export(log, "swift")
    given = ["--credit", str(tmp_path / "credit.parquet"), "--out", str(out)]
    assert main(["export", str(log), "--to", "art", *given]) == 0
    names = {path.name for path in out.iterdir()}
    assert names == {"alice.parquet", "bob.parquet", ".aria-export.json"}
    mine = tmp_path / "mine.txt"
    mine.write_text("x")
    (out / ".aria-export.json").write_text('["alice.parquet", "bob.parquet", "../mine.txt"]')
    assert main(["export", str(log), "--to", "swift", *given]) == 0
    assert mine.read_text() == "x"


def test_an_export_replaces_the_last_one(tmp_path):
    out = export(log_file(tmp_path), "swift")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "alice.jsonl").write_text("{}")
    assert export(tmp_path / "log.jsonl", "swift") == out
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_equal_advantages_are_no_training_data(tmp_path, capsys):
    log = log_file(tmp_path, roles=1)
    found = [{**json.loads(line), "rewards": {"alice": 1.0}} for line in log.open()]
    log.write_text("\n".join(json.dumps(entry) for entry in found), "utf-8")
    options = ["--gamma", "1", "--method", "prefix", "--to", "kto", "--out", str(tmp_path / "k")]
    assert main(["export", str(log), *options]) == 1
    assert "all advantages of alice are equal" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["swift", "kto", "dpo", "art"])
def test_where_all_episodes_end_alike_no_turn_is_worth_more(tmp_path, capsys, target):
    """Discounted returns differ by turn all the same, and what is fitted to them does."""
    log = log_file(tmp_path)
    found = [json.loads(line) for line in log.open()]
    for entry in found:
        entry["rewards"]["alice"] = 1.0
    log.write_text("\n".join(map(json.dumps, found)), "utf-8")
    table = tmp_path / "credit.parquet"
    assert main(["credit", str(log), "--out", str(table)]) == 0
    for options in ([], ["--credit", str(table)]):
        out = ["--to", target, "--out", str(tmp_path / "out"), *options]
        assert main(["export", str(log), *out]) == 1
        assert "all episodes ended alike for alice (1), so that no" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    export(log, target, "--agent", "bob")


@pytest.mark.parametrize("method", ["prefix", "aria"])
def test_rounding_is_no_advantage(tmp_path, capsys, method):
    """0.7 times gamma, added up and divided again, is 0.7 times gamma but for the last bit."""
    log = log_file(tmp_path, episodes=41, roles=1)
    found = [{**json.loads(line), "rewards": {"alice": 0.7}} for line in log.open()]
    log.write_text("\n".join(json.dumps(entry) for entry in found), "utf-8")
    options = ["--method", method, "--to", "kto", "--out", str(tmp_path / "k")]
    assert main(["export", str(log), *options]) == 1
    assert "all advantages of alice are equal" in capsys.readouterr().err


def test_of_a_larger_table_the_rows_of_the_log_are_exported_and_scaled(tmp_path, capsys):
    log = log_file(tmp_path)
    credit_of(log)
    table = tmp_path / "credit.parquet"
    fewer = tmp_path / "fewer.jsonl"
    fewer.write_text("\n".join(log.read_text().splitlines()[:10]))
    out = tmp_path / "out"
    given = ["--credit", str(table), "--to", "swift", "--out", str(out)]
    assert main(["export", str(fewer), *given, "--agent", "alice"]) == 0
    said = capsys.readouterr().out
    whole = pd.read_parquet(table)
    own = whole[(whole["role"] == "alice") & whole["episode_id"].isin({f"e{n}" for n in range(10)})]
    assert f"{len(own)} actions: {len(whole) - len(own)} further rows of --credit" in said
    assert "joined" not in said
    weights = [
        m["loss_scale"] for c in lines_of(out / "alice.jsonl")
        for m in c["messages"] if "loss_scale" in m
    ]  # fmt: skip
    expected = np.exp(own["advantage"] / own["advantage"].std(ddof=0)).clip(1 / 20, 20)
    np.testing.assert_allclose(weights, expected)
    fewer.write_text(log.read_text().replace('"e', '"other'))
    assert main(["export", str(fewer), *given]) == 1
    assert "120 of 120 rows are no actions of this log" in capsys.readouterr().err


def test_parquet_is_not_written_under_the_name_of_csv(tmp_path, capsys):
    log, out = log_file(tmp_path), tmp_path / "credit.csv"
    options = ["--method", "prefix", "--to", "parquet", "--out", str(out)]
    assert main(["export", str(log), *options]) == 1
    assert "credit.csv would hold Parquet" in capsys.readouterr().err
    assert not out.exists()


def test_every_role_has_a_file_of_its_own():
    taken: set[str] = set()
    for role in ("Agent 1", "Agent_1", "Agent/1", "../x", "客服"):
        taken.add(file_name(role, "kto", taken))
    assert taken == {"Agent-1.jsonl", "Agent_1.jsonl", "Agent-1-2.jsonl", "x.jsonl", "role.jsonl"}
