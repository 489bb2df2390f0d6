"""What is recorded of an episode is typed, and written back as it was."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aria_dvc.records.episodes import (
    BrokenOff,
    Episode,
    PlayerName,
    Record,
    Refused,
    SampledWith,
    Tokens,
)

PLAYED = {
    "config": {"money": 100, "delta": 0.9},
    "seed": 7,
    "reward_rule": "win",
    "players": {"alice": {"name": "policy", "model": "m"}, "bob": {"name": "x", "model": "y"}},
    "tokens": {"alice": {"prompt": 4, "completion": 2}},
    "reasks": {"alice": {"too_long": 2}, "bob": {}},
    "failure": {"role": "bob", "kind": "unreadable"},
    "reason": "failure",
    "utilities": {"alice": 10.0, "bob": 0.0},
    "details": {"deal": False},
    "reasked": [0, 2],
    "cut": [],
    "refused": [
        {"role": "bob", "kind": "unreadable", "text": "hm"},
        {"role": "bob", "kind": "unreadable", "text": "so", "position": 2},
    ],
    "sampling": {"alice": {"temperature": 0.7, "top_p": 0.95}},
}
json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=6,
)
names = st.sampled_from([*PLAYED, "generations", "policy_version", "mood", "extra", "keys"])


def test_a_played_episode_is_typed():
    record = Episode("e", "g", [], {}, info=PLAYED).record
    assert record.failure == BrokenOff("bob", "unreadable")
    assert record.players["alice"] == PlayerName("policy", "m")
    assert record.tokens == {"alice": Tokens(4, 2)}
    assert record.sampling == {"alice": SampledWith(0.7, 0.95)}
    assert record.refused[1] == Refused("bob", "unreadable", "so", 2)
    assert (record.seed, record.reasked, record.extra) == (7, [0, 2], {})


@pytest.mark.parametrize("generations", [[], [{"position": 0, "token_ids": [1], "logprobs": None}]])
def test_a_record_made_in_play_is_written_as_before(generations):
    played = {**PLAYED, "generations": generations} if generations else PLAYED
    read = Record.from_json(played)
    made = Record(**{name: getattr(read, name) for name in (*PLAYED, "generations")})
    assert orjson.dumps(made.to_json()) == orjson.dumps(played)
    made.policy_version = "3:abc"
    assert list(made.to_json())[-1] == "policy_version"


def test_a_field_set_after_reading_is_written_last():
    record = Record.from_json({"mood": "good", "seed": 3})
    record.policy_version = "3:abc"
    assert record.to_json() == {"mood": "good", "seed": 3, "policy_version": "3:abc"}


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, json | st.sampled_from(list(PLAYED.values()))))
def test_whatever_a_log_holds_comes_out_as_it_was(info):
    record = Record.from_json(info)
    assert orjson.dumps(record.to_json()) == orjson.dumps(info)
    assert record.extra.keys() <= info.keys()


@pytest.mark.parametrize(
    ("given", "name"),
    [("gpt-4", None), ({"name": "x"}, "x"), ({"name": "x", "mood": 1}, "x"), ({"name": 5}, None)],
)
def test_a_users_own_players_keep_their_form(given, name):
    record = Record.from_json({"players": {"alice": given}})
    assert record.players["alice"].name == name
    assert record.to_json() == {"players": {"alice": given}}


def test_other_things_under_known_names_are_extra():
    info = {"players": ["alice"], "failure": "yes", "reasked": [0, "x"], "seed": None}
    record = Record.from_json(info)
    assert record.extra == info
    assert (record.players, record.failure, record.reasked) == ({}, None, [])
