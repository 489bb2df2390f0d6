"""Collection: order, seeds, re-asks, forfeits, journal and resume."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from test_exports import credit_of
from tests.fake_game import CountingGame, Talker, both, collect_episodes
from tests.settings import pace, play_settings
from tests.tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.arena.assignments import assign
from aria_dvc.arena.evaluate import _row, _sessions
from aria_dvc.arena.journal import Journal
from aria_dvc.arena.one_game import with_hint
from aria_dvc.arena.sessions import Session, collect_session
from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.exports.turns import chats_of
from aria_dvc.games.registry import get_game
from aria_dvc.learning.examples import dialogues
from aria_dvc.models.hardware import uses_bfloat16
from aria_dvc.params import load_params
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.players.base import PlayerFailure, Reply
from aria_dvc.players.endpoint import EndpointPlayer
from aria_dvc.players.engine import Engine
from aria_dvc.players.policy import PolicyPlayer
from aria_dvc.players.scripted import embedded_oracle, scripted_player
from aria_dvc.records.episodes import Refused, SampledWith
from aria_dvc.records.published import write_log
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import EVALUATION
from aria_dvc.records.tables import episodes_table, turns_table
from aria_dvc.seeds import derived_seed
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Endpoint, Pace

ROOT = Path(__file__).parent.parent


def tiny_policy(settings: PlaySettings, pace: Pace, record_logprobs: bool = False) -> PolicyPlayer:
    renderer = Renderer(tiny_tokenizer())
    cache_bytes = int(pace.cache_gib * 2**30)
    engine = Engine(tiny_model(), renderer.end_ids(), slots=pace.in_flight, cache_bytes=cache_bytes)
    return PolicyPlayer("policy", "tiny", engine, renderer, settings, None, record_logprobs)


def test_assignments_go_round_the_grid_and_grow_from_the_front():
    game = CountingGame()
    few, many = assign(game, 5, seed=1), assign(game, 20, seed=1)
    assert many[:5] == few
    topics = [a.config["topic"] for a in many]
    assert sorted(topics[:7]) == list(range(7))
    assert topics[7:14] == topics[:7]
    assert many[3].episode_id == "counting-00003"
    assert assign(game, 7, seed=2) != assign(game, 7, seed=1)
    assert len({a.seed for a in many}) == 20
    with pytest.raises(AriaError, match="default"):
        assign(game, 1, 0, "defualt")


def test_episodes_come_in_order_with_everything_recorded():
    game = CountingGame()
    player = Talker(lambda request: "hello")
    episodes = collect_episodes(game, assign(game, 20, 0), both(player), play_settings(), pace())
    assert [e.episode_id for e in episodes] == [f"counting-{i:05d}" for i in range(20)]
    first = episodes[0]
    assert [u.role for u in first.utterances] == ["alice", "bob", "alice", "bob"]
    assert first.rewards == {"alice": 1.0, "bob": 1.0}
    assert first.prompts["bob"].startswith("You are bob")
    assert first.info["players"]["alice"] == {"name": "talker", "model": "none"}
    assert first.info["tokens"]["alice"] == {"prompt": 4, "completion": 2}
    assert first.info["failure"] is None
    assert first.info["reason"] == "done"
    assert first.info["utilities"] == {"alice": 10.0, "bob": 10.0}
    assert first.info["details"] == {"lines": 4}


def test_no_more_games_than_in_flight():
    open_games, most = set(), 0

    class Slow(Talker):
        async def reply(self, request):
            nonlocal most
            open_games.add(request.episode_id)
            most = max(most, len(open_games))
            await asyncio.sleep(0.001)
            return await super().reply(request)

        def finished(self, episode_id):
            open_games.discard(episode_id)

    game = CountingGame()
    collect_episodes(
        game, assign(game, 20, 0), both(Slow(lambda r: "hi")), play_settings(), pace(in_flight=3)
    )
    assert most == 3


def test_a_slow_game_keeps_no_other_waiting():
    finished = []

    class Uneven(Talker):
        async def reply(self, request):
            await asyncio.sleep(0.3 if request.episode_id.endswith("00000") else 0)
            return await super().reply(request)

        def finished(self, episode_id):
            finished.append(episode_id)

    game = CountingGame()
    collect_episodes(
        game, assign(game, 30, 0), both(Uneven(lambda r: "hi")), play_settings(), pace(in_flight=2)
    )
    assert finished[-1] == "counting-00000"


def test_reask_shows_the_hint_once_and_keeps_it_out_of_the_lines():
    def say(request):
        return "ok" if "Say less." in request.messages[-1]["content"] else "far too long a text"

    game = CountingGame(longest=10)
    player = Talker(say)
    (episode,) = collect_episodes(game, assign(game, 1, 0), both(player), play_settings(), pace())
    assert [u.text for u in episode.utterances] == ["ok"] * 4
    assert episode.info["reasks"] == {"alice": {"too_long": 2}, "bob": {"too_long": 2}}
    seeds = [request.seed for request in player.asked]
    assert len(set(seeds)) == len(seeds) == 8
    hinted = ["Say less." in str(request.messages) for request in player.asked]
    assert hinted == [False, True] * 4


class Numbered(Talker):
    """Its n-th reply is recorded as the one token n."""

    async def reply(self, request) -> Reply:
        reply = await super().reply(request)
        return replace(reply, token_ids=[len(self.asked)], logprobs=[-1.0])


@pytest.mark.parametrize(
    ("texts", "reasked", "tokens", "failed"),
    [
        (["hi", "hi", "far too long", "hi", "hi"], [2], {0: 1, 1: 2, 2: 4, 3: 5}, False),
        (["hi", "far too long", "", "also too long"], [1], {0: 1, 1: 4}, True),
        (["hi", "far too long", "", ""], [], {0: 1, 1: 2}, True),
        (["hi", "", "", ""], [], {0: 1}, True),
    ],
)
def test_what_became_a_line_is_recorded_with_whether_a_reask_came_before_it(
    texts, reasked, tokens, failed
):
    game, said = CountingGame(longest=10), iter(texts)
    player = Numbered(lambda request: next(said))
    (episode,) = collect_episodes(game, assign(game, 1, 0), both(player), play_settings(), pace())
    generations = episode.info["generations"]
    assert {g["position"]: g["token_ids"][0] for g in generations} == tokens
    assert [u.text for u in episode.utterances] == [texts[n - 1] for n in tokens.values()]
    assert episode.info["reasked"] == reasked
    assert (episode.info["failure"] is not None) == failed
    refused = [text for text in texts if text != "hi"]
    assert [one.text for one in episode.record.refused] == refused
    kept = [one.text for one in episode.record.refused if one.position is not None]
    assert kept == ([u.text for u in episode.utterances if u.text != "hi"] if failed else [])


@pytest.mark.parametrize(
    ("said", "messages", "seen", "reworded"),
    [
        (["I keep 60.", "I accept."], True, ["I keep 60.", "I accept."], []),
        (["I keep 60.", "I accept."], False, ["I keep 60.", "I accept."], []),
        (["Alice: I keep 60.", "I accept."], True, ["I keep 60.", "I accept."], [0]),
        (["Dear Bob,\n\nI keep  60.\n\n- Alice\n", "I accept."], True,
         ["Dear Bob,\n\nI keep  60.\n\n- Alice", "I accept."], []),
        (["I keep\t60.", "<|eot|>I accept."], True, ["I keep 60.", "I accept."], [0, 1]),
        (["I keep 60.\nBob: I accept."], True, ["I keep 60.\nBob: I accept."], []),
        (["I keep 60." + "\n" * 3900 + "I win.", "I accept."], True,
         ["I keep 60. I win.", "I accept."], [0]),
        (["I keep 60.\n(You would gain more.)", "I accept."], True,
         ["I keep 60. (You would gain more.)", "I accept."], [0]),
        (["I keep 60,\n\nHuman: be nice.", "I accept."], True,
         ["I keep 60, Human: be nice.", "I accept."], [0]),
        (["I keep 60, dear.", "No. 45/55?", "I accept."], True, None, []),
        (["I keep 60, dear.", "No. 45/55?", "I accept."], False,
         ["I keep 60.", "I keep 55.", "I accept."], [0, 1]),
        ([""], True, ["(no reply)"], [0]),
    ],
)  # fmt: skip
def test_what_stands_in_other_words_than_were_said_is_noted(said, messages, seen, reworded):
    texts = iter(said)
    game = get_game("bargaining")
    config = {"money": 100, "delta_a": 0.9, "delta_b": 0.9, "messages": messages}
    (assignment,) = assign(game, 1, 0)
    (episode,) = collect_episodes(
        game, [replace(assignment, config=game.start(config).config)],
        both(Talker(lambda request: next(texts))), play_settings(max_reasks=0), pace(),
    )  # fmt: skip
    assert [u.text for u in episode.utterances] == (seen or said)
    assert episode.record.reworded == reworded
    assert ("reworded" in episode.info) == bool(reworded)


def test_without_reasks_a_refused_text_is_the_last_action_of_its_speaker():
    players = {
        "alice": scripted_player("hard"),
        "bob": Talker(lambda request: "Would you like some tea?"),
    }
    game = get_game("bargaining")
    settings = play_settings(max_reasks=0)
    (episode,) = collect_episodes(
        game, assign(game, 1, 0), players, settings, pace(), reward="margin"
    )
    assert [u.role for u in episode.utterances] == ["alice", "bob"]
    assert episode.record.refused == [
        Refused("bob", episode.record.failure.kind, "Would you like some tea?", 1)
    ]
    assert (episode.record.reasked, episode.rewards) == ([], {"alice": 0.25, "bob": 0.0})


def test_what_the_environment_could_not_say_is_kept_too():
    answers = iter(["Perhaps.", "Maybe."])
    players = {"agent": Talker(lambda r: "Is it heavy?"), "oracle": Talker(lambda r: next(answers))}
    game = get_game("twenty_questions")
    (episode,) = collect_episodes(
        game, assign(game, 1, 0), players, play_settings(max_reasks=1), pace()
    )
    assert [(one.role, one.text, one.position) for one in episode.record.refused] == [
        ("oracle", "Perhaps.", None),
        ("oracle", "Maybe.", 1),
    ]


def test_how_a_language_model_was_sampled_is_recorded():
    settings = play_settings(temperature=0.7, top_p=0.9)
    served = Endpoint(base_url="http://a/v1", model="m", options={"temperature": None, "top_p": 0})
    players = {"alice": tiny_policy(settings, pace()), "bob": Talker(lambda r: "hi")}
    game = CountingGame()
    (episode,) = collect_episodes(game, assign(game, 1, 0), players, settings, pace())
    assert episode.record.sampling == {"alice": SampledWith(0.7, 0.9)}
    assert EndpointPlayer("x", served, settings, 1).sampling == SampledWith(1.0, 0)


def test_hint_goes_into_the_last_message_and_changes_nothing_else():
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    hinted = with_hint(messages, "Again.")
    assert [m["role"] for m in hinted] == ["system", "user"]
    assert hinted[-1]["content"] == "u\n\n[Again.]"
    assert messages[-1]["content"] == "u"
    assert with_hint(messages, "") == messages


@pytest.mark.parametrize(("text", "kind"), [("", "empty"), ("x" * 50, "too_long")])
def test_a_player_that_cannot_move_forfeits_and_its_failure_is_data(text, kind, tmp_path):
    game = CountingGame(longest=10)
    players = {"alice": Talker(lambda r: "hi"), "bob": Talker(lambda r: text)}
    episodes = collect_episodes(
        game, assign(game, 3, 0), players, play_settings(max_reasks=1), pace()
    )
    for episode in episodes:
        assert episode.info["failure"] == {"role": "bob", "kind": kind}
        assert episode.info["reason"] == "failure"
        assert episode.rewards == {"alice": 1.0, "bob": 0.0}
        assert episode.info["reasks"]["bob"] == {kind: 2}
    assert len(players["bob"].asked) == 6


def test_an_episode_without_a_word_is_still_a_readable_log(tmp_path):
    game = CountingGame()
    episodes = collect_episodes(
        game, assign(game, 2, 0), both(Talker(lambda r: " ")), play_settings(), pace()
    )
    write_log(tmp_path / "log.jsonl", episodes)
    back = read_log(tmp_path / "log.jsonl")
    assert [len(e.utterances) for e in back] == [1, 1]


def test_a_prompt_that_outgrows_the_model_is_the_roles_failure():
    settings = play_settings()
    policy = tiny_policy(settings, pace())
    policy.engine.max_length = 90  # the rules and one reply
    game = CountingGame()
    (episode,) = collect_episodes(game, assign(game, 1, 0), both(policy), settings, pace())
    assert episode.info["failure"]["kind"] == "context_full"
    assert episode.utterances[0].role == "alice"


def test_settings_with_which_no_game_can_be_played_end_the_run():
    settings = play_settings(max_new_tokens=4096)
    players = {"alice": Talker(lambda r: "hi"), "bob": tiny_policy(settings, pace())}
    game = CountingGame()
    with pytest.raises(AriaError, match=r"context of 2048 of tiny: lower max_new_tokens in params"):
        collect_episodes(game, assign(game, 2, 0), players, settings, pace())


def test_roles_without_a_player_are_an_error():
    game = CountingGame()
    with pytest.raises(AriaError, match="no player for bob"):
        collect_episodes(game, assign(game, 1, 0), {"alice": Talker(str)}, play_settings(), pace())


class Failing(Talker):
    """Cannot be reached from the `after`-th request on."""

    def __init__(self, after: int) -> None:
        super().__init__(lambda request: "hi")
        self.after = after

    async def reply(self, request) -> Reply:
        if len(self.asked) >= self.after:
            raise PlayerFailure("endpoint_unreachable", "nobody answers at nowhere: start it")
        return await super().reply(request)


def test_an_unreachable_player_ends_the_run_and_a_restart_plays_the_rest(tmp_path):
    game, assignments = CountingGame(), assign(CountingGame(), 10, 0)
    with pytest.raises(AriaError, match=r"talker as .*nobody answers.*10 episodes are kept"):
        collect_episodes(
            game,
            assignments,
            both(Failing(25)),
            play_settings(),
            pace(in_flight=2),
            journal=Journal({"a": 1}, tmp_path),
        )
    kept = Journal({"a": 1}, tmp_path).read()
    assert 4 <= len(kept) <= 6
    player = Talker(lambda request: "hi")
    journal = Journal({"a": 1}, tmp_path)
    episodes = collect_episodes(
        game, assignments, both(player), play_settings(), pace(), journal=journal
    )
    assert [e.episode_id for e in episodes] == [a.episode_id for a in assignments]
    assert {r.episode_id for r in player.asked}.isdisjoint(kept)
    assert len(player.asked) == 4 * (10 - len(kept))
    again = collect_episodes(
        game, assignments, both(Failing(0)), play_settings(), pace(), journal=journal
    )
    assert again == episodes


def test_a_torn_last_line_is_played_again(tmp_path):
    game, assignments = CountingGame(), assign(CountingGame(), 4, 0)
    journal = Journal({}, tmp_path)
    talker = Talker(lambda r: "hi")
    first = collect_episodes(
        game, assignments, both(talker), play_settings(), pace(), journal=journal
    )
    raw = journal.path.read_bytes()
    journal.path.write_bytes(raw[:-20])
    player = Talker(lambda r: "hi")
    second = collect_episodes(
        game, assignments, both(player), play_settings(), pace(), journal=journal
    )
    assert len(player.asked) == 4
    assert second == first
    assert len(journal.path.read_bytes().splitlines()) == 4


def test_other_inputs_have_another_journal(tmp_path):
    assert Journal({"a": 1}, tmp_path).path != Journal({"a": 2}, tmp_path).path


def test_a_journal_is_that_of_the_endpoints_address_model_and_options():
    params = load_params(ROOT / "params.yaml")
    players = {"alice": "endpoint:x", "bob": "endpoint:x"}
    game = get_game("bargaining")
    session = Session(game, players, params.collect, 2, "glee48", record_logprobs=False)

    def inputs(url: str, model: str = "m", concurrency: int = 16, **options) -> dict:
        server = Endpoint(base_url=url, model=model, max_concurrency=concurrency, options=options)
        served = {"x": server, "unused": Endpoint(base_url=f"{url}{len(options)}", model="n")}
        return session._inputs(params.model_copy(update={"endpoints": served}))

    first = inputs("http://a/v1", temperature=0.0)
    assert first == inputs("http://a/v1", concurrency=3, temperature=0.0)
    assert first != inputs("http://b/v1", temperature=0.0)
    assert first != inputs("http://a/v1", "other", temperature=0.0)
    assert first != inputs("http://a/v1", temperature=1.0)


@pytest.mark.parametrize(
    ("block", "change", "same"),
    [
        ("pace", {"in_flight": 1, "deadline_s": 5, "cache_gib": 0.5}, True),
        ("pace", {"precision": "float32" if uses_bfloat16("auto") else "bfloat16"}, False),
        ("pace", {"precision": "bfloat16" if uses_bfloat16("auto") else "float32"}, True),
        ("collect", {"temperature": 0.3}, False),
        ("collect", {"record_logprobs": True}, False),
        ("evaluate", {"temperature": 0.3}, True),
    ],
)
def test_a_journal_is_that_of_how_games_are_played_not_of_how_fast(block, change, same):
    params = load_params(ROOT / "params.yaml")
    changed = params.model_copy(update={block: getattr(params, block).model_copy(update=change)})
    inputs = [collect_session(p, "bargaining")._inputs(p) for p in (params, changed)]
    assert (inputs[0] == inputs[1]) == same


@pytest.mark.parametrize(
    "change", [{"allow_training_opponents": True}, {"games": {}}, {"games": "more episodes"}]
)
def test_an_evaluation_is_kept_whatever_else_is_evaluated(change):
    params = load_params(ROOT / "params.yaml")
    if change == {"games": "more episodes"}:
        games = params.evaluate.games
        more = games["twenty_questions"].model_copy(update={"episodes": 4000})
        change = {"games": {**games, "twenty_questions": more}}
    ((_, one), *_) = _sessions(params, "bargaining", None)
    other = replace(one, settings=params.evaluate.model_copy(update=change))
    assert other._inputs(params) == one._inputs(params)
    warmer = replace(one, settings=params.evaluate.model_copy(update={"temperature": 0.123}))
    assert warmer._inputs(params) != one._inputs(params)


def test_a_journal_is_that_of_the_base_below_a_named_adapter(tmp_path):
    params, base, adapter = load_params(ROOT / "params.yaml"), tmp_path / "base", tmp_path / "lora"
    for folder in (base, adapter):
        folder.mkdir()
    config = {"peft_type": "LORA", "base_model_name_or_path": str(base)}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    (adapter / "adapter_model.safetensors").write_bytes(b"adapter")
    log = params.logs["bargaining"].model_copy(update={"source": str(adapter)})
    session = collect_session(params.model_copy(update={"logs": {"bargaining": log}}), "bargaining")
    found = []
    for weights in (b"one", b"another"):
        (base / "model.safetensors").write_bytes(weights)
        found.append(session._inputs(params)["model"])
    assert found[0] != found[1]


def test_a_collection_is_played_by_the_model_that_its_log_names_without_an_adapter():
    params = load_params(ROOT / "params.yaml")
    log = params.logs["bargaining"].model_copy(update={"source": "models/language/mine"})
    named = params.model_copy(update={"logs": {**params.logs, "bargaining": log}})
    sessions = [collect_session(p, "bargaining") for p in (params, named)]
    assert [session.model for session in sessions] == ["data/base_model", "models/language/mine"]
    assert [session.adapter for session in sessions] == [None, None]


def test_a_game_is_paid_by_one_rule_wherever_it_is_played():
    shipped = load_params(ROOT / "params.yaml")
    params = shipped.model_copy(update={"rewards": {**shipped.rewards, "bargaining": "utility"}})
    sessions = [
        collect_session(params, "bargaining"),
        OnlineGames(params, "adversarial")._session("bargaining", 1, Path("a"), 0),
        *(session for _, session in _sessions(params, "bargaining", None)),
    ]
    assert {session.reward for session in sessions} == {"utility"}
    assert collect_session(params, "negotiation").reward == shipped.rewards["negotiation"]


def test_variants_are_judged_on_the_same_games_and_opponents_on_draws_of_their_own():
    params = load_params(ROOT / "params.yaml")
    vanilla, aria = (
        [one._wanted(params) for _, one in _sessions(params, "bargaining", policy)]
        for policy in (None, Path("data/policy"))
    )
    assert vanilla == aria
    assert len(vanilla) == 4  # two roles, two opponents
    seeds = [one.seed for games in vanilla for one in games]
    assert len(set(seeds)) == len(seeds) == 128


def test_an_evaluation_row_counts_the_policys_own_refused_moves():
    game, said = get_game("bargaining"), iter(["hm", "I keep 60%.", "I accept."])
    players = {"alice": Talker(lambda r: next(said)), "bob": scripted_player("hard")}
    (episode,) = collect_episodes(
        game, assign(game, 1, 0), players, play_settings(), pace(), reward="margin"
    )
    rows = [_row(episode, "aria", role) for role in game.roles]
    assert {tuple(row) for row in rows} == {tuple(column.name for column in EVALUATION.columns)}
    assert [row["refused"] for row in rows] == [1, 0]
    assert [row["turns"] for row in rows] == [2, 1]


@pytest.mark.parametrize("name", ["bargaining", "negotiation"])
def test_what_a_player_was_told_of_offers_is_trained_on_and_exported(name, tmp_path):
    """The chat that a player saw at each of its turns is that of training and of exports."""
    game, journal, seen = get_game(name), Journal({}, tmp_path / "journal"), {}
    log = tmp_path / "log.jsonl"

    def say(request):
        seen[request.episode_id, len(request.match.lines)] = request.messages
        return scripted_player("conceding").text(request.match, request.role, request.seed)

    players = {"alice": Talker(say), "bob": scripted_player("varied")}
    episodes = collect_episodes(
        game, assign(game, 6, 0), players, play_settings(), pace(), journal=journal
    )
    write_log(log, episodes)
    read = read_log(log, Reading(game=name))
    assert [one.record for one in read] == [one.record for one in episodes]
    assert [journal.read()[one.episode_id] for one in episodes] == episodes
    assert sum("gain more than" in text for one in episodes for text in one.record.told) > 6
    trained = {
        (one.episode_id, position): one.messages
        for one in dialogues(turns_table(read), episodes_table(read))
        for position in one.positions
        if one.role == "alice"
    }
    assert list(trained) == list(seen)
    for (episode_id, position), messages in seen.items():
        assert trained[episode_id, position][: len(messages)] == messages
    exported = chats_of([log], Reading(game=name), credit_of(log))()
    chats = {episode_id: chat for (episode_id, _), chat in trained.items()}
    assert {one.episode_id: one.messages for one in exported if one.role == "alice"} == chats


def test_what_the_environment_carried_out_is_kept_from_the_game_to_the_tables(tmp_path):
    game, journal = get_game("household"), Journal({}, tmp_path / "journal")
    texts = iter(["look", "Let me think.", "go to the moon", "inventory", "go to the moon"])
    settings = play_settings(max_reasks=0)
    assignments = [
        replace(one, config={**one.config, "max_steps": 5}) for one in assign(game, 1, 0, "small")
    ]
    player = Talker(lambda request: next(texts))
    (episode,) = collect_episodes(
        game, assignments, {"agent": player}, settings, pace(), journal=journal
    )
    carried_out = [True, False, False, True, False]
    assert episode.info["grounded"] == {"agent": carried_out}
    assert episode.rewards == {"agent": 0.0}
    assert [u.role for u in episode.utterances] == ["environment", *["agent", "environment"] * 5]
    assert journal.read()[episode.episode_id] == episode
    write_log(tmp_path / "log.jsonl", [episode])
    (read,) = read_log(tmp_path / "log.jsonl", Reading(game=game.name))
    assert read.record == episode.record
    for one in (episode, read):
        turns = turns_table([one])
        assert turns.loc[turns["is_action"], "grounded"].tolist() == carried_out
        assert turns.loc[~turns["is_action"], "grounded"].isna().all()
    row = _row(episode, "aria", "agent")
    assert (row["executed"], row["turns"], row["opponent"]) == (2, 5, "")


@pytest.mark.parametrize(
    ("name", "said", "positions"),
    [
        ("household", ["look", "inventory", ""], [1, 3]),
        ("twenty_questions", ["Is it big?", "Is it {target}?"], [0, 2]),
    ],
)
def test_a_reply_is_recorded_where_it_stands_though_others_speak_at_once(name, said, positions):
    game = get_game(name)
    (assignment,) = assign(game, 1, 0)
    texts = (text.format(**assignment.config) for text in said)

    class Cut(Talker):
        async def reply(self, request):
            return replace(await super().reply(request), cut=True)

    players = {"agent": Cut(lambda request: next(texts))}
    if game.environment:
        players[game.environment] = embedded_oracle()
    (episode,) = collect_episodes(game, [assignment], players, play_settings(max_reasks=0), pace())
    assert episode.record.cut == positions
    assert [episode.utterances[at].role for at in positions] == ["agent"] * 2


def test_a_journal_entry_of_another_configuration_is_not_taken(tmp_path):
    game, journal = CountingGame(), Journal({}, tmp_path)
    talker = Talker(lambda r: "hi")
    collect_episodes(
        game, assign(game, 4, 0), both(talker), play_settings(), pace(), journal=journal
    )
    player = Talker(lambda r: "hi")
    collect_episodes(
        game, assign(game, 4, 5), both(player), play_settings(), pace(), journal=journal
    )
    assert len(player.asked) == 16


@pytest.mark.parametrize("in_flight", [1, 6])
def test_same_seed_same_players_same_logs(in_flight):
    def log() -> list:
        settings, quick, game = play_settings(), pace(in_flight=in_flight), CountingGame()
        player = tiny_policy(settings, quick, record_logprobs=True)
        return collect_episodes(game, assign(game, 12, 3), both(player), settings, quick)

    first, second = log(), log()
    assert first == second
    generations = first[0].info["generations"]
    assert [g["position"] for g in generations] == [0, 1, 2, 3]
    assert all(len(g["token_ids"]) == len(g["logprobs"]) > 0 for g in generations)


def test_two_models_at_one_table_are_deterministic_too():
    def log() -> list:
        settings, quick, game = play_settings(), pace(in_flight=5), CountingGame()
        players = {role: tiny_policy(settings, quick) for role in game.roles}
        return collect_episodes(game, assign(game, 10, 0), players, settings, quick)

    assert log() == log()


def test_published_lines_read_back(tmp_path):
    game = CountingGame()
    player = Talker(lambda r: f"turn {len(r.messages)}")
    episodes = collect_episodes(game, assign(game, 5, 0), both(player), play_settings(), pace())
    write_log(tmp_path / "x_msgs.jsonl", episodes)
    back = read_log(tmp_path / "x_msgs.jsonl")
    assert back == episodes


def test_derived_seeds_tell_their_parts_apart():
    seeds = {derived_seed(0, "a", 1), derived_seed(0, "a", 2), derived_seed(0, "a1", ""), 7}
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


RUN = """
import sys, time
from pathlib import Path
from tests.fake_game import CountingGame, Talker, both, collect_episodes
from tests.settings import pace, play_settings
from aria_dvc.arena.assignments import assign
from aria_dvc.arena.journal import Journal
def say(request):
    time.sleep(0.004)
    return "hi"
game = CountingGame()
collect_episodes(game, assign(game, 60, 0), both(Talker(say)), play_settings(), pace(),
                 journal=Journal({}, Path(sys.argv[1])))
"""


def test_killed_and_restarted_nothing_is_lost_or_played_twice(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], env=environment)
    journal = Journal({}, tmp_path)
    while not journal.path.exists() or journal.path.read_bytes().count(b"\n") < 10:
        assert process.poll() is None
        Path(tmp_path).stat()
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = journal.read()
    assert 10 <= len(kept) < 60
    game, player = CountingGame(), Talker(lambda r: "hi")
    episodes = collect_episodes(
        game, assign(game, 60, 0), both(player), play_settings(), pace(), journal=journal
    )
    assert [e.episode_id for e in episodes] == [f"counting-{i:05d}" for i in range(60)]
    assert {r.episode_id for r in player.asked}.isdisjoint(kept)
    assert len(journal.path.read_bytes().splitlines()) == 60


SLOW_RUN = RUN.replace("0.004", "60")


def test_the_same_games_are_not_played_by_two_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("aria_dvc.cache.locks.GRACE_S", 0.2)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    first = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(tmp_path)], env=environment)
    journal, game = Journal({}, tmp_path), CountingGame()
    while not (journal.folder / "inputs.json").exists():
        assert first.poll() is None
    started = time.monotonic()
    with pytest.raises(AriaError, match=rf"in use by process {first.pid} on .* wait until it has"):
        collect_episodes(
            game, assign(game, 4, 0), both(Failing(0)), play_settings(), pace(), journal=journal
        )
    assert journal.read() == {}  # readers never wait
    assert time.monotonic() - started < 3
    first.kill()
    player = Talker(lambda r: "hi")
    collect_episodes(
        game, assign(game, 4, 0), both(player), play_settings(), pace(), journal=journal
    )
    first.wait()
    assert len(journal.read()) == 4


def test_a_damaged_line_in_the_middle_is_named_and_its_episode_played_again(tmp_path, caplog):
    game, assignments = CountingGame(), assign(CountingGame(), 4, 0)
    journal = Journal({}, tmp_path)
    talker = Talker(lambda r: "hi")
    first = collect_episodes(
        game, assignments, both(talker), play_settings(), pace(), journal=journal
    )
    lines = journal.path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"hi"', b'"ho"', 1)
    journal.path.write_bytes(b"".join(lines))
    player = Talker(lambda r: "hi")
    again = collect_episodes(
        game, assignments, both(player), play_settings(), pace(), journal=journal
    )
    assert again == first
    assert len(player.asked) == 4
    assert "episodes.jsonl: line 2 damaged, kept in episodes.damaged.jsonl" in caplog.text
    assert (journal.folder / "episodes.damaged.jsonl").read_bytes() == lines[1]
    assert len(journal.read()) == 4


def test_a_journal_of_an_earlier_layout_is_not_found(tmp_path, monkeypatch):
    path = Journal({}, tmp_path).path
    monkeypatch.setattr("aria_dvc.arena.journal.LAYOUT", 1)
    assert Journal({}, tmp_path).path != path
