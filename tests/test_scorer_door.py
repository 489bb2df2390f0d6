"""The scorer server over real sockets: clients who stall, send too much, or have no key."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from benchmarks.scorer import KEY, client, dialogue, measure, parse, scorer
from tests.scorer_tiny import tiny_reward_model

from aria_dvc.errors import AriaError
from aria_dvc.learning.scorer_client import RemoteScorer
from aria_dvc.servers import door
from aria_dvc.serving import scorer_batches, scorer_server
from aria_dvc.serving.scorer_server import make_app

CHAT = {"messages": [{"role": "assistant", "content": "abc"}]}
HEAD = b"POST /score HTTP/1.1\r\nHost: x\r\n"
R2 = {"r2": 0.5, "r2_low": 0.1, "r2_high": 0.9}


def lengths(chats: Any) -> list[list[float | None]]:
    return [[float(len(m["content"])) for m in c if m["role"] == "assistant"] for c in chats]


@contextmanager
def serving(score: Callable = lengths, key: str = "") -> Iterator[SimpleNamespace]:
    """The server in a thread of its own; yields its address, its port and uvicorn's state."""
    server = uvicorn.Server(uvicorn.Config(make_app(score, R2, key), port=0, **door.BOUNDED))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", port=port, state=server.server_state)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


def connect(port: int, data: bytes = b"") -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=10)
    link.sendall(data)
    return link


def until_closed(link: socket.socket) -> bytes:
    """What the server still says before it closes the connection."""
    said = b""
    try:
        while part := link.recv(65536):
            said += part
    except ConnectionError:
        pass
    return said


def until(link: socket.socket, end: bytes) -> bytes:
    """What the server says, up to `end`."""
    said = b""
    while end not in said:
        said += (part := link.recv(65536))
        assert part, said
    return said


def drip(link: socket.socket) -> float:
    """Send a byte now and then until the server closes; seconds that this took, at the most 5."""
    started = time.monotonic()
    with suppress(OSError):
        while time.monotonic() - started < 5:
            link.sendall(b"X")
            time.sleep(0.02)
    return time.monotonic() - started


def answers(url: str, **changes: Any) -> httpx.Response:
    return httpx.post(f"{url}/score", json={"items": [CHAT]}, timeout=10, **changes)


@pytest.fixture
def quick(monkeypatch) -> None:
    for name in ("HEAD_S", "STALL_S", "ANSWER_S"):
        monkeypatch.setattr(door, name, 0.3)
    monkeypatch.setattr(door, "BODY_S", 0.9)


# Keys


def test_a_key_lets_real_clients_in_and_others_not(monkeypatch):
    monkeypatch.setenv("RIGHT_KEY", KEY)
    monkeypatch.setenv("WRONG_KEY", KEY[:-1])
    with serving(key=KEY) as served:
        assert RemoteScorer(served.url, 5.0, "RIGHT_KEY").quality() == R2
        assert len(RemoteScorer(served.url, 5.0, "RIGHT_KEY").score_dialogues([dialogue()])) == 3
        for variable in (None, "WRONG_KEY"):
            stranger = RemoteScorer(served.url, 5.0, variable)
            for ask in (stranger.quality, lambda s=stranger: s.score_dialogues([dialogue()])):
                with pytest.raises(AriaError, match=r"HTTP 401.*online\.scorer_api_key_env"):
                    ask()
        assert httpx.get(f"{served.url}/health").json() == {"status": "ok"}
        answer = answers(served.url)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert KEY not in answer.text


def test_without_the_key_no_body_is_read():
    with serving(key=KEY) as served:
        said = until_closed(
            connect(served.port, HEAD + b"Content-Length: 7000000\r\n\r\n" + b" " * 9)
        )
    assert said.startswith(b"HTTP/1.1 401")


def test_a_missing_key_is_one_line(monkeypatch):
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(AriaError, match=r"online\.scorer_api_key_env: .* NO_KEY is not set"):
        RemoteScorer("http://h", 1.0, "NO_KEY")
    args = SimpleNamespace(api_key_env="NO_KEY", host="127.0.0.1", port=1)
    with pytest.raises(AriaError, match=r"--api-key-env: .* NO_KEY is not set"):
        scorer_server.key_of(args, "serve")


def test_an_open_door_without_a_key_is_said(monkeypatch, caplog):
    monkeypatch.delenv(scorer_server.KEY_VARIABLE, raising=False)
    args = SimpleNamespace(api_key_env=None, host="0.0.0.0", port=1)
    assert scorer_server.key_of(args, "serve") == ""
    assert "everybody who reaches 0.0.0.0:1" in caplog.text
    monkeypatch.setenv(scorer_server.KEY_VARIABLE, KEY)
    assert scorer_server.key_of(args, "serve") == KEY


# Heads and connections


@pytest.mark.parametrize("half", [b"", b"POST /sco", HEAD, HEAD + b"X: y"])
def test_a_stalled_head_is_let_go(quick, half):
    with serving() as served:
        link, started = connect(served.port, half), time.monotonic()
        said = until_closed(link)
        assert time.monotonic() - started < 3
        assert said.startswith(b"HTTP/1.1 408")
        assert answers(served.url).json() == {"scores": [3.0]}


def test_a_dripping_head_is_let_go(quick):
    with serving() as served:
        assert drip(connect(served.port)) < 3


def test_a_second_head_on_the_same_connection_is_bounded_too(quick):
    body = b'{"items": []}'
    whole = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with serving() as served:
        link = connect(served.port, whole)
        assert until(link, b'{"scores":[]}')
        link.sendall(whole)
        assert until(link, b'{"scores":[]}')
        link.sendall(HEAD[:9])
        assert until_closed(link) == b""


@pytest.mark.parametrize("junk", [b"\x16\x03\x01 hello\r\n\r\n", HEAD + b"X: " + b"y" * 40_000])
def test_junk_is_refused(junk):
    with serving() as served:
        assert until_closed(connect(served.port, junk)).startswith(b"HTTP/1.1 400")


def test_of_too_many_connections_the_one_that_waits_longest_goes(monkeypatch):
    monkeypatch.setattr(door, "CONNECTIONS", 8)
    with serving() as served:
        links = [connect(served.port, HEAD) for _ in range(8)]
        for _ in range(3):
            assert answers(served.url).json() == {"scores": [3.0]}
        assert until_closed(links[0]) == b""
        assert len(served.state.connections) <= 8
        links[-1].sendall(b'Content-Length: 13\r\n\r\n{"items": []}')
        assert until(links[-1], b"200 OK")


def test_where_all_connections_are_busy_a_new_one_is_asked_to_wait(monkeypatch):
    monkeypatch.setattr(door, "CONNECTIONS", 2)
    gate = threading.Event()
    with serving(lambda chats: (gate.wait(10), lengths(chats))[1]) as served:
        busy = [threading.Thread(target=answers, args=(served.url,)) for _ in range(2)]
        for thread in busy:
            thread.start()
        time.sleep(0.5)
        said = until_closed(connect(served.port))
        gate.set()
        for thread in busy:
            thread.join(10)
    assert said.startswith(b"HTTP/1.1 503")
    assert b"Retry-After" in said


# Bodies


@pytest.mark.parametrize("part", [b"", b'{"items": [', b" " * 3_000_000])
def test_a_stalled_body_is_let_go(quick, part):
    with serving() as served:
        link = connect(served.port, HEAD + b"Content-Length: 4000000\r\n\r\n" + part)
        started = time.monotonic()
        assert until_closed(link).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - started < 3


def test_a_dripping_body_is_let_go(quick):
    with serving() as served:
        link, started = (
            connect(served.port, HEAD + b"Content-Length: 400\r\n\r\n"),
            time.monotonic(),
        )
        link.settimeout(0.05)
        said = b""
        while not said and time.monotonic() - started < 5:
            link.sendall(b" ")
            try:
                said = link.recv(65536)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 999999999999\r\n\r\n",
        b"Content-Length: 9000000\r\n\r\n" + b" " * 1000,
        # One byte too many and no more: what is left unread when a server closes resets the answer.
        b"Transfer-Encoding: chunked\r\n\r\n"
        + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 128
        + b"1\r\n \r\n",
    ],
)
def test_a_body_that_is_too_large_is_refused_before_it_is_whole(quick, head):
    with serving() as served:
        assert until_closed(connect(served.port, HEAD + head)).startswith(b"HTTP/1.1 413")


def test_who_goes_on_sending_after_the_answer_is_let_go(quick):
    with serving() as served:
        assert drip(connect(served.port, HEAD + b"Content-Length: 9000000\r\n\r\n")) < 3


def test_of_bodies_that_do_not_fit_the_stalest_goes(monkeypatch):
    monkeypatch.setattr(door.Bodies.__init__, "__defaults__", (3_000_000,))
    with serving() as served:
        links = []
        for _ in range(4):
            head = HEAD + b"Content-Length: 1100000\r\n\r\n"
            links.append(connect(served.port, head + b" " * 1_000_000))
            time.sleep(0.2)
        said = until(links[0], b"\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in said
        for _ in range(3):
            assert answers(served.url).json() == {"scores": [3.0]}
        links[-1].sendall(b" " * 99_987 + b'{"items": []}')
        assert until(links[-1], b"200 OK")


def test_where_others_are_being_scored_a_body_without_room_comes_later(monkeypatch):
    monkeypatch.setattr(door.Bodies.__init__, "__defaults__", (1000,))
    gate = threading.Event()
    big = {"messages": [{"role": "assistant", "content": "x" * 700}]}
    with serving(lambda chats: (gate.wait(10), lengths(chats))[1]) as served:
        first = threading.Thread(
            target=lambda: found.append(httpx.post(f"{served.url}/score", json={"items": [big]}))
        )
        found: list[httpx.Response] = []
        first.start()
        time.sleep(0.5)
        second = httpx.post(f"{served.url}/score", json={"items": [big]})
        gate.set()
        first.join(10)
        third = httpx.post(f"{served.url}/score", json={"items": [big]})
    assert (found[0].status_code, second.status_code, third.status_code) == (200, 503, 200)
    assert second.headers["retry-after"] == "1"


# Requests


def test_one_address_has_so_many_requests_at_once(monkeypatch):
    monkeypatch.setattr(scorer_server, "AT_ONCE", 2)
    gate = threading.Event()
    with serving(lambda chats: (gate.wait(10), lengths(chats))[1]) as served:
        found: list[httpx.Response] = []
        threads = [
            threading.Thread(target=lambda: found.append(answers(served.url))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        gate.set()
        for thread in threads:
            thread.join(10)
        assert answers(served.url).status_code == 200
    assert sorted(answer.status_code for answer in found) == [200, 200, 429]
    assert max(found, key=lambda a: a.status_code).headers["retry-after"] == "1"


def test_so_many_chats_wait(monkeypatch):
    monkeypatch.setattr(scorer_batches, "MAX_WAITING", 3)
    with serving() as served:
        answer = httpx.post(f"{served.url}/score", json={"items": [CHAT] * 4})
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        answer = httpx.post(f"{served.url}/score", json={"items": [CHAT] * 3})
        assert answer.status_code == 200


def test_a_client_that_goes_away_is_not_scored():
    gate, scored = threading.Event(), []

    def score(chats):
        gate.wait(10)
        scored.extend(c[-1]["content"] for c in chats)
        return lengths(chats)

    with serving(score) as served:
        first = threading.Thread(target=answers, args=(served.url,))
        first.start()
        time.sleep(0.5)
        left = b'{"items": [{"messages": [{"role": "assistant", "content": "left"}]}]}'
        link = connect(served.port, HEAD + b"Content-Length: %d\r\n\r\n" % len(left) + left)
        time.sleep(0.3)
        link.close()
        time.sleep(0.3)
        gate.set()
        first.join(10)
        assert answers(served.url).status_code == 200
    assert scored == ["abc", "abc"]


def test_scores_that_take_too_long_end(monkeypatch):
    monkeypatch.setattr(scorer_server, "SCORE_S", 0.2)
    gate = threading.Event()
    with serving(lambda chats: (gate.wait(10), lengths(chats))[1]) as served:
        assert answers(served.url).status_code == 503
        gate.set()


# All of it, with a real model in a process of its own


def test_stalled_clients_do_not_hold_up_others(tmp_path):
    """`benchmarks/scorer.py` in small: its default numbers are 300, 60 and 7."""
    args = parse([".", "--stalled", "60", "--partial", "15", "--seconds", "5"])
    with scorer(tiny_reward_model(tmp_path)) as (url, pid):
        figures = asyncio.run(measure(url, pid, args))
        with pytest.raises(AriaError, match="HTTP 401"):
            RemoteScorer(url, 60.0).score_dialogues([dialogue()])
        assert client(url, 60.0).quality() is None  # this model has no metrics
    assert figures["answers meanwhile"] > 3
    quiet = figures["seconds to an answer before, median"]  # long where the machine is busy
    assert figures["seconds to an answer meanwhile, longest"] < max(2, 20 * quiet)
    assert figures["MB more at the peak"] < 200
