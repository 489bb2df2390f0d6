"""System messages of a log: the prompt of those who act, and what `position` counts."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learning_tiny import save_tiny_base, tiny_tokenizer

import aria_dvc
from aria_dvc.__main__ import main
from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.learning.examples import LogFrames, dialogues, frames_dialogues, frames_examples
from aria_dvc.learning.own_actions import learned_by, without_unsampled_ends
from aria_dvc.learning.reward_model import train_reward_model
from aria_dvc.learning.scorer import RewardScorer
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params, load_params
from aria_dvc.pipeline.frames import category_frames
from aria_dvc.pipeline.paths import files_of
from aria_dvc.records.episodes import Episode, Utterance
from aria_dvc.records.log_vectors import log_vectors_table, vectors_of
from aria_dvc.records.published import published, write_log
from aria_dvc.records.readers import read_entries, read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import EMBEDDINGS, EPISODES, REWARDS, TURNS, read_table
from aria_dvc.records.tables import check_lengths, episodes_table, turns_table

ROOT = Path(__file__).parent.parent
RENDERER = Renderer(tiny_tokenizer())
WORDS = ("yes", "no", "well")
STAGES = ("collect", "prepare", "embed", "cluster", "select_k", "aggregate")
Entry = dict[str, Any]


def message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def entry_of(*messages: dict[str, str], **more: Any) -> Entry:
    return {"messages": list(messages), "rewards": {"agent": 1.0}, **more}


def only(entry: Entry, **options: Any) -> Episode:
    (episode,) = read_entries([entry], Reading(**options))
    return episode


def chats(count: int = 12, system: bool = True, vectors: bool = True) -> list[Entry]:
    """Support chats of five utterances, led by 0, 1 or 2 system messages in turn."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(count):
        words = [str(word) for word in rng.choice(WORDS, 5)]
        said: list[Entry] = [
            {**message(("user", "agent")[i % 2], word), "embedding": np.eye(3)[WORDS.index(word)]}
            for i, word in enumerate(words)
        ]
        said = [{**m, "embedding": m["embedding"].tolist()} for m in said]
        lead = [message("system", f"Rule {i}.") for i in range(number % 3 if system else 0)]
        rewards = {"agent": float(words[1] == "yes")}
        made.append({"episode_id": f"e{number}", "messages": lead + said, "rewards": rewards})
    return made if vectors else json.loads(json.dumps(made), object_hook=_without_vector)


def _without_vector(value: Entry) -> Entry:
    return {key: item for key, item in value.items() if key != "embedding"}


def as_lines(path: Path, entries: list[Entry]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def indices(entries: list[Entry], role: str) -> list[int]:
    """Where the log has the role's messages, episode after episode."""
    return [i for e in entries for i, m in enumerate(e["messages"]) if m["role"] == role]


def test_system_messages_are_the_prompt_of_all_who_act():
    said = (message("user", "Hi"), message("agent", "Hello"), message("user", "Bye"))
    rewards = {"agent": 1.0, "user": 0.5}
    lead = (message("system", "Be kind."), message("system", ""), message("system", "Be brief."))
    episode = only(entry_of(*lead, *said, rewards=rewards))
    assert episode.prompts == dict.fromkeys(rewards, "Be kind.\n\nBe brief.")
    assert turns_table([episode])["position"].tolist() == [3, 4, 5]
    own = only(entry_of(*lead, *said, rewards=rewards, system_prompts={"user": "Buy."}))
    assert own.prompts == {"agent": "Be kind.\n\nBe brief.", "user": "Buy."}
    assert only(entry_of(*lead, *said)).prompts == {"agent": "Be kind.\n\nBe brief."}
    assert only(entry_of(*said)).prompts == {}


def test_a_later_system_message_is_said_by_a_role_that_does_not_act():
    lead, later = message("system", "Be kind."), message("system", "The line dropped.")
    episode = only(entry_of(lead, message("agent", "Hi"), later, message("agent", "Hi?")))
    turns = turns_table([episode])
    assert turns["role"].tolist() == ["agent", "system", "agent"]
    assert turns["is_action"].tolist() == [True, False, True]
    assert turns["position"].tolist() == [1, 2, 3]
    (seen,) = dialogues(turns, episodes_table([episode]))
    assert [m["content"] for m in seen.messages] == [
        "Be kind.", "You start.", "Hi", "The line dropped.", "Hi?",
    ]  # fmt: skip
    assert seen.positions == [1, 3]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (entry_of(message("system", "Be kind.")), "line 1: empty game"),
        (entry_of({"role": "system", "content": 5}, message("agent", "Hi")), r"messages\[0\]"),
        (
            entry_of(message("system", "x"), message("agent", "Hi"), rewards={"system": 1.0}),
            "line 1: rewards names system, which never acts",
        ),
        (
            entry_of(message("system", "x"), message("agent", "Hi"), message("user", " ")),
            r"line 1: utterance 2 \(user\) has no text",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_its_place_in_the_log(tmp_path, entry, problem):
    with pytest.raises(AriaError, match=problem):
        read_log(as_lines(tmp_path / "log", [entry]))


def test_lengths_are_told_by_the_place_in_the_log():
    episode = only(entry_of(message("system", "x" * 99), message("agent", "y" * 11)))
    with pytest.raises(AriaError, match="utterance 1 has 11 characters"):
        check_lengths([episode], 10, "log")


ALTERNATING = {"agent/oracle": ("agent", "oracle"), "alice/bob": ("alice", "bob")}


@pytest.mark.parametrize("roles", ALTERNATING.values(), ids=ALTERNATING)
def test_raw_dialogues_carry_positions_and_prompts(tmp_path, roles):
    said = [message(role, "Hi") for role in roles * 2]
    lead = [message("system", "Be kind."), message("system", "Be brief.")]
    entries = [
        {"messages": lead + said, "rewards": {roles[0]: 1.0}, "system_prompts": {roles[1]: "Go."}},
        {"messages": lead[:1] + said + lead[1:] + said, "rewards": {roles[0]: 0.0}},
        {"messages": said, "rewards": {roles[0]: 0.5}},
    ]
    episodes = list(read_entries(entries))
    write_log(tmp_path / "raw", episodes)
    again = read_log(tmp_path / "raw")
    assert again == episodes
    pd.testing.assert_frame_equal(turns_table(again), turns_table(episodes))
    assert "messages" in published(episodes[0])
    assert "messages" not in published(episodes[2])


def test_vectors_of_a_log_find_their_turns(tmp_path):
    from aria_dvc.files import write_parquet

    episodes = read_entries(chats())
    write_parquet(tmp_path / "vectors", log_vectors_table(episodes))
    turns = turns_table(episodes[1:])
    expected = [np.eye(3)[WORDS.index(text)] for text in turns["text"]]
    found = vectors_of(turns, tmp_path / "vectors")
    np.testing.assert_array_equal(found, expected)


def test_system_messages_change_no_credit_but_its_names(tmp_path):
    plain = aria_dvc.credit(chats(system=False), method="aria")
    for method in ("aria", "shrinkage", "regression", "kernel", "turn_index"):
        found, without = (
            aria_dvc.credit(chats(system=system), method=method) for system in (True, False)
        )
        columns = ["episode_id", "role", "return", "credit"]
        pd.testing.assert_frame_equal(found[columns], without[columns])
        assert found["position"].tolist() == indices(chats(), "agent")
    assert plain["position"].tolist() == indices(chats(system=False), "agent")


def test_the_command_names_the_messages_of_the_log(tmp_path):
    log, out = as_lines(tmp_path / "log", chats()), tmp_path / "credit.parquet"
    new = as_lines(tmp_path / "new", [_without_vector(e) | {"rewards": {}} for e in chats(4)])
    arguments = ["credit", str(log), "--method", "turn_index", "--out", str(out)]
    for more, expected in (([], chats()), (["--score", str(new)], chats(4))):
        assert main([*arguments, *more]) == 0
        table = pd.read_parquet(out)
        assert table["position"].tolist() == indices(expected, "agent")


def frame_of(entries: list[Entry], step: int | None = None) -> pd.DataFrame:
    """One row a message, numbered in steps of `step` or not at all."""
    rows = [
        {
            "episode_id": entry["episode_id"],
            "role": m["role"],
            "text": m["content"],
            "reward": entry["rewards"].get(m["role"]),
            "position": (step or 0) * place,
        }
        for entry in entries
        for place, m in enumerate(entry["messages"])
    ]
    frame = pd.DataFrame(rows)
    return frame if step else frame.drop(columns="position")


@pytest.mark.parametrize("step", [None, 1, 10])
def test_rows_of_a_frame_keep_their_numbers(step):
    log = frame_of(chats(vectors=False), step)
    credit = aria_dvc.credit(log, method="turn_index")
    expected = [(step or 1) * index for index in indices(chats(), "agent")]
    assert credit["position"].tolist() == expected
    new = frame_of(chats(5, vectors=False), step).drop(columns="reward")
    scored = aria_dvc.credit(log, method="turn_index", score=new)
    expected = [(step or 1) * index for index in indices(chats(5), "agent")]
    assert scored["position"].tolist() == expected


def test_place_and_position_are_kept_apart():
    turns = turns_table(read_entries(chats(3)))
    turns["position"] *= 7  # gaps
    log = Log.of(turns)
    assert log.place.tolist() == [0, 1, 2, 3, 4] * 3
    assert log.position.tolist() == turns["position"].tolist()
    later = log.where(log.episode > 0)
    assert later.place.tolist() == [0, 1, 2, 3, 4] * 2
    assert later.action_frame()["position"].tolist() == [14, 28, 21, 35]


@pytest.fixture(scope="module")
def frames(tmp_path_factory) -> LogFrames:
    """The tables of a log that went through the stages up to the credit."""
    folder = tmp_path_factory.mktemp("run")
    params = with_log(as_lines(folder / "chat.jsonl", chats()))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for stage in STAGES:
            runpy.run_path(str(ROOT / "stages" / f"{stage}.py"))["main"](params, "chat")
        files = files_of(params, "chat")
        expected = indices(chats(), "agent")
        for path, schema in ((files.turns, TURNS), (files.rewards, REWARDS)):
            table = read_table(path, schema)
            assert table.loc[table["role"] == "agent", "position"].tolist() == expected
        read_table(files.embeddings, EMBEDDINGS, read_table(files.turns, TURNS))
        prompts = read_table(files.episodes, EPISODES)["system_prompt"].tolist()
        assert prompts == ["", "Rule 0.", "Rule 0.\n\nRule 1."] * 4
        (found,) = category_frames(params, "adversarial", None, ["policy"])
    return found


def with_log(source: Path) -> Params:
    params = load_params(ROOT / "params.yaml")
    log = params.logs["bargaining"].model_copy(update={"source": str(source)})
    cluster = params.cluster.model_copy(update={"k_max": 3})
    return params.model_copy(update={"logs": {"chat": log}, "cluster": cluster})


def test_training_sees_the_prompt_of_the_log(frames):
    built = frames_examples([frames], RENDERER, 4096)
    for number, example in enumerate(built.items):
        prompt = ("", "Rule 0.", "Rule 0.\n\nRule 1.")[number % 3]
        begin = f"<|im_start|>system\n{prompt}<|im_end|>" if prompt else "<|im_start|>user"
        assert RENDERER.tokenizer.decode(example.input_ids).startswith(begin)
    keys = [key for example in built.items for key in example.keys]
    rewards = frames.rewards[["episode_id", "position"]]
    assert keys == [("chat", *row) for row in rewards.itertuples(index=False)]


def test_notes_on_utterances_count_as_the_log_does(frames):
    info = json.dumps({"reasked": [2], "cut": [4]})
    noted = frames.episodes.assign(info=info)  # only e1 has its first action at 2
    kept = learned_by("reinforce", replace(frames, episodes=noted)).rewards
    gone = frames.rewards[frames.rewards["position"] == 2]
    assert set(gone["episode_id"]) == {f"e{number}" for number in range(1, 12, 3)}
    assert len(kept) == len(frames.rewards) - len(gone)
    examples = frames_examples([frames], RENDERER, 4096).items
    cut = LogFrames("chat", frames.turns, noted, frames.rewards)
    opened = without_unsampled_ends(examples, [cut], 1)
    for before, after in zip(examples, opened, strict=True):
        lost = np.flatnonzero(before.action != after.action)
        assert len(lost) == sum(position == 4 for _, _, position in before.keys)


def test_a_reward_model_scores_under_the_prompt_of_the_log(frames, tmp_path):
    params = load_params(ROOT / "params.yaml")
    base = save_tiny_base(tmp_path / "base")
    small = params.reward_model.model_copy(update={"max_tokens": 512, "lora": None, "epochs": 1})
    pace = params.pace.model_copy(update={"precision": "float32"})
    out = tmp_path / "reward_model"
    train_reward_model(small, pace, [frames], base, out, seed=0, cache=tmp_path / "cache")
    scorer = RewardScorer(
        ModelSource(out), base, max_tokens=512, tokens_per_batch=512, precision="float32"
    )
    scores = scorer.score_dialogues(frames_dialogues([frames]))
    rewards = frames.rewards[["episode_id", "position"]]
    assert set(scores) == {("chat", *row) for row in rewards.itertuples(index=False)}
    bare = frames.episodes.assign(system_prompt="")
    without = scorer.score_dialogues(list(dialogues(frames.turns, bare)))
    for key in scores:
        told = int(key[1][1:]) % 3 > 0
        assert (abs(scores[key] - without[key]) > 1e-7) == told


def test_a_scorer_elsewhere_is_told_the_prompt(frames, monkeypatch):
    asked: list[Entry] = []

    def ask(path: str, body: Entry, read: Any) -> Entry:
        asked.extend(body["items"])
        return {"scores": [[0.5, 0.5] for _ in body["items"]]}

    scorer = RemoteScorer("http://127.0.0.1:9", 1.0)
    monkeypatch.setattr(scorer.server, "ask", ask)
    scores = scorer.score_dialogues(frames_dialogues([frames]))
    rewards = frames.rewards[["episode_id", "position"]]
    assert set(scores) == {("chat", *row) for row in rewards.itertuples(index=False)}
    assert asked[1]["messages"][0] == message("system", "Rule 0.")


def test_utterances_made_in_play_count_from_zero():
    episode = Episode("e", "bargaining", [Utterance("alice", "Hi")], {"alice": 1.0})
    assert [position for position, _ in episode.numbered()] == [0]
