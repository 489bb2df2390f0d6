"""`aria truth` and the stage of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest
import stages.truth

from aria_dvc.__main__ import main
from aria_dvc.arena.sessions import Session
from aria_dvc.games.registry import get_game
from aria_dvc.params import load_params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.records.published import write_log
from aria_dvc.records.schemas import TRUTH, read_table
from aria_dvc.settings.dialogues import TruthParams
from aria_dvc.truth.table import Question, truth_table

FILE = Path(__file__).parent.parent / "params.yaml"
PARAMS = load_params(FILE)
SETTINGS = TruthParams(turns=6, continuations=4, draws=2, draw_continuations=1)
OPTIONS = "--turns 6 --continuations 4 --draws 2 --players scripted".split()


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARIA_CACHE", str(tmp_path_factory.mktemp("cache")))
        pools = {"alice": "scripted:mixed", "bob": "scripted:varied"}
        session = Session(
            get_game("bargaining"), pools, PARAMS.collect, 4, "glee48", model=str(FILE)
        )
        return session.play(PARAMS)


@pytest.fixture
def log(games, tmp_path, monkeypatch):
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "games.jsonl", games)
    return str(tmp_path / "games.jsonl")


def run(*arguments) -> int:
    return main(["truth", *arguments, "--params", str(FILE), "--model", str(FILE)])


def test_the_command_writes_the_table(log, games, tmp_path):
    out = tmp_path / "truth.parquet"
    assert run(log, "--out", str(out), *OPTIONS, "--gamma", "0.9", "--seed", "3") == 0
    table = read_table(out, TRUTH)
    params = PARAMS.model_copy(update={"seed": 3})
    asked = Question(SETTINGS, 0.9, ["scripted"], str(FILE))
    assert table.equals(truth_table(params, games, asked))
    assert len(table) == 6
    assert run(log, "--out", str(out), *OPTIONS, "--gamma", "0.9") == 0  # another seed
    assert not read_table(out, TRUTH).equals(table)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--players", "scripted"], "--turns: say how many turns; truth.turns"),
        ([*OPTIONS, "--draws", "3"], "--draws 3: Input should be a multiple of 2"),
        ([*OPTIONS, "--draw-continuations", "0"], "--draw-continuations 0: Input should be"),
        ([*OPTIONS, "--gamma", "1.5"], "--gamma 1.5 is outside 0..1"),
        (["--turns", "6"], "nobody of the kinds policy, base, endpoint said anything"),
    ],
)
def test_what_is_wrong_is_one_line(log, tmp_path, capsys, options, said):
    assert run(log, "--out", str(tmp_path / "t.parquet"), *options) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "t.parquet").exists()


def test_the_log_is_not_written_over(log, capsys):
    before = Path(log).read_bytes()
    assert run(log, "--out", log, *OPTIONS) == 1
    assert "is the same file as the log" in capsys.readouterr().err
    assert Path(log).read_bytes() == before


def test_the_stage_measures_what_was_played_and_nothing_by_default(log, games, tmp_path):
    files = files_of(PARAMS, "bargaining")
    stages.truth.main(PARAMS, "bargaining")  # without any log, and without a model
    assert read_table(files.truth, TRUTH).empty
    write_log(files.raw, games)
    played = PARAMS.logs["bargaining"].model_copy(update={"source": "models/language/none"})
    players = PARAMS.prepare.model_copy(update={"players": ["scripted"]})
    asked = {"truth": SETTINGS, "prepare": players, "logs": {"bargaining": played}}
    (tmp_path / "models/language/none").mkdir(parents=True)
    stages.truth.main(PARAMS.model_copy(update=asked), "bargaining")
    assert len(read_table(files.truth, TRUTH)) == 6
    own = PARAMS.logs["bargaining"].model_copy(update={"source": "log.jsonl"})
    own_log = PARAMS.model_copy(update={**asked, "logs": {"bargaining": own}})
    stages.truth.main(own_log, "bargaining")
    assert read_table(files.truth, TRUTH).empty
