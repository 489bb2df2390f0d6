"""Which episodes are played and by whom: groups, line-ups, and that a restart draws the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_game import CountingGame, Talker, collect_episodes
from tests.settings import pace, play_settings

from aria_dvc.arena import sessions
from aria_dvc.arena.assignments import Lineups, assign
from aria_dvc.arena.sessions import Session, collect_session
from aria_dvc.cache.lines import CheckedLines
from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.params import load_params

PARAMS = load_params(Path(__file__).parent.parent / "params.yaml")
HALF = {"policy": 0.5, "scripted:varied": 0.5}


def drawn(pools, trained=("policy",), count=3000):
    lineups = Lineups(CountingGame(), pools, trained)
    found = Counter(tuple(lineups.at((part + 0.5) / count).values()) for part in range(count))
    return {lineup: number / count for lineup, number in found.items()}


def test_somebody_who_is_trained_plays_in_every_episode():
    shares = drawn({"alice": HALF, "bob": HALF})
    assert set(shares) == {
        ("policy", "policy"),
        ("policy", "scripted:varied"),
        ("scripted:varied", "policy"),
    }
    assert all(share == pytest.approx(1 / 3, abs=0.001) for share in shares.values())


def test_weights_count_against_each_other_and_need_not_add_up_to_one():
    shares = drawn({"alice": "policy", "bob": {"policy": 1, "base": 2, "scripted:varied": 5}})
    bobs = {bob: share for (_, bob), share in shares.items()}
    expected = {"policy": 0.125, "base": 0.25, "scripted:varied": 0.625}
    assert bobs == {name: pytest.approx(share, abs=0.001) for name, share in expected.items()}


def test_where_nobody_can_be_trained_the_first_draw_counts():
    two = {"scripted:fair": 1, "scripted:hard": 1}
    assert len(drawn({"alice": two, "bob": two})) == 4
    assert len(drawn({"alice": two, "bob": two}, trained=())) == 4


def test_an_environment_alone_is_nobody_to_train():
    game, answers = get_game("twenty_questions"), {"agent": HALF, "oracle": "endpoint:x"}
    lineups = Lineups(game, answers, ("policy", "endpoint"))
    assert {lineups.at(part / 50)["agent"] for part in range(50)} == {"policy"}
    with pytest.raises(AriaError, match="no player for oracle"):
        Lineups(game, {"agent": "policy"}).at(0)


@given(st.integers(0, 2**32), st.integers(1, 60), st.floats(0.05, 0.95))
def test_every_run_of_groups_holds_the_lineups_by_their_shares(seed, groups, half):
    pool = {"policy": half, "scripted:varied": 1 - half}
    lineups = Lineups(CountingGame(), {"alice": pool, "bob": pool}, ("policy",))
    wanted = assign(CountingGame(), groups, seed, lineups=lineups)
    dealt = Counter(tuple(one.players.values()) for one in wanted[groups // 3 :])
    count, several = len(wanted[groups // 3 :]), half**2 + 2 * half * (1 - half)
    assert abs(dealt["policy", "policy"] - count * half**2 / several) < 2.5
    for one in (("policy", "scripted:varied"), ("scripted:varied", "policy")):
        assert abs(dealt[one] - count * half * (1 - half) / several) < 2.5


def test_a_group_shares_its_configuration_and_nothing_else():
    game = CountingGame()
    lineups = Lineups(game, {"alice": HALF, "bob": HALF}, ("policy",))
    few, many = (assign(game, n, seed=1, repeats=3, lineups=lineups) for n in (8, 20))
    assert many[:8] == few
    assert [a.group_id for a in few] == [f"counting-0000{g}" for g in (0, 0, 0, 1, 1, 1, 2, 2)]
    assert len({a.seed for a in many}) == len({a.episode_id for a in many}) == 20
    single = [a.config for a in assign(game, 7, seed=1)]
    assert [a.config for a in many] == [single[index // 3] for index in range(20)]
    assert len({tuple(a.players.items()) for a in many}) == 3


def test_the_drawn_players_play_and_are_recorded():
    game = CountingGame()
    pools = {"alice": {"policy": 1, "base": 1}, "bob": "policy"}
    players = {name: Talker(lambda request: "hi") for name in ("policy", "base")}
    for name, player in players.items():
        player.name = name
    wanted = assign(game, 12, 0, repeats=2, lineups=Lineups(game, pools, ("policy",)))
    episodes = collect_episodes(game, wanted, players, play_settings(), pace())
    for assignment, episode in zip(wanted, episodes, strict=True):
        names = {role: player.name for role, player in episode.record.players.items()}
        assert names == assignment.players
        assert episode.record.group_id == assignment.group_id
    asked = {(r.episode_id, r.role) for r in players["base"].asked}
    assert asked == {(a.episode_id, "alice") for a in wanted if a.players["alice"] == "base"}
    assert len(asked) > 1
    seeds = {(r.episode_id, r.episode_seed) for r in players["policy"].asked}
    assert seeds == {(a.episode_id, a.seed) for a in wanted}


VARIOUS = {"scripted:varied": 1, "scripted:fair": 1}


def session(**changes):
    settings = {"episodes": 8, "grid": "glee48", "trained": ("scripted",), "repeats": 2, **changes}
    pools = {"alice": VARIOUS, "bob": VARIOUS}
    return Session(get_game("bargaining"), pools, PARAMS.collect, model=__file__, **settings)


def test_the_games_of_a_group_have_the_same_players():
    lineups = Lineups(CountingGame(), {"alice": HALF, "bob": HALF}, ("policy",))
    wanted = assign(CountingGame(), 40, 0, repeats=4, lineups=lineups)
    groups = {}
    for one in wanted:
        groups.setdefault(one.group_id, set()).add(tuple(one.players.values()))
    assert {len(lineups) for lineups in groups.values()} == {1}
    assert len(set.union(*groups.values())) > 1


def test_a_restart_plays_the_rest_with_the_players_drawn_before(tmp_path, monkeypatch):
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path))
    first = session(episodes=5).play(PARAMS)
    (journal,) = tmp_path.rglob("episodes.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    again = session(episodes=24).play(PARAMS)
    assert again[:5] == first
    assert len(journal.read_bytes().splitlines()) == 24
    assert len({e.record.players["alice"].name for e in again}) == 2
    monkeypatch.setattr(sessions, "collect_series", None)
    assert session(episodes=24).play(PARAMS) == again


def test_a_journal_is_read_once_and_once_more_if_games_are_missing(tmp_path, monkeypatch):
    reads, raw = [], CheckedLines._raw
    monkeypatch.setattr(CheckedLines, "_raw", lambda lines: reads.append(lines.path) or raw(lines))
    monkeypatch.setenv("ARIA_CACHE", str(tmp_path))
    for episodes, more in ((5, 2), (5, 1), (24, 2)):
        session(episodes=episodes).play(PARAMS)
        assert len(reads) == more
        reads.clear()


@pytest.mark.parametrize(
    "change", [{"repeats": 1}, {"trained": ()}, {"served_by": ("x",)}, {"players": {"alice": HALF}}]
)
def test_a_journal_is_that_of_the_pools_they_were_drawn_from(change):
    from dataclasses import replace

    assert replace(session(), **change)._inputs(PARAMS) != session()._inputs(PARAMS)


def test_a_collection_draws_as_its_log_says():
    log = PARAMS.logs["bargaining"].model_copy(update={"repeats": 4})
    params = PARAMS.model_copy(update={"logs": {"bargaining": log}})
    found = collect_session(params, "bargaining")
    assert (found.repeats, found.players) == (4, log.players)
    assert found.trained == params.prepare.players
