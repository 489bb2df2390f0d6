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
from scripts.chaos.full import is_clear
from scripts.chaos.killing import planned
from scripts.chaos.place import Place, Stage
from scripts.chaos.table import markdown, problems, rows_of

ROOT = Path(__file__).parent.parent
STAGES = [Stage("embed@a", "X=1 python e.py a", ["e"], 3.0, 0), Stage("online@a", "", ["o"], 9, 0)]


def test_kills_are_spread_by_time_and_are_the_same_for_a_seed():
    kills = [planned(number, 0, STAGES) for number in range(200)]
    assert kills == [planned(number, 0, STAGES) for number in range(200)]
    assert kills != [planned(number, 1, STAGES) for number in range(200)]
    assert Counter(kill.way for kill in kills)["whole"] == 10
    counts = Counter(kill.stage.name for kill in kills if kill.way != "whole")
    assert abs(counts["online@a"] - 142) <= 8
    assert {kill.way for kill in kills} == {"stage", "script", "whole"}
    assert {(kill.way, kill.alone) for kill in kills if kill.alone} == {("script", True)}
    assert all(kill.moment <= kill.stage.seconds for kill in kills if kill.way != "whole")
    assert {tuple(kill.command) for kill in kills if kill.way == "whole"} == {("dvc", "repro")}
    assert STAGES[0].script == ["python", "e.py", "a"]


def written(folder, weight=1.0, loss=0.5, seconds=1.0):
    folder.mkdir(parents=True)
    save_file({"w": np.array([1.0, weight])}, folder / "adapter_model.safetensors")
    (folder / "metrics.json").write_text(json.dumps({"loss": loss, "play_seconds": seconds}))
    (folder / "online.csv").write_text(f"loss,train_seconds\n{loss},{seconds}\n")


def differing(place, name="online@a"):
    return compared(place, [Stage(name, "", ["o"], 1.0, 0)])


def test_after_aggregate_weights_count_and_times_do_not(tmp_path):
    place = Place(tmp_path)
    written(place.undisturbed / "o")
    assert len(differing(place).wrong) == 3
    written(place.work / "o", weight=1 + 1e-9, seconds=2.0)
    assert differing(place).wrong == []
    assert differing(place).largest == pytest.approx(1e-9, rel=1e-3)
    assert len(differing(place, "collect@a").wrong) == 3
    (place.work / "o/more").touch()
    assert differing(place).wrong == [f"{place.work}/o/more is there only after"]


@pytest.mark.parametrize("change", [{"weight": 1 + 1e-3, "loss": 0.51}, {"weight": np.nan}])
def test_other_weights_and_numbers_are_wrong(tmp_path, change):
    place = Place(tmp_path)
    written(place.undisturbed / "o")
    written(place.work / "o", **change)
    assert len(differing(place).wrong) == (3 if "loss" in change else 1)


def test_what_a_kill_leaves_is_found_and_a_changed_input_too(tmp_path):
    (tmp_path / "a" / ".x.0-0.aside").mkdir(parents=True)
    (tmp_path / "a" / "checkpoint-1").mkdir()
    (tmp_path / "a" / "lock").touch()
    assert sorted(left_over([tmp_path])) == [".x.0-0.aside", "checkpoint-1"]
    assert not is_held(tmp_path / "a" / "lock")
    (tmp_path / "in").write_text("1")
    (tmp_path / "out").write_text("1")
    before = sums_of(tmp_path, but=[tmp_path / "out"])
    (tmp_path / "out").write_text("2")
    assert sums_of(tmp_path, but=[tmp_path / "out"]) == before
    (tmp_path / "in").write_text("2")
    assert sums_of(tmp_path, but=[tmp_path / "out"]) != before


def test_one_line_that_names_the_full_disk_is_clear():
    line = "error: data/x: disk full: free some space and run again\n"
    assert is_clear(line, "script")
    assert is_clear(f"{line}ERROR: failed to reproduce\n", "stage")
    assert is_clear("ERROR: unexpected error - [Errno 28] No space left on device\n", "stage")
    assert not is_clear(2 * line, "script")
    assert not is_clear(f"Traceback (most recent call last):\n{line}", "script")
    assert not is_clear("[Errno 28] No space left on device", "script")
    assert not is_clear("error: no", "stage")


def test_what_was_found_is_kept_and_told(tmp_path):
    found = {"stage": "online@a", "way": "stage", "wrong": [], "left": [], "largest": 0.0}
    results = Results(tmp_path / "r.jsonl")
    results.once("kill", 0, lambda: dict(found))
    results.once("kill", 0, lambda: pytest.fail("found before"))
    results.once("kill", 1, lambda: {**found, "wrong": ["w"], "left": ["x"]})
    again = Results(tmp_path / "r.jsonl").found
    assert "| SIGKILL in `online@a` | 2 | 1 | 1 | 0 |" in markdown(rows_of(again))
    assert problems(again) == ["kill 1, online@a: w", "kill 1, online@a: left over: x"]


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
