"""What logs say reaches neither the terminal raw, nor a spreadsheet as a formula, nor a page."""

from __future__ import annotations

import csv
import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stored_log import ROOT, entries, run_to, write_entries
from test_credit_cli import write_log
from test_failures import OWN

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError
from aria_dvc.files import write_csv
from aria_dvc.progress import progress_bar
from aria_dvc.records.readers import read_log
from aria_dvc.shown import Formatter, cell, printable

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\u202eevil\u200b\x9b31m\u2028<script>alert(1)</script>"


def is_plain(text: str) -> bool:
    return text == printable(text, keep="\n")


def test_nothing_that_steers_is_left():
    shown = printable(HOSTILE)
    assert is_plain(shown)
    assert shown.startswith(r"\x1b[2J\x1b]0;owned\x07\r\u202eevil\u200b\x9b31m\u2028<script>")
    assert printable("Zürich, 東京: 5 € 👍") == "Zürich, 東京: 5 € 👍"
    assert printable("a\nb\tc", keep="\n\t") == "a\nb\tc"
    assert printable("\ud800") == r"\ud800"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, f"'{text}") for text in ("=1+1", "+cmd", "-2+3", "@SUM(A1)", " =1", "＝1", "-")),
        ("\t=1", r"\t=1"),
        ("\r=1", r"\r=1"),
        *((text, text) for text in ("-0.5", "+1", "-1e-3", "alice", "a=b", "", "nan", "3-4")),
    ],
)
def test_cells_that_begin_like_formulas_are_text(text, expected):
    assert cell(text) == expected


def test_a_table_is_written_without_formulas(tmp_path):
    table = pd.DataFrame({"=role": ["=1+1", HOSTILE, None], "r2": [-0.5, np.nan, 2.0], "won": True})
    table["mixed"] = ["-1", -1, "@a"]
    write_csv(tmp_path / "t.csv", table)
    lines = list(csv.reader((tmp_path / "t.csv").open(encoding="utf-8")))
    assert lines[0] == ["'=role", "r2", "won", "mixed"]
    assert lines[1] == ["'=1+1", "-0.5", "True", "-1"]
    assert lines[2][0] == printable(HOSTILE)
    assert lines[3] == ["", "2", "True", "'@a"]


def test_errors_and_log_lines_are_plain(tmp_path):
    assert is_plain(str(AriaError(f"role {HOSTILE}: name it differently")))
    record = logging.LogRecord("x", logging.WARNING, "", 0, "said %s\nmore", (HOSTILE,), None)
    shown = Formatter("%(message)s").format(record)
    assert is_plain(shown)
    assert shown.endswith("\nmore")


def test_a_progress_bar_shows_no_control_characters(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar("own \x1b[31mred\x07") as update:
        update(1, 2, "note \x1b[2J\x07")
    assert "\x1b[31m" not in sys.stderr.getvalue()
    assert "\x1b[2J" not in sys.stderr.getvalue()
    assert "\x07" not in sys.stderr.getvalue()


@pytest.mark.parametrize("place", ["episode_id", "role", "reward", "key", "file", "text"])
def test_the_command_prints_nothing_raw(tmp_path, place):
    """A real process, whose output is read as bytes."""
    entry = json.loads(write_log(tmp_path / "log.jsonl", 1, seed=0).read_text())
    name = "log.jsonl"
    if place == "episode_id":
        entry["episode_id"] = HOSTILE
        text = f"{json.dumps(entry)}\n{json.dumps(entry)}"
    elif place == "role":
        entry["rewards"] = {HOSTILE: 1}
    elif place == "reward":
        entry["rewards"] = {"buyer": HOSTILE}
    elif place == "key":
        entry = {HOSTILE: 1}
    elif place == "file":
        name, entry = "\x1b[31mlog\x07", {}
    else:
        entry["messages"][0]["content"] = HOSTILE
    text = text if place == "episode_id" else json.dumps(entry)
    (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "aria_dvc", "credit", str(tmp_path / name)]
    command += ["--method", "constant", "--out", str(tmp_path / "c.parquet")]
    done = subprocess.run(command, capture_output=True, env=OWN, check=False, timeout=120)
    said = (done.stdout + done.stderr).decode()
    assert said.strip()
    assert is_plain(said)
    assert done.returncode == (place != "text")
    assert said.count("\n") == (6 if place == "text" else 1)  # a warning and the summary


def test_no_text_of_a_log_is_on_the_pages(tmp_path, monkeypatch):
    """The plots that `dvc plots show` puts into HTML are numbers and our own names."""
    monkeypatch.chdir(tmp_path)
    found = json.loads(json.dumps(entries()).replace("bob", "=<script>x</script>"))
    files = run_to("aggregate", write_entries(tmp_path / "log.jsonl", found))
    from types import SimpleNamespace

    from aria_dvc.pipeline.log_outputs import LogOutputs
    from aria_dvc.pipeline.report import _log_plots
    from aria_dvc.report.figures import Pictures

    monkeypatch.setattr(Pictures, "save", lambda self, figure, name, shown: None)
    pictures = Pictures(tmp_path, tmp_path, 0, "a1b2c3d4")
    run = SimpleNamespace(credit={"own": {"credit_quality": {}, "selected_k": 3}})
    _log_plots(run, "own", LogOutputs(files), tmp_path / "plots", pictures)
    for page in (tmp_path / "plots").rglob("*.csv"):
        assert "script" not in page.read_text("utf-8")


def test_what_is_warned_of_is_plain(tmp_path, caplog):
    said = [{"role": f" {HOSTILE}", "content": "Hi"}]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"messages": said, "rewards": {f" {HOSTILE}": 1}}))
    read_log(log)
    shown = [Formatter("%(message)s").format(record) for record in caplog.records]
    assert shown
    assert all(is_plain(line) for line in shown)


@pytest.mark.parametrize("stage", ["prepare", "embed", "select_k"])
def test_a_stage_takes_names_of_params_alone(tmp_path, stage):
    """An argument is no path: nothing is written outside of the stage's own outputs."""
    script = Path("stages") / f"{stage}.py"
    for given in ("../../../x", "/etc/x", "bargaining/../x", "\x1b[31m"):
        command = [sys.executable, str(script), given]
        done = subprocess.run(
            command, cwd=ROOT, env=OWN, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 1
        assert done.stderr.startswith("error: params.yaml has no log ")
        assert is_plain(done.stderr)
        assert done.stderr.count("\n") == 1
    assert main(["credit", str(tmp_path / "none"), "--out", str(tmp_path / "x")]) == 1
