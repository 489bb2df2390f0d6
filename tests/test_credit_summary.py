"""The five lines at the end of `aria credit`: right numbers, and a next step that can be taken."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.test_credit_cli import rewritten, run, write_log

from aria_dvc.__main__ import main, make_parser

NAMES = ["k", "variance", "skill", "written", "next"]


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, str]:
    """The five lines by their names."""
    capsys.readouterr()
    assert run(*arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == NAMES
    return dict(line.split(": ", 1) for line in lines)


def command_in(line: str) -> list[str]:
    """The words of the command that a line ends with, after `aria`."""
    return shlex.split(line[line.index("aria ") :])[1:]


def test_the_figures_are_those_of_the_table_and_of_the_quality(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 60, seed=0)
    out, quality = tmp_path / "credit.parquet", tmp_path / "quality.json"
    options = ("--out", out, "--method", "regression", "--quality", quality)
    lines = told(capsys, log, *options)
    table, measured = pd.read_parquet(out), json.loads(quality.read_text())
    ratio = np.var(table["credit"]) / np.var(table["return"])
    assert f" {ratio:.3f} of that of the returns" in lines["variance"]
    skill = measured["skill"]["all"]
    expected = f"{skill['skill']['value']:+.3f} over {skill['over']}, the best baseline, held out "
    low, high = skill["skill"]["low"], skill["skill"]["high"]
    assert lines["skill"] == f"{expected}(95 % interval {low:+.3f} to {high:+.3f})"
    assert lines["k"] == "none, since regression looks at no intentions"
    assert lines["written"].startswith(f"{out} and {quality} ({len(table)} actions of 60 episodes")


def test_the_skill_beside_the_default_is_told_to_be_that_of_another_method(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 30, seed=0)
    out, quality = tmp_path / "credit.parquet", tmp_path / "quality.json"
    lines = told(capsys, log, "--out", out, "--quality", quality)
    assert lines["k"] == "none, since gae looks at no intentions"
    assert lines["skill"].endswith(
        "; that of regression, since gae needs to see how a dialogue goes on"
    )
    again = told(capsys, log, "--out", out)
    assert "that of regression" not in again["skill"]
    assert "regression" not in again["written"]


@pytest.mark.parametrize(
    ("method", "other"), [("gigpo", "turn_index"), ("group", "the role's mean outcome")]
)
def test_nothing_is_concluded_from_the_skill_of_a_stand_in(tmp_path, capsys, method, other):
    log = write_log(tmp_path / "log.jsonl", 20, seed=0)
    new, out = write_log(tmp_path / "new.jsonl", 5, seed=1), tmp_path / "credit.parquet"
    options = ("--out", out, "--method", method, "--quality", tmp_path / "quality.json")
    lines = told(capsys, log, *options)
    assert lines["skill"].endswith(
        f"; that of {other}, since {method} needs to see how a dialogue goes on"
    )
    assert lines["next"].startswith("whether to train on it this skill cannot tell, since it is n")
    assert main(command_in(lines["next"])) == 0
    assert f"credit {out}:advantage" in lines["next"]
    scored = told(capsys, log, "--score", new, *options)  # here it is that of the credit
    assert scored["next"].startswith("no gain over the baseline is shown")


def test_whose_values_other_dialogues_get_is_told(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 30, seed=0)
    new, out = write_log(tmp_path / "new.jsonl", 5, seed=1), tmp_path / "credit.parquet"
    lines = told(capsys, log, "--score", new, "--out", out)
    assert lines["written"].endswith(
        "; values of regression, since gae needs to see how a dialogue goes on)"
    )


@pytest.mark.parametrize(("asked", "how"), [((), "by silhouette"), (("--k", 3), "3 asked for")])
def test_k_counts_the_intentions(tmp_path, capsys, asked, how):
    log, out = write_log(tmp_path / "log.jsonl", 40, seed=0), tmp_path / "credit.parquet"
    lines = told(capsys, log, "--method", "shrinkage", "--out", out, *asked)
    found = int(lines["k"].split()[0])
    assert lines["k"] == f"{found} intentions ({how})"
    assert found >= pd.read_parquet(out)["intention"].nunique() > 1
    assert not asked or found == 3


def test_without_quality_no_skill_is_claimed(tmp_path, capsys):
    log, out = write_log(tmp_path / "log.jsonl", 20, seed=0), tmp_path / "credit.parquet"
    lines = told(capsys, log, "--method", "turn_index", "--out", out)
    assert lines["skill"].startswith("not measured; --quality FILE")
    assert make_parser().parse_args(command_in(lines["next"])).run.__name__ == "run_audit"
    lines = told(capsys, log, "--method", "turn_index", "--gamma", 0.5, "--out", out)
    assert make_parser().parse_args(command_in(lines["next"])).gamma == 0.5


def test_cells_of_single_turns_are_told(tmp_path, capsys):
    """No two buyers begin alike, so that no history is shared."""
    log = write_log(tmp_path / "log.jsonl", 8, seed=0, vectors=False)
    lines = [json.loads(line) for line in log.open()]
    for number, line in enumerate(lines):
        line["messages"][0]["content"] = f"{number} {'what' * number}?"
    log.write_text("\n".join(json.dumps(line) for line in lines))
    said = told(capsys, log, "--method", "prefix", "--out", tmp_path / "c.parquet")["next"]
    assert said.startswith("aggregation changes 0% of the turns")
    assert "--method gae" in said


def test_where_all_end_alike_nothing_is_recommended(tmp_path, capsys):
    log = rewritten(write_log(tmp_path / "log.jsonl", 6, seed=0), rewards={"buyer": 1.0})
    said = told(capsys, log, "--method", "turn_index", "--out", tmp_path / "c.parquet")["next"]
    assert said.startswith("add episodes that ended otherwise")


def test_a_credit_without_skill_is_not_handed_over(tmp_path, capsys):
    log, quality = write_log(tmp_path / "log.jsonl", 20, seed=0), tmp_path / "quality.json"
    options = ("--out", tmp_path / "c.parquet", "--quality", quality)
    said = told(capsys, log, "--method", "constant", *options)["next"]
    assert said.startswith("no gain over the baseline is shown")


def test_the_export_that_is_named_works(tmp_path, capsys, monkeypatch):
    """Names with blanks, options of reading and all."""
    monkeypatch.chdir(tmp_path)
    log = write_log(Path("my log.jsonl"), 80, seed=0)
    options = ("--agent", "buyer", "--no-moves", "--gamma", 1, "--quality", "quality.json")
    lines = told(capsys, log, "--method", "regression", "--out", "my credit.parquet", *options)
    words = command_in(lines["next"])
    assert words[:2] == ["export", "my log.jsonl"]
    assert main(words) == 0
    assert any(Path("kto").iterdir())


def test_of_scored_dialogues_the_returns_may_be_unknown(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 80, seed=0)
    new = write_log(tmp_path / "new.jsonl", 6, seed=1, rewards=False)
    options = ("--out", tmp_path / "c.parquet", "--quality", tmp_path / "q.json", "--gamma", 1)
    lines = told(capsys, log, "--score", new, "--method", "regression", *options)
    assert lines["variance"].endswith("the outcomes of these dialogues are unknown")
    assert lines["next"].startswith("join it with the dialogues by episode_id and position")


def test_a_single_episode_has_no_skill(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 1, seed=0)
    options = ("--out", tmp_path / "c.parquet", "--quality", tmp_path / "q.json")
    lines = told(capsys, log, "--method", "turn_index", *options)
    assert lines["skill"] == "not measured: a single episode has nothing to hold out"


def test_skipped_entries_stay_skipped_in_what_comes_next(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl", 10, seed=0)
    log.write_text(log.read_text() + "{}\n")
    options = ("--method", "turn_index", "--out", tmp_path / "c.parquet", "--on-error", "skip")
    words = command_in(told(capsys, log, *options)["next"])
    assert main(words) == 0
