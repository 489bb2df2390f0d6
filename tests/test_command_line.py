"""A newcomer's mistakes at the command line: one line each, with what was meant or what to do."""

from __future__ import annotations

import re

import pytest
from tests.test_credit_cli import write_log

from aria_dvc.__main__ import main, make_parser

READS = ("credit", "fit", "read")


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a wrong command line ends with, before anything is done."""
    with pytest.raises(SystemExit, match="2"):
        main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "aria: the following arguments are required: COMMAND: see aria --help"),
        ("credti log", "argument COMMAND: there is no credti (did you mean credit?)"),
        ("credit log", "aria credit: the following arguments are required: --out"),
        ("credit log --out x --method regresion", "there is no regresion (did you mean regression"),
        ("credit log --out x --methd aria", "--methd: unknown option (did you mean --method?)"),
        ("credit log --out x --qual q", "--qual: unknown option (did you mean --quality?)"),
        ("export log --out x --to trl", "there is no trl (known: art, csv, dpo, kto, parquet"),
        ("cache lst", "aria cache: argument ACTION: there is no lst (did you mean list?)"),
        ("cache list all", "aria cache list: all: unknown further argument"),
        ("completion powershell", "there is no powershell (known: bash, fish, tcsh, zsh)"),
        ("audit log --out a.html", "--html a.html writes a page, --json a.html the figures"),
        ("read log --out x --agent", "argument --agent: expected one argument"),
        ("credit log --out x --method \x1b[31m", r"there is no \x1b[31m (known: aria, aria_recent"),
    ],
)
def test_a_wrong_command_line_is_one_line(capsys, line, said):
    assert said in refused(capsys, *line.split())


@pytest.mark.parametrize("command", READS)
def test_no_option_is_taken_for_a_longer_one(capsys, command):
    """`--out` of a command without one was taken for --outcome."""
    assert "unknown option" in refused(capsys, command, "log", "--outc", "win_test", "--out", "x")


def test_help_names_every_command_and_begins_with_what_to_do(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    examples = re.findall(r"^  aria (\w+) .*$", shown, re.MULTILINE)
    assert examples == ["read", "audit", "credit", "export"]
    for line in re.findall(r"^  aria (.*?)(?:  .*)?$", shown, re.MULTILINE):
        assert make_parser().parse_args(line.split()).command in examples


@pytest.mark.parametrize("name", ["credit.csv", "credit.json", "credit.XLSX"])
def test_a_table_is_not_called_what_it_is_not(tmp_path, capsys, name):
    log, out = write_log(tmp_path / "log.jsonl", 5, seed=0), tmp_path / name
    assert main(["credit", str(log), "--method", "constant", "--out", str(out)]) == 1
    assert "would hold Parquet: name it credit.parquet, say; `aria exp" in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_of_exports_is_not_called_like_a_file(tmp_path, capsys):
    log, out = write_log(tmp_path / "log.jsonl", 5, seed=0), tmp_path / "kto.jsonl"
    assert main(["export", str(log), "--to", "kto", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert (
        f"--out: of --to kto it is a folder, with a file for each role: name it {tmp_path}" in said
    )
    assert not out.exists()


def test_a_folder_that_is_no_policy_says_how_to_get_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["card", "adapter", "--out", "m"]) == 1
    assert "train one first (dvc repro in a clone of the project)" in capsys.readouterr().err
