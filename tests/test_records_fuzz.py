"""Lines of all layouts, mutated: a good log, or one line that says what is wrong; never more.

`pytest -m slow tests/test_records_fuzz.py` takes 10,000 mutations, the default run 300.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aria_dvc.credit.logs import read_logs
from aria_dvc.errors import AriaError
from aria_dvc.games.decided import tell_decisions
from aria_dvc.records.episodes import Episode, without_broken_off
from aria_dvc.records.log_vectors import log_vectors_table, vectors_of
from aria_dvc.records.oddities import is_visible
from aria_dvc.records.published import write_log
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import EPISODES, LOG_VECTORS, TURNS, write_table
from aria_dvc.records.stored import read_episodes, read_turns
from aria_dvc.records.tables import episodes_table, turns_table
from aria_dvc.shown import printable

CONFIG = {"money": 10_000, "delta_a": 0.8, "delta_b": 1.0}
RECORD = {
    "config": CONFIG,
    "seed": 3,
    "players": {"alice": {"name": "policy", "model": "m"}, "bob": "scripted:fair"},
    "failure": None,
    "reason": "agreement",
    "tokens": {"alice": {"prompt": 10, "completion": 3}},
    "refused": [{"role": "alice", "kind": "no_offer", "text": "Hm."}],
    "sampling": {"alice": {"temperature": 0.7, "top_p": 1.0}},
    "generations": [{"position": 0, "token_ids": [1, 2], "logprobs": None}],
}
LINES: tuple[dict[str, Any], ...] = (
    {
        "alice_actions": ["I keep 60%.", "I keep 55%."],
        "bob_actions": ["I reject. I keep 50%.", "I accept."],
        "alice_ids": [0, 2],
        "bob_ids": [1, 3],
        "alice_reward": 1.0,
        "bob_reward": 0.0,
        "player_1_system_prompt": "You are Alice.",
        "game": "bargaining",
        "info": RECORD,
    },
    {
        "episode_id": "q1",
        "actions": ["Is it big?", "Is it a cow?"],
        "obs": ["Yes.", "Yes."],
        "reward": 0,
        "action_embeddings": [[1.0, 0.5], [0.25, -1]],
        "obs_embeddings": [[0.0, 2], [3, 1e-3]],
    },
    {
        "episode_id": "m1",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "buyer", "content": "How much?"},
            {"role": "seller", "content": "Ten, my friend."},
            {"role": "buyer", "content": "Fine."},
        ],
        "rewards": {"buyer": 0.25, "seller": 0.75},
        "system_prompts": {"seller": "You sell."},
        "group_id": 4,
    },
    {
        "conversation": ["Is it in Asia? Yes, it is.", "Is it Seoul? Correct!"],
        "done": True,
        "word": "Seoul,South Korea",
    },
    {
        "chat_logs": [
            {"text": "Hello", "task_data": {}, "id": "mturk_agent_1"},
            {"text": "Hi", "task_data": {}, "id": "mturk_agent_2"},
        ],
        "participant_info": {
            "mturk_agent_1": {"outcomes": {"points_scored": 18}},
            "mturk_agent_2": {"outcomes": {"points_scored": 9}},
        },
    },
)
ODD = (
    *(None, True, False, 0, -1, 1, 2, 7, 10**18, 2**64, -(2**70), 0.5, -0.0, 1e300, 1e-320),
    *("", " ", "a", "1", "alice", "Alice", " alice", "system", "System", "true", "=1+1", "\x00"),
    *("\x1b[2J", "\u200b", "\u202eabc", "é", "e\u0301", "\ud83d\ude00", "x" * 3000, "\r\n"),
    *([], {}, [[]], [None], {"a": 1}, [1, 2], ["a"], {"": ""}, {"role": "alice"}, [0.1, True]),
    *(float("nan"), float("inf"), "NaN", {"name": 5}, [{"role": "a", "content": "b"}]),
)
NAMES = (
    *(key for line in LINES for key in line),
    *RECORD,
    "config",
    "role",
    "content",
    "embedding",
)


def places(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """The path of every part of a JSON value."""
    yield at
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*at, key))


def holder(value: Any, place: tuple) -> Any:
    for key in place[:-1]:
        value = value[key]
    return value


@st.composite
def mutated_line(draw: st.DrawFn) -> bytes:
    """A line of some layout with up to three of its parts changed."""
    line = copy.deepcopy(draw(st.sampled_from(LINES)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(list(places(line))))
        if place:
            _mutate(draw, holder(line, place), place[-1])
    raw = json.dumps(line, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    return draw(mutated_bytes(raw)) if draw(st.integers(0, 3)) == 0 else raw


def _mutate(draw: st.DrawFn, parent: Any, key: Any) -> None:
    what = draw(st.sampled_from(("odd", "odd", "odd", "drop", "text", "twin", "new", "deep")))
    if what == "odd":
        parent[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    elif what == "drop":
        del parent[key]
    elif what == "text":
        parent[key] = draw(st.text(max_size=8))
    elif what == "deep":
        for _ in range(draw(st.sampled_from((5, 230, 245, 300)))):
            parent[key] = [parent[key]]
    elif isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif what == "twin":
        parent[_other_spelling(draw, key)] = parent[key]
    else:
        parent[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(st.sampled_from(ODD)))


def _other_spelling(draw: st.DrawFn, key: str) -> str:
    return draw(st.sampled_from((key.upper(), f"{key} ", f"\u200b{key}", key.title())))


@st.composite
def mutated_bytes(draw: st.DrawFn, raw: bytes) -> bytes:
    """Bytes with a piece cut out, put in, or one bit turned."""
    start = draw(st.integers(0, len(raw)))
    end = min(len(raw), start + draw(st.integers(0, 12)))
    middle = draw(
        st.sampled_from((b"", b"\xff", b'"', b"\\", b"{", b"]", b",", b"\n", b"\0", b"1e"))
    )
    if draw(st.booleans()):
        middle = raw[start:end] * 2
    return raw[:start] + middle + raw[end:]


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """One to three lines, or a list of them; sometimes with something in front."""
    lines = draw(st.lists(mutated_line(), min_size=1, max_size=3))
    listed = draw(st.integers(0, 3)) == 0
    body = b"[" + b",".join(lines) + b"]" if listed else b"\n".join(lines)
    return draw(st.sampled_from((b"", b"", b"", b"", b"\xef\xbb\xbf", b"\n \n", b"\0"))) + body


def outcome(raw: bytes, folder: Path) -> str | None:
    """The line that a log gets, or None after all that must hold of a good one did."""
    log = folder / "log.jsonl"
    log.write_bytes(raw)
    try:
        episodes = read_log(log)
    except AriaError as error:
        line = str(error)
    else:
        line = None
    if line is not None:
        assert str(log) in line
        assert line == printable(" ".join(line.split()))
        assert len(line) < 4000
        return line
    _check_good(episodes, folder)
    blind = read_log(log, Reading(need_rewards=False, warn=False))
    assert [e.utterances[0].text for e in blind] == [e.utterances[0].text for e in episodes]
    return None


def _check_good(episodes: list[Episode], folder: Path) -> None:
    _check_episodes(episodes)
    write_log(folder / "raw", episodes)
    again = read_log(folder / "raw", Reading(warn=False))
    for before, after in zip(episodes, again, strict=True):
        assert without_vectors(after) == without_vectors(before)
    vectors = log_vectors_table(episodes)
    write_table(folder / "vectors", vectors, LOG_VECTORS)
    kept = without_broken_off(again)
    tell_decisions(kept, "share")
    if not kept:
        return
    for game in {episode.game for episode in kept}:
        _check_tables([e for e in kept if e.game == game], folder, bool(len(vectors)))


def _check_tables(episodes: list[Episode], folder: Path, carried: bool) -> None:
    """The tables of one game's episodes are read back, and belong together."""
    turns = turns_table(episodes)
    assert len(turns) == sum(len(episode.utterances) for episode in episodes)
    write_table(folder / "turns", turns, TURNS)
    write_table(folder / "episodes", episodes_table(episodes), EPISODES)
    read = read_turns(folder / "turns")
    assert read["text"].tolist() == [u.text for e in episodes for u in e.utterances]
    table = read_episodes(folder / "episodes", read)
    assert len(table) == sum(len(episode.rewards) for episode in episodes)
    found = vectors_of(read, folder / "vectors")
    assert (found is not None) == carried
    assert found is None or (len(found) == len(turns) and np.isfinite(found).all())


def without_vectors(episode: Episode) -> tuple:
    said = [(utterance.role, utterance.text) for utterance in episode.utterances]
    info = orjson.dumps(episode.info)
    return (episode.episode_id, episode.game, said, episode.rewards, episode.preamble, info)


def _check_episodes(episodes: list[Episode]) -> None:
    assert episodes
    assert len({episode.episode_id for episode in episodes}) == len(episodes)
    for episode in episodes:
        assert episode.utterances
        assert episode.rewards
        assert all(np.isfinite(reward) for reward in episode.rewards.values())
        assert all(is_visible(u.text) and is_visible(u.role) for u in episode.utterances)
        orjson.dumps(episode.record.to_json())


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@given(raw=logs())
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
def test_a_mutated_log_is_good_or_gets_one_line(raw, tmp_path):
    outcome(raw, tmp_path)


@pytest.mark.slow
@given(raw=logs())
@settings(max_examples=10_000, deadline=None, suppress_health_check=QUIET)
def test_ten_thousand_mutated_logs(raw, tmp_path):
    outcome(raw, tmp_path)


def test_both_outcomes_are_met(tmp_path, caplog):
    """The lines themselves are good logs, of which nothing is odd."""
    caplog.set_level(logging.WARNING)
    for line in LINES:
        assert outcome(orjson.dumps(line), tmp_path) is None
        assert outcome(orjson.dumps(line)[:-1], tmp_path) is not None
    assert [line for line in caplog.messages if "not known" not in line] == []
    (tmp_path / "log.jsonl").write_bytes(orjson.dumps(LINES[2]))
    assert len(read_logs([tmp_path / "log.jsonl"], 0.95)) == 3
