"""The tutorial's commands, as they stand on the page: they parse, and a new user can run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from agent_logs import call
from dag import ROOT, Workspace
from dvc.utils.hydra import apply_overrides
from learning_tiny import save_tiny_base

from aria_dvc.__main__ import make_parser
from aria_dvc.params import load_params

PAGE = ROOT / "docs" / "tutorial.md"
WRITING = ("--out", "--quality", "--json", "--html")
PARTS = {"trajectories": 7, "dialogues": 3}  # the log that each part is about: commands at most


def blocks(part: str) -> list[str]:
    """The shell blocks of the part of the page that is about a log, one command each."""
    found = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    sides: dict[str, list[str]] = {name: [] for name in PARTS}
    at = next(iter(PARTS))
    for block in found:
        at = next((name for name in PARTS if f" {name}.json" in block), at)
        sides[at].append(block)
    return sides[part]


def words(block: str) -> list[str]:
    """The words of a block's command; line ends behind a backslash are blanks."""
    return shlex.split(block.replace("\\\n", " "), comments=True)


def experiment() -> list[str]:
    """The words of the page's `dvc exp run`."""
    (block,) = [b for b in blocks("trajectories") if b.startswith("dvc exp run")]
    return words(block)


def overrides() -> list[str]:
    said = experiment()
    return [said[i + 1] for i, word in enumerate(said) if word == "-S"]


@pytest.mark.parametrize(("part", "most"), PARTS.items())
def test_a_part_takes_few_commands_and_the_parser_takes_them(part, most):
    found = blocks(part)
    assert 0 < len(found) <= most
    for block in found:
        assert len(block.replace("\\\n", " ").strip().splitlines()) == 1, "a command a block"
        if (said := words(block))[0] == "aria":
            assert make_parser().parse_args(said[1:]).command == said[1]


def test_every_knob_exists_and_the_settings_fit_together(tmp_path):
    params = tmp_path / "params.yaml"
    shutil.copy(ROOT / "params.yaml", params)
    apply_overrides(params, overrides())
    loaded = load_params(params)
    (target,) = re.findall(r"policy@(\w+)-(\w+)", " ".join(experiment()))
    assert target[0] in loaded.variants
    assert loaded.categories == [target[1]]
    (log,) = loaded.logs_of(target[1])
    assert f"data/policy/{target[1]}/{target[0]}/offline" in "".join(blocks("trajectories"))
    assert loaded.logs[log].source in "".join(blocks("trajectories"))


def test_every_file_that_is_read_was_written_or_brought():
    """No command of the page reads what only a later one writes."""
    for part in PARTS:
        there = {f"{part}.json"}
        for block in blocks(part):
            said = words(block)
            read = {word for word in said if word.endswith((".json", ".jsonl", ".parquet"))}
            made = {said[i + 1] for i, word in enumerate(said) if word in WRITING}
            if said[0] == "cp":
                made |= {said[-1]}
            read -= made | {word for word in read if word.startswith("data/policy/")}
            assert read <= there, f"{read - there} is read before it is written"
            there |= made


def trajectories() -> list[dict[str, Any]]:
    """Three trials of six tasks in tau-bench's layout; who looks it up before it acts wins."""
    return [trajectory(task, trial) for task in range(6) for trial in range(3)]


def trajectory(task: int, trial: int) -> dict[str, Any]:
    city = ("Oslo", "Rome", "Lima", "Kyiv", "Bonn", "Cork")[task]
    look = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("search", f'{{"to":"{city}"}}')],
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "search", "content": '["HAT023"]'},
    ]
    chat = [
        {"role": "system", "content": "You are an airline agent. Look flights up, then book."},
        {"role": "user", "content": f"I want to fly to {city}."},
        *(look if trial else []),
        {"role": "assistant", "content": f"I have booked {city} for you."},
        {"role": "user", "content": "Thanks. ###STOP###"},
    ]
    reward = float(trial > 0 and task != 5)
    return {"task_id": task, "trial": trial, "reward": reward, "info": {}, "traj": chat}


def dialogues() -> list[dict[str, Any]]:
    """Twelve dialogues in CaSiNo's layout; who asks for much gets much."""
    return [
        {
            "chat_logs": [
                {"id": "mturk_agent_1", "text": f"I would like {wanted} firewood."},
                {"id": "mturk_agent_2", "text": f"Then I take {3 - wanted} and the water."},
                {"id": "mturk_agent_1", "text": "Submit-Deal"},
                {"id": "mturk_agent_2", "text": "Accept-Deal"},
            ],
            "participant_info": {
                "mturk_agent_1": {"outcomes": {"points_scored": 10 + 5 * wanted}},
                "mturk_agent_2": {"outcomes": {"points_scored": 25 - 5 * wanted}},
            },
        }
        for wanted in (0, 1, 2, 3) * 3
    ]


@pytest.fixture
def walk(tmp_path: Path) -> Workspace:
    """A clone with a tiny model and the two logs beside it, and the command `aria` of its code."""
    clone = tmp_path / "clone"
    clone.mkdir()
    workspace = Workspace.copy_of_project(clone)
    save_tiny_base(clone / "models/language/tiny")
    workspace.run("dvc", "add", "-q", "models/language/tiny")
    workspace.set_params({"base_model.source": "models/language/tiny", "policy.lora.rank": 2})
    workspace.commit("a tiny model")
    for name, log in (("trajectories", trajectories()), ("dialogues", dialogues())):
        (clone / f"{name}.json").write_text(json.dumps(log))
    script = tmp_path / "bin" / "aria"
    script.parent.mkdir()
    python = shlex.join(["exec", "env", f"PYTHONPATH={clone / 'src'}", sys.executable])
    script.write_text(f'#!/bin/sh\n{python} -m aria_dvc "$@"\n')
    script.chmod(0o755)
    path = f"{script.parent}{os.pathsep}{workspace.env['PATH']}"
    workspace.env |= {"PATH": path, "ARIA_CACHE": str(tmp_path / "cache")}
    return workspace


@pytest.mark.slow
def test_a_new_user_comes_from_trajectories_to_an_adapter(walk):
    for block in blocks("trajectories"):
        walk.run("bash", "-euc", block)
    (metrics,) = walk.folder.glob("data/policy/*/*/offline/metrics.json")
    assert json.loads(metrics.read_text())["actions"] > 0
    assert (walk.folder / "adapter/adapter_model.safetensors").is_file()
    assert "airline" in (walk.folder / "adapter/README.md").read_text()


@pytest.mark.slow
def test_a_new_user_comes_from_dialogues_to_a_trainers_file(walk):
    said = [walk.run("bash", "-euc", block) for block in blocks("dialogues")]
    (table,) = [pd.read_parquet(file) for file in walk.folder.glob("*.parquet")]
    assert f"({len(table)} actions of 12 episodes)" in said[0]
    (folder,) = [words(block)[-1] for block in blocks("dialogues")[-1:]]
    records = [
        json.loads(line) for file in (walk.folder / folder).glob("[!.]*") for line in file.open()
    ]
    assert {record["label"] for record in records} == {True, False}
