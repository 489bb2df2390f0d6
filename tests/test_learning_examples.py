"""Dialogues as training sequences: the tokens that the player samples, every action once."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_tiny import made_up_game, tiny_tokenizer

from aria_dvc.chat import Renderer, view
from aria_dvc.errors import AriaError
from aria_dvc.learning.examples import (
    Dialogue,
    build_examples,
    dialogues,
    frames_examples,
    with_values,
)
from aria_dvc.learning.own_actions import without_unsampled_ends

RENDERER = Renderer(tiny_tokenizer())
PROMPT = "You are Alice."


def dialogue_of(lines: list[tuple[str, str]], role: str = "alice") -> Dialogue:
    positions = [i for i, (speaker, _) in enumerate(lines) if speaker == role]
    return Dialogue("bargaining", "e0", role, view(lines, role, PROMPT), positions)


def alternating(texts: list[str], first: str = "alice") -> list[tuple[str, str]]:
    roles = ("alice", "bob") if first == "alice" else ("bob", "alice")
    return [(roles[i % 2], text) for i, text in enumerate(texts)]


texts = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=2, max_size=7)


@settings(max_examples=40, deadline=None)
@given(texts, st.sampled_from(["alice", "bob"]))
def test_tokens_before_each_action_are_those_of_the_sampling_prompt(said, first):
    lines = alternating(said, first)
    (example,) = build_examples([dialogue_of(lines)], RENDERER, 4096).items
    for index, (_, _, position) in enumerate(example.keys):
        start = int(np.flatnonzero(example.action == index)[0])
        prompt = RENDERER.prompt_ids(view(lines[:position], "alice", PROMPT))
        assert example.input_ids[:start].tolist() == prompt
        own = example.input_ids[example.action == index]
        assert own[-1] == RENDERER.tokenizer.eos_token_id
        text = RENDERER.tokenizer.decode(own[:-1])
        assert text == RENDERER.clean(lines[position][1])


def test_sequence_ends_with_the_last_action():
    lines = alternating(["a", "b", "c", "d"])
    (example,) = build_examples([dialogue_of(lines)], RENDERER, 4096).items
    assert example.action[-1] == len(example.keys) - 1


@settings(max_examples=30, deadline=None)
@given(st.integers(120, 400), st.integers(3, 30))
def test_windows_train_every_action_once_within_the_limit(limit, turns):
    lines = alternating([f"utterance {i}" for i in range(turns)])
    dialogue = dialogue_of(lines)
    built = build_examples([dialogue], RENDERER, limit)
    keys = [key for example in built.items for key in example.keys]
    assert keys == [("bargaining", "e0", p) for p in dialogue.positions]
    system = RENDERER.encode(RENDERER.segments(view(lines[:1], "bob", PROMPT))[0][0])
    head = RENDERER.tokenizer.decode(system).partition("<|im_end|>")[0]
    for example in built.items:
        assert len(example) <= limit
        text = RENDERER.tokenizer.decode(example.input_ids)
        assert text.startswith(head)
        for message in text.split("<|im_start|>")[2:]:
            body = message.partition("\n")[2].partition("<|im_end|>")[0]
            assert body in {"You start.", *(said for _, said in lines)}  # never half a turn
    assert built.cut == sum(len(example.keys) for example in built.items[1:])


@settings(max_examples=20, deadline=None)
@given(st.integers(120, 400), st.integers(6, 30), st.integers(1, 60))
def test_a_window_repeats_the_most_that_leaves_room_for_as_much(limit, turns, length):
    messages = view(alternating(["x" * length] * turns), "alice", PROMPT)
    own = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    built = build_examples([Dialogue("log", "e0", "alice", messages, own)], RENDERER, limit)
    for example in built.items[1:]:
        first = example.keys[0][2]
        starts = [i for i in range(1, first) if messages[i]["role"] == "user"]
        sizes = [
            sum(len(RENDERER.encode(text)) for text, _ in RENDERER.segments(chat))
            for chat in ([messages[0], *messages[i : first + 1]] for i in starts)
        ]
        end = int(np.flatnonzero(example.action == 0)[-1]) + 1
        assert end == next((size for size in sizes if size <= limit // 2), sizes[-1])


def test_an_action_longer_than_the_limit_is_dropped_and_counted():
    lines = [("alice", "short"), ("bob", "b"), ("alice", "x" * 500), ("bob", "b"), ("alice", "end")]
    built = build_examples([dialogue_of(lines)], RENDERER, 150)
    assert built.dropped == 1
    assert built.items[0].keys[0][2] == 0


def test_no_action_that_fits_is_an_error():
    with pytest.raises(AriaError, match="max_tokens"):
        frames_examples([made_up_game()], RENDERER, 10)


def test_consecutive_lines_count_as_the_last_of_them():
    game = made_up_game(episodes=1, turns=1)
    turns = game.turns.loc[[0, 0, 1]].assign(position=[0, 1, 2]).reset_index(drop=True)
    found = {d.role: d.positions for d in dialogues(turns, game.episodes)}
    assert found == {"alice": [1], "bob": [2]}


def test_both_roles_of_all_games_become_examples():
    frames = [made_up_game("bargaining"), made_up_game("negotiation", seed=1)]
    built = frames_examples(frames, RENDERER, 4096)
    keys = {key for example in built.items for key in example.keys}
    expected = {
        (game.name, row.episode_id, row.position)
        for game in frames
        for row in game.turns.itertuples()
    }
    assert keys == expected


def test_an_end_of_turn_that_was_never_sampled_is_not_trained():
    game = made_up_game(episodes=1, turns=3)
    episode = str(game.turns["episode_id"].iloc[0])
    info = json.dumps({"cut": [2]})
    noted = replace(game, episodes=game.episodes.assign(info=info))
    examples = frames_examples([noted], RENDERER, 4096).items
    opened = without_unsampled_ends(examples, [noted], len(RENDERER.end_ids()))
    for before, after in zip(examples, opened, strict=True):
        lost = np.flatnonzero(before.action != after.action)
        expected = [(before.log, episode, 2)] if (before.log, episode, 2) in before.keys else []
        assert [before.keys[before.action[i]] for i in lost] == expected
        assert [int(before.input_ids[i]) for i in lost] == RENDERER.end_ids() * len(expected)


def test_a_second_message_in_a_row_that_fits_no_window_is_dropped():
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b" * 500},
    ]
    built = build_examples([Dialogue("g", "e", "r", messages, [1, 2])], RENDERER, 64)
    assert (len(built.items), built.dropped) == (1, 1)


def test_worthless_and_unvalued_actions_are_not_computed():
    lines = alternating(["a", "b", "c", "d", "e"])
    items = build_examples([dialogue_of(lines)], RENDERER, 4096).items
    key = [("bargaining", "e0", p) for p in (0, 2, 4)]
    ((example, values),) = with_values(items, {key[0]: 1.0, key[1]: 2.0, key[2]: 0.0})
    assert example.keys == tuple(key)
    assert values.tolist() == [1.0, 2.0, 0.0]
    assert example.action[-1] == 1
    assert len(example.action) == len(example.input_ids)
    ((_, kept),) = with_values(items, {key[0]: 1.0, key[2]: 0.0}, keep_zero=True)
    assert np.isnan(kept[1])
    assert kept[2] == 0.0
    ((silent, values),) = with_values(items, {key[0]: 0.0})
    assert len(silent) == 0
    assert values.tolist() == [0.0], "it still counts in its batch"
    assert with_values(items, {}) == []
