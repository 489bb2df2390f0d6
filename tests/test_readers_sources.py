"""Where logs come from: tables, datasets on disk, folders, compressed files, pipes, long lists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
from agent_logs import (
    ENTRIES,
    OPENAI,
    ROWS,
    TAU,
    VERL,
    changed,
    csv_bytes,
    lines,
    packed,
    parquet_file,
    saved_dataset,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from malformed import cases, content
from test_records_fuzz import _mutate, holder, mutated_bytes, outcome, places

from aria_dvc.__main__ import main
from aria_dvc.credit.logs import read_logs
from aria_dvc.errors import AriaError
from aria_dvc.records import json_entries, tables
from aria_dvc.records.readers import iter_log, read_log
from aria_dvc.records.reading import Reading, Rejected, kind_of
from aria_dvc.records.sources import entries_of, prefixes_of, sources_of
from aria_dvc.records.tables import turns_table
from aria_dvc.shown import printable

TABLES = cases("tables")
SOURCE = Path(__file__).parent.parent / "src"
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def texts(episodes) -> list[list[str]]:
    return [[u.text for u in episode.utterances] for episode in episodes]


SAID = [['Two, "or" three?', "Three,\nplease."], ["Bye.", "Bye."]]


@pytest.mark.parametrize("name", TABLES)
def test_a_wrong_table_gets_its_line(name, tmp_path):
    log = tmp_path / "log.csv"
    log.write_bytes(content(TABLES[name], "csv"))
    with pytest.raises(AriaError) as caught:
        read_log(log)
    assert str(caught.value).replace(str(log), "LOG") == TABLES[name]["error"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_quotes_commas_and_line_breaks(tmp_path, delimiter):
    log = tmp_path / "log"
    log.write_bytes(b"\xef\xbb\xbf" + csv_bytes(ROWS, delimiter))
    episodes = read_log(log, Reading(group_by="part"))
    assert texts(episodes) == SAID
    assert [e.rewards for e in episodes] == [{"agent": 1.0}, {"agent": 0.0}]
    assert [e.group_id for e in episodes] == ["x", "y"]


def test_a_later_line_of_csv_is_named_by_its_number(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(csv_bytes([*ROWS, {**ROWS[0], "episode_id": "r3"}]))
    with pytest.raises(AriaError, match="line 7: no reward"):
        read_log(log)


def test_parquet_and_arrow_of_utterances(tmp_path):
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_file(tmp_path / "file.arrow", table.schema) as file:
        file.write_table(table)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", table.schema) as stream:
        stream.write_table(table)
    parquet_file(tmp_path / "table", ROWS)
    for name in ("file.arrow", "stream.arrow", "table"):
        assert texts(read_log(tmp_path / name)) == SAID


def test_tables_carry_positions_and_vectors(tmp_path):
    rows = [
        {**row, "position": 2 + i % 2, "embedding": [float(i), 1.0]} for i, row in enumerate(ROWS)
    ]
    parquet = read_log(parquet_file(tmp_path / "table", rows))
    as_text = [{**row, "embedding": json.dumps(row["embedding"])} for row in rows]
    (tmp_path / "csv").write_bytes(csv_bytes(as_text))
    for episodes in (parquet, read_log(tmp_path / "csv")):
        assert turns_table(episodes)["position"].tolist() == [2, 3, 2, 3]
        vectors = [u.embedding for e in episodes for u in e.utterances]
        np.testing.assert_array_equal(vectors, [[i, 1] for i in range(4)])


def test_a_table_of_entries_may_have_ids(tmp_path):
    rows = [{"episode_id": "q1", "actions": ["Is it big?"], "obs": ["Yes."], "reward": 0}]
    (episode,) = read_log(parquet_file(tmp_path / "table", rows))
    assert (episode.episode_id, episode.rewards) == ("q1", {"agent": 1.0})
    with pytest.raises(AriaError, match="no column role, text: a table of utterances needs"):
        read_log(parquet_file(tmp_path / "other", [{"episode_id": "q1", "said": "Hi"}]))


def test_a_table_of_entries_loses_the_nulls_of_its_columns(tmp_path):
    messages = [{"role": "user", "content": "Hi", "name": None}]
    rows = [
        {"messages": messages, "rewards": {"user": 1.0, "other": None}, "group_id": None},
        {"messages": [{**messages[0], "role": "other"}], "rewards": {"other": 0.0}, "group_id": 4},
    ]
    one, two = read_log(parquet_file(tmp_path / "table", rows))
    assert (one.rewards, two.rewards) == ({"user": 1.0}, {"other": 0.0})
    assert (one.group_id, two.group_id) == (one.episode_id, "4")


def test_a_hugging_face_dataset_on_disk(tmp_path):
    shards = [[VERL], [{**VERL, "output": "Four."}]]
    one = read_log(saved_dataset(tmp_path / "one", *shards))
    assert [e.utterances[-1].text for e in one] == ["It is 4.", "Four."]
    assert [e.episode_id for e in one] == ["000000", "000001"]
    for split in ("train", "test"):
        saved_dataset(tmp_path / "all" / split, ROWS)
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    both = read_log(tmp_path / "all")
    assert [e.episode_id for e in both] == ["train:r1", "train:r2", "test:r1", "test:r2"]


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("state.json", "{", "state.json: broken JSON"),
        ("state.json", "[]", "_data_files names nothing"),
        ("state.json", '{"_data_files": []}', "_data_files names nothing"),
        ("state.json", '{"_data_files": ["x"]}', "_data_files must name files"),
        ("state.json", '{"_data_files": [{"filename": "../x"}]}', "_data_files must name files"),
        ("state.json", '{"_data_files": [{"filename": "x"}]}', "cannot be read"),
        ("data-00000-of-00001.arrow", "", "no episodes"),
        ("data-00000-of-00001.arrow", "\xff\xff\xff\xff\x10", "damaged, or cut off"),
        ("dataset_dict.json", '{"splits": "train"}', "splits names nothing"),
        ("dataset_dict.json", '{"splits": [5]}', "names a split without a dataset"),
        ("dataset_dict.json", '{"splits": ["gone"]}', "names a split without a dataset"),
    ],
)
def test_a_broken_dataset_gets_its_line(tmp_path, file, text, problem):
    folder = saved_dataset(tmp_path / "set", ROWS)
    if file == "dataset_dict.json":
        (folder / "state.json").unlink()
    (folder / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(AriaError, match=problem):
        read_log(folder)


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_what_is_compressed_is_read_and_a_cut_is_told(tmp_path, how):
    plain = b"".join(orjson.dumps({**OPENAI, "episode_id": str(i)}) + b"\n" for i in range(300))
    table = parquet_file(tmp_path / "table", ROWS).read_bytes()
    for number, (raw, count) in enumerate(((plain, 300), (table, 2), (csv_bytes(ROWS), 2))):
        log = tmp_path / f"log{number}"
        log.write_bytes(packed(raw, how))
        assert len(read_log(log)) == count
        log.write_bytes(packed(raw, how)[:-9])
        with pytest.raises(AriaError, match="damaged, or cut off"):
            read_log(log)
    log.write_bytes(
        packed(plain, how) + packed(plain.replace(b'"episode_id":"', b'"episode_id":"x'), how)
    )
    assert len(read_log(log)) == 600


@pytest.mark.parametrize("first", [0x50, 0x5A, 0x5F])
def test_zstd_may_begin_with_a_frame_to_skip(tmp_path, first):
    log = tmp_path / "log"
    skipped = bytes([first]) + b"\x2a\x4d\x18\x04\0\0\0note"
    log.write_bytes(skipped + packed(csv_bytes(ROWS), "zst"))
    assert texts(read_log(log)) == SAID


@pytest.mark.parametrize("change", [b"", b"PAR1", "half", "middle"])
def test_a_damaged_parquet_gets_its_line(tmp_path, change):
    log = parquet_file(tmp_path / "table", ROWS)
    raw = log.read_bytes()
    half = {b"": raw[:-1], b"PAR1": b"PAR1" * 3, "half": raw[: len(raw) // 2]}
    log.write_bytes(half.get(change, raw[:8] + bytes(40) + raw[48:]))
    with pytest.raises(AriaError, match="damaged, or cut off"):
        read_log(log)


def test_a_folder_is_read_in_natural_order_and_says_what_it_leaves_out(tmp_path, caplog):
    for step in (10, 2):
        lines(tmp_path / f"{step}.jsonl", {**VERL, "step": step})
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.jsonl.gz").write_bytes(packed(orjson.dumps(OPENAI), "gz"))
    (tmp_path / "notes.md").write_text("# mine")
    (tmp_path / ".hidden.json").write_text("{")
    episodes = read_log(tmp_path)
    assert [e.episode_id for e in episodes] == [
        "2.jsonl:000000",
        "10.jsonl:000000",
        "sub/more.jsonl.gz:c1",
    ]
    assert "notes.md left out: no log by its suffix" in caplog.text
    (tmp_path / "2.jsonl").write_bytes(orjson.dumps(VERL) + b"\n{")
    with pytest.raises(AriaError, match=r"2\.jsonl: line 2: broken JSON"):
        read_log(tmp_path)


def test_links_of_a_folder_are_followed_or_named(tmp_path):
    logs, stored = tmp_path / "logs", tmp_path / "stored"
    for folder in (logs, stored):
        folder.mkdir()
        lines(folder / "day.jsonl", OPENAI)
    (logs / "more").symlink_to(stored)
    assert [e.episode_id for e in read_log(logs)] == ["day.jsonl:c1", "more/day.jsonl:c1"]
    (stored / "back").symlink_to(logs)
    with pytest.raises(AriaError, match="more/back: a link to a folder that it lies in"):
        read_log(logs)
    (stored / "back").unlink()
    (logs / "gone.jsonl").symlink_to(tmp_path / "not fetched")
    with pytest.raises(AriaError, match=r"gone\.jsonl: a link that leads nowhere"):
        read_log(logs)


@pytest.mark.parametrize("other", ["logs/a.jsonl", "link.jsonl", "links", "logs"])
def test_a_file_counts_once_however_it_is_named(tmp_path, other):
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("a", "b"):
        lines(folder / f"{name}.jsonl", OPENAI)
    (tmp_path / "link.jsonl").symlink_to(folder / "a.jsonl")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "c.jsonl").symlink_to(folder / "a.jsonl")
    assert prefixes_of([folder / "a.jsonl", folder / "b.jsonl"]) == ["a.jsonl:", "b.jsonl:"]
    with pytest.raises(AriaError, match=r"a\.jsonl is given twice: name every log once"):
        prefixes_of([folder, tmp_path / other])


def test_what_a_folder_leaves_out_is_told_once(tmp_path, caplog):
    lines(tmp_path / "a.jsonl", OPENAI)
    (tmp_path / "notes.md").write_text("# mine")
    assert len(read_logs([tmp_path], 0.95)) == 6
    assert caplog.text.count("notes.md left out") == 1


def test_a_single_file_of_a_folder_needs_no_prefix(tmp_path):
    lines(tmp_path / "only.jsonl", OPENAI)
    assert read_log(tmp_path)[0].episode_id == "c1"
    (tmp_path / "only.jsonl").unlink()
    with pytest.raises(AriaError, match=r"cannot be read \(a folder without a log"):
        sources_of(tmp_path)


@pytest.mark.parametrize("kind", ["lines", "parquet", "zst"])
def test_standard_input(tmp_path, kind):
    raw = {"lines": orjson.dumps(OPENAI), "zst": packed(csv_bytes(ROWS), "zst")}
    raw["parquet"] = parquet_file(tmp_path / "p", ROWS).read_bytes()
    command = [sys.executable, "-m", "aria_dvc", "read", "-", "--out", str(tmp_path / "out")]
    options = {"env": {**os.environ, "PYTHONPATH": str(SOURCE)}, "timeout": 120, "check": False}
    done = subprocess.run(command, input=raw[kind], capture_output=True, **options)
    assert (done.returncode, done.stderr) == (0, b"")
    turns = turns_table(read_log(tmp_path / "out"))
    assert len(turns) == (6 if kind == "lines" else 4)
    done = subprocess.run(command, input=b"{", capture_output=True, **options)
    assert done.stderr.startswith(b"error: standard input: line 1: broken JSON")


def entries(count: int) -> list[dict]:
    return [{**OPENAI, "episode_id": f"é{i}"} for i in range(count)]


@pytest.mark.parametrize("gap", ["", " \n", "\n\n  "])
def test_a_long_list_is_read_in_pieces(tmp_path, monkeypatch, gap):
    """As the short one, whatever the place where a piece ends."""
    log = tmp_path / "log.json"
    raw = f"[{gap}" + f"{gap},{gap}".join(json.dumps(e, ensure_ascii=False) for e in entries(9))
    log.write_text(f"{raw}{gap}]{gap}", "utf-8")
    whole = read_log(log)
    for size in (1, 7, 100, 1001):
        monkeypatch.setattr(json_entries, "_CHUNK", size)
        monkeypatch.setattr(json_entries, "WHOLE", 2000)
        assert read_log(log) == whole


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda raw: raw[:-1], "entry 9: broken JSON .unexpected end of data"),
        (lambda raw: raw + b"[]", "content after the list"),
        (lambda raw: raw[:-40], "entry 9: broken JSON"),
        (lambda raw: raw.replace(b'"c8"', b"NaN"), r"entry 9: broken JSON \(unexpected character"),
        (lambda raw: raw.replace(b'"c8"', b'"\xff"'), "not UTF-8"),
        (lambda raw: raw.replace(b'"c8"', b'"c8","reward":1'), "entry 9: the key reward stands"),
        (
            lambda raw: raw.replace(b'{"episode_id":"c8"', b'5,{"episode_id":"c8"'),
            "entry 9: a JSON",
        ),
    ],
)
def test_what_is_wrong_in_a_long_list_is_named_by_entry(tmp_path, monkeypatch, change, problem):
    monkeypatch.setattr(json_entries, "WHOLE", 2000)
    monkeypatch.setattr(json_entries, "_CHUNK", 300)
    said = [
        {"episode_id": f"c{i}", **{k: OPENAI[k] for k in ("messages", "reward")}} for i in range(9)
    ]
    log = tmp_path / "log.json"
    log.write_bytes(change(orjson.dumps(said)))
    with pytest.raises(AriaError, match=problem):
        read_log(log)


def test_entries_come_one_by_one(tmp_path):
    """The first episode is there before the last line was looked at."""
    log = lines(tmp_path / "log", *entries(3000))
    log.write_bytes(log.read_bytes() + b"{")
    found = iter_log(log)
    assert next(found).episode_id == "é0"
    with pytest.raises(AriaError, match="line 3001: broken JSON"):
        list(found)


def test_progress_tells_bytes(tmp_path):
    log = lines(tmp_path / "log", *entries(2000))
    told: list[tuple[int, int]] = []
    (source,) = sources_of(log)
    assert len(list(entries_of(source, lambda *done: told.append(done)))) == 2000
    size = log.stat().st_size
    assert len(told) == 4
    assert told == sorted(told)
    assert all(0 < done <= total == size for done, total in told)


def test_parts_are_bounded_by_rows_and_by_characters(tmp_path, monkeypatch):
    episodes = read_log(lines(tmp_path / "log", *entries(30)))
    monkeypatch.setattr(tables, "PART_ROWS", 13)
    assert [len(part) for part in tables.in_parts(episodes)] == [3] * 10
    monkeypatch.setattr(tables, "PART_CHARS", 1)
    assert [len(part) for part in tables.in_parts(episodes)] == [1] * 30


BAD = (b'{"messages": [', b"\xff\xfe", b"[]", b'{"a": 1}', b'{"messages": [], "reward": 1}')


def test_bad_entries_are_skipped_counted_and_kept(tmp_path, caplog):
    good = [orjson.dumps(entry) for entry in entries(3)]
    log = tmp_path / "log"
    log.write_bytes(b"\n".join([good[0], *BAD, good[1], good[0], good[2]]))
    rejected = Rejected(tmp_path / "rejected")
    episodes = list(iter_log(log, Reading(rejected=rejected)))
    rejected.close()
    assert [e.episode_id for e in episodes] == ["é0", "é1", "é2"]
    kept = [json.loads(line) for line in (tmp_path / "rejected").read_text().splitlines()]
    assert [k["where"] for k in kept] == [f"{log}: line {i}" for i in (2, 3, 4, 5, 6, 8)]
    assert kept[0]["entry"] == BAD[0].decode()
    assert kept[1]["entry"] == "\\xff\\xfe"
    assert json.loads(kept[5]["entry"]) == entries(1)[0]
    assert "already used at" in kept[5]["problem"]
    assert rejected.kinds.total() == 6
    assert f"left out 1 like {kept[1]['problem']}" in caplog.messages
    assert f"all 6 of them: {tmp_path / 'rejected'}" in caplog.text


NO_TEXT = b'{"messages": [{"role": "a", "content": ""}], "reward": 1}'


@pytest.mark.parametrize("bad", [*BAD, NO_TEXT])
def test_an_id_is_the_number_of_the_entry_whatever_is_left_out(tmp_path, bad):
    good = orjson.dumps({"messages": chat("agent")["messages"], "rewards": {"agent": 1}})
    log = tmp_path / "log"
    log.write_bytes(b"\n".join([good, bad, good, good]))
    rejected = Rejected(tmp_path / "rejected")
    episodes = list(iter_log(log, Reading(rejected=rejected)))
    rejected.close()
    assert [e.episode_id for e in episodes] == ["000000", "000002", "000003"]


def test_a_files_entries_have_the_ids_that_they_have_in_its_folder(tmp_path):
    entry = {"messages": chat("agent")["messages"], "rewards": {"agent": 1}}
    files = [lines(tmp_path / name, entry, entry) for name in ("a.jsonl", "b.jsonl")]
    whole = [e.episode_id for e in read_log(tmp_path)]
    alone = [
        e.episode_id
        for file, prefix in zip(files, prefixes_of(files), strict=True)
        for e in read_log(file, Reading(prefix=prefix))
    ]
    assert whole == alone == [f"{name}.jsonl:00000{n}" for name in "ab" for n in (0, 1)]


def test_a_kind_of_problem_keeps_the_numbers_of_names():
    assert kind_of("line is not UTF-8 (byte 7)") == "line is not UTF-8 .."
    assert kind_of("messages[3] has 2.5 of -1e-3") == "messages[N] has N of N"


def chat(role: str, **more) -> dict:
    said = [{"role": role, "content": "Hi"}, {"role": "user", "content": "Yes?"}]
    return {"messages": said, "rewards": {role: 1}, **more}


def with_vector(entry: dict, *numbers: float) -> dict:
    return {**entry, "messages": [{**m, "embedding": numbers} for m in entry["messages"]]}


ONE = chat("agent", episode_id="x")
VECTORS = with_vector(ONE, 1)


@pytest.mark.parametrize(
    ("rejected", "taken"),
    [
        ({**ONE, "messages": [*with_vector(ONE, 1, 2)["messages"], *ONE["messages"]]}, ONE),
        ({**ONE, "messages": [*with_vector(ONE, 1, 2)["messages"], *ONE["messages"]]}, VECTORS),
        (chat("Agent", episode_id="y", system_prompts={"agent": ""}), ONE),
        (chat("Agent", rewards={"AGENT": 1}), ONE),
        (chat("Agent", episode_id="X", system_prompts={"agent": ""}), ONE),
    ],
)
def test_a_rejected_entry_leaves_nothing_behind(tmp_path, caplog, rejected, taken):
    """Neither its vectors' length nor its roles and ids bind the entries after it."""
    skipped = Rejected(tmp_path / "rejected")
    log = lines(tmp_path / "log", rejected, taken, {**taken, "episode_id": "z"})
    found = list(iter_log(log, Reading(rejected=skipped)))
    assert [e.episode_id for e in found] == ["x", "z"]
    assert skipped.kinds.total() == 1
    assert caplog.messages == []


def test_all_episodes_of_a_rejected_entry_are_forgotten(tmp_path, caplog):
    """A trace that was good goes with its entry, and so does what was odd in it."""
    entry = changed("verifiers", {})
    broken = changed("verifiers", {"set": {"traces.0.rewards": [1], "traces.0.id": "tr2"}})
    both = {**entry, "traces": [*entry["traces"], *broken["traces"]]}
    for trace, name in zip(both["traces"], ("Solver", "judge"), strict=True):
        trace["agent"] = {"name": name}
    skipped = Rejected(tmp_path / "rejected")
    log = lines(tmp_path / "log", both, chat("solver", episode_id="TR1"))
    (episode,) = iter_log(log, Reading(rejected=skipped))
    assert (episode.episode_id, skipped.kinds.total()) == ("TR1", 1)
    assert caplog.messages == []


def test_an_episode_that_comes_back_stops_the_reader_though_it_skips(tmp_path):
    rows = [ROWS[1], *ROWS[2:], {**ROWS[1], "text": "more"}]
    skipped = Rejected(tmp_path / "rejected")
    found = iter_log(parquet_file(tmp_path / "log", rows), Reading(rejected=skipped))
    with pytest.raises(AriaError, match="row 4: episode_id r1 comes back: sort the rows by"):
        list(found)


def test_the_table_is_not_written_under_the_name_of_another_format(tmp_path, capsys):
    log, out = tmp_path / "log", tmp_path / "out.csv"
    log.write_bytes(orjson.dumps(OPENAI))
    assert main(["read", str(log), "--out", str(out)]) == 1
    assert "out.csv would hold Parquet: name it turns.parquet" in capsys.readouterr().err
    assert not out.exists()


def test_the_command_skips_or_stops(tmp_path, capsys):
    log, out = tmp_path / "log", tmp_path / "out.parquet"
    log.write_bytes(b"\n".join([orjson.dumps(OPENAI), *BAD]))
    assert main(["read", str(log), "--out", str(out)]) == 1
    assert not out.exists()
    assert "line 2: broken JSON" in capsys.readouterr().err
    assert main(["read", str(log), "--out", str(out), "--on-error", "skip"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"1 episodes, 6 utterances: {out}\n"
    assert len((tmp_path / "out.parquet.rejected.jsonl").read_text().splitlines()) == 5
    log.write_bytes(orjson.dumps(OPENAI))
    assert main(["read", str(log), "--out", str(out), "--on-error", "skip"]) == 0
    assert (tmp_path / "out.parquet.rejected.jsonl").read_bytes() == b""
    log.write_bytes(b"\n".join(BAD))
    assert main(["read", str(log), "--out", str(out), "--on-error", "skip"]) == 1
    assert "no episodes: all 5 entries are in" in capsys.readouterr().err
    assert main(["read", str(log), "--out", str(out), "--rejected", str(log)]) == 1
    assert "nothing is skipped: add --on-error skip" in capsys.readouterr().err
    options = ("--on-error", "skip", "--rejected", str(log))
    assert main(["read", str(log), "--out", str(out), *options]) == 1
    assert "is the same file as the log" in capsys.readouterr().err
    assert main(["read", str(tmp_path), "--out", str(out)]) == 1
    assert f"lies in {tmp_path}, which is read" in capsys.readouterr().err


def test_kinds_have_no_names_and_numbers():
    one = kind_of("utterance 5 (bob) has no text: give a non-empty string or remove the entry")
    assert one == kind_of("utterance 17 (ann) has no text: give a non-empty string or remove it")
    assert one == "utterance N .. has no text"
    assert (
        kind_of("reward of bob is 1.5, outside [0, 1]: rescale")
        == "reward of bob is N, outside [N, N]"
    )


def test_a_table_of_turns_is_a_log_again(tmp_path):
    """With system messages before the dialogue, positions and groups stay what they were."""
    log, out = lines(tmp_path / "log", OPENAI, TAU), tmp_path / "turns.parquet"
    assert main(["read", str(log), "--out", str(out)]) == 0
    first = turns_table(read_log(log))
    assert turns_table(read_log(out)).equals(first)


@st.composite
def mutated_logs(draw: st.DrawFn) -> bytes:
    """Lines of agents' formats with up to three parts changed, now and then a byte."""
    made = []
    for _ in range(draw(st.integers(1, 2))):
        entry = json.loads(json.dumps(draw(st.sampled_from(list(ENTRIES.values())))))
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.sampled_from(list(places(entry))))
            if place:
                _mutate(draw, holder(entry, place), place[-1])
        raw = json.dumps(entry).encode("utf-8", "surrogatepass")
        made.append(draw(mutated_bytes(raw)) if draw(st.integers(0, 5)) == 0 else raw)
    return b"\n".join(made)


@given(raw=mutated_logs())
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
def test_a_mutated_agent_log_is_good_or_gets_one_line(raw, tmp_path):
    outcome(raw, tmp_path)


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=QUIET)
def test_a_mutated_table_is_good_or_gets_one_line(data, tmp_path):
    """CSV, Parquet and compressed lines with a few bytes changed."""
    kinds = {
        "csv": csv_bytes(ROWS),
        "parquet": parquet_file(tmp_path / "t", ROWS).read_bytes(),
        "gz": packed(orjson.dumps(OPENAI), "gz"),
        "zst": packed(orjson.dumps(OPENAI), "zst"),
    }
    raw = data.draw(mutated_bytes(kinds[data.draw(st.sampled_from(list(kinds)))]))
    log = tmp_path / "log"
    log.write_bytes(raw)
    line = refusal(log)
    assert line is None or (str(log) in line and line == printable(" ".join(line.split())))


def refusal(log: Path) -> str | None:
    try:
        assert read_log(log)
    except AriaError as error:
        return str(error)
    return None
