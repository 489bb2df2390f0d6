"""Whose utterances are actions, and which episodes belong together."""

from __future__ import annotations

import pytest

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode, Utterance, without_broken_off
from aria_dvc.records.readers import read_entries
from aria_dvc.records.reading import Reading
from aria_dvc.records.tables import acting_roles, episodes_table, turns_table

KINDS = ("policy", "endpoint")


def episode(name: str = "e", **info) -> Episode:
    said = [Utterance(role, "half each") for role in ("alice", "bob", "alice", "bob")]
    return Episode(name, "bargaining", said, {"alice": 1.0, "bob": 0.0}, info=info)


def played(alice: str, bob: str, **more) -> Episode:
    return episode(players={"alice": {"name": alice}, "bob": {"name": bob}}, **more)


@pytest.mark.parametrize(
    ("found", "acting"),
    [
        (played("policy", "scripted:fair"), {"alice"}),
        (played("endpoint:x", "policy"), {"alice", "bob"}),
        (played("scripted:varied", "base"), set()),
        (played("a person", "another"), {"alice", "bob"}),
        (played("a person", "scripted:fair"), {"alice"}),
        (episode(), {"alice", "bob"}),
        (episode(players=["x"]), {"alice", "bob"}),
        (played("policy", "policy", failure={"role": "bob", "kind": "offer_unclear"}), {"bob"}),
        (played("policy", "scripted:fair", failure={"role": "bob", "kind": "no_reply"}), set()),
        (episode(failure={"role": "oracle"}), set()),
    ],
)
def test_actions_are_what_trained_players_said_unless_the_other_side_forfeits(found, acting):
    assert acting_roles(found, KINDS) == acting
    turns = turns_table([found], KINDS)
    assert set(turns.loc[turns["is_action"], "role"]) == acting
    assert turns["reward"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert turns["turn"].tolist() == [1, 1, 2, 2]


def test_without_kinds_everybody_with_a_reward_acts():
    assert turns_table([played("policy", "scripted:fair")])["is_action"].all()


@pytest.mark.parametrize("failure", [{"role": "assistant", "kind": "timeout"}, {"role": "tool"}])
def test_what_a_users_log_calls_a_failure_takes_nobodys_turns(failure):
    said = [{"role": role, "content": "Hi"} for role in ("user", "assistant", "tool")]
    entry = {"messages": said, "rewards": {"user": 1, "assistant": 0}, "info": {"failure": failure}}
    episodes = read_entries([entry])
    assert turns_table(episodes)["is_action"].tolist() == [True, True, False]
    assert without_broken_off(episodes) == episodes


def with_moves(moves) -> dict:
    said = [("system", "Be kind."), ("a", "Hi"), ("b", "Yes?"), ("a", "Submit")]
    messages = [{"role": role, "content": text} for role, text in said]
    return {"messages": messages, "rewards": {"a": 1, "b": 0}, "info": {"moves": moves}}


def test_moves_are_left_out_by_their_places_among_the_utterances():
    entries = [with_moves([2]), with_moves([]), with_moves([0, 1])]
    left = turns_table(read_entries(entries, Reading(moves=False)))
    acting = [True, True, False, True, True, True, False, False, True]
    assert left["is_action"].tolist() == acting
    assert turns_table(read_entries(entries))["is_action"].all()


@pytest.mark.parametrize("moves", [["e4"], 12, [7], [-1], [3], [True], [[1]], {"a": 1}, None, "1"])
def test_a_users_own_moves_are_read_but_not_left_out(moves):
    assert turns_table(read_entries([with_moves(moves)]))["is_action"].all()
    with pytest.raises(AriaError, match=r"entry 1: info.moves is .* utterances, 0 to 2 here"):
        read_entries([with_moves(moves)], Reading(moves=False))


def test_an_episode_without_actions_stays_in_the_tables():
    games = [played("scripted:fair", "scripted:hard"), played("policy", "scripted:hard")]
    games[1].episode_id = "f"
    turns = turns_table(games, KINDS)
    assert turns["episode_id"].tolist() == ["e"] * 4 + ["f"] * 4
    assert turns["is_action"].tolist() == [False] * 4 + [True, False] * 2
    assert episodes_table(games)["role"].tolist() == ["alice", "bob"] * 2


def test_a_group_is_what_the_log_says_or_the_episode_alone():
    entry = {"messages": [{"role": "a", "content": "Hi"}], "rewards": {"a": 1.0}}
    entries = [
        {**entry, "episode_id": "x"},
        {**entry, "episode_id": "y", "group_id": 7},
        {**entry, "episode_id": "z", "info": {"group_id": "7"}},
        {**entry, "episode_id": "w", "info": {"group_id": ["7"]}},
        {**entry, "episode_id": "v", "info": {"group_id": 7}},
        {**entry, "episode_id": "u", "info": {"group_id": True}},
    ]
    episodes = read_entries(entries)
    for table in (turns_table(episodes), episodes_table(episodes)):
        assert table["group_id"].tolist() == ["x", "7", "7", "w", "7", "u"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([0.1], "turn_rewards has 1 values for 2 turns that are credited: give one number for"),
        ([0.1, None], r"turn_rewards\[1\] is None: give a number for every turn"),
        (["x", 1], r"turn_rewards\[0\] is 'x': give a number for every turn"),
    ],
)
def test_somebody_elses_credit_is_a_number_for_every_turn(values, problem):
    said = [{"role": "a", "content": "Hi"}, {"role": "b", "content": "Yes?"}] * 2
    entry = {"messages": said, "rewards": {"a": 1}, "info": {"turn_rewards": values}}
    with pytest.raises(AriaError, match=problem):
        read_entries([entry], Reading(column="turn_rewards"))


@pytest.mark.parametrize(("values", "given"), [([0.5], [0.5, None]), ([0.5, 2], [0.5, 2.0])])
def test_moves_that_are_left_out_need_no_number(values, given):
    messages = [{"role": "a", "content": text} for text in ("Half each?", "Submit")]
    entry = {"messages": messages, "rewards": {"a": 1}, "info": {"moves": [1], "own": values}}
    (episode,) = read_entries([entry], Reading(column="own", moves=False))
    assert [utterance.given for utterance in episode.utterances] == given
