"""`vllm_server.py stop` ends the process that `start` noted, and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "vllm_server.py"
sys.path.insert(0, str(SCRIPT.parent))
import vllm_server  # noqa: E402

# A server with a helper that outlives a polite request to end.
SERVER = """
import signal, subprocess, sys, time
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); "
stubborn += "print(1, flush=True); time.sleep(60)"
helper = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
helper.stdout.readline()
print(helper.pid, flush=True)
time.sleep(60)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(vllm_server, "CACHE", tmp_path)
    monkeypatch.setattr(vllm_server, "STOP_S", 0.2)
    return tmp_path


@pytest.fixture
def server() -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-c", SERVER]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    process.helper = int(process.stdout.readline())
    yield process
    if process.poll() is None:
        process.kill()
        os.kill(process.helper, 9)
    process.wait(10)


def rewrite(cache: Path, **changes: Any) -> None:
    file = cache / vllm_server.RECORD
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def lives(pid: int) -> bool:
    return vllm_server._identity(pid)["started"] is not None


def test_the_noted_server_ends_with_its_helpers(server, cache):
    vllm_server._note(server.pid, 8036)
    vllm_server.stop()
    assert not lives(server.pid)
    assert not lives(server.helper)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"started": 1}, "another one, started at another time"),
        ({"command": "python -m vllm.entrypoints.openai.api_server"}, "runs another command"),
        ({"boot": "another"}, "machine has started anew"),
        ({"boot": None}, "does not tell"),
    ],
)
def test_a_recycled_number_is_left_alone(server, cache, capsys, change, reason):
    vllm_server._note(server.pid, 8036)
    rewrite(cache, **change)
    vllm_server.stop()
    assert lives(server.pid)
    said = capsys.readouterr().err
    assert f"process {server.pid} is left alone" in said
    assert reason in said
    assert said.count("\n") == 1
    assert list(cache.iterdir()) == []


def test_a_renamed_server_is_still_the_same(server, cache, monkeypatch):
    vllm_server._note(server.pid, 8036)
    now = vllm_server._identity(server.pid)
    renamed = {**now, "command": "VLLM::APIServer"}
    monkeypatch.setattr(vllm_server, "_identity", lambda pid: renamed)
    assert vllm_server._is_ours(vllm_server._noted()) is None


def test_a_stale_note_ends_nothing(cache, capsys):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    vllm_server._note(ended.pid, 8036)
    rewrite(cache, started=1)
    ended.wait(10)
    vllm_server.stop()
    assert "it has ended" in capsys.readouterr().err
    vllm_server.stop()
    missing = cache / vllm_server.RECORD
    told = f"no server was started in this folder ({missing} is not there)\n"
    assert capsys.readouterr() == (told, "")


@pytest.mark.parametrize("text", ["", "123\n", "{}", '{"pid": "x"}', '{"pid": -1}', '{"pid": 1}'])
def test_a_damaged_note_ends_nothing(cache, text):
    (cache / vllm_server.RECORD).write_text(text)
    with pytest.raises(SystemExit, match=r"server\.json is damaged: see with ps") as caught:
        vllm_server.stop()
    assert "\n" not in str(caught.value)


def test_a_second_start_does_not_forget_the_first(server, cache, tmp_path):
    vllm_server._note(server.pid, 18036)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").touch()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").touch()
    with pytest.raises(SystemExit, match="still runs at port 18036: stop it first"):
        vllm_server.start(tmp_path / "venv", tmp_path / "model", 9, [])
    assert lives(server.pid)


def test_names_with_brackets_do_not_mislead(tmp_path):
    name = tmp_path / ") Z 1 2 (x"
    name.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(name), "60"])
    time.sleep(0.1)
    try:
        assert vllm_server._identity(process.pid)["started"] > 0
    finally:
        process.kill()
        process.wait(10)


def test_the_server_samples_as_requests_say_and_not_as_the_models_files_do(tmp_path):
    command = vllm_server._command(tmp_path, tmp_path, 1)
    assert command[command.index("--generation-config") + 1] == "vllm"
