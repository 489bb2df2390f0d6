"""`make chaos`: what it plans, what counts as equal, what it tells; and all of it once, small."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from scripts.chaos.__main__ import Results
from scripts.chaos.comparing import compared, is_held, left_over, sums_of
from scripts.chaos.faulty import answer
from scripts.chaos.killing import planned
from scripts.chaos.place import Stage
from scripts.chaos.table import markdown, notes, problems, rows_of

ROOT = Path(__file__).parent.parent
STAGES = [Stage("embed@a", "X=1 python e.py a", ("e",), 3.0), Stage("online@a", "", ("o",), 9.0)]


def test_kills_are_spread_by_time_and_are_the_same_for_a_seed():
    kills = [planned(number, 0, STAGES) for number in range(200)]
    assert kills == [planned(number, 0, STAGES) for number in range(200)]
    assert kills != [planned(number, 1, STAGES) for number in range(200)]
    counts = Counter(kill.stage.name for kill in kills)
    assert abs(counts["online@a"] - 150) <= 2
    assert Counter(kill.way for kill in kills).keys() == {"stage", "script", "whole"}
    assert {kill.alone for kill in kills} == {True, False}
    assert all(0 <= kill.moment <= 1.2 * 12 for kill in kills)
    assert STAGES[0].script == ["python", "e.py", "a"]
    assert STAGES[0].kind == "embed"


def written(folder, weight=1.0, loss=0.5, seconds=1.0):
    folder.mkdir()
    save_file({"w": np.array([1.0, weight])}, folder / "adapter_model.safetensors")
    (folder / "metrics.json").write_text(json.dumps({"loss": loss, "play_seconds": seconds}))
    (folder / "online.csv").write_text(f"loss,train_seconds\n{loss},{seconds}\n")
    return folder


def test_after_aggregate_weights_count_and_times_do_not(tmp_path):
    one = written(tmp_path / "one")
    near = written(tmp_path / "near", weight=1 + 1e-9, seconds=2.0)
    assert compared(one, near, "online").wrong == []
    assert compared(one, near, "online").largest == pytest.approx(1e-9, rel=1e-3)
    assert len(compared(one, near, "online").bytes_differ) == 3
    assert len(compared(one, near, "collect").wrong) == 3
    far = written(tmp_path / "far", weight=1 + 1e-3, loss=0.51)
    assert len(compared(one, far, "online").wrong) == 3
    (near / "more").touch()
    assert compared(one, near, "online").wrong == ["near/more is not in both"]
    assert compared(one, tmp_path / "none", "online").wrong


def test_what_a_kill_leaves_is_found_and_a_changed_input_too(tmp_path):
    (tmp_path / "a" / ".x.0-0.aside").mkdir(parents=True)
    (tmp_path / "a" / "lock").touch()
    assert left_over([tmp_path]) == [str(tmp_path / "a" / ".x.0-0.aside")]
    assert not is_held(tmp_path / "a" / "lock")
    (tmp_path / "in").write_text("1")
    (tmp_path / "out").write_text("1")
    before = sums_of([tmp_path], but=[tmp_path / "out"])
    (tmp_path / "out").write_text("2")
    assert sums_of([tmp_path], but=[tmp_path / "out"]) == before
    (tmp_path / "in").write_text("2")
    assert sums_of([tmp_path], but=[tmp_path / "out"]) != before


def test_what_was_found_is_kept_and_told(tmp_path):
    found = {
        "stage": "online@a",
        "way": "stage",
        "killed": True,
        "equal": True,
        "same_bytes": True,
        "largest": 0.0,
        "left": [],
        "seconds": 2.0,
    }
    results = Results(tmp_path / "r.jsonl")
    results.once("kill", 0, lambda: found)
    results.once("kill", 0, lambda: pytest.fail("found before"))
    results.once("kill", 1, lambda: {**found, "equal": False, "left": ["x"], "problem": "p"})
    parts = Results(tmp_path / "r.jsonl").parts()
    assert "| SIGKILL in `online@a` | 2 | 1 | 1 | 2.0 |" in markdown(rows_of(parts))
    assert "2 of stage" in notes(parts)
    assert problems(parts) == ["kill 1 (online@a stage): not equal, left x: p"]


def test_the_servers_answer_follows_from_the_messages_alone():
    bodies = [{"messages": [{"content": f"Sum: $10,000. {n}"}], "seed": n} for n in range(50)]
    texts = {answer(body) for body in bodies}
    assert texts == {"I accept."} | {f"I keep {n}." for n in (4000, 5000, 6000, 7000)}
    assert [answer({**body, "seed": 0}) for body in bodies] == [answer(body) for body in bodies]


@pytest.mark.slow
def test_all_of_it_small(tmp_path):
    command = [sys.executable, "-m", "scripts.chaos", "--folder", str(tmp_path), "--seed", "1"]
    sizes = ["--kills", "2", "--games", "40", "--disks", "2", "--out", str(tmp_path / "table")]
    environment = {**os.environ, "PYTHONPATH": f"src{os.pathsep}tests"}
    done = subprocess.run(
        [*command, *sizes], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SIGKILL, all stages | 2 | 2 | 0" in (tmp_path / "table.md").read_text()
    assert json.loads((tmp_path / "table.json").read_text())["wrong"] == []
