"""What the docs tell to type: every fenced command is taken by the parser that it is meant for.

Commands that cost little are run as they stand, on a small log with the names that the pages use.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import yaml
from dvc.cli import parse_args
from dvc.utils.hydra import apply_overrides
from tests.test_credit_cli import write_log

import aria_dvc
from aria_dvc.__main__ import main, make_parser
from aria_dvc.params import load_params

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "benchmarks/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LANGUAGES = {"sh", "python", "yaml", "json", "text", "math", "mermaid"}
DONE = {"&&", "||", "|", ";", "&"}  # what ends a command within a line
FREE = {"cat", "cp", "xdg-open"}  # whose arguments are only files
RUN = {"audit", "credit", "export", "fit", "read"}  # need neither models nor a finished run
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


class Fence(NamedTuple):
    """A fenced block: `page:line` of its first line, what it says it is, and its lines."""

    place: str
    language: str
    text: str


def fences() -> Iterator[Fence]:
    for page in PAGES:
        name, opened, lines = page.relative_to(ROOT).as_posix(), None, []
        for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
            mark = line.strip().startswith("```")
            if mark and opened is None:
                opened, lines = (f"{name}:{number}", line.strip()[3:]), []
            elif mark:
                yield Fence(*opened, "\n".join(lines) + "\n")
                opened = None
            else:
                lines.append(line)
        assert opened is None, f"{opened[0]}: the block has no end"


FENCES = list(fences())


def split(text: str) -> list[list[str]]:
    """The words of each command of a shell block, without comments."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
        lexer.whitespace_split = True
        commands.append([])
        for word in lexer:
            if word in DONE:
                commands.append([])
            else:
                commands[-1].append(word)
    return [command for command in commands if command]


def of(language: str) -> list[Fence]:
    return [fence for fence in FENCES if fence.language == language]


COMMANDS = [(fence.place, words) for fence in of("sh") for words in split(fence.text)]
SPANS = [
    (page.relative_to(ROOT).as_posix(), span)
    for page in PAGES
    for span in re.findall(r"`((?:aria|make|python benchmarks)[ /][^`]+)`", page.read_text("utf-8"))
]


def shown(found: list) -> list[str]:
    return [f"{place} {' '.join(words)}" for place, words in found]


# Parsers of the programs


def aria(words: list[str]) -> None:
    make_parser().parse_args(words)


def dvc(words: list[str]) -> None:
    """DVC's own parser; what `-S` changes must leave settings that fit together."""
    taken = parse_args(words)
    if changes := getattr(taken, "set_param", None):
        fitting(changes)


def fitting(changes: list[str]) -> None:
    params = Path("params.yaml")  # the test's folder
    shutil.copy(ROOT / params, params)
    apply_overrides(params, changes)
    load_params(params)


def make(words: list[str]) -> None:
    """Make itself, which prints what it would do; a variable that it never reads is a mistake."""
    done = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in words:
        name, given, _ = word.partition("=")
        assert not given or f"$({name})" in MAKEFILE, f"the Makefile reads no {name}"


class Parsed(Exception):
    """A script came as far as its arguments."""


def python(words: list[str]) -> None:
    """The script itself, up to where it has read its arguments."""
    taken = argparse.ArgumentParser.parse_args

    def stop(parser, arguments=None, namespace=None):
        taken(parser, arguments, namespace)
        raise Parsed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        patch.setattr(sys, "argv", words)
        patch.syspath_prepend(str(ROOT / words[0]).rpartition("/")[0])
        with pytest.raises(Parsed):
            runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def pip(words: list[str]) -> None:
    """Only this package is installed by hand, with extras that it has."""
    verb, what = words
    assert verb == "install"
    named = re.fullmatch(r"\.(?:\[(.+)\])?", what)
    assert named, f"{what} is not this package"
    assert set((named[1] or "").split(",")) <= {"", *EXTRAS}


def hf(words: list[str]) -> None:
    from huggingface_hub.cli.hf import app

    context = app.make_context("hf", list(words), resilient_parsing=False)
    _, command, rest = app.resolve_command(context, words)
    command.make_context(words[0], rest, parent=context)


def free(_: list[str]) -> None:
    """Nothing to parse."""


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "aria": aria,
    "dvc": dvc,
    "hf": hf,
    "make": make,
    "pip": pip,
    "python": python,
    **dict.fromkeys(FREE, free),
}


def check(words: list[str]) -> None:
    """Fail where the program is unknown or refuses its arguments."""
    assert words[0] in PROGRAMS, f"{words[0]}: say in PROGRAMS how it is checked"
    try:
        PROGRAMS[words[0]](words[1:])
    except SystemExit as ended:
        pytest.fail(f"{words[0]} refuses {words[1:]} ({ended})")


# The tests


def test_every_block_says_what_it_is():
    wrong = [fence.place for fence in FENCES if fence.language not in LANGUAGES]
    assert not wrong, f"```sh, ```text, ...: one of {sorted(LANGUAGES)}"


@pytest.mark.parametrize(("place", "words"), COMMANDS, ids=shown(COMMANDS))
def test_a_command_is_taken_by_its_parser(place, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(words)


@pytest.mark.parametrize(
    "line",
    [
        "aria credti LOG --out x.parquet",
        "aria credit LOG --out x.parquet --no-such",
        "dvc exp run -S no_such_knob=1",
        "dvc repro --no-such",
        "make no-such",
        "make review NO_SUCH=1",
        "python benchmarks/household.py --no-such",
        "pip install torch",
        "hf upload me/base data --no-such",
        "curl example.org",
    ],
)
def test_a_mistake_would_be_seen(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((Exception, pytest.fail.Exception)):
        check(shlex.split(line))


def test_commands_within_sentences_exist():
    """`aria WORD --option`, `make target`, `python benchmarks/...`, without what must be given."""
    commands = below(make_parser())
    for place, span in SPANS:
        words = span.replace("[", " ").replace("]", " ").split()
        options = [word for word in words if word.startswith("--")]
        if words[0] == "make":
            target = re.escape(words[1].replace(".venv", "$(VENV)"))
            assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), (place, span)
        elif words[0] == "python":
            text = (ROOT / words[1]).read_text("utf-8")
            assert all(f'"{option}"' in text for option in options), (place, span)
        elif words[1] != "--help":
            assert set(options) <= set(options_of(commands[words[1]])), (place, span)


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser by their names."""
    found = (a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(next(found, {}))


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Options of a command, and of its own commands."""
    own = list(parser._option_string_actions)
    return own + [option for each in below(parser).values() for option in options_of(each)]


@pytest.mark.parametrize("fence", of("python") + of("json") + of("yaml"), ids=lambda f: f.place)
def test_code_and_data_can_be_read(fence):
    if fence.language == "json":
        json.loads(fence.text)
    elif fence.language == "yaml":
        yaml.safe_load(fence.text)
    else:
        for node in ast.walk(ast.parse(fence.text)):
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                assert find_spec(node.module), f"{fence.place}: no {node.module}"


def cheap() -> list[tuple[str, list[list[str]]]]:
    """By page, the commands `aria ...` that need neither a model nor a finished run."""
    found: dict[str, list[list[str]]] = {}
    for place, words in COMMANDS:
        if words[0] == "aria" and words[1] in RUN:
            found.setdefault(place.partition(":")[0], []).append(words[1:])
    return list(found.items())


@pytest.mark.parametrize(("page", "commands"), cheap(), ids=lambda part: str(part)[:20])
def test_the_credit_of_a_log_comes_out_as_the_page_says(page, commands, tmp_path, monkeypatch):
    """In the page's order, each reading what those before it wrote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path / "cache"))
    for name in {word for words in commands for word in words if is_log(word)}:
        write_agent_log(Path(name))
    for words in commands:
        assert main(words) == 0, f"{page}: aria {' '.join(words)}"
        written = [words[i + 1] for i, word in enumerate(words) if word in ("--out", "--html")]
        assert all(Path(name).exists() for name in written)


def is_log(word: str) -> bool:
    return word == "LOG" or (word.endswith(".json") and word != "quality.json")


def write_agent_log(path: Path) -> None:
    """24 dialogues of an assistant and a customer, with vectors, and a credit under COLUMN."""
    write_log(path, 24, seed=0)
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for entry in entries:
        entry["rewards"] = {"assistant": entry["rewards"]["buyer"]}
        for message in entry["messages"]:
            message["role"] = {"buyer": "assistant", "shop": "customer"}[message["role"]]
            message["COLUMN"] = 0.5 * len(message["content"])
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")


def test_the_notebook_lines_of_the_readme_run(tmp_path, monkeypatch):
    (fence,) = [fence for fence in of("python") if fence.place.startswith("README.md")]
    write_agent_log(tmp_path / "log.jsonl")
    names = {"log": str(tmp_path / "log.jsonl"), "aria_dvc": aria_dvc}
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path / "cache"))
    exec(compile(fence.text.replace("k=20", "k=3"), fence.place, "exec"), names)
    assert isinstance(names["credit"], pd.DataFrame)
    assert len(names["intentions"]) == 3
