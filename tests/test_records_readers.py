"""Every accepted layout comes in; every broken log is refused by file, line and remedy."""

import json

import numpy as np
import pandas as pd
import pytest

from aria_dvc.errors import AriaError
from aria_dvc.files import write_parquet
from aria_dvc.records.episodes import Episode, Utterance, without_broken_off
from aria_dvc.records.log_vectors import log_vectors_table, vectors_of
from aria_dvc.records.published import write_log
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import LOG_VECTORS, write_table
from aria_dvc.records.tables import (
    check_lengths,
    embeddings_table,
    episodes_table,
    read_vectors,
    turns_table,
)

BARGAINING = Reading(game="bargaining")
ADVERSARIAL = {
    "alice_actions": ["60 for me, 40 for you.", "Then 55 for me."],
    "bob_actions": ["No, half each.", "Deal."],
    "alice_ids": [0, 2],
    "bob_ids": [1, 3],
    "alice_reward": 1.0,
    "bob_reward": 0.0,
    "player_1_system_prompt": "You are Alice.",
    "player_2_system_prompt": "You are Bob.",
}
SINGLE = {"actions": ["Is it big?", "Is it a cow?"], "obs": ["Yes.", "Yes."], "reward": 0}
MESSAGES = {
    "episode_id": "m1",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "buyer", "content": "How much?"},
        {"role": "seller", "content": "Ten."},
        {"role": "buyer", "content": "Fine."},
    ],
    "rewards": {"buyer": 0.25, "seller": 0.75},
}
CITY = {"conversation": ["Is it in Asia? Yes.", "Is it Seoul? Correct!"], "done": True, "word": "a"}
CASINO = {
    "chat_logs": [
        {"text": "Hello", "task_data": {}, "id": "mturk_agent_1"},
        {"text": "Hi", "task_data": {}, "id": "mturk_agent_2"},
    ],
    "participant_info": {
        "mturk_agent_1": {"outcomes": {"points_scored": 18}},
        "mturk_agent_2": {"outcomes": {"points_scored": 9}},
    },
}


def write_lines(path, *entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return path


@pytest.mark.parametrize(
    ("entry", "roles", "rewards"),
    [
        (ADVERSARIAL, ["alice", "bob", "alice", "bob"], {"alice": 1.0, "bob": 0.0}),
        (SINGLE, ["agent", "oracle", "agent", "oracle"], {"agent": 1.0}),
        (MESSAGES, ["buyer", "seller", "buyer"], {"buyer": 0.25, "seller": 0.75}),
        (CITY, ["agent", "oracle", "agent", "oracle"], {"agent": 1.0}),
        (CASINO, ["alice", "bob"], {"alice": 0.5, "bob": 0.25}),
    ],
)
def test_layouts_as_lines_and_as_list(tmp_path, entry, roles, rewards):
    lines = read_log(write_lines(tmp_path / "log.jsonl", entry))
    listed = tmp_path / "log.json"
    listed.write_text(json.dumps([entry]), "utf-8")
    for (episode,) in (lines, read_log(listed)):
        assert [u.role for u in episode.utterances] == roles
        assert episode.rewards == rewards


def test_turns_table_counts_own_turns(tmp_path):
    turns = turns_table(read_log(write_lines(tmp_path / "l", ADVERSARIAL), BARGAINING))
    assert turns["turn"].tolist() == [1, 1, 2, 2]
    assert turns["turns"].tolist() == [2, 2, 2, 2]
    assert turns["reward"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert turns["is_action"].all()
    single = turns_table(
        read_log(write_lines(tmp_path / "s", SINGLE), Reading(game="twenty_questions"))
    )
    assert single["is_action"].tolist() == [True, False, True, False]
    assert single["reward"].isna().tolist() == [False, True, False, True]


def test_episodes_table_keeps_prompts(tmp_path):
    frame = episodes_table(read_log(write_lines(tmp_path / "l", ADVERSARIAL), BARGAINING))
    assert frame["system_prompt"].tolist() == ["You are Alice.", "You are Bob."]


def test_question_and_answer_are_split_at_the_first_question_mark(tmp_path):
    entry = {**CITY, "conversation": ["Well. Is it old? Yes? I think so."]}
    (episode,) = read_log(write_lines(tmp_path / "l", entry))
    assert [u.text for u in episode.utterances] == ["Well. Is it old?", "Yes? I think so."]


def test_vectors_come_in_dialogue_order(tmp_path):
    entry = {
        **ADVERSARIAL,
        "alice_action_embeddings": [[1, 2], [5, 6]],
        "bob_actions_embeddings": [[3, 4], [7, 8]],
    }
    episodes = read_log(write_lines(tmp_path / "l", entry))
    vectors = carried(episodes, turns_table(episodes), tmp_path)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    table = embeddings_table(turns_table(episodes), vectors)
    assert table["embedding"].type.list_size == 2
    without = read_log(write_lines(tmp_path / "m", ADVERSARIAL))
    assert carried(without, turns_table(without), tmp_path) is None


def carried(episodes, turns, folder):
    """The log's own vectors of `turns`, after their way through the file beside it."""
    write_table(folder / "vectors.parquet", log_vectors_table(episodes), LOG_VECTORS)
    return vectors_of(turns, folder / "vectors.parquet")


def test_vectors_follow_the_turns_that_are_left_and_are_missed_where_they_lack(tmp_path):
    def episode(name, number):
        said = [Utterance("a", "Hi", np.float32([number, i])) for i in range(2)]
        return Episode(name, "dialogue", said, {"a": 1.0})

    first, second, third = episodes = [episode(name, i) for i, name in enumerate("xyz")]
    turns = turns_table([first, third])
    assert carried(episodes, turns, tmp_path).tolist() == [[0, 0], [0, 1], [2, 0], [2, 1]]
    with pytest.raises(
        AriaError, match=r"episode_id z, position 0.*no vector there: run the stage collect"
    ):
        carried([first, second], turns, tmp_path)


def without(entry, key):
    return {k: v for k, v in entry.items() if k != key}


def casino(person):
    said = [{"text": "Hello", "id": "a"}, {"text": "Hi", "id": "b"}]
    people = {"a": person, "b": {"outcomes": {"points_scored": 9}}}
    return {"chat_logs": said, "participant_info": people}


BAD = {
    "missing key": (without(ADVERSARIAL, "bob_ids"), "missing key bob_ids"),
    "no reward": (without(SINGLE, "reward"), "no reward"),
    "lengths": ({**ADVERSARIAL, "bob_ids": [1]}, "bob_actions has 2 elements and bob_ids has 1"),
    "gap": ({**ADVERSARIAL, "bob_ids": [1, 9]}, "without gaps"),
    "twice": ({**ADVERSARIAL, "bob_ids": [1, 2]}, "position 2 is not a free"),
    "answers": ({**SINGLE, "obs": ["Yes.", "No.", "No."]}, "actions has 2 elements and obs has 3"),
    "empty game": ({**MESSAGES, "messages": []}, "empty game"),
    "empty text": ({**SINGLE, "actions": ["Is it big?", " "]}, "utterance 2 (agent) has no text"),
    "reward range": ({**ADVERSARIAL, "alice_reward": 1.5}, "reward of alice is 1.5, outside"),
    "reward type": ({**ADVERSARIAL, "alice_reward": "high"}, "a finite number is needed"),
    "raw reward": ({**SINGLE, "reward": 3}, "between -1 and 0"),
    "unknown layout": ({"text": "hello"}, "unknown layout"),
    "not an object": ([1, 2], "a JSON object is expected"),
    "nobody": ({**MESSAGES, "rewards": {"judge": 1.0}}, "rewards names judge, who says nothing"),
    "no action": (
        {
            **without(ADVERSARIAL, "alice_reward"),
            "bob_actions": [],
            "bob_ids": [],
            "alice_ids": [0, 1],
        },
        "no action: a role with a reward must say something",
    ),
    "prompts": ({**MESSAGES, "system_prompts": ["Be kind."]}, "must map roles to texts"),
    "raw reward type": ({**SINGLE, "reward": False}, "between -1 and 0"),
    "points": (casino({"outcomes": {"points_scored": "x"}}), "points_scored of a is 'x'"),
    "outcomes": (casino({"outcomes": "x"}), "needs outcomes"),
    "person": (casino(None), "needs outcomes"),
    "null vector": (
        {**SINGLE, "action_embeddings": [[0, 1], [None, 1]], "obs_embeddings": [[0, 1], [0, 1]]},
        "list of finite numbers",
    ),
    "ragged vectors": (
        {**SINGLE, "action_embeddings": [[0, 1], [1]], "obs_embeddings": [[0, 1], [0, 1]]},
        "has an embedding of 1 numbers where the log starts with 2",
    ),
    "some vectors": (
        {**SINGLE, "action_embeddings": [[0, 1], [1, 1]]},
        "utterance 1 (oracle) has an embedding of 0 numbers",
    ),
    "other width": (
        {
            **MESSAGES,
            "rewards": {"buyer": 1},
            "messages": [{**MESSAGES["messages"][1], "embedding": [1]}],
        },
        "embedding of 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_entry_is_named_by_file_and_line(tmp_path, name):
    entry, expected = BAD[name]
    vectors = {"action_embeddings": [[0, 1], [1, 1]], "obs_embeddings": [[0, 1], [1, 1]]}
    first = {**SINGLE, **vectors} if "vector" in name or "width" in name else SINGLE
    path = write_lines(tmp_path / "log.jsonl", first, entry)
    with pytest.raises(AriaError) as caught:
        read_log(path)
    message = str(caught.value)
    assert expected in message
    assert str(path) in message
    assert "\n" not in message
    assert "line 2" in message


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"messages": [', "line 1: broken JSON"),
        (b'{"messages": "\xff"}', "line 1: not UTF-8"),
        (b'{"actions": ["a"], "obs": ["b"], "reward": NaN}', "line 1: broken JSON"),
        (b"", "no episodes"),
        (b"\n\n", "no episodes"),
        (b"[1, 2", "broken JSON"),
        (b"[]", "no episodes"),
    ],
)
def test_bytes_that_are_no_log(tmp_path, raw, expected):
    path = tmp_path / "log.jsonl"
    path.write_bytes(raw)
    with pytest.raises(AriaError, match=expected):
        read_log(path)


def test_duplicate_ids_name_both_places(tmp_path):
    path = write_lines(tmp_path / "log.jsonl", MESSAGES, MESSAGES)
    with pytest.raises(AriaError, match=r"line 2: episode_id m1 was already used at .*line 1"):
        read_log(path)


def test_missing_file(tmp_path):
    with pytest.raises(AriaError, match="cannot be read"):
        read_log(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    "entry",
    [
        without(MESSAGES, "rewards"),
        *({**MESSAGES, "rewards": r} for r in ({"buyer": None}, {"buyer": -3}, {"judge": 1}, "x")),
        {**SINGLE, "reward": 3},
        {**ADVERSARIAL, "alice_reward": "high"},
        casino(None),
    ],
)
def test_outcomes_may_be_absent_or_odd_when_only_scoring(tmp_path, entry):
    (episode,) = read_log(write_lines(tmp_path / "l", entry), Reading(need_rewards=False))
    assert episode.rewards == {}


@pytest.mark.parametrize(
    "info",
    [
        {"players": {"alice": "gpt-4", "bob": {"name": "x"}}},
        {"players": ["alice"], "config": "x", "utilities": None},
        {"config": {"episode_id": "other", "game": "other"}},
    ],
)
def test_free_information_of_a_log_survives_its_publication(tmp_path, info):
    said = [{"role": role, "content": "Hi"} for role in ("alice", "bob")]
    entry = {"messages": said, "rewards": {"alice": 1, "bob": 0}, "info": info}
    episodes = read_log(write_lines(tmp_path / "l", entry), BARGAINING)
    write_log(tmp_path / "raw", episodes)
    assert read_log(tmp_path / "raw") == episodes


def test_a_utility_of_a_single_agent_survives_its_publication(tmp_path):
    said = [{"role": role, "content": "Hi"} for role in ("agent", "oracle")]
    entry = {"messages": said, "rewards": {"agent": 5.0}, "info": {"reward_rule": "utility"}}
    episodes = read_log(write_lines(tmp_path / "l", entry))
    write_log(tmp_path / "raw", episodes)
    assert read_log(tmp_path / "raw") == episodes


@pytest.mark.parametrize("listed", [False, True])
def test_a_byte_order_mark_is_passed_over(tmp_path, listed):
    path = tmp_path / "l"
    path.write_text(json.dumps([MESSAGES] if listed else MESSAGES), "utf-8-sig")
    assert len(read_log(path)) == 1


def test_overlong_utterance_is_refused(tmp_path):
    episodes = read_log(write_lines(tmp_path / "l", SINGLE))
    with pytest.raises(AriaError, match=r"utterance 2 has 12 characters, over prepare.max_chars"):
        check_lengths(episodes, 10, "l")


def test_embeddings_come_back_from_their_file_as_they_were(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(2500, 7)).astype(np.float32)
    turns = pd.DataFrame({"episode_id": "a", "position": np.arange(2500, dtype=np.int32)})
    write_parquet(tmp_path / "embeddings.parquet", embeddings_table(turns, vectors))
    np.testing.assert_array_equal(read_vectors(tmp_path / "embeddings.parquet"), vectors)


def test_games_that_the_other_side_broke_off_are_left_out():
    def episode(name, failure):
        said = [Utterance("agent", "Is it red?")]
        return Episode(name, "twenty_questions", said, {"agent": 0.0}, info={"failure": failure})

    episodes = [
        episode("ended", None),
        episode("own fault", {"role": "agent", "kind": "empty"}),
        episode("the oracle's", {"role": "oracle", "kind": "no_answer"}),
        episode("a user's word", "yes"),
    ]
    kept = [episode.episode_id for episode in without_broken_off(episodes)]
    assert kept == ["ended", "own fault", "a user's word"]


@pytest.mark.parametrize(("done", "reward"), [(True, 1.0), (False, 0.0), (1, 1.0), ("False", None)])
def test_done_is_true_or_false_and_nothing_else(tmp_path, done, reward):
    path = tmp_path / "log.json"
    entry = {"conversation": ["Is it big? Yes."], "done": done, "word": "Seoul,South Korea"}
    path.write_text(json.dumps([entry]))
    if reward is None:
        with pytest.raises(AriaError, match="done is 'False'"):
            read_log(path)
    else:
        assert read_log(path, Reading(outcome="recorded"))[0].rewards == {"agent": reward}


def city(questions: list[str], done: bool, word: str = "Seoul,South Korea") -> dict:
    return {"conversation": [f"{asked}? Yes." for asked in questions], "done": done, "word": word}


def test_city_games_are_won_by_the_games_own_test_unless_the_recorded_outcome_is_asked(
    tmp_path, caplog
):
    path = tmp_path / "log.json"
    games = [
        city(["Is it big", "Is it Seoul"], True),
        city(["Is it big", "Is it near Seoul"], True),
        city(["Is it Seoul"], False),
        city(["Is it Atlantis"], True, "Atlantis"),  # no target: nothing but what is recorded
    ]
    path.write_text(json.dumps(games))
    found = [episode.rewards["agent"] for episode in read_log(path)]
    assert found == [1.0, 0.0, 1.0, 1.0]
    assert "2 of 3 recorded outcomes contradict" in caplog.text
    caplog.clear()
    recorded = read_log(path, Reading(outcome="recorded"))
    assert [episode.rewards["agent"] for episode in recorded] == [1.0, 1.0, 0.0, 1.0]
    assert "outcome: recorded is used" in caplog.text


def test_buttons_of_casino_are_marked_and_may_be_left_out_of_credit(tmp_path):
    path = tmp_path / "log.json"
    texts = [("a", "I need water"), ("b", "ok"), ("a", "Submit-Deal"), ("b", "Accept-Deal")]
    people = {name: {"outcomes": {"points_scored": 18}} for name in ("a", "b")}
    chat = [{"id": name, "text": text} for name, text in texts]
    path.write_text(json.dumps([{"chat_logs": chat, "participant_info": people}]))
    episode = read_log(path)[0]
    assert episode.info["moves"] == [2, 3]
    assert turns_table([episode])["is_action"].all()
    left = turns_table(read_log(path, Reading(moves=False)))
    assert left["is_action"].tolist() == [True, True, False, False]
    assert left["turns"].tolist() == [2, 2, 2, 2]
