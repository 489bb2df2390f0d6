"""Logs as agents and trainers write them: read as meant, or refused by file, place and remedy."""

from __future__ import annotations

import json

import orjson
import pytest
from agent_logs import (
    ART,
    CHAT,
    ENTRIES,
    NAMED,
    OPENAI,
    TAU,
    VERIFIERS,
    VERL,
    call,
    changed,
    lines,
    parquet_file,
)
from malformed import cases

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode
from aria_dvc.records.formats.openai import chat_of
from aria_dvc.records.published import write_log
from aria_dvc.records.readers import read_entries, read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.tables import episodes_table, turns_table

WRONG = cases("agents")


def only(entry, **options) -> Episode:
    (episode,) = read_entries([entry], Reading(**options))
    return episode


def said(episode: Episode) -> list[tuple[str, str]]:
    return [(u.role, u.text) for u in episode.utterances]


TURNS = [
    ("user", "To Seattle,\n[image]"),
    ("assistant", 'search(n=2, to="SEA")'),
    ("tool", "(empty)"),
    ("assistant", "Nothing found."),
    ("assistant", "Shall I look further?"),
    ("user", "Please."),
]


@pytest.mark.parametrize("name", WRONG)
def test_one_thing_wrong_gets_its_line(name, tmp_path):
    """In an entry by itself, and as the second line of a log."""
    case = WRONG[name]
    log = lines(tmp_path / "log", changed(case["of"], case))
    with pytest.raises(AriaError) as caught:
        read_log(log)
    assert str(caught.value).replace(str(log), "LOG") == f"LOG: line 1: {case['error']}"


def test_every_format_has_ten_broken_entries():
    of = [case["of"] for case in WRONG.values()]
    assert min(of.count(name) for name in ("openai", "tau_bench", "verl", "verifiers", "art")) >= 10


def test_an_agents_chat_is_one_utterance_a_message():
    episode = only(OPENAI)
    assert said(episode) == TURNS
    assert episode.rewards == {"assistant": 0.5}
    assert episode.prompts == {"assistant": "Help with flights."}
    turns = turns_table([episode])
    assert turns["position"].tolist() == [1, 2, 3, 4, 5, 6]
    assert turns["is_action"].tolist() == [False, True, False, True, True, False]
    assert turns.loc[turns["is_action"], "turns"].tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call("f", '{"b": 1, "a": [1,2]}'), "f(a=[1, 2], b=1)"),
        (call("f", {"b": {"y": 1, "x": None}, "a": "é"}), 'f(a="é", b={"x": null, "y": 1})'),
        (call("f", ""), "f()"),
        (call("f", None), "f()"),
        (call("f", "{}"), "f()"),
        (call("f", '{"a": '), 'f({"a":)'),
        (call("f", "[1, 2]"), "f([1, 2])"),
        (call("f", '{"n": 123456789012345678901234567890}'), "f(n=123456789012345678901234567890)"),
        (call("f", '{"s": "\\ud800"}'), 'f({"s": "\\ud800"})'),
        ({"id": "x", "type": "function", "name": "f", "arguments": '{"a":1}'}, "f(a=1)"),
        ({"id": "x", "type": "custom", "custom": {"name": "f", "input": "ls -l"}}, "f(ls -l)"),
    ],
)
def test_a_call_has_one_form(made, text):
    """Whatever the order and spacing of its arguments; what is no JSON object stays as it was."""
    message = {"role": "assistant", "content": None, "tool_calls": [made]}
    assert said(only({"messages": [message], "reward": 1})) == [("assistant", text)]
    old = {"role": "assistant", "content": None, "function_call": made.get("function", made)}
    if made.get("type") == "function":
        assert said(only({"messages": [old], "reward": 1})) == [("assistant", text)]


def test_words_and_calls_of_a_message_are_one_action():
    calls = [call("f", '{"a":1}'), call("g", "{}", 2)]
    message = {"role": "assistant", "content": "I look.", "tool_calls": calls}
    assert said(only({"messages": [message], "reward": 1})) == [
        ("assistant", "I look.\nf(a=1)\ng()")
    ]
    refusal = {"role": "assistant", "content": None, "refusal": "I cannot."}
    assert said(only({"messages": [refusal], "reward": 0})) == [("assistant", "I cannot.")]


def test_an_assistant_may_say_nothing_and_that_is_a_turn():
    chat = [{"role": role, "content": text} for role, text in (("user", "hi"), ("assistant", " "))]
    assert [said.text for said in chat_of(chat).utterances] == ["hi", "(empty)"]


def test_a_developer_instructs_an_assistant_and_acts_elsewhere():
    lead = {"role": "developer", "content": "Be brief."}
    agent = {"role": "assistant", "content": "Hi."}
    assert only({"messages": [lead, agent], "reward": 1}).prompts == {"assistant": "Be brief."}
    pair = [{"role": role, "content": "Hi."} for role in ("developer", "manager")]
    episode = only({"messages": pair, "rewards": {"developer": 1}})
    assert [role for role, _ in said(episode)] == ["developer", "manager"]


def test_named_speakers_share_the_reward_of_their_role():
    episode = only(NAMED)
    assert [role for role, _ in said(episode)] == ["Ann", "planner", "critic"]
    assert episode.rewards == {"planner": 1, "critic": 1}
    assert episode.group_id == "plan"
    own = only({**NAMED, "rewards": {"critic": 0, "assistant": 1}})
    assert own.rewards == {"critic": 0, "planner": 1}
    lead = [{"role": "system", "content": "Plan."}, *NAMED["messages"]]
    assert set(only({**NAMED, "messages": lead}).prompts) == {"planner", "critic"}


@pytest.mark.parametrize(
    ("agents", "rewards"),
    [
        (("planner",), {"planner": 1}),
        (("assistant",), {"planner": 1, "critic": 1}),
        (("planner", "critic"), {"planner": 1, "critic": 1}),
    ],
)
def test_who_is_credited_is_named_by_role_or_name(agents, rewards):
    assert only(NAMED, agents=agents).rewards == rewards


def test_an_agent_that_says_nothing_may_be_misspelt():
    with pytest.raises(AriaError, match=r"no action of asistant \(did you mean assistant\?\)"):
        only(OPENAI, agents=("asistant",))


def test_an_agent_takes_the_reward_that_is_nobodys():
    assert only(OPENAI, agents=("user",)).rewards == {"user": 0.5}
    two = {**OPENAI, "reward": None, "rewards": {"assistant": 1, "user": 0}}
    assert only(two).rewards == {"assistant": 1, "user": 0}
    assert only(two, agents=("assistant",)).rewards == {"assistant": 1}
    with pytest.raises(AriaError, match=r"no reward of asistant.*did you mean assistant\?"):
        only(two, agents=("asistant",))


@pytest.mark.parametrize(
    "rewards", [{}, {"assistant": None}, {"assistant": 0.5}, {"assistant": 0.5, "user": 0}]
)
def test_one_reward_beside_rewards_by_role(rewards):
    """Nulls are as if they were not there; of both, each says the same."""
    episode = only({**OPENAI, "rewards": rewards})
    assert episode.rewards == {**rewards, "assistant": 0.5}
    assert episode.prompts["assistant"] == "Help with flights."


def test_tau_bench():
    episode = only(TAU)
    assert (episode.episode_id, episode.group_id) == ("task3-trial1", "3")
    assert said(episode) == TURNS
    assert episode.rewards == {"assistant": 1.0}
    assert episode.prompts == {"assistant": "Help with flights."}


def test_verl_is_split_where_the_template_names_a_role():
    episode = only(VERL)
    assert said(episode) == [
        ("user", "What is 2 + 2?"),
        ("assistant", "Let me see."),
        ("user", "<tool_response>\n4\n</tool_response>"),
        ("assistant", "It is 4."),
    ]
    assert episode.prompts == {"assistant": "You use tools."}
    assert episode.rewards == {"assistant": -1.5}
    assert episode.info["rollout"] == {"gts": "4", "step": 7}
    marked = "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n"
    kept = only({**VERL, "input": marked, "output": "4.<|im_end|>"})
    assert said(kept) == [("user", "2 + 2?"), ("assistant", "4.")]
    plain = only({**VERL, "input": "2 + 2?", "output": "The user is right: 4."})
    assert said(plain) == [("user", "2 + 2?"), ("assistant", "The user is right: 4.")]


@pytest.mark.parametrize(
    ("opening", "output", "reply"),
    [
        ("<think>\n", "Two and two.\n</think>\n4.", "<think>\nTwo and two.\n</think>\n4."),
        ("<think>\n\n</think>\n\n", "4.", "4."),
        ("Answer:", "4.", "Answer:\n4."),
        ("", "4.", "4."),
    ],
)
def test_of_verl_the_reply_alone_acts_and_has_what_the_template_opened_it_with(
    opening, output, reply
):
    shown = "user\n1 + 1?\nassistant\n2\nuser\n2 + 2?\nassistant\n" + opening
    episode = only({**VERL, "input": shown, "output": output})
    assert said(episode) == [
        ("user", "1 + 1?"), ("given", "2"), ("user", "2 + 2?"), ("assistant", reply),
    ]  # fmt: skip
    assert episode.rewards == {"assistant": -1.5}


def test_an_empty_turn_of_verl_is_a_turn_and_an_opening_is_none():
    output = "Let me.\nuser\nr\nassistant\n\nuser\nmore\nassistant\nIt is 4.\nuser\n"
    episode = only({**VERL, "output": output})
    assert said(episode)[1:] == [
        ("assistant", "Let me."),
        ("user", "r"),
        ("assistant", "(empty)"),
        ("user", "more"),
        ("assistant", "It is 4."),
    ]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_thoughts_that_are_not_read_are_told(tmp_path, caplog, key):
    thinking = [m | {key: "hm"} if m["role"] == "assistant" else m for m in CHAT]
    read_log(lines(tmp_path / "log.jsonl", {**OPENAI, "messages": thinking}))
    assert f"{key} of a message is not read" in caplog.text
    caplog.clear()
    read_log(lines(tmp_path / "log.jsonl", OPENAI))
    assert "not read" not in caplog.text


@pytest.mark.parametrize(
    ("more", "weight", "told"),
    [
        ({"system": "You are X."}, 1, "system beside messages is not read"),
        ({}, 0, "weight 0 of a message is not read"),
    ],
)
def test_instructions_and_weights_elsewhere_are_told(tmp_path, caplog, more, weight, told):
    log = tmp_path / "log.jsonl"
    weighed = [{**message, "weight": weight} for message in CHAT]
    read_log(lines(log, {**OPENAI, "messages": weighed, **more}))
    assert told in caplog.text
    caplog.clear()
    read_log(lines(log, {**OPENAI, "messages": [{**m, "weight": 1} for m in CHAT]}))
    assert not caplog.text


@pytest.mark.parametrize("trained", [True, False])
def test_an_empty_message_of_art_is_read_whether_it_is_trained_or_not(trained):
    silent = {"role": "assistant", "content": "", "trainable": trained}
    spoken = {"role": "assistant", "content": "Four.", "trainable": True}
    messages = [{"role": "user", "content": "2 + 2?"}, silent, spoken]
    episode = only({"group_index": 0, "reward": 1.0, "messages": messages})
    assert said(episode)[1] == ("assistant" if trained else "given", "(empty)")


@pytest.mark.parametrize(("task", "named"), [("a", "a"), (2, "2"), (2.0, "2")])
def test_a_group_is_named_by_its_value(task, named):
    entry = {**OPENAI, "info": {"task": task}}
    (episode,) = read_entries([entry], Reading(group_by="info.task"))
    assert episode.group_id == named


@pytest.mark.parametrize("blank", ["", "  ", "\u200b", None])
def test_no_group_is_made_of_blanks(blank):
    with pytest.raises(AriaError, match=r"no field info\.task to group by"):
        read_entries([{**OPENAI, "info": {"task": blank}}], Reading(group_by="info.task"))


@pytest.mark.parametrize("score", [1.7e308, -3.4e38, 2e15])
def test_marks_for_no_score_are_no_rewards(score):
    with pytest.raises(AriaError, match=r"beyond 1e\+15: rescale, or remove it"):
        read_entries([{**VERL, "score": score}])
    told = [m | {"step": score} if m["role"] == "assistant" else m for m in CHAT]
    with pytest.raises(AriaError, match=r"step of message .* beyond"):
        read_entries([{**OPENAI, "messages": told}], Reading(column="step"))


def test_verl_groups_by_prompt():
    entries = [VERL, {**VERL, "output": "Four."}, {**VERL, "input": "user\n3 + 3?"}]
    first, second, third = read_entries(entries)
    assert first.group_id == second.group_id != third.group_id


def test_verifiers_reads_the_last_branch_and_credits_what_was_sampled():
    episode = only(VERIFIERS)
    assert said(episode) == [
        ("user", "2 + 2?"),
        ("given", "Example: 1."),
        ("assistant", "add(a=2)"),
        ("tool", "4"),
        ("assistant", "4."),
    ]
    assert (episode.episode_id, episode.group_id) == ("ep1", "k4")
    assert episode.rewards == {"assistant": 2.25}
    assert only({**VERIFIERS, "group": {"id": "g7"}}).group_id == "g7"


def test_verifiers_says_what_branches_it_leaves_out(tmp_path, caplog):
    other = {"parent": 1, "sampled": True, "message": {"role": "assistant", "content": "5."}}
    entry = changed("verifiers", {})
    entry["traces"][0]["nodes"].append(other)
    (episode,) = read_log(lines(tmp_path / "log", entry))
    assert said(episode) == [("user", "2 + 2?"), ("assistant", "5.")]
    assert "a trace of several branches: its last one is read, 1 are left out" in caplog.text


def test_verifiers_with_several_agents_is_an_episode_each():
    entry = changed("verifiers", {})
    second = changed("verifiers", {"set": {"traces.0.id": "tr2"}})["traces"][0]
    entry["traces"][0]["agent"]["name"], second["agent"]["name"] = "solver", "judge"
    second["rewards"] = {"fair": {"score": 0.5}}
    entry["traces"].append(second)
    one, two = read_entries([entry])
    assert (one.rewards, two.rewards) == ({"solver": 2.25}, {"judge": 0.5})
    assert (one.episode_id, two.episode_id) == ("tr1", "tr2")
    assert one.group_id == two.group_id == "k4"
    assert [e.rewards for e in read_entries([entry], Reading(agents=("assistant",)))] == [
        {"solver": 2.25},
        {"judge": 0.5},
    ]


def test_art_groups_are_of_one_file(tmp_path):
    episode = only(ART)
    assert said(episode) == [
        ("user", "2 + 2?"),
        ("given", "An example."),
        ("assistant", "add(a=2, b=2)"),
        ("tool", "4"),
    ]
    assert episode.rewards == {"assistant": 3.5}
    assert episode.group_id == "2"
    for name in ("0001.parquet", "0002.parquet"):
        parquet_file(tmp_path / name, [ART, {**ART, "reward": 1.0}])
    found = read_log(tmp_path)
    assert [e.group_id for e in found] == ["0001.parquet:2"] * 2 + ["0002.parquet:2"] * 2
    assert len({e.episode_id for e in found}) == 4


@pytest.mark.parametrize("name", ENTRIES)
def test_it_goes_through_the_pipelines_own_files(name, tmp_path):
    """collect writes what was read, prepare reads that again, and the tables can be laid out."""
    episodes = read_entries([ENTRIES[name]])
    write_log(tmp_path / "raw", episodes)
    again = read_log(tmp_path / "raw", Reading(warn=False))
    assert again == episodes
    assert turns_table(again).equals(turns_table(episodes))
    assert len(episodes_table(again)) == len(episodes[0].rewards)


@pytest.mark.parametrize("name", ENTRIES)
def test_lines_lists_and_parquet_are_the_same_log(name, tmp_path):
    entry = ENTRIES[name]
    expected = read_entries([entry])
    (tmp_path / "list.json").write_bytes(orjson.dumps([entry]))
    found = [read_log(lines(tmp_path / "lines", entry)), read_log(tmp_path / "list.json")]
    if name not in ("openai", "tau_bench"):  # content of two types has no column
        found.append(read_log(parquet_file(tmp_path / "table", [entry])))
    for episodes in found:
        assert [said(e) for e in episodes] == [said(e) for e in expected]
        assert [e.rewards for e in episodes] == [e.rewards for e in expected]


@pytest.mark.parametrize(
    ("field", "group"),
    [("info.scenario", "sea"), ("episode_id", "c1"), ("reward", None), ("info", None)],
)
def test_groups_by_a_field(field, group):
    found = only(OPENAI, group_by=field).group_id
    assert found == group if group else len(found) == 16


def test_a_group_that_an_entry_lacks_is_an_error():
    with pytest.raises(
        AriaError, match=r"entry 1: no field scenaro to group by \(known: .*\): name one"
    ):
        only(OPENAI, group_by="scenaro")
    with pytest.raises(AriaError, match=r"no field infos to group by \(did you mean info\?\)"):
        only(OPENAI, group_by="infos")


def test_the_chat_itself_is_left_alone():
    before = json.dumps(CHAT)
    read_entries([OPENAI, {**TAU, "traj": CHAT}])
    assert json.dumps(CHAT) == before
