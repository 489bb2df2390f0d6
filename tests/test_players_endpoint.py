"""The endpoint player against a server that misbehaves in every way we know of."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.fake_game import CountingGame, Talker, both, collect_episodes
from tests.fault_server import FAULTS, FaultServer, serve
from tests.settings import pace, play_settings

from aria_dvc.arena.assignments import assign
from aria_dvc.arena.journal import Journal
from aria_dvc.errors import AriaError
from aria_dvc.models.source import ModelSource
from aria_dvc.players.base import PlayerFailure, Request
from aria_dvc.players.endpoint import EndpointPlayer
from aria_dvc.players.registry import PlayerContext, make_player
from aria_dvc.records.published import write_log
from aria_dvc.servers.client import retry_after
from aria_dvc.servers.completions import read_completion
from aria_dvc.servers.faults import Fault, Retries, Slow
from aria_dvc.settings.dialogues import SamplingOverride
from aria_dvc.settings.machine import Endpoint

KEY = "sk-test-3f9a7c1e5b"


def endpoint(url: str, **changes) -> Endpoint:
    values = {"timeout_s": 0.4, "deadline_s": 20.0, "max_concurrency": 8, "model": "m"}
    return Endpoint(base_url=url, **{**values, **changes})


def player_of(url: str, **changes) -> EndpointPlayer:
    return EndpointPlayer("x", endpoint(url, **changes), play_settings(), deadline_s=60)


def request(role: str = "alice") -> Request:
    match = CountingGame().start({"rounds": 4, "topic": 0})
    return Request("e", role, match.messages("alice"), match, seed=2**62 + 5)


def ask(player: EndpointPlayer, role: str = "alice"):
    async def run():
        try:
            return await player.reply(request(role))
        finally:
            await player.close()

    return asyncio.run(run())


def test_a_reply_and_what_is_sent():
    server = FaultServer()
    with serve(server) as url:
        player = player_of(url, options={"top_k": 5, "seed": None})
        reply = ask(player)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("hello there", 7, 3)
    (body,) = server.bodies
    assert body["messages"][0]["role"] == "system"
    assert body["top_k"] == 5
    assert "seed" not in body
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (1.0, 0.95, 8)
    assert server.headers == [""]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_passing_fault_is_tried_again(fault):
    server = FaultServer(rate=0.6, faults=(fault,), seed=1)
    with serve(server) as url:
        player = player_of(url, timeout_s=0.15)
        replies = [ask(player) for _ in range(4)]
    assert {reply.text for reply in replies} == {"hello there"}
    assert server.served[fault] > 0


def test_a_model_that_stays_silent_is_taken_at_its_word():
    server = FaultServer(rate=1.0, faults=("empty",))
    with serve(server) as url:
        reply = ask(player_of(url))
    assert reply.text == ""
    assert server.served["empty"] == 4
    assert len({body["seed"] for body in server.bodies}) == 4


def answered(content, finish="stop"):
    choice = {"message": {"content": content}, "finish_reason": finish}
    return lambda body: json.dumps({"choices": [choice]})


@pytest.mark.parametrize(
    ("content", "text", "cut"),
    [
        ("<think>\n\n</think>\n\nI accept.", "I accept.", False),
        ("<think>I keep 45? No, I take it.</think>I accept.", "I accept.", False),
        ("I keep 45? No.\n</think>\n\nI accept.", "I accept.", False),
        ("I accept. <think>", "I accept. <think>", False),
        ([{"type": "text", "text": "I "}, {"type": "text", "text": "accept."}], "I accept.", False),
    ],
)
def test_thoughts_are_not_spoken_and_parts_are_joined(content, text, cut):
    server = FaultServer()
    server.whole = answered(content)
    with serve(server) as url:
        reply = ask(player_of(url))
    assert (reply.text, reply.cut) == (text, cut)


def test_thoughts_that_do_not_end_are_an_empty_reply_that_was_cut():
    found = read_completion(answered("<think>Let me see", "length")({}).encode())
    assert (found.text, found.cut, found.thought) == ("", True, True)
    apart = {"message": {"content": None, "reasoning_content": "Hm"}, "finish_reason": "length"}
    found = read_completion(json.dumps({"choices": [apart]}).encode())
    assert (found.text, found.cut, found.thought) == ("", True, True)
    with pytest.raises(Fault, match="not text"):
        read_completion(answered({"a": 1})({}).encode())


def test_a_reply_of_thoughts_alone_is_told_once_and_not_asked_for_again(caplog):
    server = FaultServer()
    server.whole = answered("<think>Let me see", "length")
    with serve(server) as url:
        player = player_of(url)
        replies = [ask(player), ask(player)]
    assert [(reply.text, reply.cut) for reply in replies] == [("", True)] * 2
    assert len(server.bodies) == 2
    (told,) = caplog.messages
    assert told.startswith(f"{player.name}: a reply of thoughts alone: they took all 8 tokens")


def test_a_pause_that_an_earlier_fault_asked_for_is_not_waited_for_again():
    retries = Retries("http://localhost", 60)
    assert retries.pause(Fault("HTTP 429", 5.0)) >= 5
    assert retries.pause(Slow("slow"), cut_short=True) <= 1


def test_retry_after_is_honoured():
    assert retry_after("1.5") == 1.5
    assert retry_after(None) is None
    assert retry_after("soon") is None
    assert retry_after("nan") is None
    assert retry_after("inf") is None
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


@pytest.mark.parametrize("fault", ["close", "hang", "500", "slow"])
def test_a_dead_server_ends_in_a_clear_failure_within_the_deadline(fault):
    with serve(FaultServer(rate=1.0, faults=(fault,))) as url:
        player = player_of(url, deadline_s=1.0)
        started = time.monotonic()
        with pytest.raises(PlayerFailure, match=r"no answer within 1 s.*deadline_s") as caught:
            ask(player)
    assert time.monotonic() - started < 5  # a busy machine is slow to notice
    assert caught.value.kind == "endpoint_unreachable"


def test_nobody_listening_is_the_same():
    player = player_of("http://127.0.0.1:9/v1", deadline_s=0.5)
    with pytest.raises(PlayerFailure, match="see that the server runs"):
        ask(player)


def test_a_refusal_is_not_repeated():
    server = FaultServer(rate=1.0, faults=("401",))
    with serve(server) as url, pytest.raises(PlayerFailure, match="api_key_env") as caught:
        ask(player_of(url))
    assert caught.value.kind == "endpoint_refused"
    assert server.served["401"] == 1


def test_a_too_long_prompt_is_the_players_own_failure():
    server = FaultServer(rate=1.0, faults=("400",))
    server.complaint = "This model's maximum context length is 2048 tokens"
    with serve(server) as url, pytest.raises(PlayerFailure) as caught:
        ask(player_of(url))
    assert caught.value.kind == "context_full"


@pytest.mark.parametrize(("fault", "kind"), [("400", "request_refused"), ("500", "no_answer")])
def test_one_request_that_never_succeeds_costs_one_game(tmp_path, fault, kind):
    server = FaultServer()
    server.always = lambda body: fault if "Topic 3." in str(body["messages"]) else None
    game, journal = CountingGame(rounds=16), Journal({}, tmp_path)
    with serve(server) as url:
        player = player_of(url, deadline_s=5.0)  # a busy machine may stall for a second
        episodes = collect_episodes(
            game, assign(game, 7, 0), both(player), play_settings(), pace(), journal=journal
        )
    failed = {e.info["config"]["topic"]: e.info["failure"] for e in episodes if e.info["failure"]}
    assert failed == {3: {"role": "alice", "kind": kind}}
    assert len(journal.read()) == 7


def test_a_pause_beyond_the_deadline_is_cut():
    server = FaultServer(rate=1.0, faults=("429",))
    server.retry_after = 3600
    server.always = lambda body: "ok" if server.bodies else None
    with serve(server) as url:
        player = player_of(url, deadline_s=5.0)
        assert ask(player).text == "hello there"


def test_a_dummy_key_does_not_change_what_is_said(monkeypatch):
    monkeypatch.setenv("ARIA_TEST_KEY", "0")
    server = FaultServer()
    server.say = lambda body: "I keep 60."
    with serve(server) as url:
        player = player_of(url, api_key_env="ARIA_TEST_KEY")
        assert ask(player).text == "I keep 60."


def test_the_environment_sees_one_question_at_temperature_zero():
    server = FaultServer()
    with serve(server) as url:
        ask(player_of(url), role="oracle")
    (body,) = server.bodies
    assert body["temperature"] == 0.0
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_concurrency_is_bounded():
    server = FaultServer()
    with serve(server) as url:
        player = player_of(url, max_concurrency=3)
        game = CountingGame()
        quick = pace(in_flight=20)
        collect_episodes(game, assign(game, 20, 0), both(player), play_settings(), quick)
    assert server.most_at_once <= 3


def test_all_episodes_end_at_thirty_percent_faults(tmp_path):
    server = FaultServer(rate=0.3, seed=4)
    with serve(server) as url:
        player = player_of(url, timeout_s=0.5, max_concurrency=32)
        game, journal = CountingGame(), Journal({}, tmp_path)
        settings, quick = play_settings(), pace(in_flight=32)
        episodes = collect_episodes(
            game, assign(game, 60, 0), both(player), settings, quick, journal=journal
        )
    assert [e.episode_id for e in episodes] == [f"counting-{i:05d}" for i in range(60)]
    assert all(e.info["failure"] is None and len(e.utterances) == 4 for e in episodes)
    assert set(server.served) >= {"ok", *FAULTS}
    assert len(journal.read()) == 60


def test_a_server_that_is_away_for_a_while_is_waited_for():
    server = FaultServer(dead=(0.3, 1.1))
    with serve(server) as url:
        player = player_of(url)
        game = CountingGame(rounds=20)
        episodes = collect_episodes(
            game, assign(game, 16, 0), both(player), play_settings(), pace()
        )
    assert server.served["dead"] > 0
    assert all(e.info["reason"] == "done" for e in episodes)


def test_a_server_that_dies_for_good_ends_the_run_and_keeps_what_was_finished(tmp_path):
    server = FaultServer(dead=(0.4, 1e9))
    game, journal = CountingGame(), Journal({}, tmp_path)
    assignments = assign(game, 600, 0)
    with serve(server) as url:
        player = player_of(url, deadline_s=1.5)
        started = time.monotonic()
        with pytest.raises(AriaError, match=r"no answer within 1.5 s.*are kept"):
            collect_episodes(
                game, assignments, both(player), play_settings(), pace(), journal=journal
            )
        assert time.monotonic() - started < 10
    kept = journal.read()
    assert 0 < len(kept) < 600
    rest = Talker(lambda r: "hello there")
    episodes = collect_episodes(
        game, assignments, both(rest), play_settings(), pace(), journal=journal
    )
    assert len(episodes) == 600
    assert {r.episode_id for r in rest.asked}.isdisjoint(kept)


class Dying(FaultServer):
    """Answers 40 requests, each in its own time, and then none, those under way included."""

    async def _answer(self, writer, fault, body) -> None:
        await asyncio.sleep(self.draws.uniform(0.02, 0.2))
        gone = self.served["ok"] > 40
        await super()._answer(writer, "503" if gone else fault, body)


def test_an_outage_is_nobodys_failure_and_its_games_are_played_later(tmp_path):
    game, journal = CountingGame(), Journal({}, tmp_path)
    assignments = assign(game, 40, 0)

    def play(server):
        with serve(server) as url:
            return collect_episodes(
                game,
                assignments,
                both(player_of(url, deadline_s=1.0)),
                play_settings(),
                pace(),
                journal=journal,
            )

    with pytest.raises(AriaError, match=r"no answer within 1 s.*see that the server runs"):
        play(Dying())
    kept = journal.read()
    assert {episode.info["failure"] and "failed" for episode in kept.values()} <= {None}
    assert len(kept) < 40
    episodes = play(FaultServer())
    assert [one.info["failure"] for one in episodes] == [None] * 40


def test_refusals_of_everything_are_not_the_players_own_failure():
    server = FaultServer()
    with serve(server) as url:
        player = player_of(url)
        assert ask(player).text == "hello there"
        server.always = lambda body: "400"
        with pytest.raises(PlayerFailure, match="check base_url") as caught:
            ask(player)
    assert caught.value.kind == "endpoint_refused"


SHAPING = {"top_k": -1, "min_p": 0, "repetition_penalty": 1}
SHAPING |= {"presence_penalty": 0, "frequency_penalty": 0}


def served_policy(url, *names, **options):
    servers = {
        name: endpoint(url, options=options | ({"temperature": 0.5} if name == "cold" else {}))
        for name in ("x", "cold")
    }
    context = PlayerContext(
        play_settings(), pace(), ModelSource("none"), servers, served_by=names or ("x",)
    )
    return make_player("policy", context)


def test_a_served_policy_draws_from_what_training_scores():
    server = FaultServer()
    with serve(server) as url:
        policy = served_policy(url, top_p=None, user="me", min_p=0.0, logit_bias=None)
        ask(policy)
    (body,) = server.bodies
    assert {name: body.get(name) for name in SHAPING} == SHAPING
    assert (body["user"], "logit_bias" in body) == ("me", False)
    assert (body["temperature"], body["top_p"]) == (policy.sampling.temperature, 1.0)
    assert policy.sampling.top_p == 1.0


@pytest.mark.parametrize(
    ("name", "value"), [("top_k", 5), ("repetition_penalty", 1.1), ("logit_bias", {"7": 3})]
)
def test_a_served_policy_refuses_what_training_would_not_score(name, value):
    with pytest.raises(AriaError, match=rf"endpoints\.x\.options: {name} would.*online.rollouts"):
        served_policy("http://h/v1", **{name: value})


def test_servers_that_sample_differently_do_not_play_one_policy():
    with pytest.raises(AriaError, match=r"endpoint:x, endpoint:cold play policy .* differently"):
        served_policy("http://h/v1", "x", "cold")
    assert served_policy("http://h/v1", "x", "cold", temperature=0.5).sampling.temperature == 0.5


RUN = """
import sys
from pathlib import Path
from tests.fake_game import CountingGame, both, collect_episodes
from tests.settings import pace, play_settings
from aria_dvc.arena.assignments import assign
from aria_dvc.arena.journal import Journal
from aria_dvc.records.published import write_log
from aria_dvc.settings.machine import Endpoint
from aria_dvc.players.endpoint import EndpointPlayer
folder, url = sys.argv[1:]
game = CountingGame()
server = Endpoint(base_url=url, model="m", timeout_s=3.0, api_key_env="ARIA_TEST_KEY")
player = EndpointPlayer("x", server, play_settings(), pace().deadline_s)
episodes = collect_episodes(game, assign(game, 60, 0), both(player), play_settings(), pace(),
                            journal=Journal({}, Path(folder)))
write_log(folder + "/log.jsonl", episodes)
"""


def run_in_child(folder, url) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), url],
        env={**environment, "ARIA_TEST_KEY": KEY},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_killed_at_thirty_percent_faults_and_restarted(tmp_path):
    server = FaultServer(rate=0.3, seed=7, echo_key=True)
    server.say = lambda body: f"line {len(body['messages'])}"
    journal = Journal({}, tmp_path)
    with serve(server) as url:
        child = run_in_child(tmp_path, url)
        while not journal.path.exists() or journal.path.read_bytes().count(b"\n") < 15:
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        output = child.communicate()[0]
        kept = journal.read()
        assert 15 <= len(kept) < 60
        before = server.served["ok"]
        child = run_in_child(tmp_path, url)
        output += child.communicate(timeout=60)[0]
        assert child.returncode == 0
        played = server.served["ok"] - before
    assert played == 4 * (60 - len(kept))
    assert sorted(journal.read()) == [f"counting-{i:05d}" for i in range(60)]
    assert len(journal.path.read_bytes().splitlines()) == 60
    assert server.headers[0] == f"Bearer {KEY}"
    assert KEY.encode() not in output
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes()


def test_the_key_is_in_no_output_though_the_server_repeats_it(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("ARIA_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    server = FaultServer(echo_key=True)
    server.say = lambda body: f"your key is {server.headers[-1]}"
    game, journal = CountingGame(), Journal({}, tmp_path)
    with serve(server) as url:
        player = player_of(url, api_key_env="ARIA_TEST_KEY")
        episodes = collect_episodes(
            game, assign(game, 3, 0), both(player), play_settings(), pace(), journal=journal
        )
        write_log(tmp_path / "log.jsonl", episodes)
        server.rate, server.faults = 1.0, ("401",)
        with pytest.raises(AriaError) as caught:
            collect_episodes(game, assign(game, 3, 9), both(player), play_settings(), pace())
    assert server.headers[-1] == f"Bearer {KEY}"
    assert "***" in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in repr(vars(caught.value)) + caplog.text
    for file in (f for f in tmp_path.rglob("*") if f.is_file()):
        assert KEY.encode() not in file.read_bytes()


@pytest.mark.parametrize("value", [None, "", "two words", "line\nbreak", "schlüssel"])
def test_a_missing_or_impossible_key_is_named_without_being_shown(monkeypatch, value):
    monkeypatch.delenv("ARIA_TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("ARIA_TEST_KEY", value)
    with pytest.raises(AriaError, match="ARIA_TEST_KEY") as caught:
        player_of("http://h/v1", api_key_env="ARIA_TEST_KEY")
    assert not value or value not in str(caught.value)


def test_the_registry_names_what_it_knows():
    override = {"endpoint:local": SamplingOverride(temperature=0.2)}
    settings = play_settings(sampling=override)
    served = {"local": endpoint("http://h/v1")}
    context = PlayerContext(settings, pace(deadline_s=7), ModelSource("none"), served)
    player = make_player("endpoint:local", context)
    assert player.server.deadline_s == 7  # the run's patience, where the endpoint has more
    assert (player.name, player.model) == ("endpoint:local", "m")
    assert player.settings.temperature == 0.2
    assert context.player("endpoint:local") is context.player("endpoint:local")
    for spec, remedy in [
        ("endpoint:locl", "did you mean local"),
        ("polic", "did you mean policy"),
        ("scripted:", "did you mean scripted:<strategy>"),
        ("zzz", "known: base, embedded"),
    ]:
        with pytest.raises(AriaError, match=remedy):
            make_player(spec, context)
    assert make_player("embedded", context).name == "embedded"
    assert make_player("scripted:fair", context).name == "scripted:fair"
