"""No answer costs more than its bounds, and the key goes to nobody but the configured server."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fault_server import FaultServer, completion, serve
from tests.hostile_server import HostileServer
from tests.settings import play_settings
from tests.test_players_endpoint import request

from aria_dvc.errors import AriaError
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.players.base import PlayerFailure
from aria_dvc.players.endpoint import EndpointPlayer
from aria_dvc.servers import client, faults
from aria_dvc.servers.adapters import serve_adapter
from aria_dvc.servers.answers import LARGEST_ANSWER, LARGEST_COMPLAINT
from aria_dvc.servers.client import Fault, Misfit, NoAnswer, Refusal, Server, read_json
from aria_dvc.servers.embeddings import endpoint_encoder
from aria_dvc.servers.faults import Retries, retry_after
from aria_dvc.servers.keys import redact
from aria_dvc.settings.machine import Endpoint

KEY = "sk-test/3f9a7c1e5b"
MIB = 1 << 20
# What the server does, and what the line says of it.
WAYS = {
    "flood": "answer of more than 8 MiB",
    "chunks": "answer of more than 8 MiB",
    "huge": "answer of more than 8 MiB",
    "headers": "RemoteProtocolError",
    "hints": "no whole answer within",
    "bomb": "compressed",
    "trickle": "no whole answer within",
    "page": "not JSON",
}


def endpoint(url: str, **changes) -> Endpoint:
    return Endpoint(base_url=url, **{"model": "m", "timeout_s": 0.6, "deadline_s": 0.9, **changes})


def resident() -> int:
    """Peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("way", WAYS)
def test_a_hostile_answer_is_one_line_and_no_memory(way):
    server = HostileServer(way)
    with serve(server) as url:
        before, started = resident(), time.monotonic()
        with pytest.raises(NoAnswer, match=WAYS[way]):
            Server(url, timeout_s=0.6, deadline_s=0.9).ask("/any", {}, read_json)
    assert time.monotonic() - started < 5
    assert resident() - before < 64 * MIB
    assert server.sent < 200 * MIB


def chat(url, folder):
    player = EndpointPlayer("x", endpoint(url), play_settings(), deadline_s=60)

    async def run():
        try:
            return await player.reply(request())
        finally:
            await player.close()

    asyncio.run(run())


def embeddings(url, folder):
    endpoint_encoder("x", endpoint(url))(["a"])


def adapter(url, folder):
    serve_adapter("x", endpoint(url), "policy-1", folder)


def scorer(url, folder):
    RemoteScorer(url, 0.9).quality()


@pytest.mark.parametrize("way", ["huge", "bomb", "trickle", "page"])
@pytest.mark.parametrize("protocol", [chat, embeddings, adapter, scorer])
def test_every_protocol_ends_in_a_line(protocol, way, tmp_path):
    with (
        serve(HostileServer(way)) as url,
        pytest.raises((AriaError, PlayerFailure), match=r"within 0\.9 s") as caught,
    ):
        protocol(url, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("way", "largest"), [("complain", 8 * MIB), ("slow_complaint", 100)])
def test_a_refusal_without_end_is_read_a_little(monkeypatch, way, largest):
    monkeypatch.setattr("aria_dvc.servers.answers.COMPLAINT_S", 0.2)
    server = HostileServer(way)
    with serve(server) as url, pytest.raises(Refusal, match="HTTP 403 ") as caught:
        Server(url).ask("/any", {}, read_json)
    assert "go away" in caught.value.said
    assert caught.value.said.isprintable()
    assert server.sent < largest


@pytest.mark.parametrize("protocol", [chat, embeddings, adapter])
def test_a_redirect_takes_the_key_nowhere(monkeypatch, protocol, tmp_path):
    monkeypatch.setenv("ARIA_TEST_KEY", KEY)
    monkeypatch.setattr(sys.modules[__name__], "endpoint", keyed := _keyed(endpoint))
    thief = HostileServer("page")
    with (
        serve(thief) as elsewhere,
        serve(HostileServer("redirect", elsewhere)) as url,
        pytest.raises((AriaError, PlayerFailure), match="sends on to 127") as caught,
    ):
        protocol(url, tmp_path)
    assert keyed.used
    assert thief.heads == []
    assert KEY not in str(caught.value)


def _keyed(plain):
    def keyed(url, **changes):
        keyed.used = True
        return plain(url, api_key_env="ARIA_TEST_KEY", **changes)

    return keyed


def test_a_redirect_names_the_remedy():
    with (
        serve(HostileServer("redirect", "http://elsewhere/v1")) as url,
        pytest.raises(Refusal, match=r"HTTP 307 sends on to elsewhere: name the final address"),
    ):
        Server(url, KEY).ask("/any", {}, read_json)


def test_a_redirect_to_nowhere_is_told():
    with serve(HostileServer("lost")) as url, pytest.raises(Refusal, match=r"HTTP 307"):
        Server(url).ask("/any", {}, read_json)


def test_no_cookie_is_kept():
    server = HostileServer("cookies")

    async def run(asked: Server) -> None:
        for _ in range(3):
            await asked.post("/any", lambda n: {}, read_json)
        await asked.close()

    with serve(server) as url:
        asyncio.run(run(Server(url)))
    assert len(server.heads) == 3
    assert not any("cookie" in head.lower() for head in server.heads)


def test_no_compression_is_asked_for():
    server = HostileServer("page")
    with serve(server) as url, pytest.raises(NoAnswer):
        Server(url, deadline_s=0.2).ask("/any", {}, read_json)
    assert "accept-encoding: identity" in server.heads[0].lower()


def test_a_key_at_the_cut_of_a_complaint_is_not_shown_in_part():
    server = FaultServer(rate=1.0, faults=("400",))
    server.complaint = " " * (LARGEST_COMPLAINT - 40) + KEY
    for shift in range(0, 40, 3):
        server.complaint = " " * (LARGEST_COMPLAINT - 26 - shift) + KEY + "y" * 99
        with serve(server) as url, pytest.raises(Refusal) as caught:
            Server(url, KEY).ask("/any", {}, read_json)
        assert "sk" not in caught.value.said


@pytest.mark.parametrize("written", [KEY, KEY.replace("/", "\\/"), KEY.replace("/", "%2F")])
def test_a_key_is_redacted_however_it_is_written(written):
    assert redact(f"your key {written} is bad", KEY) == "your key *** is bad"


@pytest.mark.parametrize(
    "answer",
    [
        completion("x" * 300_000),
        completion("hi").replace("7", "1e999"),
        completion("hi").replace("7", "-7"),
        completion("hi").replace("7", str(2**60)),
        completion("hi").replace('"hi"', "[1]"),
        "[" * 100_000,
        "NaN",
    ],
)
def test_an_impossible_completion_is_a_counted_retry(answer):
    server = FaultServer()
    server.whole = lambda body: completion("fine") if server.bodies[2:] else answer
    with serve(server) as url:
        player = EndpointPlayer("x", endpoint(url, deadline_s=20), play_settings(), 60)

        async def run():
            try:
                return await player.reply(request())
            finally:
                await player.close()

        assert asyncio.run(run()).text == "fine"
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('[{"index": 0, "embedding": [1]}]', "1 texts in place of 2"),
        ('[{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]', "or of others"),
        ('[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]', "lengths"),
        ('[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [null]}]', "finite"),
        ('[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["x"]}]', "not of numbers"),
        ('[{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]', "rows of finite"),
        ('[{"index": 0, "embedding": 1}, {"index": 1, "embedding": 1}]', "rows of finite"),
        ('[{"index": 0, "embedding": [1e99]}, {"index": 1, "embedding": [1]}]', "finite"),
    ],
)
def test_vectors_are_those_of_the_texts(data, told):
    server = FaultServer()
    server.whole = lambda body: f'{{"data": {data}}}'
    with serve(server) as url, pytest.raises(AriaError, match=told):
        endpoint_encoder("x", endpoint(url))(["a", "b"])


def test_a_server_of_another_kind_has_loaded_no_adapter(tmp_path):
    with serve(HostileServer("page")) as url, pytest.raises(AriaError, match="not vLLM's"):
        serve_adapter("x", endpoint(url), "policy-1", tmp_path)


@pytest.mark.parametrize("answer", [[[["a"]]], [[[True]]], [[[{}]]], [[["nan"]]], {"scores": 1}, 3])
def test_scores_are_numbers(answer):
    from tests.test_learning_online import frames_dialogues, made_up_game

    found = frames_dialogues([made_up_game(episodes=1, turns=1)])[:1]
    server = FaultServer()
    server.whole = lambda body: __import__("json").dumps({"scores": answer})
    with serve(server) as url, pytest.raises(AriaError, match="does not answer like"):
        RemoteScorer(url, 0.9).score_dialogues(found)


def test_misfits_end_a_request_long_before_the_deadline(monkeypatch):
    monkeypatch.setattr(faults, "MISFITS_S", 0.0)
    monkeypatch.setattr(faults, "LONGEST_PAUSE_S", 0.01)
    misfits, pause = [], Retries.pause

    def noted(self, fault, *args, **options):
        misfits.append(isinstance(fault, Misfit))
        return pause(self, fault, *args, **options)

    monkeypatch.setattr(Retries, "pause", noted)
    server = HostileServer("page")
    with serve(server) as url, pytest.raises(NoAnswer, match="8 answers in a row") as caught:
        Server(url, deadline_s=600).ask("/any", {}, read_json)
    # Exactly eight in a row: where a connection breaks, on a loaded machine, the row begins anew.
    assert misfits[-8:] == [True] * 8
    assert not any(all(misfits[at : at + 8]) for at in range(len(misfits) - 8))
    assert server.asked["page"] >= sum(misfits)
    assert caught.value.misfit


def test_a_page_that_goes_away_within_a_minute_is_waited_out():
    retries = Retries("u", 600.0)
    for _ in range(30):
        assert retries.pause(Misfit("a page")) <= faults.LONGEST_PAUSE_S


@pytest.mark.parametrize("asked", [None, 0.5])
def test_a_server_is_asked_until_its_deadline(asked, monkeypatch):
    now = 0.0
    monkeypatch.setattr(faults.time, "monotonic", lambda: now)
    ends = []
    for _ in range(200):
        now, retries = 0.0, Retries("u", 30.0, since=0.0)
        with suppress(NoAnswer):
            while True:
                now += retries.pause(Fault("HTTP 503", asked))
        ends.append(now)
    assert min(ends) > 30 - (asked or faults.FIRST_PAUSE_S)
    assert max(ends) < 30


@pytest.mark.parametrize("asked", [3600.0, 1e12])
def test_a_huge_wait_is_cut_once(asked):
    retries = Retries("u", 10.0)
    first = retries.pause(Fault("HTTP 429", asked))
    assert 4 < first < 9.1
    with pytest.raises(NoAnswer, match="last: HTTP 429"):
        retries.pause(Fault("HTTP 429", asked))


@pytest.mark.parametrize("asked", [0.0, 0.001])
def test_a_server_that_asks_for_no_wait_is_not_stormed(asked):
    pauses = []
    for _ in range(20):
        retries = Retries("u", 1e9)
        pauses.append(sum(retries.pause(Fault("HTTP 503", asked)) for _ in range(12)))
    assert sum(pauses) / 20 > 20  # seconds for 12 attempts


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("-5", 0.0),
        ("1e999", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Mon, 01 Jan 0001 00:00:00 -2359", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("x" * 50_000, None),
        ("", None),
        ("1, 2", None),
    ],
)
def test_odd_waits_are_none_or_nothing(value, seconds):
    found = retry_after(value)
    assert found == seconds or (seconds is None and (found is None or found >= 0))


def test_a_long_wait_is_said(monkeypatch, caplog):
    monkeypatch.setattr(client, "LONG_WAIT_S", 0.0)
    server = FaultServer()
    server.always = lambda body: "429" if len(server.bodies) < 2 else None
    server.whole = lambda body: "7"
    with serve(server) as url:
        assert Server(url).ask("/any", {}, read_json) == 7
    assert "HTTP 429" in caplog.text


def test_an_address_that_is_none_is_one_line():
    with pytest.raises(ValidationError, match="base_url"):
        endpoint("http://h:99999/v1")
    with pytest.raises(Refusal, match="is no address"):
        Server("http://h:x/v1", deadline_s=0.3).ask("/any", {}, read_json)


FLOOD = """
import sys, resource
from aria_dvc.servers.client import NoAnswer, Server, read_json
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Server(sys.argv[1], timeout_s=4, deadline_s=6).ask("/any", {}, read_json)
except NoAnswer:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("way", ["flood", "bomb", "headers"])
def test_a_process_of_its_own_stays_small(way):
    """Without the memory that other tests have taken and given back."""
    with serve(HostileServer(way)) as url:
        command = [sys.executable, "-c", FLOOD, url]
        environment = {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 48, f"{done.stdout} MiB"
    assert LARGEST_ANSWER == 8 * MIB
