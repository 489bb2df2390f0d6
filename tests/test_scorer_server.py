"""The HTTP scorer: shared batches, and one clear line for every bad request."""

import re
import threading

import pytest
from starlette.testclient import TestClient

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError
from aria_dvc.servers.door import LARGEST_BODY
from aria_dvc.serving.scorer_batches import MAX_BATCH
from aria_dvc.serving.scorer_requests import MAX_ITEMS, MAX_PARTS
from aria_dvc.serving.scorer_server import make_app


def chat(text):
    return {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]}


class Lengths:
    """Scores actions by their length, none above 20, and remembers the batches."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, chats):
        self.gate.wait(10)
        self.batches.append(len(chats))
        if any(c[-1]["content"] == "too long" for c in chats):
            raise AriaError("an action does not fit")
        return [[self._length(m["content"]) for m in c if m["role"] == "assistant"] for c in chats]

    @staticmethod
    def _length(text):
        return float(len(text)) if len(text) <= 20 else None


@pytest.fixture
def served():
    score = Lengths()
    with TestClient(make_app(score)) as client:
        yield client, score


def test_scores_in_order(served):
    client, _ = served
    answer = client.post("/score", json={"items": [chat("a"), chat("abc"), chat("ab")]})
    assert answer.status_code == 200
    assert answer.json() == {"scores": [1.0, 3.0, 2.0]}
    assert client.post("/score", json={"items": []}).json() == {"scores": []}
    assert client.get("/health").json() == {"status": "ok"}


def test_every_action_of_a_dialogue_is_scored_or_null(served):
    client, _ = served
    dialogue = {"messages": chat("abc")["messages"] + chat("x" * 21)["messages"]}
    answer = client.post("/score_dialogues", json={"items": [dialogue, chat("ab")]})
    assert answer.json() == {"scores": [[3.0, None], [2.0]]}
    answer = client.post("/score", json={"items": [chat("ab"), dialogue]})
    assert answer.status_code == 422
    assert "items[1]: the action is too long" in answer.json()["error"]


def post_together(client, score, texts):
    """Send all texts while the scorer is held up, so that they queue."""
    answers = {}
    score.gate.clear()
    threads = [
        threading.Thread(
            target=lambda t=t: answers.update({t: client.post("/score", json={"items": [chat(t)]})})
        )
        for t in texts
    ]
    for thread in threads:
        thread.start()
    threading.Timer(0.3, score.gate.set).start()
    for thread in threads:
        thread.join()
    return answers


def test_requests_that_wait_share_a_batch(served):
    client, score = served
    texts = ["x" * n for n in range(1, 13)]
    answers = post_together(client, score, texts)
    assert {t: a.json()["scores"] for t, a in answers.items()} == {t: [len(t)] for t in texts}
    assert sum(score.batches) == 12
    assert len(score.batches) <= 4


def test_one_bad_action_does_not_fail_its_neighbours(served):
    client, score = served
    answers = post_together(client, score, ["a", "too long", "bb"])
    assert answers["a"].json() == {"scores": [1.0]}
    assert answers["bb"].json() == {"scores": [2.0]}
    assert answers["too long"].status_code == 422


def test_scores_that_are_no_numbers_are_said():
    with TestClient(make_app(lambda chats: [[float("nan")]])) as client:
        answer = client.post("/score", json={"items": [chat("a")]})
    assert answer.status_code == 422
    assert "NaN or infinity" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 422, "must be"),
        (b'{"items": [{}]}', 422, "items[0].messages must be a list"),
        (b'{"items": [{"messages": []}]}', 422, "at least one"),
        (b'{"items": [{"messages": [{"role": "bob"}]}]}', 422, "messages[0].role must be one of"),
        (b'{"items": [{"messages": [{"role": "user"}]}]}', 422, "content must be a string"),
        (
            b'{"items": [{"messages": [{"role": "user", "content": "hi"}]}]}',
            422,
            "must end with the assistant",
        ),
        (b'{"items": [7]}', 422, "items[0].messages must be a list"),
        (b" " * (LARGEST_BODY + 1), 413, "bytes"),
        (b"[" * (MAX_PARTS + 1), 413, "too many values"),
        (b"[" * 5000, 400, "not JSON"),
    ],
)
def test_bad_requests_get_a_clear_line(served, body, status, message):
    client, _ = served
    answer = client.post("/score", content=body)
    assert answer.status_code == status
    assert message in answer.json()["error"]


def test_many_items_are_refused_and_batches_are_bounded(served):
    client, score = served
    items = [chat("a")] * MAX_ITEMS
    assert client.post("/score", json={"items": items}).json() == {"scores": [1.0] * MAX_ITEMS}
    assert sum(score.batches) == MAX_ITEMS
    assert max(score.batches) <= MAX_BATCH
    answer = client.post("/score", json={"items": [*items, chat("a")]})
    assert answer.status_code == 422
    assert f"at most {MAX_ITEMS} items" in answer.json()["error"]


@pytest.mark.parametrize(
    ("error", "status"),
    [(OSError, 422), (AriaError, 422), (ZeroDivisionError, 422), (MemoryError, 503)],
)
def test_callers_are_told_no_internals_but_where_to_look(error, status, caplog):
    def score(chats):
        raise error("no weights in '/srv/secret/model.safetensors' of the template")

    with TestClient(make_app(score)) as client:
        answer = client.post("/score", json={"items": [chat("a")]})
    said = answer.json()["error"]
    assert answer.status_code == status
    assert not any(word in said for word in ("secret", "weights", "template", error.__name__))
    (reference,) = re.findall(r"reference (\w{8}) in the server's log", said)
    assert f"reference {reference}" in caplog.text
    assert "/srv/secret" in caplog.text
    assert ("retry-after" in answer.headers) == (status == 503)


def test_a_scorer_that_answers_too_little_fails_the_request_and_not_the_server():
    with TestClient(make_app(lambda chats: [])) as client:
        for _ in range(2):
            assert client.post("/score", json={"items": [chat("a")]}).status_code == 422


@pytest.mark.parametrize("tokens", ["0", "-5"])
def test_a_length_that_nothing_fits_is_one_line(tmp_path, capsys, tokens):
    assert main(["serve-reward-model", str(tmp_path), "--max-tokens", tokens]) == 1
    assert f"--max-tokens: {tokens} is below 16" in capsys.readouterr().err
