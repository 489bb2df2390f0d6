"""`aria fit` and `aria serve`: what is kept gives the same credits, over HTTP too."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pandas as pd
import pytest
import uvicorn
from safetensors.numpy import load_file, save_file
from tests.credit_dialogues import ANY_GAME
from tests.test_exports import log_file

from aria_dvc.__main__ import main
from aria_dvc.cache.sums import write_manifest
from aria_dvc.credit import fitted as module
from aria_dvc.credit.fitted import load_fit
from aria_dvc.credit.logs import credit_of, read_logs
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import Aggregate, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.records.readers import read_log
from aria_dvc.servers import door
from aria_dvc.servers.metering import Meter
from aria_dvc.serving.serve import credit_app


def vector_of(text: str) -> np.ndarray:
    found = np.array([text.count(c) for c in "aeiou 0?"], np.float32) + 0.1
    return found / np.linalg.norm(found)


@pytest.fixture(autouse=True)
def letters(monkeypatch):
    """An encoder that counts letters, in place of a model."""

    def embed(texts, source, batch_size, normalize, endpoints):
        return np.stack([vector_of(text) for text in texts])

    monkeypatch.setattr("aria_dvc.intentions.embedding.embed_texts", embed)
    encode = lambda batch: np.stack([vector_of(text) for text in batch])  # noqa: E731
    monkeypatch.setattr("aria_dvc.models.sentences.load_encoder", lambda name: encode)


def fit(log: Path, method: str = "prefix") -> Path:
    out = log.parent / "fitted"
    k = ["--k", "3"] if make_method(method).uses_labels else []
    assert main(["fit", str(log), "--method", method, *k, "--out", str(out)]) == 0
    return out


@pytest.mark.parametrize("method", ANY_GAME)
def test_what_is_kept_credits_other_dialogues_as_the_fit_did(tmp_path, method):
    (tmp_path / "new").mkdir()
    log, new = log_file(tmp_path), log_file(tmp_path / "new", 5, seed=9)
    settings = CreditSettings(3, aggregate=Aggregate(method))
    options = {"gamma": 0.95, "own_vectors": False}
    expected, _ = credit_of(
        read_logs([log], **options), settings, read_logs([new], need_rewards=False, **options)
    )
    loaded = load_fit(fit(log, method))
    episodes = read_log(new)
    for agent in ("alice", "bob"):
        found = loaded.score([(agent, episode) for episode in episodes])
        own = expected[expected["role"] == agent]
        np.testing.assert_allclose(np.concatenate(found), own["credit"], rtol=1e-6, atol=1e-9)


def test_a_fit_tells_whose_values_other_dialogues_get(tmp_path, capsys):
    log = log_file(tmp_path)
    fit(log, "gae")
    why = "other dialogues get the values of regression, since gae needs to see how"
    assert capsys.readouterr().out.splitlines()[1].startswith(why)
    fit(log, "regression")
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_nothing_is_pickled_and_no_other_folder_is_replaced(tmp_path, capsys):
    out = fit(log_file(tmp_path), "regression")
    names = sorted(path.name for path in out.iterdir())
    assert names == ["all.sums.json", "fit.json", "turns.parquet", "vectors.safetensors"]
    assert len({path.stat().st_mode for path in out.iterdir()}) == 1  # who may read one, may all
    assert fit(tmp_path / "log.jsonl", "regression") == out
    (out / "notes.txt").write_text("mine")
    assert main(["fit", str(tmp_path / "no log"), "--out", str(out)]) == 1
    assert "holds notes.txt, which aria fit did not write" in capsys.readouterr().err
    (out / "notes.txt").unlink()
    mine = tmp_path / "mine"
    mine.mkdir()
    assert main(["fit", str(tmp_path / "log.jsonl"), "--out", str(mine)]) == 1
    assert "is no fitted credit" in capsys.readouterr().err
    with pytest.raises(AriaError, match="no fitted credit there"):
        load_fit(mine)
    about = json.loads((out / "fit.json").read_text())
    (out / "fit.json").write_text(json.dumps({**about, "version": 1}))
    write_manifest(out)
    with pytest.raises(AriaError, match="a fit of version 1: run aria fit again"):
        load_fit(out)
    (mine / "fit.json").write_text('{"mine": 1}')
    (mine / "turns.parquet").write_text("mine")
    assert main(["fit", str(tmp_path / "log.jsonl"), "--out", str(mine)]) == 1
    assert "is no fitted credit" in capsys.readouterr().err
    assert (mine / "turns.parquet").read_text() == "mine"


def backwards(path):
    vectors = load_file(path)["vectors"]
    save_file({"vectors": np.ascontiguousarray(vectors[::-1])}, path)


def turned(path):
    pd.read_parquet(path).iloc[::-1].to_parquet(path)


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("vectors.safetensors", backwards),
        ("vectors.safetensors", half),
        ("vectors.safetensors", Path.unlink),
        ("turns.parquet", turned),
        ("turns.parquet", half),
        ("fit.json", half),
        ("fit.json", lambda path: path.write_text(path.read_text().replace("0.95", "0.5"))),
        ("all.sums.json", half),
        ("all.sums.json", Path.unlink),
    ],
)
def test_a_damaged_fit_is_named_and_may_be_made_again(tmp_path, name, harm):
    out = fit(log_file(tmp_path), "regression")
    harm(out / name)
    with pytest.raises(AriaError, match=rf"{name} is missing or not as .*: run aria fit again"):
        load_fit(out)
    assert load_fit(fit(tmp_path / "log.jsonl", "regression")).acting


@pytest.mark.parametrize("other", [lambda vector: vector[::-1], lambda vector: vector[:4]])
def test_another_encoder_of_the_same_name_is_noticed(tmp_path, monkeypatch, other):
    out = fit(log_file(tmp_path), "regression")
    encode = lambda batch: np.stack([other(vector_of(text)) for text in batch])  # noqa: E731
    monkeypatch.setattr("aria_dvc.models.sentences.load_encoder", lambda name: encode)
    with pytest.raises(AriaError, match="gives other vectors than when this was fitted"):
        load_fit(out)


def test_the_memory_of_texts_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 2)
    loaded = load_fit(fit(log_file(tmp_path), "regression"))
    episodes = read_log(tmp_path / "log.jsonl")
    first = loaded.score([("alice", episodes[0])])
    loaded.score([("alice", episode) for episode in episodes])
    assert len(loaded._vectors) == 2
    assert loaded.score([("alice", episodes[0])]) == first


@contextmanager
def serving(app) -> Iterator[SimpleNamespace]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, **door.BOUNDED))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", port=port)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


def chat(*texts: str | None) -> list[dict]:
    """The assistant begins."""
    return [{"role": ("assistant", "user")[i % 2], "content": t} for i, t in enumerate(texts)]


@pytest.fixture
def fitted(tmp_path):
    return load_fit(fit(log_file(tmp_path)))


def test_dialogues_are_scored_one_credit_an_assistant_message(fitted):
    two = {"messages": chat("hello", "60?", "I take it"), "agent": "alice"}
    three = {"messages": chat("hello", "60?", "no deal", "50?", "no deal"), "agent": "alice"}
    (episode,) = read_log_of(two)
    with serving(credit_app(fitted)) as served:
        answer = httpx.post(f"{served.url}/score_dialogues", json={"items": [two, three]})
        scores = answer.json()["scores"]
        assert [len(own) for own in scores] == [2, 3]
        assert scores[0] == pytest.approx(fitted.score([("alice", episode)])[0])
        assert scores[0][1] > scores[1][1]
        last = httpx.post(f"{served.url}/score", json={"items": [two, three]}).json()["scores"]
        assert last == [own[-1] for own in scores]


@pytest.mark.parametrize("names", [{3: "bot"}, {1: "bot", 3: "bot"}, {0: "ann", 1: "a", 3: "b"}])
def test_speakers_with_names_of_their_own_are_the_roles_they_speak_in(fitted, names):
    plain = [{"role": "user", "content": "50?"}, *chat("hello", "60?", "I take it")]
    named = [{**m, "name": names[i]} if i in names else m for i, m in enumerate(plain)]
    items = [{"messages": said, "agent": "alice"} for said in (plain, named)]
    with serving(credit_app(fitted)) as served:
        answer = httpx.post(f"{served.url}/score_dialogues", json={"items": items})
    first, second = answer.json()["scores"]
    assert len(first) == 2
    assert first == second


def test_a_name_that_is_a_fitted_role_is_that_role(fitted):
    said = chat("hello", "60?", "I take it")
    said[2]["name"] = "bob"
    (episode,) = read_log_of({"messages": said})
    roles = [utterance.role for utterance in fitted.renamed(episode, "alice").utterances]
    assert roles == ["alice", "bob", "bob"]


def read_log_of(item: dict):
    from aria_dvc.records.readers import read_entries
    from aria_dvc.records.reading import Reading

    return read_entries([{"messages": item["messages"]}], Reading(need_rewards=False))


def test_messages_as_agents_write_them(fitted):
    call = {"function": {"name": "search", "arguments": '{"to": "SEA"}'}}
    said = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": ""},
        {"role": "assistant", "content": "done"},
    ]
    with serving(credit_app(fitted)) as served:
        body = {"items": [{"messages": said, "agent": "bob"}]}
        answer = httpx.post(f"{served.url}/score_dialogues", json=body)
    assert [len(own) for own in answer.json()["scores"]] == [2]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "messages must be a list"),
        ({"messages": []}, "messages must be a list"),
        ({"messages": chat("a")}, "agent is missing: the fitted roles are alice, bob"),
        ({"messages": chat("a"), "agent": 5}, "items[0].agent must be a string: a fitted role"),
        ({"messages": chat("a"), "agent": "eve"}, "no agent eve"),
        ({"messages": chat(None), "agent": "bob"}, "neither content nor a call"),
        ({"messages": [3], "agent": "bob"}, "needs the keys role and content"),
        ({"messages": [{"role": "user", "content": "a"}], "agent": "bob"}, "nothing is said by"),
        ({"messages": chat(*"ab" * 4100), "agent": "bob"}, "messages, over"),
    ],
)
def test_what_cannot_be_scored_is_named(fitted, item, message):
    with serving(credit_app(fitted)) as served:
        answer = httpx.post(f"{served.url}/score_dialogues", json={"items": [item]})
        assert answer.status_code in (413, 422)
        assert message in answer.json()["error"]
        assert httpx.get(f"{served.url}/health").status_code == 200


def test_a_key_is_asked_for_and_the_server_tells_about_itself(fitted):
    with serving(credit_app(fitted, "secret-key")) as served:
        body = {"items": [{"messages": chat("hello"), "agent": "alice"}]}
        assert httpx.post(f"{served.url}/score", json=body).status_code == 401
        right = {"Authorization": "Bearer secret-key"}
        assert httpx.post(f"{served.url}/score", json=body, headers=right).status_code == 200
        document = httpx.get(f"{served.url}/openapi.json").json()
        assert set(document["paths"]) == {"/score", "/score_dialogues", "/health", "/metrics"}
        page = httpx.get(f"{served.url}/docs").text
        assert "POST /score_dialogues" in page
        assert "http" not in re.sub(r'"[^"]*"', "", page)
        metrics = httpx.get(f"{served.url}/metrics").text
    assert 'aria_requests_total{path="/score",status="200"} 1' in metrics
    assert 'aria_requests_total{path="/score",status="401"} 1' in metrics
    assert "aria_scored_total 1" in metrics
    assert "secret-key" not in metrics + page


def test_too_many_at_once_are_sent_away_and_the_rest_answered(fitted, monkeypatch):
    release, asked = threading.Event(), []

    def slow(chats):
        release.wait(10)
        return [[0.5] for _ in chats]

    monkeypatch.setattr(fitted, "score", slow)
    body = {"items": [{"messages": chat("hello"), "agent": "alice"}]}
    with serving(credit_app(fitted, at_once=2)) as served:

        def ask():
            asked.append(httpx.post(f"{served.url}/score", json=body, timeout=20).status_code)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 10
        while "aria_waiting_dialogues 2" not in httpx.get(f"{served.url}/metrics").text:
            assert time.monotonic() < deadline
        refused = httpx.post(f"{served.url}/score", json=body)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        unread = httpx.post(f"{served.url}/score", content=b"no JSON")
        assert unread.status_code == 429
        release.set()
        for thread in threads:
            thread.join(10)
    assert asked == [200, 200]


def test_the_metrics_are_what_prometheus_parses():
    meter = Meter("aria")
    for seconds in (0.004, 0.3, 200.0):
        meter.observe("/score", 200, seconds, 2)
    lines = meter.text().splitlines()
    assert 'aria_request_seconds_bucket{le="0.005"} 1' in lines
    assert 'aria_request_seconds_bucket{le="0.5"} 2' in lines
    assert 'aria_request_seconds_bucket{le="+Inf"} 3' in lines
    assert "aria_scored_total 6" in lines
    shape = re.compile(r'# (HELP|TYPE) \w+ .+|\w+({\w+="[^"]*"(,\w+="[^"]*")*})? [\d.e+-]+')
    assert all(shape.fullmatch(line) for line in lines)


def test_a_server_that_cannot_start_says_why_in_a_line(tmp_path, capsys):
    folder = fit(log_file(tmp_path))
    capsys.readouterr()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for options, problem in (
            ([tmp_path], "neither a fitted credit nor a reward model"),
            ([folder, "--at-once", 0], "--at-once 0: at least one"),
            ([folder, "--max-tokens", 64], f"--max-tokens is for a reward model, and {folder} "),
            ([folder, "--precision", "float32"], "--precision is for a reward model, and "),
            ([folder, "--base", "model"], "holds a fitted credit: leave it out"),
            ([folder, "--port", 99999], "--port 99999: cannot be listened on"),
            ([folder, "--port", taken.getsockname()[1]], "cannot be listened on (Address already"),
            ([folder, "--host", "no.such.host.invalid"], "cannot be listened on"),
        ):
            assert main(["serve", *map(str, options)]) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert problem in line
