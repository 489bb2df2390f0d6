"""Games that several processes play: the same games, all of them, and no process left behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.arena.sessions import Session
from aria_dvc.arena.side_by_side import play_side_by_side, processes
from aria_dvc.cache.lines import CheckedLines
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.params import load_params

PARAMS = load_params(Path(__file__).parent.parent / "params.yaml")


def paced(processes):
    """In float32: in bfloat16 other games in a pass change what is said in one."""
    settings = {"processes": processes, "cache_gib": 0.05, "precision": "float32"}
    pace = PARAMS.pace.model_copy(update=settings)
    return PARAMS.model_copy(update={"pace": pace})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def session(model, **changes):
    settings = {"episodes": 7, "grid": "glee48", "repeats": 2, **changes}
    players = {"alice": "policy", "bob": "scripted:varied"}
    return Session(get_game("bargaining"), players, PARAMS.collect, model=model, **settings)


def played(folder, monkeypatch, sessions, processes):
    monkeypatch.setenv("ARIA_CACHE", str(folder))
    found = play_side_by_side(paced(processes), sessions, "games")
    return found, len(list(folder.rglob("episodes.jsonl")))


def test_two_processes_play_what_one_plays(model, tmp_path, monkeypatch):
    sessions = [session(model), session(model, purpose="evaluate")]
    alone, _ = played(tmp_path / "alone", monkeypatch, sessions, 1)
    both, journals = played(tmp_path / "both", monkeypatch, sessions, 2)
    assert both == alone
    assert journals == 4
    assert [len(episodes) for episodes in both] == [7, 7]


def test_one_session_is_dealt_to_two_processes_by_whole_groups(model, tmp_path, monkeypatch):
    (episodes,), journals = played(tmp_path, monkeypatch, [session(model)], 2)
    assert [e.episode_id for e in episodes] == [f"bargaining-{i:05d}" for i in range(7)]
    assert journals == 2
    groups = [{e.record.group_id for e in part.play(paced(1))} for part in session(model).dealt(2)]
    assert groups == [
        {"bargaining-00000", "bargaining-00002"},
        {"bargaining-00001", "bargaining-00003"},
    ]


def test_what_was_played_is_not_played_again(model, tmp_path, monkeypatch):
    first, _ = played(tmp_path, monkeypatch, [session(model)], 2)
    monkeypatch.setattr("aria_dvc.arena.side_by_side._play_apart", None)
    assert played(tmp_path, monkeypatch, [session(model)], 2)[0] == first


@pytest.mark.parametrize("workers", [1, 4])
def test_what_so_many_processes_have_played_any_other_number_finds(
    workers, model, tmp_path, monkeypatch
):
    alone, _ = played(tmp_path / "alone", monkeypatch, [session(model)], 1)
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path / "gone on"))
    session(model).dealt(2)[0].play(paced(2))  # the other process was killed
    assert played(tmp_path / "gone on", monkeypatch, [session(model)], workers)[0] == alone
    lines = [CheckedLines(file).read() for file in (tmp_path / "gone on").rglob("episodes.jsonl")]
    once = [episode["episode_id"] for found in lines for episode in found]
    assert sorted(once) == [episode.episode_id for episode in alone[0]]


def test_a_run_excludes_one_with_another_number_of_processes(model, tmp_path, monkeypatch):
    def meanwhile(params, shares, title):
        with pytest.raises(AriaError, match="is in use by process"):
            play_side_by_side(paced(1), [session(model)], "games")

    monkeypatch.setattr("aria_dvc.cache.locks.GRACE_S", 0.1)
    monkeypatch.setattr("aria_dvc.arena.side_by_side._play_apart", meanwhile)
    (episodes,), _ = played(tmp_path, monkeypatch, [session(model)], 2)
    assert len(episodes) == 7


def test_scripted_games_and_games_on_servers_need_no_second_process(model, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    served = session(model, served_by=("gpu",))
    assert processes(paced("auto"), [served]) == processes(paced(3), [served]) == 1
    assert processes(paced(3), [served, session(model)]) == 3
    assert processes(paced("auto"), [session(model)]) in (1, 4)  # 1 on a GPU


@dataclass(frozen=True)
class Dying(Session):
    def series(self, params, journal):
        os._exit(9)


@dataclass(frozen=True)
class Failing(Session):
    def series(self, params, journal):
        raise AriaError("no such player")


@pytest.mark.parametrize(("kind", "said"), [(Dying, "lack of memory"), (Failing, "no such player")])
def test_a_process_that_fails_is_one_clear_error(kind, said, model, tmp_path, monkeypatch):
    wrong = kind(**vars(session(model)))
    with pytest.raises(AriaError, match=said):
        played(tmp_path, monkeypatch, [wrong, session(model, purpose="other")], 2)


class Sleeping(Dying):
    def series(self, params, journal):
        Path(os.environ["ARIA_CACHE"], f"pid-{os.getpid()}").touch()
        time.sleep(600)


RUN = """
from test_side_by_side import *
wrong = Sleeping(**vars(session(sys.argv[1])))
play_side_by_side(paced(2), [wrong], "games")
"""


def test_no_process_outlives_a_killed_run(model, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ARIA_CACHE": str(tmp_path),
    }
    run = subprocess.Popen([sys.executable, "-c", RUN, model], env=environment)
    started = wait_for(lambda: [p.name for p in tmp_path.glob("pid-*")], 2)
    run.send_signal(signal.SIGKILL)
    run.wait()
    pids = [int(name.removeprefix("pid-")) for name in started]
    assert len(pids) == 2
    assert wait_for(lambda: [p for p in pids if not Path(f"/proc/{p}/stat").exists()], 2)


def wait_for(found, count, seconds=60.0):
    """What `found()` returns once that is `count` long."""
    end = time.monotonic() + seconds
    while len(result := found()) < count:
        assert time.monotonic() < end
        time.sleep(0.1)
    return result


def test_who_starts_the_processes_loads_no_library_of_models():
    """They start seconds earlier."""
    code = (
        "import sys, aria_dvc.arena.evaluate, aria_dvc.pipeline.online; "
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
