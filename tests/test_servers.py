"""The one client of servers, with every protocol that goes through it, against faults."""

from __future__ import annotations

import asyncio
import json
import time

import numpy as np
import pytest
from tests.fault_server import FAULTS, FaultServer, serve

from aria_dvc.errors import AriaError
from aria_dvc.servers.adapters import serve_adapter
from aria_dvc.servers.client import Fault, NoAnswer, Refusal, Server, read_json, retry_after
from aria_dvc.servers.embeddings import endpoint_encoder
from aria_dvc.servers.keys import read_key, redact
from aria_dvc.settings.machine import Endpoint

KEY = "sk-test-3f9a7c1e5b"
NOT_FOR_ALL = {"empty", "no_choices"}  # whole answers of a chat server


def endpoint(url: str, **changes) -> Endpoint:
    return Endpoint(base_url=url, **{"model": "m", "timeout_s": 0.3, "deadline_s": 20.0, **changes})


def embedded(body: dict) -> str:
    data = [{"index": i, "embedding": [len(t), 1.0]} for i, t in enumerate(body["input"])]
    return json.dumps({"data": data[::-1]})


def test_embeddings_outlast_faults():
    server = FaultServer(rate=0.6, faults=[f for f in FAULTS if f != "empty"], seed=3)
    server.whole = embedded
    with serve(server) as url:
        encode = endpoint_encoder("x", endpoint(url))
        vectors = np.vstack([encode(["a", "abc"]) for _ in range(6)])
    np.testing.assert_array_equal(vectors, np.tile(np.float32([[1, 1], [3, 1]]), (6, 1)))
    assert vectors.dtype == np.float32
    assert sum(server.served.values()) > server.served["ok"] == 6


def test_an_embedder_is_asked_with_the_options_of_its_endpoint():
    server = FaultServer()
    server.whole = embedded
    options = {"dimensions": 256, "encoding_format": None}
    with serve(server) as url:
        endpoint_encoder("x", endpoint(url, options=options))(["a"])
    assert server.bodies == [{"model": "m", "input": ["a"], "dimensions": 256}]


@pytest.mark.parametrize("answer", ["[]", '{"data": [{}]}', '{"data": 3}', "3"])
def test_an_answer_without_embeddings_is_a_fault(answer):
    server = FaultServer()
    server.whole = lambda body: answer
    with serve(server) as url, pytest.raises(AriaError, match="not a list of embeddings"):
        endpoint_encoder("x", endpoint(url, deadline_s=0.3))(["a"])


def test_an_embedder_that_is_away_ends_within_the_deadline():
    started = time.monotonic()
    with pytest.raises(AriaError, match=r"endpoint x gave no embeddings.*within 0\.3 s.*serves m"):
        endpoint_encoder("x", endpoint("http://127.0.0.1:9/v1", deadline_s=0.3))(["a"])
    assert time.monotonic() - started < 5


def test_an_adapter_is_loaded_in_spite_of_faults(tmp_path):
    server = FaultServer(rate=0.6, faults=[f for f in FAULTS if f not in NOT_FOR_ALL], seed=2)
    server.whole = lambda body: "Success"
    with serve(server) as url:
        assert serve_adapter("x", endpoint(url), "policy-1", tmp_path).model == "policy-1"
    assert server.bodies[-1] == {"lora_name": "policy-1", "lora_path": str(tmp_path)}


def test_an_adapter_that_is_there_already_is_fine_and_a_refusal_is_not(tmp_path):
    server = FaultServer(rate=1.0, faults=("400",))
    with serve(server) as url:
        server.complaint = "The lora adapter 'policy-1' has already been loaded."
        assert serve_adapter("x", endpoint(url), "policy-1", tmp_path).model == "policy-1"
        server.complaint = "rank 128 is too high"
        with pytest.raises(AriaError, match=r"rank 128 is too high.*--enable-lora"):
            serve_adapter("x", endpoint(url), "policy-1", tmp_path)
    assert server.served["400"] == 2


def test_a_missing_key_stops_every_protocol(monkeypatch, tmp_path):
    monkeypatch.delenv("ARIA_TEST_KEY", raising=False)
    server = endpoint("http://h/v1", api_key_env="ARIA_TEST_KEY")
    for use in (
        lambda: endpoint_encoder("x", server),
        lambda: serve_adapter("x", server, "policy-1", tmp_path),
    ):
        with pytest.raises(AriaError, match=r"endpoints\.x\.api_key_env.*ARIA_TEST_KEY is not set"):
            use()


def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("ARIA_TEST_KEY", KEY)
    server = FaultServer(rate=1.0, faults=("401",), echo_key=True)
    with serve(server) as url:
        asked = Server.of("x", endpoint(url, api_key_env="ARIA_TEST_KEY"))
        with pytest.raises(Refusal, match=r"refuses the request \(HTTP 401 .*\*\*\*") as caught:
            asked.ask("/any", {}, read_json)
    assert server.headers == [f"Bearer {KEY}"]
    assert KEY not in str(caught.value) + caught.value.said + repr(asked)
    assert read_key(None, "endpoints.x") == ""
    assert redact(f"{KEY} and {KEY}", KEY) == "*** and ***"
    assert redact("as it is", "") == "as it is"


def test_the_body_may_differ_from_attempt_to_attempt():
    server = FaultServer()
    server.always = lambda body: "500" if body["attempt"] < 2 else None

    async def run(asked: Server):
        try:
            return await asked.post("/any", lambda n: {"attempt": n}, read_json)
        finally:
            await asked.close()

    with serve(server) as url:
        asyncio.run(run(Server(url)))
    assert [body["attempt"] for body in server.bodies] == [0, 1, 2]


def test_asking_works_where_an_event_loop_runs_already():
    server = FaultServer()
    server.whole = lambda body: "7"

    async def notebook(url):
        return Server(url).ask("/any", {}, read_json)

    with serve(server) as url:
        assert asyncio.run(notebook(url)) == 7


def test_useless_answers_until_the_deadline_are_no_answer():
    server = FaultServer()

    def read(content: bytes) -> None:
        raise Fault("of no use")

    with serve(server) as url, pytest.raises(NoAnswer, match="of no use") as caught:
        Server(url, deadline_s=0.3).ask("/any", {}, read)
    assert 0 < time.monotonic() - caught.value.since < 5
    assert server.served["ok"] >= 1


def test_a_long_complaint_is_cut_after_the_key_is_redacted():
    server = FaultServer(rate=1.0, faults=("400",))
    server.complaint = " " * 150 + "x" * 150 + KEY + "y" * 5000
    with serve(server) as url, pytest.raises(Refusal) as caught:
        Server(url, KEY).ask("/any", {}, read_json)
    assert len(caught.value.said) == 200
    assert "sk-" not in caught.value.said


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2999 07:28:00 GMT", "1e3"])
def test_a_wait_that_a_server_asks_for_is_read_from_numbers_and_dates(value):
    assert retry_after(value) >= 1000


def test_an_attempt_cut_by_the_deadline_does_not_hide_what_went_wrong():
    server = FaultServer()
    server.always = lambda body: "hang" if server.bodies else "503"
    server.complaint = "still loading"
    with serve(server) as url, pytest.raises(NoAnswer, match=r"last: HTTP 503 .*still loading"):
        Server(url, deadline_s=1.0).ask("/any", {}, read_json)
