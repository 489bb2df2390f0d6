"""The cache notices its damages, has one writer a folder, and stays within its size."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from damage import flip

from aria_dvc.__main__ import main
from aria_dvc.arena.journal import Journal
from aria_dvc.cache import folder as folder_module
from aria_dvc.cache import locks, vectors
from aria_dvc.cache.entries import entries
from aria_dvc.cache.folder import VARIABLE, note_use
from aria_dvc.cache.lines import CheckedLines
from aria_dvc.cache.locks import FolderLock
from aria_dvc.cache.prune import GIB, keep_within, prune
from aria_dvc.cache.sums import MANIFEST, damage_of, read_mark, vouch, write_manifest
from aria_dvc.cache.vectors import VectorStore, forget, vectors_file
from aria_dvc.errors import AriaError
from aria_dvc.learning.checkpoints import run_key

TEXTS = ["one", "two", "three"]
VECTORS = np.arange(12, dtype=np.float32).reshape(3, 4)
DAY_S = 86400


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(folder_module, "_used", set())
    return tmp_path / "cache"


# Lines


def filled(tmp_path, count=5):
    lines = CheckedLines(tmp_path / "x.jsonl")
    for number in range(count):
        lines.add({"number": number, "text": "naïve\n"})
    return lines


def test_every_flipped_bit_of_a_line_is_noticed(tmp_path):
    lines = filled(tmp_path, 3)
    whole = lines.path.read_bytes()
    second = range(whole.index(b"\n") + 1, whole.index(b"\n", whole.index(b"\n") + 1))
    for place in second:
        for bit in (1, 2, 16, 128):
            damaged = bytearray(whole)
            damaged[place] ^= bit
            lines.path.write_bytes(damaged)
            assert [entry["number"] for entry in lines.read()] == [0, 2], (place, bit)
            assert lines.bad_lines()[0] == 2


def test_a_damaged_line_is_named_and_kept_beside(tmp_path, caplog):
    lines = filled(tmp_path)
    damaged = lines.path.read_bytes().replace(b'"number":2', b'"number":7')
    lines.path.write_bytes(damaged)
    lines.mend("they are played again")
    assert "x.jsonl: line 3 damaged, kept in x.damaged.jsonl: they are played" in caplog.text
    assert [entry["number"] for entry in lines.read()] == [0, 1, 3, 4]
    assert b'"number":7' in lines.damaged.read_bytes()
    caplog.clear()
    lines.mend("they are played again")
    assert not caplog.text


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_last_line_is_dropped_without_a_word(tmp_path, caplog, cut):
    lines = filled(tmp_path)
    lines.path.write_bytes(lines.path.read_bytes()[:-cut])
    lines.mend("")
    assert [entry["number"] for entry in lines.read()] == [0, 1, 2, 3]
    assert not caplog.text
    assert not lines.damaged.exists()
    lines.add({"number": 4})
    assert len(lines.read()) == 5


def test_what_a_lost_page_leaves_is_a_damaged_line(tmp_path, caplog):
    lines = filled(tmp_path)
    lines.path.write_bytes(lines.path.read_bytes()[:-30] + b"\0" * 29 + b"\n")
    lines.mend("")
    assert "line 5 damaged" in caplog.text
    assert len(lines.read()) == 4


# Sums


def test_a_manifest_notices_flips_losses_and_its_own_damage(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "weights").write_bytes(b"abc")
    write_manifest(tmp_path)
    mark = tmp_path / MANIFEST
    assert damage_of(mark) == []
    flip(tmp_path / "sub" / "weights", at=-1)
    assert damage_of(mark) == ["sub/weights"]
    (tmp_path / "sub" / "weights").unlink()
    assert damage_of(mark) == ["sub/weights"]
    vouch(mark, [], loss=0.25)
    assert read_mark(mark) == {"loss": 0.25, "sums": {}}
    mark.write_text(mark.read_text().replace("0.25", "0.26"))
    assert damage_of(mark) == [MANIFEST]
    mark.write_text("")
    with pytest.raises(ValueError, match="damaged"):
        read_mark(mark)


# Vectors


def stored(model="m"):
    store = VectorStore(model)
    store.put(TEXTS, VECTORS)
    return store


def change(cache, statement, *values):
    with sqlite3.connect(vectors_file(cache)) as db:
        db.execute(statement, values)


def test_vectors_come_back_as_they_were(cache):
    found = stored().get([*TEXTS, "four"])
    assert list(found) == TEXTS
    np.testing.assert_array_equal(np.stack(list(found.values())), VECTORS)
    assert VectorStore("another").get(TEXTS) == {}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET value = zeroblob(16) WHERE rowid = 2",
        "UPDATE vectors SET value = substr(value, 1, 12) WHERE rowid = 2",
        "UPDATE vectors SET value = NULL WHERE rowid = 2",
        "UPDATE vectors SET length = 3 WHERE rowid = 2",
        "UPDATE vectors SET length = NULL WHERE rowid = 2",
        "UPDATE vectors SET length = CAST(x'ff' AS TEXT) WHERE rowid = 2",
        "UPDATE vectors SET sum = x'00' WHERE rowid = 2",
        # another text's vector, whole in itself
        "UPDATE vectors SET (value, sum) = (SELECT value, sum FROM vectors WHERE rowid = 1) "
        "WHERE rowid = 2",
    ],
)
def test_a_damaged_vector_is_named_and_not_found(cache, caplog, capsys, statement):
    store = stored()
    change(cache, statement)
    assert list(store.get(TEXTS)) == ["one", "three"]
    assert f"{vectors_file(cache)}: 1 damaged vectors: they are computed again" in caplog.text
    assert main(["cache", "verify"]) == 1
    assert "vectors.sqlite: 1 vectors" in capsys.readouterr().out
    store.put(TEXTS, VECTORS)
    assert list(store.get(TEXTS)) == TEXTS
    assert main(["cache", "verify"]) == 0


def test_a_vector_that_is_not_finite_is_not_taken_even_if_its_sum_is_right(cache):
    store = VectorStore("m")
    store.put(["one"], np.array([[1.0, np.nan]], np.float32))
    assert store.get(["one"]) == {}


@pytest.mark.parametrize("content", [b"no database at all" * 100, None])
def test_a_file_that_sqlite_cannot_read_is_moved_aside(cache, caplog, capsys, content):
    store = VectorStore("m")
    many = [str(number) for number in range(500)]
    store.put(many, np.ones((500, 64), np.float32))
    file = vectors_file(cache)
    if content is None:
        whole = bytearray(file.read_bytes())
        whole[4096 : len(whole) - 4096] = b"\xff" * (len(whole) - 8192)
        content = bytes(whole)
    file.write_bytes(content)
    assert main(["cache", "verify"]) == 1
    assert str(file) in capsys.readouterr().out
    assert main(["cache", "list"]) == 0
    assert store.get(many) == {}
    assert "vectors.sqlite is damaged, kept as vectors.sqlite.damaged-" in caplog.text
    store.put(TEXTS, VECTORS)
    assert list(store.get(TEXTS)) == TEXTS
    (kept,) = cache.glob("vectors.sqlite.damaged-*")
    assert kept.read_bytes() == content
    capsys.readouterr()
    assert main(["cache", "list"]) == 0
    assert "1 set aside as damaged" in capsys.readouterr().out


def test_a_locked_file_is_one_line(cache, monkeypatch):
    monkeypatch.setattr("aria_dvc.cache.vectors.PATIENCE_S", 0.1)
    store = stored()
    with sqlite3.connect(vectors_file(cache)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(AriaError, match="has been locked by another process"):
            store.get(TEXTS)


def test_the_day_of_use_is_that_of_the_last_look(cache):
    store = stored()
    change(cache, "UPDATE vectors SET day = 3")
    store.get(["two"])
    forget(vectors_file(cache), [3])
    assert list(store.get(TEXTS)) == ["two"]


@pytest.mark.parametrize("day", ["NULL", "x'00'", "CAST(x'ff' AS TEXT)"])
def test_a_damaged_day_is_long_ago_until_the_next_look(cache, day):
    store = stored()
    change(cache, f"UPDATE vectors SET day = {day} WHERE rowid = 2")
    change(cache, f"UPDATE vectors SET day = {day} WHERE rowid = 3")
    assert main(["cache", "list"]) == 0
    assert list(store.get(["one", "two"])) == ["one", "two"]
    prune(cache, oldest_s=10 * 86_400)
    assert list(store.get(TEXTS)) == ["one", "two"]


# Locks

HOLDER = """
import sys, time
from pathlib import Path
from aria_dvc.cache.locks import FolderLock
with FolderLock(Path(sys.argv[1])).held():
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env={**os.environ, "PYTHONPATH": "src"},
        text=True,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_told_by_whom_a_folder_is_held_and_a_kill_frees_it(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "GRACE_S", 0.2)
    process = holder(tmp_path / "a")
    started = time.monotonic()
    with pytest.raises(AriaError) as caught, FolderLock(tmp_path / "a").held():
        pass
    assert time.monotonic() - started < 2
    said = str(caught.value)
    assert f"{tmp_path}/a is in use by process {process.pid} on {os.uname().nodename} since" in said
    assert "-c" in said
    assert said.endswith("wait until it has ended, or end it, and run again")
    with FolderLock(tmp_path / "b").held():
        pass
    process.send_signal(signal.SIGKILL)
    with FolderLock(tmp_path / "a").held():
        process.wait()


def test_a_holder_that_is_just_ending_is_waited_for(tmp_path):
    process = holder(tmp_path / "a")
    subprocess.Popen(["sh", "-c", f"sleep 1; kill -9 {process.pid}"])
    with FolderLock(tmp_path / "a").held():
        process.wait()


def test_a_lock_may_be_taken_again_by_the_same_object(tmp_path):
    lock = FolderLock(tmp_path / "a")
    with lock.held(), lock.held():
        assert not FolderLock(tmp_path / "a").take()
    assert FolderLock(tmp_path / "a").take()


# Sizes and ages


def key(name):
    """A run's key that tests can read."""
    return name.encode().hex().ljust(24, "0")


def named(path):
    """Whose key it is; a folder that is being removed has another name."""
    aside = path.name.startswith(".")
    return path.name if aside else bytes.fromhex(path.name).rstrip(b"\0").decode()


def training(cache, name, kib, days, kind="policy"):
    folder = cache / kind / key(name)
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"x" * 1024 * kib)
    (folder / "used").touch()
    then = time.time() - days * DAY_S
    for path in (folder / "weights", folder / "used"):
        os.utime(path, (then, then))
    return folder


def left(cache):
    return sorted(named(path) for path in cache.glob("*/*"))


def test_what_was_used_longest_ago_goes_first(cache):
    for name, days in (("new", 0), ("old", 9), ("older", 20), ("middle", 3)):
        training(cache, name, 100, days)
    pruned = prune(cache, most=250 * 1024)
    assert left(cache) == ["middle", "new"]
    assert [named(entry.path) for entry in pruned.removed] == ["older", "old"]
    assert pruned.left == sum(p.stat().st_size for p in cache.rglob("*") if p.is_file())
    assert prune(cache, oldest_s=2 * DAY_S).freed == 100 * 1024
    assert left(cache) == ["new"]
    assert prune(cache).removed == []


def test_what_is_held_or_used_here_is_kept_however_old(cache, capsys):
    held, used = training(cache, "held", 100, 50), training(cache, "used", 100, 60)
    training(cache, "free", 100, 40)
    process = holder(held)
    os.utime(held / "used", (0, 0))
    note_use(used / "inside")
    assert main(["cache", "prune", "--gib", "0"]) == 0
    assert left(cache) == ["held", "used"]
    assert f"kept, in use: {held}" in capsys.readouterr().out
    process.kill()
    process.wait()
    prune(cache, most=0)
    assert left(cache) == ["used"]


def test_nothing_that_is_not_the_caches_goes(cache):
    (cache / "vllm" / "venv").mkdir(parents=True)
    (cache / "notes.txt").write_text("mine")
    (cache / "collect").mkdir()
    (cache / "collect" / "mine.txt").write_text("mine")
    (cache / "policy" / "adversarial").mkdir(parents=True)
    (cache / "policy" / "adversarial" / "weights").write_text("mine")
    training(cache, "key", 1, 1, "online")
    prune(cache, most=0, oldest_s=0)
    assert sorted(path.relative_to(cache).as_posix() for path in cache.rglob("*")) == [
        *("collect", "collect/mine.txt", "notes.txt", "online"),
        *("policy", "policy/adversarial", "policy/adversarial/weights", "vllm", "vllm/venv"),
    ]


def test_a_cache_that_is_a_file_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").write_text("x")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine"))
    assert main(["cache", "list"]) == 1
    assert f"{tmp_path / 'mine'} is a file, and the cache is a folder" in capsys.readouterr().err


def test_what_games_and_trainings_are_found_by_is_known_as_the_caches(cache):
    journal, run = Journal({"game": "g"}).folder, run_key("policy", "data", "base", {})
    for folder in (journal, cache / "policy" / run):
        folder.mkdir(parents=True)
    assert {entry.path.name for entry in entries(cache)} == {journal.name, run}


def test_old_vectors_go_and_their_room_with_them(cache):
    store = VectorStore("m")
    store.put([str(i) for i in range(1000)], np.ones((1000, 256), np.float32))
    change(cache, "UPDATE vectors SET day = 3")
    store.put(TEXTS, VECTORS)
    before = vectors_file(cache).stat().st_size
    note_use(vectors_file(cache))
    prune(cache, most=0)
    assert list(VectorStore("m").get([*TEXTS, "1"])) == TEXTS
    assert vectors_file(cache).stat().st_size < before / 10


def test_a_stage_keeps_the_cache_within_its_limit_and_what_it_used_itself(cache, caplog):
    caplog.set_level("INFO")
    training(cache, "old", 100, 9)
    keep_within(0)
    assert left(cache) == ["old"]  # it has not used the cache
    note_use(training(cache, "mine", 100, 30))
    keep_within(100 * 1024 / GIB)
    assert left(cache) == ["mine"]
    assert "1 entries used longest ago removed to stay within pace.cache_limit_gib" in caplog.text


def test_vectors_that_another_process_has_locked_fail_no_stage(cache, caplog, monkeypatch):
    monkeypatch.setattr(vectors, "PATIENCE_S", 0.1)
    VectorStore("m").put(TEXTS, VECTORS)
    note_use(training(cache, "mine", 100, 30))
    other = sqlite3.connect(vectors_file(cache))
    other.execute("BEGIN EXCLUSIVE")
    keep_within(0)
    other.close()
    assert "could not be pruned" in caplog.text
    assert len(VectorStore("m").get(TEXTS)) == 3


def test_of_a_launch_only_the_first_process_prunes(cache, monkeypatch):
    training(cache, "old", 100, 9)
    note_use(training(cache, "mine", 100, 30))
    monkeypatch.setenv("RANK", "1")
    keep_within(0)
    assert left(cache) == ["mine", "old"]


def test_what_goes_while_it_is_counted_is_passed_over(cache, monkeypatch):
    training(cache, "run", 100, 9)
    below = cache / "policy" / key("run") / "checkpoint-1" / "more"
    below.mkdir(parents=True)
    look = Path.lstat

    def gone(path):
        shutil.rmtree(below.parent, ignore_errors=True)
        return look(path)

    monkeypatch.setattr(Path, "lstat", gone)
    assert [named(entry.path) for entry in entries(cache)] == ["run"]


KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from aria_dvc.aside import written_aside
with written_aside(Path(sys.argv[1])) as aside:
    aside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_writers_left_in_a_run_that_is_finished_goes_with_the_next_prune(cache):
    target = cache / "policy" / key("key") / "iteration-1" / "state.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", KILLED_WRITER, str(target)]
    subprocess.run(command, env=environment, check=False)
    assert list(cache.rglob("*.aside"))
    prune(cache)
    assert list(cache.rglob("*.aside")) == []
    assert target.parent.is_dir()


def test_a_killed_prune_is_finished_by_the_next(cache):
    training(cache, "old", 100, 9)
    script = """
import os, shutil, signal, sys
from pathlib import Path
from aria_dvc.cache.prune import prune
shutil.rmtree = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
prune(Path(sys.argv[1]), most=0)
"""
    command = [sys.executable, "-c", script, str(cache)]
    process = subprocess.run(command, env={**os.environ, "PYTHONPATH": "src"}, check=False)
    assert process.returncode == -signal.SIGKILL
    assert len(left(cache)) == 1
    assert left(cache) != ["old"]
    prune(cache)
    assert left(cache) == []


# The command


def test_list_counts_by_kind(cache, capsys):
    training(cache, "a", 2048, 3)
    training(cache, "b", 1024, 5, "base_model")
    CheckedLines(cache / "collect" / key("key") / "episodes.jsonl").path.parent.mkdir(parents=True)
    stored()
    assert main(["cache", "list"]) == 0
    out = capsys.readouterr().out
    assert f"{cache}\n" in out
    for line in ("2 trainings", "3 MiB   used 3 to 5 days ago", "1 journals", "1 vectors"):
        assert line in out


@pytest.mark.parametrize("hour", [0.01, 12, 23.9])
def test_vectors_are_as_old_as_their_day_says_at_most(cache, capsys, monkeypatch, hour):
    now = 20_000 * DAY_S + hour * 3600
    monkeypatch.setattr(time, "time", lambda: now)
    stored()
    assert main(["cache", "list"]) == 0
    assert "used less than a day ago" in capsys.readouterr().out
    assert main(["cache", "prune", "--days", "0.5"]) == 0
    assert "removed 0 " in capsys.readouterr().out
    change(cache, "UPDATE vectors SET day = day - 2 WHERE rowid = 1")
    assert main(["cache", "list"]) == 0
    assert "used 0 to 1 days ago" in capsys.readouterr().out
    assert main(["cache", "prune", "--days", "1"]) == 0
    assert "removed 1 " in capsys.readouterr().out
    assert len(VectorStore("m").get(TEXTS)) == 2


@pytest.mark.parametrize(
    ("days", "said"), [(0.5, "less than a day"), (1.5, "1 day"), (3, "3 days")]
)
def test_one_age_is_said_once(cache, capsys, days, said):
    training(cache, "a", 1, days)
    assert main(["cache", "list"]) == 0
    assert f"used {said} ago\n" in capsys.readouterr().out


@pytest.mark.parametrize("bound", ["-1", "nan", "inf", "ten"])
@pytest.mark.parametrize("option", ["--gib", "--days"])
def test_a_bound_that_is_none_is_one_line_with_the_remedy(cache, capsys, option, bound):
    with pytest.raises(SystemExit):
        main(["cache", "prune", option, bound])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"argument {option}: {bound} is no bound: give a number from 0 on" in line


def test_verify_names_file_and_line(cache, capsys):
    journal = cache / "collect" / key("key")
    journal.mkdir(parents=True)
    lines = CheckedLines(journal / "episodes.jsonl")
    for number in range(3):
        lines.add(number)
    result = training(cache, "key", 1, 0)
    write_manifest(result)
    assert main(["cache", "verify"]) == 0
    flip(lines.path, at=3)
    flip(result / "weights", at=-1)
    assert main(["cache", "verify"]) == 1
    told = capsys.readouterr()
    assert f"damaged: {lines.path}: line 1\n" in told.out
    assert f"damaged: {result / 'weights'}\n" in told.out
    assert "2 damaged in" in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("action", ["list", "verify", "prune"])
def test_no_cache_and_no_bound_are_one_line(cache, capsys, action):
    assert main(["cache", action]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    with pytest.raises(SystemExit):
        main(["cache", "prune", "--gib", "-1"])
    assert not Path(cache).exists()
