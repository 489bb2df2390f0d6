"""`aria audit` on logs whose credit is made of what the audit must then find."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aria_dvc.__main__ import main
from aria_dvc.audit.advice import _leakage, _signal, advice
from aria_dvc.audit.judged import leakage, parts

TOPICS = ["weather", "price", "colour"]


def write(
    folder: Path, credit: str | None = None, episodes: int = 90, groups: int = 30, seed: int = 0
) -> Path:
    """Asking for the price wins by chance of 0.9 a question; `credit` is made as its name says."""
    rng, lines = np.random.default_rng(seed), []
    for number in range(episodes):
        asked = rng.integers(0, 3, rng.integers(2, 6))
        final = float(rng.random() < 0.15 + 0.7 * (asked == 1).any())
        messages: list[dict[str, Any]] = []
        for turn, topic in enumerate(asked):
            vector = (np.eye(4)[topic] + rng.normal(0, 0.01, 4)).tolist()
            told = {
                "turn": float(turn),
                "length": float(len(asked)),
                "outcome": final,
                "action": float(topic == 1),
                "task": float((number % groups) ** 2),
                "constant": 1.0,
            }
            said = {"role": "buyer", "content": f"what about the {TOPICS[topic]}?"}
            more = {"step": told[credit]} if credit else {}
            messages.append({**said, **more, "embedding": vector})
            answer = {"role": "shop", "content": "yes, good"}
            messages.append({**answer, "embedding": np.eye(4)[3].tolist()})
        line = {"episode_id": f"e{number}", "messages": messages, "rewards": {"buyer": final}}
        lines.append(json.dumps({**line, "group_id": f"g{number % groups}"}))
    path = folder / "log.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    return path


def audited(log: Path, *options: str) -> dict[str, Any]:
    out = log.with_name("audit.json")
    assert main(["audit", str(log), "--k", "4", "--json", str(out), *options]) == 0
    return json.loads(out.read_text())


def test_the_files_are_written_though_nobody_reads_the_table(tmp_path):
    log = write(tmp_path)
    files = [tmp_path / "audit.json", tmp_path / "audit.html"]
    options = ["--k", "4", "--json", str(files[0]), "--html", str(files[1])]
    command = [sys.executable, "-m", "aria_dvc", "audit", str(log), *options]
    reader, writer = os.pipe()
    os.close(reader)
    assert subprocess.run(command, stdout=writer, stderr=subprocess.DEVNULL).returncode == 1
    os.close(writer)
    assert all(path.stat().st_size for path in files)


def test_letters_that_the_terminal_lacks_are_told_in_others(tmp_path):
    log = write(tmp_path)
    log.write_text(log.read_text("utf-8").replace("buyer", "buyer\u2603"), "utf-8")
    command = [sys.executable, "-m", "aria_dvc", "audit", str(log), "--k", "4"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "COLUMNS": "200"}
    done = subprocess.run(command, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"\\u2603" in done.stdout


def test_what_is_there_and_what_can_be_learnt(tmp_path, capsys):
    report = audited(write(tmp_path, episodes=300, groups=100), "--html", str(tmp_path / "a.html"))
    there = report["contents"]
    assert (there["episodes"], there["groups"]) == (300, 100)
    assert set(there["roles"]["buyer"]["reward"]["values"]) == {"0.0", "1.0"}
    assert there["roles"]["shop"]["reward"] is None
    best = {row["method"]: row for row in report["signal"] if row["role"] == "all"}
    assert all(best[name]["over_turn_index"]["low"] > 0 for name in ("shrinkage", "regression"))
    assert best["regression"]["over_constant"]["high"] < 1
    assert any("more than the clock" in said for said in report["advice"])
    shown = capsys.readouterr().out
    assert "Signal on held-out groups" in shown
    page = (tmp_path / "a.html").read_text()
    assert len(page) < 300_000
    assert "<script" not in page
    assert "more than the clock" in page
    assert "credit" not in report


def test_the_outcome_of_a_role_is_known_though_its_first_words_are_no_action(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "episode_id": f"e{number}", "role": role, "text": text, "is_action": acts,
            "reward": float(number % 2) if role == "agent" else None,
        }
        for number in range(40)
        for role, text, acts in (
            ("agent", "How can I help?", number % 2 == 1),
            ("user", "My lamp is dark.", False),
            ("agent", str(rng.choice(["Is it on?", "Try another."])), True),
        )
    ]  # fmt: skip
    log = tmp_path / "log.csv"
    pd.DataFrame(rows).to_csv(log, index=False)
    report = audited(log)
    assert report["contents"]["roles"]["agent"]["reward"]["values"] == {"0.0": 20, "1.0": 20}
    assert not any("ended alike" in said for said in report["advice"])


@pytest.mark.parametrize(
    ("credit", "part", "words"),
    [
        ("turn", "clock", "the turn index"),
        ("length", "length", "the number of turns, which is known only at the end"),
        ("task", "task", "which task it is"),
    ],
)
def test_what_a_credit_is_made_of(tmp_path, credit, part, words):
    report = audited(write(tmp_path, credit), "--credit", "step")
    found = report["credit"]["parts"]
    assert found[part] > 0.95
    assert any(words in said for said in report["advice"])
    others = {"clock", "task"} - {part} if credit != "length" else {"task"}
    assert all(found[other] < 0.3 for other in others)


def test_a_credit_of_single_turns_is_told_to_be_the_task(tmp_path):
    lines = [
        {
            "episode_id": f"e{number}",
            "group_id": f"t{number % 30}",
            "messages": [
                {"role": "user", "content": f"Sum {number % 30} and 2."},
                {"role": "assistant", "content": f"{rng}", "step": float(number % 30)},
            ],
            "rewards": {"assistant": float(rng > 0.5)},
        }
        for number, rng in enumerate(np.random.default_rng(0).random(120).round(3))
    ]
    path = tmp_path / "single.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    report = audited(path, "--credit", "step", "--k", "2")
    assert report["credit"]["parts"]["task"] > 0.95
    assert any("which task it is" in said for said in report["advice"])


def test_a_credit_that_is_the_outcome_leaks_and_one_of_the_action_does_not(tmp_path):
    leak = audited(write(tmp_path, "outcome"), "--credit", "step")["credit"]["leakage"]
    assert leak["twins"] > 30
    assert leak["differing"] > 0.5
    assert leak["later"]["low"] > 0.3
    report = audited(write(tmp_path, "action"), "--credit", "step")
    fair = report["credit"]["leakage"]
    assert fair["differing"] == 0.0
    assert fair["later"]["value"] < 0.15
    signs = report["credit"]["sign_agreement"]
    assert signs["low"] > 0.5
    assert not any("came after" in said for said in report["advice"])


def write_tasks(folder: Path, told: str, credit: str) -> Path:
    """Four games of each of 40 tasks, with the same words; a task is won by a chance of its own.

    told: where a log says the task, `group`, `prompt`, `config`, `unique` (prompts no two of which
        are alike) or `nothing`. credit: `worth` (that chance), or `outcome`.
    """
    rng, lines = np.random.default_rng(3), []
    for number in range(160):
        task = number % 40
        worth = 0.05 + 0.9 * task / 39
        final = float(rng.random() < worth)
        step = worth if credit == "worth" else final
        messages = [
            {"role": role, "content": text, "embedding": np.eye(4)[place].tolist()}
            for place, (role, text) in enumerate([("buyer", "what about it?"), ("shop", "good")])
        ]
        messages[0]["step"] = step
        line: dict[str, Any] = {"messages": messages, "rewards": {"buyer": final}}
        line |= {"group_id": f"t{task}"} if told == "group" else {}
        line |= {"system_prompts": {"buyer": f"Task {task}."}} if told == "prompt" else {}
        line |= {"system_prompts": {"buyer": f"Game {number}."}} if told == "unique" else {}
        line |= {"info": {"config": {"task": task}}} if told == "config" else {}
        lines.append(json.dumps({"episode_id": f"e{number}", **line}))
    path = folder / "log.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.parametrize("told", ["group", "prompt", "config"])
def test_a_credit_that_knows_the_task_looks_at_no_future_and_one_that_peeks_does(tmp_path, told):
    report = audited(write_tasks(tmp_path, told, "worth"), "--credit", "step", "--k", "2")
    leak = report["credit"]["leakage"]
    assert (leak["twins"], leak["differing"]) == (160, 0.0)
    assert leak["later"]["value"] < 0.01
    assert leak["tasks"] == ("group" if told == "group" else "prompt")
    assert not any("came after" in said for said in report["advice"])
    report = audited(write_tasks(tmp_path, told, "outcome"), "--credit", "step", "--k", "2")
    assert report["credit"]["leakage"]["differing"] > 0.3
    (said,) = [said for said in report["advice"] if "looks at what came after" in said]
    assert "knows the task" not in said


def test_where_no_task_is_told_the_advice_says_what_it_may_be(tmp_path):
    report = audited(write_tasks(tmp_path, "nothing", "worth"), "--credit", "step", "--k", "2")
    assert report["credit"]["leakage"]["tasks"] is None
    assert report["credit"]["leakage"]["differing"] == 1.0
    (said,) = [said for said in report["advice"] if "came after" in said]
    assert "or knows the task" in said
    assert "`--group-by`" in said
    report = audited(write_tasks(tmp_path, "unique", "worth"), "--credit", "step", "--k", "2")
    assert report["credit"]["leakage"]["twins"] == 0
    (said,) = [said for said in report["advice"] if "came after" in said]
    assert "or know the task" in said


def test_a_constant_teaches_nothing(tmp_path):
    report = audited(write(tmp_path, "constant"), "--credit", "step")
    assert "teaches nothing" in " ".join(report["advice"])
    assert report["credit"]["sum_to_outcome"]["correlation"] is not None


def test_a_credit_is_found_where_it_stands(tmp_path):
    log = write(tmp_path, "action", episodes=20, groups=10)
    expected = audited(log, "--credit", "step")["credit"]
    entries = [json.loads(line) for line in log.open()]
    rows = [
        {
            "episode_id": entry["episode_id"],
            "group_id": entry["group_id"],
            "role": message["role"],
            "text": message["content"],
            "reward": entry["rewards"].get(message["role"]),
            "step": message.get("step"),
            "embedding": message["embedding"],
        }
        for entry in entries
        for message in entry["messages"]
    ]
    table = tmp_path / "table.parquet"
    pd.DataFrame(rows).to_parquet(table)
    for entry in entries:
        steps = [m.pop("step") for m in entry["messages"] if "step" in m]
        entry["info"] = {"step": steps}
    listed = tmp_path / "listed.jsonl"
    listed.write_text("\n".join(json.dumps(entry) for entry in entries))
    for other in (table, listed):
        assert audited(other, "--credit", "step")["credit"] == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": "high"}, "step of message 2 is 'high'"),
        ({"step": True}, "step of message 2 is True: give a number"),
        ({}, "have no step: give every turn a number"),
    ],
)
def test_a_credit_that_is_no_number_is_named(tmp_path, capsys, change, message):
    log = write(tmp_path, "action", episodes=4)
    entries = [json.loads(line) for line in log.open()]
    del entries[0]["messages"][2]["step"]
    entries[0]["messages"][2].update(change)
    log.write_text("\n".join(json.dumps(entry) for entry in entries))
    assert main(["audit", str(log), "--credit", "step"]) == 1
    assert message in capsys.readouterr().err
    assert main(["audit", str(log), "--credit", "nothing"]) == 1
    assert "no turn has a number nothing" in capsys.readouterr().err


def test_what_a_log_says_is_no_markup(tmp_path):
    log = write(tmp_path, episodes=6)
    text = log.read_text().replace('"shop"', '"<b>sh\\u001bop"')
    log.write_text(text)
    report = audited(log, "--html", str(tmp_path / "a.html"))
    assert report["contents"]["episodes"] == 6
    page = (tmp_path / "a.html").read_text()
    assert "<b>" not in page
    assert "\x1b" not in page


def test_noise_explains_nothing_and_leaks_nothing():
    rng = np.random.default_rng(1)
    n = 600
    frame = pd.DataFrame(
        {
            "episode": np.arange(n) // 3,
            "group": np.arange(n) // 6,
            "task": np.arange(n) // 6,
            "role": "a",
            "turn": np.arange(n) % 3 + 1,
            "turns": 3,
            "cell": np.arange(n),
            "final": np.repeat(rng.random(n // 3), 3),
            "credit": rng.normal(size=n),
        }
    )
    found = parts(frame)
    assert all(value < 0.1 for value in found.values())
    leak = leakage(frame, rng.normal(size=n))
    assert leak["differing"] is None
    assert leak["later"]["value"] < 0.02


def test_a_single_group_has_no_interval_and_is_told_so(tmp_path):
    report = audited(write(tmp_path, episodes=12, groups=1), "--html", str(tmp_path / "a.html"))
    over = next(row for row in report["signal"] if row["method"] == "shrinkage")
    assert over["over_constant"]["low"] is None
    (only,) = [said for said in report["advice"] if "group" in said]
    assert only.startswith("Only 1 group: no other can be held out")
    assert "Signal on held-out episodes of the one group" in (tmp_path / "a.html").read_text()


def test_no_interval_of_a_single_group_is_made_up(tmp_path, capsys):
    log = write(tmp_path, "outcome", episodes=12, groups=1)
    credit = audited(log, "--credit", "step")["credit"]
    for found in (credit["leakage"]["later"], credit["sign_agreement"]):
        assert found["value"] is not None
        assert found["low"] is found["high"] is None
    shown = capsys.readouterr().out
    assert f"{credit['sign_agreement']['value']:.3f}; chance 0.5" in shown


@pytest.mark.parametrize("reward", [1.0, 0.1])
def test_where_all_ended_alike_no_method_is_advised(tmp_path, reward):
    log = write(tmp_path, episodes=12)
    entries = [{**json.loads(line), "rewards": {"buyer": reward}} for line in log.open()]
    log.write_text("\n".join(json.dumps(entry) for entry in entries))
    advice = audited(log)["advice"]
    assert advice[0] == "Every episode of buyer ended alike: no credit can tell turns apart."
    assert len(advice) == 2
    assert "Only 12 groups" in advice[1]


OUT_OF_RANGE = [("--seed", "-1"), ("--gamma", "2"), ("--folds", "1")]


@pytest.mark.parametrize(("option", "value"), OUT_OF_RANGE)
def test_a_number_out_of_range_is_one_line(tmp_path, capsys, option, value):
    assert main(["audit", str(tmp_path / "no log"), option, value]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {option} is {value}")


def row(method: str, value: float, low: float, over: str = "over_turn_index") -> dict[str, Any]:
    none = {"value": 0.0, "low": -0.1, "high": 0.1}
    both = {"over_constant": none, "over_turn_index": none}
    known = {"value": value, "low": low, "high": 2 * value - low}
    return {"method": method, "role": "all", **both, over: known}


NOTHING = row("turn_index", 0.0, -0.1)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # the largest value may be the least certain
        ([NOTHING, row("aria", 0.123, -0.08), row("regression", 0.105, 0.016)], "regression exp"),
        ([NOTHING, row("aria", 0.003, 0.001)], "nothing beats the mean"),  # the discount's own
        ([row("turn_index", 0.003, 0.001, "over_constant")], "nothing beats the mean"),
        ([row("turn_index", 0.1, 0.05, "over_constant")], "nothing beats the turn index"),
    ],
)
def test_signal_is_what_is_of_some_size_with_its_interval(rows, said):
    (found,) = _signal({"contents": {"groups": 40}, "signal": rows})
    assert said in found


@pytest.mark.parametrize(
    ("told", "advised"),
    [
        (["aria"], "gae"),
        (["aria", "regression"], "regression"),
        (["regression"], "regression"),
        ([], "gae"),
    ],
)
def test_where_few_turns_share_a_cell_one_method_is_advised(told, advised):
    """And never the one whose credit is the mean of such cells, however well it predicts."""
    skill = {"aria": 0.4, "regression": 0.2}
    rows = [row(name, skill[name], 0.1) for name in told]
    report = {
        "contents": {
            "groups": 40,
            "roles": {"agent": {"reward": {"quantiles": [0.0, 1.0]}}},
        },
        "signal": [NOTHING, *rows],
        "cells": {"shared": 0.2},
    }
    said = " ".join(advice(report))
    assert re.findall("--method ([a-z_]+)", said) == [advised]
    assert "changes 20% of your turns" in said
    shared = {**report, "cells": {"shared": 0.8}}
    assert re.findall("--method ([a-z_]+)", " ".join(advice(shared))) == told[:1]


@pytest.mark.parametrize("tasks", ["group", None])
def test_a_credit_that_looks_ahead_by_design_is_told_so(tasks):
    later = {"value": 0.5, "low": 0.4, "high": 0.6}
    (said,) = _leakage({"twins": 0, "differing": None, "later": later, "tasks": tasks})
    assert "may look at what came after the action, as plain returns and `gae` do by design" in said


def test_a_small_scale_is_no_constant(tmp_path):
    path = write(tmp_path, "action")
    whole = audited(path, "--credit", "step")
    path.write_text(path.read_text().replace('"step": 1.0', '"step": 1e-9'))
    small = audited(path, "--credit", "step")
    assert small["credit"]["variance"] == pytest.approx(1e-18 * whole["credit"]["variance"])
    for name in ("parts", "leakage", "effective_turns", "sign_agreement"):
        assert small["credit"][name] == whole["credit"][name]
    assert not any("teaches nothing" in said for said in small["advice"])


def test_the_table_of_aria_credit_is_audited_as_it_is(tmp_path, capsys):
    log, table = write(tmp_path, "action"), tmp_path / "c.parquet"
    made = ["credit", str(log), "--k", "4", "--method", "shrinkage", "--out", str(table)]
    assert main(made) == 0
    known = pd.read_parquet(table)
    report = audited(log, "--credit", f"{table}:advantage")
    assert report["credit"]["actions"] == len(known)
    assert report["credit"]["mean"] == pytest.approx(known["advantage"].mean())
    assert audited(log, "--credit", str(table))["credit"]["mean"] == pytest.approx(
        known["credit"].mean()
    )
    capsys.readouterr()
    assert main(["audit", str(log), "--credit", f"{table}:cell"]) == 1
    assert "cell is no credit of a table" in capsys.readouterr().err
    log.write_text(log.read_text().replace("what about", "how about"))
    assert main(["audit", str(log), "--credit", str(table)]) == 1
    assert "has another text" in capsys.readouterr().err
    write(tmp_path, "action", episodes=40)
    assert main(["audit", str(log), "--credit", str(table)]) == 1
    assert "of no utterance of this log" in capsys.readouterr().err
