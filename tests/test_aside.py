"""Whole or absent, whoever else writes and whenever the writer is killed."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aria_dvc import aside as module
from aria_dvc.aside import discard, is_leftover, remove_leftovers, written_aside
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_json

SIZE = 200_000
# Writes one content over and over; says how often it was told that it had.
WRITER = """
import sys, time
from pathlib import Path
from aria_dvc.aside import written_aside
target, letter, folder, ends = Path(sys.argv[1]), sys.argv[2], sys.argv[3], time.time() + 1.5
count = 0
while time.time() < ends:
    with written_aside(target) as aside:
        if folder == "folder":
            aside.mkdir()
        files = [aside / "a", aside / "b"] if folder == "folder" else [aside]
        for file in files:
            with file.open("w") as out:
                for _ in range(20):
                    out.write(letter * 10_000)
                    out.flush()
    count += 1
print(count)
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from aria_dvc import aside as module
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
with module.written_aside(Path(sys.argv[1])) as aside:
    if sys.argv[2] == "folder":
        aside.mkdir()
        (aside / "a").write_text("new")
    else:
        aside.write_text("half")
    if sys.argv[3] == "write":
        die()
    module._swapped = lambda one, other: False
    renames, rename = [], os.rename
    def counted(one, other):
        rename(one, other)
        renames.append(one)
        if len(renames) == int(sys.argv[3]):
            die()
    os.rename = counted
"""


def run(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": "src"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, **options)


def write_folder(target, **files):
    with written_aside(target) as aside:
        aside.mkdir()
        for name, text in files.items():
            (aside / name).write_text(text)


def write_half(target):
    with written_aside(target) as aside:
        aside.write_text("half")
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_writers_side_by_side_never_tear_what_is_read(tmp_path, kind):
    target = tmp_path / "target"
    writers = [run(WRITER, target, letter, kind) for letter in "xyz"]
    reads, seen = 0, set()
    while any(writer.poll() is None for writer in writers):
        file = target / "a" if kind == "folder" else target
        try:
            content = file.read_text()
        except FileNotFoundError:
            assert not seen  # once there, always there: a folder is swapped in one step
            continue
        assert len(content) == SIZE
        assert len(set(content)) == 1
        seen |= set(content)
        reads += 1
    counts = [int(writer.communicate()[0]) for writer in writers]
    assert all(writer.returncode == 0 for writer in writers)
    assert min(counts) > 0
    assert reads > 0
    if kind == "folder":
        assert {(target / name).read_text()[0] for name in "ab"} <= set("xyz")
        assert len({(target / name).read_text() for name in "ab"}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


TINY = """
import sys, time
from aria_dvc.files import write_json
ends = time.time() + 2
while time.time() < ends:
    write_json(sys.argv[1], [int(sys.argv[2])] * 3)
"""


def test_many_short_writes_of_one_file_all_succeed(tmp_path):
    target = tmp_path / "target.json"
    writers = [run(TINY, target, number, stderr=subprocess.PIPE) for number in range(6)]
    assert [writer.communicate()[1] for writer in writers] == [""] * 6
    assert read_json(target) in [[number] * 3 for number in range(6)]
    assert [path.name for path in tmp_path.iterdir()] == ["target.json"]


def test_without_a_swap_writers_of_a_folder_still_leave_a_whole_one(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_swapped", lambda one, other: False)
    script = "from aria_dvc import aside\naside._swapped = lambda a, b: False\n" + WRITER
    writers = [run(script, tmp_path / "target", letter, "folder") for letter in "xyz"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len({(tmp_path / "target" / name).read_text() for name in "ab"}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_no_library_is_asked_to_swap_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "CDLL", None)
    assert not module._swapped(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("name", ["lock", "before"])
def test_a_folder_may_have_any_name_too(tmp_path, monkeypatch, name):
    monkeypatch.setattr(module, "_swapped", lambda one, other: False)
    for content in ("old", "new"):
        with written_aside(tmp_path / name) as aside:
            aside.mkdir()
            (aside / "a").write_text(content)
    assert (tmp_path / name / "a").read_text() == "new"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_leaves_is_removed_by_the_next_and_by_nobody_elses(tmp_path, kind):
    target, other = tmp_path / "target", tmp_path / "target.json"
    killed = run(KILLED, target, kind, "write")
    assert killed.wait() == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert is_leftover(left.name)
    write_json(other, 1)
    assert left.exists()  # not of this target
    with written_aside(target) as aside:
        aside.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target", "target.json"]


def test_a_folder_that_a_killed_writer_had_taken_away_comes_back(tmp_path):
    target = tmp_path / "target"
    with written_aside(target) as aside:
        aside.mkdir()
        (aside / "a").write_text("old")
    assert run(KILLED, target, "folder", 1).wait() == -signal.SIGKILL
    assert not target.exists()
    remove_leftovers(tmp_path, "target")
    assert (target / "a").read_text() == "old"
    assert run(KILLED, target, "folder", 2).wait() == -signal.SIGKILL
    remove_leftovers(tmp_path)
    assert (target / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_living_writer_keeps_its_folder(tmp_path):
    target = tmp_path / "target"
    with written_aside(target) as mine:
        mine.write_text("mine")
        other = run(WRITER, target, "x", "file")
        assert other.wait() == 0
        assert mine.read_text() == "mine"
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    ("machine", "changed_s", "goes"),
    [
        (lambda host, boot: f"{host}-{boot}", -100, True),
        (lambda host, boot: f"{host}-{boot}", 0, False),  # has no lock yet
        (lambda host, boot: f"{host}-00000000", -(10**9), True),  # before this machine was started
        (lambda host, boot: f"{host}-00000000", 0, False),  # a clone of it that runs now
        (lambda host, boot: "00000000-00000000", -(10**9), False),  # another machine's
    ],
)
def test_only_of_a_writer_that_is_provably_gone(tmp_path, machine, changed_s, goes):
    name = machine(*module._machine().split("-"))
    left = tmp_path / f".target.{name}-0123456789ab.aside"
    left.mkdir()
    (left / "target").write_text("half")
    for path in (left / "target", left):
        os.utime(path, (time.time() + changed_s,) * 2)
    write_json(tmp_path / "target", 1)
    assert left.exists() != goes


def test_what_looks_alike_is_left_alone(tmp_path):
    for name in (".target.aside", ".target.mine.aside", "target.aside", ".targets.x-y-z.aside"):
        (tmp_path / name).write_text("mine")
    write_json(tmp_path / "target", 1)
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


def test_files_of_others_in_a_folder_that_is_written_anew_are_not_lost(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").write_text("1")
    (target / "thesis.txt").write_text("mine")
    with pytest.raises(AriaError, match=r"target holds thesis.txt, which .* move what is yours"):
        write_folder(target, old="2")
    assert (target / "thesis.txt").read_text() == "mine"
    assert (target / "old").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_files_that_may_go_go_with_the_swap(tmp_path):
    target = tmp_path / "out"
    write_folder(target, old="1", mine="2")

    def write_new():
        with written_aside(target, ["old"]) as aside:
            aside.mkdir()
            (aside / "new").write_text("3")

    with pytest.raises(AriaError, match="holds mine"):
        write_new()
    (target / "mine").unlink()
    write_new()
    assert {path.name for path in target.iterdir()} == {"new"}


def test_a_folder_never_replaces_a_file(tmp_path):
    (tmp_path / "target").write_text("mine")
    with pytest.raises(AriaError, match="is a file where a folder"):
        write_folder(tmp_path / "target")
    assert (tmp_path / "target").read_text() == "mine"


def test_a_link_to_a_folder_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with written_aside(tmp_path / "link") as aside:
        aside.mkdir()
        (aside / "a").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "a").read_text() == "new"


def test_files_and_folder_are_synced_around_the_rename(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def recorded(opened):
        done.append(Path(os.readlink(f"/proc/self/fd/{opened}")).name)
        fsync(opened)

    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("rename"), replace(a, b)))
    write_json(tmp_path / "a.json", 1)
    assert done == ["a.json", "rename", tmp_path.name]
    done.clear()
    with written_aside(tmp_path / "folder") as aside:
        (aside / "sub").mkdir(parents=True)
        (aside / "sub" / "x").write_text("1")
    assert done == ["folder", "x", "sub", tmp_path.name]


def test_discard_is_whole_too(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    discard(tmp_path / "a")
    (tmp_path / "c").write_text("1")
    discard(tmp_path / "c")
    discard(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=60))
@example("lock")
def test_any_name_may_be_written(tmp_path, name):
    if name in (".", ".."):
        return
    write_json(tmp_path / name, {"name": name})
    assert read_json(tmp_path / name) == {"name": name}
    assert not any(is_leftover(path.name) for path in tmp_path.iterdir())


def test_a_failed_write_names_the_target_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("1")
    with pytest.raises(OSError, match="file") as caught:
        write_json(tmp_path / "file" / "target", 1)
    assert "aside" not in str(caught.value)
    with pytest.raises(ZeroDivisionError):
        write_half(tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
