"""`aria review` on real commits of a small repository whose lock real DVC wrote."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from dvc.repo import Repo

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError
from aria_dvc.report.intervals import rate
from aria_dvc.review.comment import MARK, MOST_LINES, code, comment, plain
from aria_dvc.review.commits import commits, web_address
from aria_dvc.review.estimates import Change, Estimate, by_chance, changes, moved, name
from aria_dvc.review.freshness import freshness
from aria_dvc.review.gathered import Review, gather
from aria_dvc.review.health import warnings_in
from aria_dvc.review.locks import Ran, ran, read_lock

ROOT = Path(__file__).parents[1]
FINGERPRINTS = ROOT / "src/aria_dvc/fingerprints.py"
WORKFLOW = ROOT / ".github/workflows/review.yml"
DVC_YAML = """
stages:
  code:
    cmd: python stages/code.py
    deps: [src/aria_dvc, stages]
    outs: [data/code]
  prepare:
    foreach: [chess, go]
    do:
      cmd: python stages/prepare.py ${item}
      deps: [raw.txt, data/code/prepare.json]
      params: [k]
      outs: ["data/turns/${item}.txt"]
  report:
    cmd: cp -r given/. metrics
    deps: [data/turns, given]
    metrics:
      - metrics/credit.json: {cache: false}
    outs:
      - metrics/details: {cache: false}
      - metrics/plots: {cache: false}
"""
CODE_STAGE = """
import json, pathlib, sys
sys.path.insert(0, "src")
from aria_dvc.fingerprints import stage_fingerprint
pathlib.Path("data/code").mkdir(parents=True)
text = json.dumps(stage_fingerprint("stages/prepare.py"), indent=2, sort_keys=True)
pathlib.Path("data/code/prepare.json").write_text(text + "\\n")
"""
PREPARE = """
import pathlib, sys
sys.path.insert(0, "src")
from aria_dvc.words import upper
pathlib.Path("data/turns").mkdir(parents=True, exist_ok=True)
pathlib.Path(f"data/turns/{sys.argv[1]}.txt").write_text(upper(pathlib.Path("raw.txt").read_text()))
"""
WORDS = 'def upper(text):\n    """Loud."""\n    return text.upper()\n'


def warned(*words: str) -> str:
    """A health.json with these warnings."""
    findings = [{"level": "warning", "about": "chess", "words": said} for said in words]
    return json.dumps({"closing": [], "findings": findings})


def won(wins: int, games: int) -> dict[str, Any]:
    return rate(np.arange(games) < wins)


class Project:
    """A repository with three stages of a few milliseconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        logging.getLogger("dvc").setLevel(logging.ERROR)
        with Repo.init(str(folder)):
            pass
        self.write("dvc.yaml", DVC_YAML)
        self.write(".gitignore", "/data/code\n/data/turns\n__pycache__/\n")
        self.write(".dvcignore", "__pycache__\n")
        self.write("params.yaml", "k: 2\nseed: 0\n")
        self.write("raw.txt", "hello\n")
        self.write("stages/code.py", CODE_STAGE)
        self.write("stages/prepare.py", PREPARE)
        self.write("src/aria_dvc/__init__.py", "")
        self.write("src/aria_dvc/words.py", WORDS)
        self.write("src/aria_dvc/fingerprints.py", FINGERPRINTS.read_text())
        self.figures({"chess": {"all": {"aria": won(20, 64)}}}, selected_k=8)
        self.write("given/plots/evaluation.png", "one")
        self.repro("start")

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def figures(self, evaluation: Any, **credit: Any) -> None:
        self.write("given/details/evaluation.json", json.dumps(evaluation))
        self.write("given/credit.json", json.dumps({"chess": credit}))

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        command = ["git", *identity, *arguments]
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout

    def repro(self, message: str) -> None:
        with Repo(str(self.folder)) as repo:
            repo.reproduce()
        self.commit(message)

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def review(self, base: str = "main") -> Review:
        return gather(commits(base))

    def text(self, base: str = "main") -> str:
        return comment(self.review(base), None)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reviewed")
    before = Path.cwd()
    os.chdir(folder)
    try:
        Project(folder)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def project(template, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    shutil.copytree(template, folder)
    monkeypatch.chdir(folder)
    for variable in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(variable, raising=False)
    copied = Project.__new__(Project)
    copied.folder = folder
    copied.git("switch", "-q", "-c", "branch")
    return copied


def test_a_review_tells_all_that_moved(project):
    project.write("params.yaml", "k: 3\nseed: 0\n")
    evaluation = {"chess": {"all": {"aria": won(50, 64), "vanilla": won(21, 64)}}}
    project.figures(evaluation, selected_k=9)
    project.write("given/plots/evaluation.png", "two")
    project.write("given/plots/more.svg", "<svg/>")
    project.write("given/details/health.json", warned("no success in 24 games"))
    project.repro("k is 3")
    told = project.review()
    text = comment(told, "https://example.org/a/b")
    assert comment(told, "https://example.org/a/b/") == text
    assert [name(change.place) for change in moved(told.estimates)] == ["chess: aria"]
    assert "1 of 1 figures moved beyond their interval" in text
    numbers = "0.31 (0.21 to 0.43) | 0.78 (0.67 to 0.86) | +0.47 (+0.30 to +0.60)"
    assert f"| chess: aria | {numbers} |" in text
    assert "| chess: vanilla | none | 0.33 (0.23 to 0.45) | none |" in text
    assert "- credit: chess.selected_k: `8` to `9`" in text
    assert "- k: `2` to `3`" in text
    assert "seed" not in text
    assert "- prepare (2): params; same outputs" in text
    assert "- report: inputs; other outputs" in text
    assert "- **new**: chess: no success in 24 games" in text
    assert "**dvc.lock is fresh**.\n" in text
    head, base = told.commits.head, told.commits.base
    for commit in (head, base):
        link = f"https://example.org/a/b/blob/{commit}/metrics/plots/evaluation.png?raw=true"
        assert link in text
    assert f'| none | <a href="https://example.org/a/b/blob/{head}/metrics/plots/more.svg">' in text
    assert len(text.splitlines()) <= MOST_LINES


def test_compared_is_with_the_commit_where_the_branch_began(project):
    project.git("switch", "-q", "main")
    project.write("params.yaml", "k: 7\nseed: 0\n")
    project.commit("main goes on")
    project.git("switch", "-q", "branch")
    project.write("raw.txt", "hi\n")
    project.repro("other words")
    told = project.review()
    assert told.params == []
    assert told.stages == [
        Ran("prepare", ("chess", "go"), ("inputs",), True),
        Ran("report", (), ("inputs",), False),
    ]


def test_a_known_warning_is_not_new_and_nothing_moved(project):
    project.write("given/details/health.json", warned("few games"))
    project.repro("a warning")
    project.git("tag", "there")
    text = project.text("there")
    assert "- chess: few games" in text
    assert "**new**" not in text
    assert "0 of 1 figures moved beyond their interval.\n" in text
    assert "###" not in text.partition("### Figures")[2]


def test_the_lock_is_fresh_without_any_data(project):
    project.write("raw.txt", "hi\n")
    project.repro("other words")
    for name_ in ("data", ".dvc/cache", ".dvc/tmp"):
        shutil.rmtree(project.folder / name_)
    found = freshness(project.folder)
    assert (found.stale, found.code_only, found.absent) == ({}, False, 3)
    assert "Outputs of 3 stages are not here" in project.text()


@pytest.mark.parametrize("gone", ["*.txt", "go.txt"])
def test_the_lock_is_fresh_where_a_folder_of_outputs_lacks_some(project, gone):
    """A folder that Git keeps by a file is there in every clone, and without its outputs."""
    for file in (project.folder / "data/turns").glob(gone):
        file.unlink()
    assert freshness(project.folder).stale == {}
    project.write("data/turns/chess.txt", "by hand\n")
    changed = "data/turns/chess.txt was changed by hand"
    assert freshness(project.folder).stale == {"prepare@chess": (changed,)}


@pytest.mark.parametrize(
    ("file", "text", "stale"),
    [
        ("params.yaml", "k: 5\n", {"prepare@chess": ("params",), "prepare@go": ("params",)}),
        ("raw.txt", "hi\n", {"prepare@chess": ("raw.txt",), "prepare@go": ("raw.txt",)}),
        (
            "metrics/credit.json",
            "{}",
            {"report": ("metrics/credit.json was changed by hand",)},
        ),
        (
            "dvc.yaml",
            DVC_YAML.replace("cp -r", "cp -R"),
            {"report": ("command",)},
        ),
        (
            "dvc.yaml",
            DVC_YAML.replace("[chess, go]", "[chess, go, shogi]"),
            {"prepare@shogi": ("never run",)},
        ),
    ],
)
def test_what_makes_the_lock_stale_is_named(project, file, text, stale):
    project.write(file, text)
    assert freshness(project.folder).stale == stale
    told = project.text()
    assert "**dvc.lock is stale**" in told
    assert "Edits that are in no commit yet" in told


def test_an_edit_of_code_is_judged_by_what_stages_do(project):
    project.write("src/aria_dvc/words.py", WORDS.replace("Loud.", "Louder."))
    project.write("src/aria_dvc/unused.py", "x = 1\n")
    found = freshness(project.folder)
    assert (found.stale, found.code_only) == ({}, True)
    assert "fresh** but for the stage `code`" in project.text()
    project.write("src/aria_dvc/words.py", WORDS.replace("upper()", "lower()"))
    found = freshness(project.folder)
    assert found.stale == {"prepare@chess": ("code",), "prepare@go": ("code",)}
    assert not found.code_only
    assert "would run prepare (code)." in project.text()
    project.write("src/aria_dvc/words.py", "def upper(")
    with pytest.raises(AriaError, match="the code of the stages cannot be read"):
        freshness(project.folder)


def test_a_review_is_never_longer_than_40_lines(project):
    many = {f"game{n}": {"all": {f"v{m}": won(50 + m, 64) for m in range(9)}} for n in range(9)}
    project.figures(many, **{f"number{n}": n for n in range(40)})
    project.write("params.yaml", "k: 3\n" + "".join(f"knob{n}: {n}\n" for n in range(40)))
    project.write("given/details/health.json", warned(*(f"warning {n}" for n in range(40))))
    for n in range(40):
        project.write(f"given/plots/{n:02}.png", "x")
    project.repro("much")
    told = project.review()
    for address in (None, "https://example.org/a/b"):
        text = comment(told, address)
        assert len(text.splitlines()) <= MOST_LINES
        shown = sum(line.startswith("| game") for line in text.splitlines())
        assert f"| {81 - shown} more | | | |" in text
        pictures = sum("png" in line for line in text.splitlines())
        assert f"{40 - pictures} more" in text.partition("### Pictures")[2]
        assert "knob0: none to `0`" in text
        assert f"; {41 + 1 - 15} more" in text.partition("### Params")[2]


def test_the_command_writes_a_file_and_only_its_own(project, capsys):
    assert main(["review", "main"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(MARK)
    for _ in range(2):
        assert main(["review", "main", "--out", "review.md"]) == 0
    assert (project.folder / "review.md").read_text() == printed
    assert main(["review", "main", "--out", "params.yaml"]) == 1
    assert "is not what this command writes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("base", "said"),
    [("nobody", "nobody is no commit here"), ("--help-me", "no commit here")],
)
def test_a_base_that_is_none(project, base, said):
    with pytest.raises(AriaError, match=said):
        commits(base)


def test_a_history_that_is_not_shared(project):
    project.git("switch", "-q", "--orphan", "alone")
    project.write("a", "a")
    project.commit("alone")
    with pytest.raises(AriaError, match="main is no commit here with which"):
        commits("main")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("metrics/details/evaluation.json", "{", "metrics/details/evaluation.json of commit"),
        ("metrics/details/health.json", '{"a": 1}', "has no warnings"),
        ("metrics/details/health.json", "[1]", "has no warnings"),
        ("dvc.lock", "[1", "dvc.lock of .* is no lock file"),
    ],
)
def test_a_broken_file_of_a_commit_is_named(project, file, text, said):
    project.write(file, text)
    project.commit("broken")
    with pytest.raises(AriaError, match=said):
        project.review()


def test_outside_a_repository(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["review", "main"]) == 1
    assert "run in a clone of the project" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@example.org:a/b.git", "https://example.org/a/b"),
        ("org-7@example.org:a/b", "https://example.org/a/b"),
        ("https://me:key@example.org/a/b", "https://example.org/a/b"),
        ("https://example.org/a/b.git/", "https://example.org/a/b"),
        ("https://example.org:8443/a/b.git", "https://example.org:8443/a/b"),
        ("ssh://git@example.org/a/b.git", "https://example.org/a/b"),
        ("ssh://git@example.org:2222/a/b.git", "https://example.org/a/b"),
        ("/srv/a/b.git", None),
    ],
)
def test_the_address_is_the_remotes_and_holds_no_key(project, monkeypatch, remote, address):
    assert web_address() is None
    project.git("remote", "add", "origin", remote)
    assert web_address() == address
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "c/d")
    assert web_address() == "https://github.example/c/d"


# The comment of a pull request

POSTING = """
const calls = [];
const note = name => given => calls.push([name, given]);
const github = {
  paginate: async () => COMMENTS,
  rest: {issues: {updateComment: note('update'), createComment: note('create')}},
};
const context = {repo: {owner: 'o', repo: 'r'}, issue: {number: 7}};
(async () => { SCRIPT; console.log(JSON.stringify(calls)); })();
"""


@pytest.mark.skipif(not shutil.which("node"), reason="the workflow's script needs node")
@pytest.mark.parametrize(
    ("comments", "call"),
    [
        ([], ["create", {"issue_number": 7}]),
        ([("User", MARK), ("Bot", "other")], ["create", {"issue_number": 7}]),
        ([("Bot", f"{MARK}\nold"), ("Bot", "later")], ["update", {"comment_id": 0}]),
    ],
)
def test_the_workflow_keeps_one_comment(tmp_path, comments, call):
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["comment"]["steps"]
    there = [
        {"id": number, "user": {"type": kind}, "body": body}
        for number, (kind, body) in enumerate(comments)
    ]
    source = POSTING.replace("SCRIPT", steps[-1]["with"]["script"])
    (tmp_path / "review.md").write_text(f"{MARK}\nnew\n")
    done = subprocess.run(
        ["node", "-e", source.replace("COMMENTS", json.dumps(there))],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    name_, given = call
    where = {"owner": "o", "repo": "r", "body": f"{MARK}\nnew\n", **given}
    assert json.loads(done.stdout) == [[name_, where]]


# Figures


def estimate(wins: int, games: int) -> Estimate:
    found = won(wins, games)
    return Estimate(found["rate"], found["low"], found["high"])


def test_the_difference_of_two_rates_has_newcombes_interval():
    """Example (a) of Newcombe 1998, method 10: 56/70 against 48/80."""
    found = Change(("a",), estimate(48, 80), estimate(56, 70)).difference
    assert found is not None
    assert [round(x, 4) for x in (found.value, found.low, found.high)] == [0.2, 0.0524, 0.3339]


def test_what_did_not_change_rarely_moves():
    rng = np.random.default_rng(0)
    wins = rng.binomial(64, 0.4, size=(2000, 2))
    pairs = [(estimate(one, 64), estimate(other, 64)) for one, other in wins]
    share = np.mean([Change((), one, other).is_moved for one, other in pairs])
    outside = np.mean([not one.low <= other.value <= one.high for one, other in pairs])
    assert share < 0.07
    assert outside > 0.13  # what a look at the old interval alone would call news


def test_figures_are_found_wherever_they_stand():
    here = {"value": 1, "low": 0.5, "high": 2}
    found = changes(
        {"a": {"minus_vanilla": {"x": {"mean": 0.1, "low": None, "high": None}}}, "b": [here]},
        {"a": {"by_role": {"me": {"x": {**here, "flag": True}}}, "minus_vanilla": {"x": here}}},
    )
    assert [name(change.place) for change in found] == ["a: x minus vanilla", "a, me: x"]
    assert found[0].before is None
    assert by_chance(found) == 0


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("bargaining all aria", "bargaining: aria"),
        ("bargaining by_role alice aria", "bargaining, alice: aria"),
        ("bargaining winnable minus_vanilla aria", "bargaining, winnable: aria minus vanilla"),
        ("bargaining by_role alice aria means utility", "bargaining, alice, aria: utility"),
        ("bargaining differences dpo by_role alice aria", "bargaining, alice: aria minus dpo"),
        ("differences", "differences"),
        ("all", "all"),
    ],
)
def test_names_of_figures(place, told):
    assert name(tuple(place.split())) == told


def test_a_figure_that_repeats_another_is_told_once():
    one, other = won(1, 9), won(9, 9)
    run = {"a": {"all": {"x": one}, "winnable": {"all": {"x": one}}}}
    later = {"a": {"all": {"x": other}, "winnable": {"all": {"x": other}}}}
    assert [change.place for change in changes(run, later)] == [("a", "all", "x")]


def test_a_difference_to_vanilla_is_told_once():
    def run(wins):
        gain = {"mean": wins / 9, "low": wins / 9 - 0.1, "high": wins / 9 + 0.1}
        of = {"all": {"x": won(wins, 9)}, "minus_vanilla": {"x": gain}}
        return {"a": {**of, "differences": {"vanilla": {"all": {"x": gain}}}}}

    found = [name(change.place) for change in changes(run(1), run(9))]
    assert found == ["a: x", "a: x minus vanilla"]


def test_roles_and_games_that_moved_alike_are_all_told():
    def run(wins):
        roles = {role: {"x": won(wins, 9)} for role in ("alice", "bob")}
        two = {"all": {"x": won(2 * wins, 18)}, "by_role": roles}
        one = {"all": {"x": won(wins, 9)}, "by_role": {"agent": {"x": won(wins, 9)}}}
        return {"a": two, "b": one, "credit": {log: {"skill": won(wins, 9)} for log in ("y", "z")}}

    found = [name(change.place) for change in changes(run(1), run(8))]
    assert found == [
        "a: x", "b: x", "credit, y: skill", "credit, z: skill", "a, alice: x", "a, bob: x",
    ]  # fmt: skip


def test_two_policies_that_moved_alike_are_both_told():
    runs = [{"a": {"all": {"x": won(wins, 9), "vanilla": won(wins, 9)}}} for wins in (1, 9)]
    assert [name(change.place) for change in moved(changes(*runs))] == ["a: vanilla", "a: x"]


# Warnings


def test_findings_are_told_as_far_as_they_are_warnings():
    findings = [
        {"level": "warning", "about": "chess", "words": "no success in 24 games", "try": "more"},
        {"level": "note", "about": "chess", "words": "few games"},
    ]
    found = warnings_in({"closing": ["bye"], "findings": findings}, "health.json")
    assert found == ["chess: no success in 24 games"]


# Stages


def entry(**changed: Any) -> dict[str, Any]:
    deps = [{"path": "data/code/a.json", "md5": "1"}, {"path": "raw", "md5": "1"}]
    return {"cmd": "do", "deps": deps, "outs": [{"path": "out", "md5": "1"}], **changed}


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        ({"deps": [{"path": "data/code/a.json", "md5": "2"}, {"path": "raw", "md5": "1"}]}, "code"),
        ({"deps": [{"path": "data/code/a.json", "md5": "1"}]}, "inputs"),
        ({"params": {"params.yaml": {"k": 2}}}, "params"),
        ({"cmd": "do more"}, "command"),
        ({"outs": [{"path": "out", "md5": "2"}]}, "nothing changed for it"),
    ],
)
def test_why_a_stage_ran(changed, because):
    (found,) = ran({"a": entry()}, {"a": entry(**changed)})
    assert found == Ran("a", (), (because,), "outs" in changed)


def test_new_and_removed_stages():
    found = ran({"a": entry()}, {"b@x": entry(), "b@y": entry()})
    assert found == [Ran("b", ("x", "y"), ("new",), True), Ran("a", (), ("removed",), True)]
    assert ran({"a": entry()}, {"a": entry()}) == []
    assert read_lock(None, "nowhere") == {}


# Markdown


def test_texts_of_a_branch_are_only_text():
    told = plain('a|b <img src=x> `c` [d](e) @all *f*\n\x1b[31m &lt; "')
    assert "\n" not in told
    for mark in ("|b", "<img", " `c", "[d]", "@all", "*f", "\x1b"):
        assert not any(told[i:].startswith(mark) and told[i - 1] != "\\" for i in range(len(told)))
    assert plain(r"\[x\](u) \`c\`") == r"\\\[x\\\](u) \\\`c\\\`"
    assert code("`|`") == "`'/'`"
    assert code("x" * 99) == f"`{'x' * 59}…`"
    assert code(None) == "none"
    assert code("") == '`""`'
