"""No malformed input ends in a traceback: every one gets its line (see tests/data/malformed)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from malformed import cases, content, load_changed
from stored_log import NAME, STAGES, params_of
from test_failures import OWN
from test_stage_tables import WRONG
from tiny_models import tiny_model

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError
from aria_dvc.models.lora import add_lora, load_adapter
from aria_dvc.models.source import ModelSource
from aria_dvc.pipeline.paths import files_of
from aria_dvc.records.readers import read_log
from aria_dvc.settings.training import Lora
from aria_dvc.shown import printable

LOGS, PARAMS, FOLDERS = cases("logs"), cases("params"), cases("folders")


def test_the_corpus_is_large():
    assert len(LOGS) + len(PARAMS) + len(FOLDERS) + len(WRONG) >= 120


def written(name: str, path: Path) -> Path:
    path.write_bytes(content(LOGS[name], "log"))
    return path


@pytest.mark.parametrize("name", LOGS)
def test_a_log_gets_its_line(name, tmp_path, caplog):
    log, entry = written(name, tmp_path / "log.jsonl"), LOGS[name]
    error = None
    try:
        read_log(log)
    except AriaError as problem:
        error = str(problem).replace(str(log), "LOG")
    warned = [printable(line).replace(str(log), "LOG") for line in caplog.messages]
    assert error == entry.get("error")
    assert warned == ([entry["warns"]] if "warns" in entry else [])


@pytest.mark.parametrize("name", LOGS)
def test_credit_and_prepare_end_in_a_line_or_go_on(name, tmp_path, monkeypatch, capsys):
    """The same through the command (as fitted and as scored log) and through the stages."""
    log, good = written(name, tmp_path / "log.jsonl"), tmp_path / "good.jsonl"
    good.write_text('{"actions": ["Is it big?"], "obs": ["Yes."], "reward": 0}\n')
    options = ("--method", "constant", "--out", str(tmp_path / "credit.parquet"))
    status = main(["credit", str(log), *options])
    assert status == ("error" in LOGS[name])
    shown = [capsys.readouterr().err]
    main(["credit", str(good), "--score", str(log), *options])
    shown.append(capsys.readouterr().err)
    monkeypatch.chdir(tmp_path)
    params = params_of(log)
    if "error" in LOGS[name]:
        raw = files_of(params, NAME).raw
        raw.parent.mkdir(parents=True)
        written(name, raw)
        with pytest.raises(AriaError, match=str(raw)):
            STAGES["prepare"].main(params, NAME)
    else:
        for stage in ("collect", "prepare"):
            STAGES[stage].main(params, NAME)
    for text in shown:
        assert text.count("\n") == bool(text)
        assert text == printable(text, keep="\n")


@pytest.mark.parametrize(
    "name", ["a key twice", "a line cut off", "UTF-16", "a role that differs by case"]
)
def test_a_real_process_ends_in_one_line(name, tmp_path):
    log = written(name, tmp_path / "log.jsonl")
    command = [sys.executable, "-m", "aria_dvc", "credit", str(log)]
    command += ["--method", "constant", "--out", str(tmp_path / "credit.parquet")]
    done = subprocess.run(
        command, env=OWN, capture_output=True, text=True, check=False, timeout=120
    )
    expected = LOGS[name]["error"].replace("LOG", str(log))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {expected}\n")


@pytest.mark.parametrize("name", PARAMS)
def test_params_get_their_line(name, tmp_path):
    line = load_changed(PARAMS[name], tmp_path / "params.yaml")
    assert line is not None
    assert line.startswith(PARAMS[name]["error"])
    assert "\n" not in line
    assert line == printable(line)
    assert len(line) < 2000


@pytest.mark.parametrize("place", ["folder", "missing", "zero byte"])
def test_paths_that_are_no_file(place, tmp_path):
    path = {"folder": str(tmp_path), "missing": f"{tmp_path}/x", "zero byte": f"{tmp_path}/\0"}
    with pytest.raises(AriaError, match="cannot be read"):
        read_log(path[place])


@pytest.fixture(scope="module")
def adapter(tmp_path_factory) -> Path:
    """An adapter as a stage writes it."""
    folder = tmp_path_factory.mktemp("adapter")
    lora = Lora(rank=2, alpha=4, dropout=0.0, target_modules=["q_proj"], layers=None)
    add_lora(tiny_model(), lora, "policy").save_pretrained(folder)
    load_adapter(tiny_model(), folder)
    return folder


@pytest.mark.parametrize("name", FOLDERS)
def test_an_adapter_gets_its_line(name, tmp_path, adapter):
    entry, folder = FOLDERS[name], tmp_path / "adapter"
    folder.mkdir()
    for file in adapter.iterdir():
        if file.name not in entry.get("without", ()):
            (folder / file.name).write_bytes(file.read_bytes())
    for file, text in entry.get("files", {}).items():
        (folder / file).write_bytes(text.encode("latin-1"))
    if "error" in entry:
        said = refused(lambda: load_adapter(tiny_model(), folder))
        assert str(folder) in said
        assert entry["error"] in said
    if "base" in entry:
        assert entry["base"] in refused(ModelSource(folder).base)


def refused(call) -> str:
    with pytest.raises(AriaError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)
