"""Disks, files and libraries that fail: one line that says what, where and the remedy."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import load_file, save_file
from test_credit_cli import write_log

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError, naming
from aria_dvc.failures import one_line
from aria_dvc.files import read_json, read_parquet, write_json, write_parquet
from aria_dvc.pipeline.stage import run_stage

OWN = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "src")}
TABLE = pd.DataFrame({"text": [f"utterance {n}" for n in range(2000)], "n": np.arange(2000.0)})


def caught(call, *arguments) -> Exception:
    try:
        call(*arguments)
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


def line_of(call, *arguments) -> str:
    line = one_line(caught(call, *arguments))
    assert line is not None
    assert "\n" not in line
    return line


def truncated(file: Path) -> Path:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return file


def parquet(file: Path) -> Path:
    write_parquet(file, TABLE)
    return file


def flipped(file: Path) -> Path:
    """Bytes of the first page turned around: the footer is whole, the content is not."""
    raw = bytearray(file.read_bytes())
    raw[30:90] = bytes(255 - byte for byte in raw[30:90])
    file.write_bytes(bytes(raw))
    return file


def test_a_truncated_a_damaged_and_no_parquet_file(tmp_path):
    file = tmp_path / "t.parquet"
    for harm in (truncated, flipped):
        harm(parquet(file))
        assert f"{file}: no whole Parquet file" in line_of(read_parquet, file)
    file.write_bytes(b"")
    assert f"{file}: no whole Parquet file" in line_of(read_parquet, file)


def test_a_missing_column(tmp_path):
    def read() -> None:
        with naming(tmp_path / "t.parquet"):
            pq.read_table(parquet(tmp_path / "t.parquet"), schema=WANTED)

    import pyarrow as pa

    WANTED = pa.schema({"text": pa.int64()})
    assert "t.parquet: no whole Parquet file, or not the expected one" in line_of(read)


def test_a_bug_beside_parquet_stays_a_bug():
    assert one_line(caught(pd.read_parquet, 5)) is None
    assert one_line(caught(write_parquet, "/tmp/unused.parquet", "no table")) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": NaN}', b"\xff"])
def test_an_empty_or_broken_json(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    assert line_of(read_json, tmp_path / "a.json").startswith(f"{tmp_path}/a.json: broken JSON")


def test_what_pytorch_says_of_a_full_disk(tmp_path):
    """Its writer to a file that takes some bytes and then no more."""

    class Full:
        left = 5000

        def write(self, data):
            self.left -= len(data)
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return len(data)

        def flush(self):
            pass

    said = "could not write it whole (disk full?): free some space and run again"
    assert said in line_of(torch.save, {"x": torch.zeros(5000)}, Full())


def test_a_file_that_is_not_utf8(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff")

    def read() -> None:
        with naming(tmp_path / "a"):
            (tmp_path / "a").read_text("utf-8")

    assert line_of(read).startswith(f"{tmp_path}/a: not UTF-8 (byte 0)")


def test_databases_that_are_locked_damaged_none_or_full(tmp_path):
    file = tmp_path / "a.db"
    with sqlite3.connect(file) as first:
        first.execute("create table t (x)")
        first.executemany("insert into t values (?)", [("x" * 500,)] * 500)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("begin exclusive")
    assert f"{file}: the database is locked" in line_of(asked, file, "insert into t values (1)")
    holder.close()
    full = "pragma max_page_count = 1; insert into t select x from t"
    assert f"{file}: disk full" in line_of(asked, file, full)
    raw = bytearray(file.read_bytes())
    raw[4096:20000] = bytes(20000 - 4096)
    file.write_bytes(bytes(raw))
    all_rows = "select sum(length(x)) from t"
    assert f"{file}: the database is damaged" in line_of(asked, file, all_rows)
    file.write_text("no database at all, but a text of some length" * 30)
    assert f"{file}: no SQLite database" in line_of(asked, file, "select * from t")
    gone = tmp_path / "none" / "a.db"
    assert f"{gone}: the database cannot be opened" in line_of(asked, gone, "select 1")
    assert one_line(caught(asked, tmp_path / "new.db", "selct 1")) is None


def asked(file: Path, statements: str) -> None:
    with naming(file):
        connection = sqlite3.connect(file, timeout=0.05)
        for statement in statements.split(";"):
            connection.execute(statement).fetchall()


def test_safetensors_that_are_cut_or_none(tmp_path):
    file = tmp_path / "a.safetensors"
    save_file({"a": np.ones(1000)}, file)

    def read() -> None:
        with naming(file):
            load_file(file)

    for harm in (truncated, lambda f: f.write_bytes(b"")):
        harm(file)
        assert f"{file}: no whole safetensors file" in line_of(read)


def test_what_the_operating_system_refuses(tmp_path):
    (tmp_path / "file").touch()
    for path, problem in (
        (tmp_path / "file" / "b.json", "file: a part of its path is a file"),
        (tmp_path / ("x" * 300), "name too long"),
    ):
        assert problem in line_of(write_json, path, {}).replace("is there already", problem)
    assert f"{tmp_path}: a folder where a file is needed" in line_of(read_json, tmp_path)
    assert "gone.json: no such file" in line_of(read_json, tmp_path / "gone.json")
    (tmp_path / "link").symlink_to("link")
    assert "link: its links go in a circle" in line_of(read_json, tmp_path / "link")


def test_a_full_disk_names_the_file_that_does_not_fit(tmp_path):
    """Writes to /dev/full fail as on a full disk, without a word on the file."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")

    def write() -> None:
        with naming(tmp_path / "a.json"), open("/dev/full", "wb") as file:
            file.write(b"x" * 100_000)

    expected = f"{tmp_path}/a.json: disk full: free some space and run again"
    assert line_of(write) == expected

    def write_table() -> None:
        import pyarrow as pa

        with naming(tmp_path / "a.parquet"):
            pq.write_table(pa.Table.from_pandas(TABLE), "/dev/full")

    assert "disk full: free some space" in line_of(write_table)


def child(
    script: str, *arguments: object, wrap: tuple[str, ...] = ()
) -> subprocess.CompletedProcess:
    command = [*wrap, sys.executable, "-c", script, *map(str, arguments)]
    options = {"capture_output": True, "text": True, "check": False, "timeout": 120}
    return subprocess.run(command, env=OWN, **options)


LIMITED = """
import resource, sys
from aria_dvc.__main__ import main
import pandas, pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
sys.exit(main(["credit", sys.argv[1], "--method", "constant", "--out", sys.argv[2]]))
"""


def test_a_limit_of_file_sizes_ends_the_command_in_one_line(tmp_path):
    log, out = write_log(tmp_path / "log.jsonl", 200, seed=0, vectors=False), tmp_path / "c.parquet"
    done = child(LIMITED, log, out)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: {out}: larger than files may be here: raise `ulimit -f`, or write elsewhere"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


MOUNTED = """
import subprocess, sys
from pathlib import Path
from aria_dvc.__main__ import main
log, place, options = sys.argv[1:4]
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)
sys.exit(main(["credit", log, "--method", "constant", "--out", place + "/c.parquet"]))
"""
MAY_MOUNT = ("unshare", "--user", "--map-root-user", "--mount")


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = [*MAY_MOUNT, "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("size=4k", "disk full: free some space and run again"),
        ("ro", "read-only file system: mount it writable, or name another path"),
    ],
)
def test_a_full_and_a_read_only_disk_end_the_command_in_one_line(tmp_path, options, problem):
    if not may_mount():
        pytest.skip("mounting needs user namespaces")
    (tmp_path / "disk").mkdir()
    log = write_log(tmp_path / "log.jsonl", 800, seed=0, vectors=False)
    done = child(MOUNTED, log, tmp_path / "disk", options, wrap=MAY_MOUNT)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path}/disk/")
    assert line.endswith(problem)


@pytest.mark.parametrize(
    "number", [errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EMFILE, errno.EIO, errno.ENOSPC]
)
def test_a_failing_system_call_ends_stage_and_command_in_one_line(
    number, tmp_path, monkeypatch, capsys
):
    """As root permissions bind nobody: the call itself fails here, whatever the reason."""

    def refused(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    log = write_log(tmp_path / "log.jsonl", 5, seed=0, vectors=False)
    monkeypatch.setattr(os, "replace", refused)
    monkeypatch.setattr(sys, "argv", ["stage"])
    out = tmp_path / "out.parquet"
    assert main(["credit", str(log), "--method", "constant", "--out", str(out)]) == 1
    first = capsys.readouterr().err
    with pytest.raises(SystemExit, match="1"):
        run_stage(lambda params: write_json(tmp_path / "out.json", {}))
    for line in (first, capsys.readouterr().err):
        assert line.startswith(f"error: {tmp_path}/out.")
        assert line.count("\n") == 1
    assert list(tmp_path.glob(".*")) == []


def test_the_cause_counts_and_the_unknown_stays_a_bug():
    full = OSError(errno.ENOSPC, "No space left on device", "/data/a")
    wrapped = RuntimeError("training failed")
    wrapped.__cause__ = full
    assert one_line(wrapped) == "/data/a: disk full: free some space and run again"
    words = RuntimeError("Error while serializing: I/O error: No space left (os error 28)")
    assert one_line(words) == "a file: disk full: free some space and run again"
    assert one_line(AriaError("what:\n remedy")) == "what: remedy"
    for bug in (KeyError("x"), ValueError("x"), RuntimeError("x"), OSError("text alone")):
        assert one_line(bug) is None
    assert "interrupted" in (one_line(KeyboardInterrupt()) or "")
    circle = ValueError("x")
    circle.__cause__ = circle
    assert one_line(circle) is None


def test_an_interrupted_command_ends_by_the_signal_so_that_a_loop_ends_too():
    code = """
import aria_dvc.__main__ as command
from types import SimpleNamespace as Space
def stop(options):
    raise KeyboardInterrupt
command.make_parser = lambda: Space(parse_args=lambda argv: Space(run=stop))
command.run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "error: interrupted\n")


def test_nobody_reads_the_output(tmp_path):
    script = (
        "import sys; from aria_dvc.__main__ import main; sys.exit(main(['completion', 'bash']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=OWN
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read().startswith(b"error: nobody reads what is printed any more")
    assert process.wait() == 1
