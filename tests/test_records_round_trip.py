"""What `aria read` writes is the same log again: moves, rewards, prompts and all that is told."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from agent_logs import ENTRIES, NAMED, OPENAI, VERL, csv_bytes, lines
from hypothesis import given, settings
from test_records_fuzz import LINES, QUIET, logs
from test_records_readers import CASINO

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError
from aria_dvc.records.kept import KEPT, kept_tables
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import write_parts
from aria_dvc.records.tables import episodes_table, turns_table


def tables_of(log, folder, *options):
    """What `aria read` makes of a log, as Parquet and as CSV."""
    out, text = folder / "turns.parquet", folder / "turns.csv"
    assert main(["read", str(log), "--out", str(out), *options]) == 0
    table = pd.read_parquet(out)
    if "embedding" in table:
        table["embedding"] = [json.dumps(vector.tolist()) for vector in table["embedding"]]
    table.to_csv(text, index=False)
    return out, text


def vectors(episode):
    carried = [utterance.embedding for utterance in episode.utterances]
    return [None if vector is None else vector.tolist() for vector in carried]


GOOD = [*ENTRIES.values(), *LINES]


@pytest.mark.parametrize("number", range(len(GOOD)))
def test_a_table_is_the_same_log_again(tmp_path, number):
    log = lines(tmp_path / "log", GOOD[number])
    (before,) = read_log(log)
    for table in tables_of(log, tmp_path):
        (again,) = read_log(table)
        assert again.info == {**before.info, "group_id": before.group_id}
        again.info = before.info
        assert again.prompts == before.prompts
        assert again.preamble == before.preamble
        assert (again.rewards, again.game) == (before.rewards, before.game)
        assert again.named == before.named
        assert vectors(again) == vectors(before)
        assert turns_table([again]).equals(turns_table([before]))


def button_log(folder):
    said = [("1", "I need water"), ("2", "ok"), ("1", "Submit-Deal"), ("2", "Accept-Deal")]
    chat = [{"id": f"mturk_agent_{who}", "text": text} for who, text in said]
    return lines(folder / "log", {**CASINO, "chat_logs": chat})


def test_buttons_that_are_left_out_stay_out(tmp_path):
    log = button_log(tmp_path)
    for table in tables_of(log, tmp_path, "--no-moves"):
        assert turns_table(read_log(table))["is_action"].tolist() == [True, True, False, False]
    for table in tables_of(log, tmp_path):
        assert turns_table(read_log(table))["is_action"].all()
        left = turns_table(read_log(table, Reading(moves=False)))
        assert left["is_action"].tolist() == [True, True, False, False]


ROWS = [
    {"episode_id": "a", "role": role, "text": text, "reward": 1, "is_action": acts}
    for role, text, acts in (("u", "x", 0), ("a", "y", 1), ("u", "z", 0), ("a", "click", 0))
]


@pytest.mark.parametrize("said", [(0, 1), ("false", "TRUE"), ("False", "True"), ("0.0", "1.0")])
def test_a_users_table_says_what_is_no_action(tmp_path, said):
    log = tmp_path / "log.csv"
    log.write_bytes(csv_bytes([{**row, "is_action": said[row["is_action"]]} for row in ROWS]))
    (episode,) = read_log(log)
    assert episode.rewards == {"a": 1.0}
    assert turns_table([episode])["is_action"].tolist() == [False, True, False, False]


def test_an_episode_without_actions_can_be_read_again(tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes(csv_bytes([{**row, "is_action": 0} for row in ROWS]))
    assert not turns_table(read_log(log))["is_action"].any()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"is_action": "maybe"}, "is_action is 'maybe': give true or false"),
        ({"is_action": 2}, "is_action is '2': give true or false"),
        ({"preamble": "Be kind."}, "preamble is 'Be kind.': give a JSON list of system messages"),
        ({"preamble": "[1]"}, "give a JSON list of system messages"),
        ({"preamble": '["x", "y"]', "position": 1}, "begins at 1 behind 2 messages of preamble"),
    ],
)
def test_what_is_kept_is_checked(tmp_path, change, problem):
    log = tmp_path / "log.csv"
    log.write_bytes(csv_bytes([{**ROWS[1], **change}]))
    with pytest.raises(AriaError, match=problem):
        read_log(log)


def test_a_role_has_one_prompt(tmp_path):
    rows = [{**row, "is_action": 1, "system_prompt": ""} for row in ROWS]
    rows[1]["system_prompt"] = "Be brief."
    log = tmp_path / "log.csv"
    log.write_bytes(csv_bytes(rows))
    (episode,) = read_log(log)
    assert episodes_table([episode])["system_prompt"].tolist() == ["", "Be brief."]
    rows[3]["system_prompt"] = "Be kind."
    log.write_bytes(csv_bytes(rows))
    with pytest.raises(AriaError, match="several system_prompts of a: the prompt of a role is"):
        read_log(log)


@pytest.mark.parametrize("score", [-1.5, 2.0])
def test_rewards_outside_0_to_1_stay_readable(tmp_path, score):
    for table in tables_of(lines(tmp_path / "log", {**VERL, "score": score}), tmp_path):
        assert read_log(table)[0].rewards == {"assistant": score}


def test_groups_by_what_is_recorded_are_those_of_the_log(tmp_path):
    for table in tables_of(lines(tmp_path / "log", OPENAI), tmp_path):
        assert read_log(table, Reading(group_by="info.scenario"))[0].group_id == "sea"


def test_system_messages_are_exported_from_the_table_as_from_the_log(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hm?"}]
    entries = [
        {"messages": [*chat, {"role": "assistant", "content": "ab"[i % 2]}], "reward": i % 2}
        for i in range(6)
    ]
    log = lines(tmp_path / "log", *entries)
    found = []
    for number, path in enumerate((log, tables_of(log, tmp_path)[0])):
        out = tmp_path / f"swift{number}"
        given = ["--to", "swift", "--method", "prefix", "--out", str(out)]
        assert main(["export", str(path), *given]) == 0
        found.append((out / "assistant.jsonl").read_bytes())
    assert found[0] == found[1]
    (first, *_) = json.loads(found[1].splitlines()[0])["messages"]
    assert first == {"role": "system", "content": "Be brief."}


def test_two_system_messages_stay_two(tmp_path):
    lead = [{"role": "system", "content": text} for text in ("Be kind.", "", "Be brief.")]
    entry = {**OPENAI, "messages": lead + OPENAI["messages"][1:], "system_prompts": {"tool": "T"}}
    for table in tables_of(lines(tmp_path / "log", entry), tmp_path):
        (again,) = read_log(table)
        assert again.preamble == ["Be kind.", "", "Be brief."]
        assert again.prompts == {"assistant": "Be kind.\n\nBe brief.", "tool": "T"}
        assert turns_table([again])["position"].tolist() == [3, 4, 5, 6, 7, 8]


@given(raw=logs())
@settings(max_examples=100, deadline=None, suppress_health_check=QUIET)
def test_every_good_log_can_be_read_again_from_its_table(raw, tmp_path):
    log, out = tmp_path / "log", tmp_path / "out.parquet"
    log.write_bytes(raw)
    try:
        episodes = read_log(log, Reading(warn=False))
    except AriaError:
        return
    write_parts(out, kept_tables(episodes), KEPT)
    again = read_log(out, Reading(warn=False))
    assert [(e.named, vectors(e)) for e in again] == [(e.named, vectors(e)) for e in episodes]
    assert [e.preamble for e in again] == [e.preamble for e in episodes]
    first = turns_table(episodes)
    acting = first["is_action"].to_numpy()
    assert turns_table(again)[acting].equals(first[acting])


def test_what_is_left_out_behind_a_system_message_stays_out(tmp_path):
    entry = {**OPENAI, "info": {"moves": [3]}}
    log = lines(tmp_path / "log", entry)
    acting = [False, True, False, False, True, False]
    for table in tables_of(log, tmp_path, "--no-moves"):
        assert turns_table(read_log(table))["is_action"].tolist() == acting


def test_who_has_a_name_is_credited_by_role_in_the_table_too(tmp_path):
    for table in tables_of(lines(tmp_path / "log", NAMED), tmp_path):
        (episode,) = read_log(table, Reading(agents=("assistant",)))
        assert episode.rewards == {"planner": 1.0, "critic": 1.0}


@pytest.mark.parametrize(
    ("who", "spoken", "problem"),
    [
        ("planner", "tool", "speaks_as is 'tool': give assistant or user, or nothing"),
        ("user", "assistant", "has the name 'user', which is a role"),
    ],
)
def test_whom_one_speaks_as_is_checked(tmp_path, who, spoken, problem):
    row = {"episode_id": "e", "role": who, "text": "Hi", "reward": 1, "speaks_as": spoken}
    (tmp_path / "table").write_bytes(csv_bytes([row]))
    with pytest.raises(AriaError, match=problem):
        read_log(tmp_path / "table")


def with_vectors(width):
    said = [{**message, "embedding": [0.5] * width} for message in NAMED["messages"]]
    return {**NAMED, "messages": said}


@pytest.mark.parametrize("other", [NAMED, with_vectors(2)])
def test_logs_of_unlike_vectors_are_no_table(tmp_path, capsys, other):
    logs = [lines(tmp_path / name, e) for name, e in (("a", with_vectors(3)), ("b", other))]
    out = tmp_path / "turns.parquet"
    assert main(["read", *map(str, logs), "--out", str(out)]) == 1
    assert "embeddings differ in length, or some have none" in capsys.readouterr().err
    assert not out.exists()
