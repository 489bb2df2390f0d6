"""True values by playing on: against enumeration, in any order, over kills, for every game."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.fake_game import Talker, collect_episodes
from tests.known_games import (
    CONFIG,
    GUESSING,
    NAME,
    Dicer,
    bargains,
    exact_bargaining,
    exact_guessing,
    guess,
    guessers,
    guesses,
    log_of,
    question,
)
from tests.settings import play_settings
from tests.tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.arena.assignments import Assignment
from aria_dvc.arena.replay import replayed
from aria_dvc.arena.sessions import Games, Session
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.params import load_params
from aria_dvc.players.scripted import embedded_oracle, scripted_player
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.schemas import TRUTH, read_table, write_table
from aria_dvc.records.tables import empty_table
from aria_dvc.settings.dialogues import TruthParams
from aria_dvc.truth.table import Question, truth_table
from aria_dvc.truth.turns import drawn_turns

PARAMS = load_params(Path(__file__).parent.parent / "params.yaml")
MORE_THAN_LUCK = 4.0  # standard errors


@pytest.fixture
def play(monkeypatch, tmp_path):
    """Plays on with these players, in a cache of its own or a given one."""

    def measure(episodes, asked, players, cache="cache", **pace):
        monkeypatch.setenv("ARIA_CACHE", str(tmp_path / cache))
        monkeypatch.setattr(Games, "_players", lambda self, params, named: players)
        params = PARAMS.model_copy(update={"pace": PARAMS.pace.model_copy(update=pace)})
        return truth_table(params, episodes, asked)

    return measure


def dicers() -> dict:
    return {NAME: Dicer(bargains), "embedded": embedded_oracle()}


def bargaining_log(games: int = 60, **config) -> list[Episode]:
    player = Dicer(bargains)
    return log_of("bargaining", {**CONFIG, **config}, {"alice": player, "bob": player}, games)


def errors(table: pd.DataFrame, log: list[Episode], exact) -> pd.DataFrame:
    """What is measured less what is true."""
    by_id = {episode.episode_id: episode for episode in log}
    pairs = zip(table["episode_id"], table["position"], strict=True)
    known = np.array([exact(by_id[name], position) for name, position in pairs])
    q, v = known.T
    return pd.DataFrame(
        {"q": table["q"] - q, "v": table["v"] - v, "advantage": table["advantage"] - (q - v)}
    )


@pytest.mark.parametrize(("turns", "each"), [(80, 1), (50, 3)])
def test_bargaining_agrees_with_its_exact_solution(play, turns, each):
    log = bargaining_log()
    table = play(log, question(turns, 48, 48, each), dicers())
    assert len(table) == turns
    assert set(table["role"]) == {"alice", "bob"}
    assert set(table["turn"]) == {1, 2, 3}
    off = errors(table, log, exact_bargaining)
    assert_calibrated(off, table)
    ended = table["continuations"] == 0
    assert (off["q"][ended].abs() < 1e-12).all()
    assert (table["se_q"][ended] == 0).all()


def assert_calibrated(off: pd.DataFrame, table: pd.DataFrame) -> None:
    """Errors are as large as their standard errors say, without bias, and cover 95 %."""
    for name in ("q", "v", "advantage"):
        se = table[f"se_{name}"]
        sure = se == 0
        alike = off[name][sure].abs() > 1e-12  # all draws, by luck: what is certain is exact
        assert alike.sum() < 0.04 * len(table), name
        z = (off[name] / se)[~sure]
        assert abs(z.mean()) < MORE_THAN_LUCK / math.sqrt(len(z)), name
        assert 0.8 < math.sqrt((z**2).mean()) < 1.25, name
        assert 0.88 < (z.abs() < 1.96).mean() < 0.995, name
        assert math.isclose((off[name] ** 2).mean(), (se**2).mean(), rel_tol=0.45), name


def test_eight_targets_agree_with_their_exact_solution(play):
    log = log_of("twenty_questions", GUESSING, guessers(), 60)
    players = {NAME: Dicer(guesses), "embedded": embedded_oracle()}
    table = play(log, question(100, 48, 48), players)
    assert set(table["turn"]) == {1, 2, 3, 4}
    assert_calibrated(errors(table, log, exact_guessing), table)
    won = table["action"] == guess("Piano")
    assert won.any()
    assert (table["q"][won] == 1).all()
    assert (table["plain_q"] >= table["q"]).all()


def test_a_planted_blunder_is_found(play):
    """In the second round Bob keeps 80, where accepting 60 of 100 was open to him."""
    said = iter(["I keep 40.", "I keep 80.", "I reject. I keep 80."] + ["I accept."] * 9)
    players = dict.fromkeys(("alice", "bob"), Talker(lambda request: next(said)))
    for player in players.values():
        player.name = NAME
    (planted,) = log_of("bargaining", CONFIG, players, 1)
    table = play([planted], question(9, 64, 64), dicers()).set_index("position")
    q, v = exact_bargaining(planted, 1)
    assert q - v < -0.15
    row = table.loc[1]
    assert row["advantage"] < -2 * row["se_advantage"]
    assert abs(row["advantage"] - (q - v)) < MORE_THAN_LUCK * row["se_advantage"]
    assert row["action"] == "I keep 80."


def test_what_cannot_be_won_is_worth_exactly_nothing(play):
    log = log_of("twenty_questions", {**GUESSING, "target": "Tiger"}, guessers(), 5)
    players = {NAME: Dicer(guesses), "embedded": embedded_oracle()}
    table = play(log, question(100, 8, 8), players)
    numbers = table.drop(columns=["episode_id", "group_id", "role", "action", "position", "turn"])
    numbers = numbers.drop(columns=["continuations", "draws", "draw_continuations"])
    assert len(table) == 20
    assert (numbers.to_numpy() == 0).all()
    last = table["turn"] == 4  # only the oracle's answer was to come
    assert (table["continuations"][~last] == 8).all()


def test_the_order_the_number_in_flight_and_what_else_is_asked_change_nothing(play):
    log = bargaining_log(20)
    first = play(log, question(30, 8, 8), dicers(), cache="a", in_flight=64)
    assert play(log, question(30, 8, 8), dicers(), cache="b", in_flight=1).equals(first)
    more = play(log, question(60, 8, 8), dicers(), cache="c", in_flight=7)
    same = more.merge(first[["episode_id", "position"]])
    assert same.equals(first)


def test_more_turns_draws_and_continuations_play_only_what_is_new(play):
    log, players = bargaining_log(20), dicers()
    play(log, question(10, 4, 4), players)
    asked = set(players[NAME].asked)
    again, none = dicers(), dicers()
    table = play(log, question(20, 8, 6), again)
    assert asked.isdisjoint(again[NAME].asked)
    assert table.equals(play(log, question(20, 8, 6), dicers(), cache="fresh"))
    play(log, question(20, 8, 6), none)
    assert none[NAME].asked == []


def test_another_log_of_the_same_ids_is_measured_anew(play):
    log, other = bargaining_log(6), bargaining_log(6, delta_a=0.8)
    table = play(log, question(8, 4, 4), dicers())
    players = dicers()
    assert not play(other, question(8, 4, 4), players).equals(table)
    assert players[NAME].asked


RUN = """
import sys, time
from pathlib import Path
import tests.test_truth as tests
from tests.known_games import NAME, Dicer, bargains, question
from aria_dvc.arena.sessions import Games
from aria_dvc.truth.table import truth_table
def say(request, rng):
    time.sleep(0.002)
    return bargains(request, rng)
Games._players = lambda self, params, named: {NAME: Dicer(say)}
truth_table(tests.PARAMS, tests.bargaining_log(20), question(20, 8, 8, 2))
"""


def test_killed_and_restarted_nothing_is_lost_or_played_twice(play, tmp_path):
    cache = tmp_path / "killed"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ARIA_CACHE": str(cache),
    }
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], env=environment, cwd=Path(__file__).parent.parent
    )
    while sum(path.read_bytes().count(b"\n") for path in cache.rglob("episodes.jsonl")) < 40:
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    (journal,) = cache.rglob("episodes.jsonl")
    kept = journal.read_bytes().count(b"\n")
    log, players = bargaining_log(20), dicers()
    table = play(log, question(20, 8, 8, 2), players, cache="killed")
    whole = dicers()
    assert table.equals(play(log, question(20, 8, 8, 2), whole, cache="whole"))
    played, all_played = set(players[NAME].asked), set(whole[NAME].asked)
    assert played < all_played
    assert len(all_played) - len(played) >= kept - 20  # some ended without a question to anybody
    lines = journal.read_bytes().splitlines()
    assert len(set(lines)) == len(lines)


def test_turns_are_drawn_alike_from_every_role_and_turn_and_more_hold_the_fewer():
    log = bargaining_log(200)
    every = drawn_turns(log, ["scripted"], 10**6, 0)
    few = drawn_turns(log, ["scripted"], 60, 0)
    assert {t.name for t in few} <= {t.name for t in drawn_turns(log, ["scripted"], 90, 0)}
    assert [t.name for t in few] == [t.name for t in every if t.name in {f.name for f in few}]
    sizes = pd.Series([(t.role, t.turn) for t in every]).value_counts() / len(every)
    drawn = pd.Series([(t.role, t.turn) for t in few]).value_counts().reindex(sizes.index)
    assert ((drawn.fillna(0) - 60 * sizes).abs() <= 1).all()
    often = [t.name for seed in range(400) for t in drawn_turns(log[:4], ["scripted"], 5, seed)]
    counts = pd.Series(often).value_counts()
    assert len(counts) == len(drawn_turns(log[:4], ["scripted"], 99, 0))
    assert counts.std() < 2.5 * math.sqrt(counts.mean())


def test_nobody_of_the_kinds_is_one_clear_error():
    with pytest.raises(AriaError, match="nobody of the kinds policy said anything"):
        drawn_turns(bargaining_log(2), ["policy"], 5, 0)


@pytest.mark.parametrize(
    ("name", "pools", "games", "turns"),
    [
        ("bargaining", {"alice": "scripted:varied", "bob": "scripted:conceding"}, 2, 99),
        ("negotiation", {"alice": "scripted:mixed", "bob": "scripted:varied"}, 2, 99),
        ("twenty_questions", {"agent": "scripted:casual", "oracle": "embedded"}, 1, 99),
        ("guess_my_city", {"agent": "scripted:casual", "oracle": "embedded"}, 1, 3),
    ],
)
def test_every_game_is_played_on_from(name, pools, games, turns, tmp_path, monkeypatch):
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path))
    log = Session(
        get_game(name), pools, PARAMS.collect, games, "default", model=__file__, purpose="log"
    ).play(PARAMS)
    settings = TruthParams(turns=turns, continuations=2, draws=2, draw_continuations=2)
    table = truth_table(PARAMS, log, Question(settings, 0.95, ["scripted"], __file__))
    acting = get_game(name).roles
    said = sum(u.role in acting for episode in log for u in episode.utterances)
    assert len(table) == min(turns, said)
    write_table(tmp_path / "truth.parquet", table, TRUTH)
    assert read_table(tmp_path / "truth.parquet", TRUTH).equals(table)
    assert table["q"].between(0, 1).all()
    halves = (table["first"] + table["second"]) / 2
    np.testing.assert_allclose(halves, table["advantage"], atol=1e-12)


def test_the_opponent_stays_who_it_was(tmp_path, monkeypatch):
    """`scripted:varied` is drawn once a game, and again in no continuation of it."""
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path))
    seen: dict[str, set[int]] = {}

    class Watched(Talker):
        name = "scripted:varied"

        async def reply(self, request):
            seen.setdefault(request.episode_id.split("@")[0], set()).add(request.episode_seed)
            return await super().reply(request)

    log = bargaining_log(3)
    player = Watched(lambda request: "I accept." if request.match.offers else "I keep 60.")
    monkeypatch.setattr(Games, "_players", lambda self, params, named: {NAME: player})
    truth_table(PARAMS, log, question(9, 2, 2))
    assert seen == {episode.episode_id: {episode.record.seed} for episode in log}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def test_the_policy_plays_on_in_one_process_or_two(model, tmp_path, monkeypatch):
    pools = {"agent": "policy", "oracle": "embedded"}
    settings = PARAMS.collect.model_copy(update={"max_new_tokens": 6})
    tables = []
    for processes in (1, 2):
        monkeypatch.setenv("ARIA_CACHE", str(tmp_path / str(processes)))
        pace = PARAMS.pace.model_copy(update={"processes": processes, "cache_gib": 0.2})
        params = PARAMS.model_copy(update={"pace": pace, "collect": settings})
        game = get_game("guess_my_city")
        log = Session(game, pools, settings, 2, "default", model=model, purpose="log").play(params)
        asked = Question(
            TruthParams(turns=4, continuations=2, draws=2, draw_continuations=2),
            0.95,
            ["policy"],
            model,
        )
        tables.append(truth_table(params, log, asked))
    assert tables[0].equals(tables[1])
    assert len(tables[0]) == 4
    assert len(list((tmp_path / "2").rglob("episodes.jsonl"))) == 3  # of the log, of two shares


def test_a_forfeit_ends_the_game_there(play):
    log = [
        *bargaining_log(1),
        *log_of(
            "bargaining",
            CONFIG,
            {"alice": Dicer(bargains), "bob": Dicer(lambda request, rng: "Some tea?")},
            1,
            seed=3,
        ),
    ]
    log[1].episode_id = "forfeited"
    assert log[1].record.failure.role == "bob"
    table = play(log, question(99, 4, 4), dicers())
    row = table[table["episode_id"] == "forfeited"].iloc[0]
    assert (row["role"], row["action"], row["continuations"]) == ("bob", "Some tea?", 0)
    assert (row["q"], row["se_q"]) == (0, 0)
    assert row["v"] > 0.1


def test_continuations_that_the_oracle_broke_off_say_nothing(play):
    log = log_of("twenty_questions", GUESSING, guessers(), 10)

    class Tired(Talker):
        """Answers with rubbish in a third of the continuations."""

        name = "embedded"

        async def reply(self, request):
            if "@" in request.episode_id and hash_of(request.episode_id) % 3 == 0:
                return await Talker(lambda _: "Perhaps.").reply(request)
            return await embedded_oracle().reply(request)

    players = {NAME: Dicer(guesses), "embedded": Tired(None)}
    table = play(log, question(30, 32, 32), players)
    off = errors(table, log, exact_guessing)
    z = (off["advantage"] / table["se_advantage"])[table["se_advantage"] > 0]
    assert (z.abs() < 1.96).mean() > 0.8


def hash_of(text: str) -> int:
    return sum(text.encode())


def test_games_that_nobody_can_go_on_with_are_refused(play):
    said = [Utterance("alice", "I keep 60."), Utterance("bob", "I accept.")]
    stranger = Episode("e", "bargaining", said, {"alice": 1.0, "bob": 0.0})
    with pytest.raises(AriaError, match="episode e does not say by whom"):
        play([stranger], question(2, 2, 2), dicers())
    log = bargaining_log(1)
    log[0].utterances[0].text = "I keep the cat."
    with pytest.raises(AriaError, match="utterance 0 of a game that was played cannot be replayed"):
        play(log, question(2, 2, 2), dicers())


@pytest.mark.parametrize(
    "otherwise",
    [
        lambda episode: episode.info.pop("told"),
        lambda episode: episode.info["told"].__setitem__(0, "Take it."),
        lambda episode: episode.prompts.update(alice="You are Alice.", bob="You are Bob."),
    ],
    ids=["before offers were rated", "in other words", "other rules"],
)
def test_a_log_whose_players_were_told_otherwise_is_refused(play, otherwise):
    players = {"alice": Dicer(bargains), "bob": Dicer(bargains)}
    log = collect_episodes(
        get_game("bargaining"),
        [Assignment(f"e{n}", CONFIG, n, "g") for n in range(8)],
        players,
        play_settings(max_reasks=0),
        PARAMS.pace,
    )
    asked = question(sum(len(episode.utterances) for episode in log), 2, 2)
    play(log, asked, dicers())
    otherwise(max(log, key=lambda episode: len(episode.utterances)))
    with pytest.raises(
        AriaError, match=r"utterance \d of .*: what its speaker is told has changed"
    ):
        play(log, asked, dicers())


def test_a_match_is_replayed_as_it_was_or_not_at_all():
    game, log = get_game("bargaining"), bargaining_log(1)
    lines = [(u.role, u.text) for u in log[0].utterances]
    match = replayed(game, log[0].record.config, "utility", lines)
    assert match.lines == lines
    assert match.outcome.rewards == log[0].rewards
    with pytest.raises(AriaError, match=r"utterance 0 .* bob cannot move there"):
        replayed(game, log[0].record.config, "utility", [("bob", "I keep 60.")])
    with pytest.raises(AriaError, match=r"utterance 0 .* says otherwise"):
        replayed(game, log[0].record.config, "utility", [("alice", "Alice: I  keep 60.")])


def test_continuations_that_begin_alike_share_no_state():
    game, log = get_game("bargaining"), bargaining_log(1)
    lines = tuple((u.role, u.text) for u in log[0].utterances[:1])
    wanted = [Assignment(f"e{n}", log[0].record.config, n, "g", {}, lines, 5) for n in range(4)]
    players = {"alice": scripted_player("varied"), "bob": scripted_player("varied")}
    settings = play_settings()
    both = collect_episodes(game, wanted, players, settings, PARAMS.pace)
    alone = [collect_episodes(game, [one], players, settings, PARAMS.pace)[0] for one in wanted]
    assert both == alone
    assert all(episode.utterances[0].text == lines[0][1] for episode in both)


def test_a_player_keeps_the_sampling_of_its_log():
    from aria_dvc.truth.table import sampled_as

    log = bargaining_log(2)
    for episode, temperature in zip(log, (0.7, 0.7), strict=True):
        episode.info["sampling"] = {"alice": {"temperature": temperature, "top_p": 0.9}}
    found = sampled_as(log, PARAMS.collect).of(NAME)
    assert (found.temperature, found.top_p) == (0.7, 0.9)
    log[1].info["sampling"]["alice"]["temperature"] = 0.3
    with pytest.raises(AriaError, match="sampled in several ways"):
        sampled_as(log, PARAMS.collect)


def test_the_table_of_no_turns_is_of_the_schema(tmp_path):
    write_table(tmp_path / "t.parquet", empty_table(TRUTH), TRUTH)
    assert read_table(tmp_path / "t.parquet", TRUTH).empty


def test_a_log_of_several_games_is_refused():
    log = bargaining_log(2)
    log[1].game = "negotiation"
    with pytest.raises(AriaError, match=r"several games \(bargaining, negotiation\): measure them"):
        truth_table(PARAMS, log, question(2, 2, 2))
