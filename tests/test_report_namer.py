"""Names of intentions that a language model behind a server gives; the server is a real one."""

from __future__ import annotations

import logging

import pandas as pd
import pytest
from fault_server import FAULTS, FaultServer, serve
from stored_log import NAME, params_of, run_to, write_entries
from stored_log import entries as stored_entries

from aria_dvc.cache.entries import damages, entries
from aria_dvc.cache.folder import VARIABLE
from aria_dvc.errors import AriaError
from aria_dvc.pipeline.report import Run, write_intentions
from aria_dvc.report.namer import named_by_model
from aria_dvc.settings.machine import Endpoint

TABLE = pd.DataFrame(
    {
        "intention": [4, 7, 9],
        "name": ["half, each", "never", "water"],
        "examples": [["half each", "let us share"], ["never"], ["I need water", "water!"]],
    }
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def shown(body) -> str:
    return body["messages"][-1]["content"]


def by_words(body) -> str:
    """A name for a share, one for a refusal, and what small models write around it."""
    said = shown(body)
    return '**"Offers half"**\nThey share.' if "half" in said else "turns  it\tdown."


def at(url: str, **options) -> Endpoint:
    return Endpoint(base_url=url, model="m", timeout_s=0.5, deadline_s=20, options=options)


def test_a_model_sees_words_and_examples_and_its_answers_are_the_names():
    server = FaultServer()
    server.say = by_words
    with serve(server) as url:
        named = named_by_model(TABLE, "local", at(url, reasoning_effort="low"))
    assert named["name"].tolist() == ["Offers half", "turns it down #7", "turns it down #9"]
    assert named.drop(columns="name").equals(TABLE.drop(columns="name"))
    asked = {shown(body): body for body in server.bodies}
    assert "Utterances:\n- half each\n- let us share\nWords: half, each" in asked
    body = asked["Utterances:\n- never\nWords: never"]
    assert (body["temperature"], body["reasoning_effort"]) == (0.0, "low")


def test_what_was_named_is_not_asked_for_again_unless_another_answers():
    server = FaultServer()
    server.say = by_words
    with serve(server) as url:
        first = named_by_model(TABLE[:2], "local", at(url))
        again = named_by_model(TABLE, "local", at(url))
        assert len(server.bodies) == 3
        assert again["name"].tolist()[0] == first["name"].tolist()[0]
        named_by_model(TABLE, "local", at(url, top_p=0.5))
        assert len(server.bodies) == 6


def test_names_are_complete_whatever_the_server_does():
    server = FaultServer(rate=0.6, faults=tuple(set(FAULTS) - {"hang", "slow", "empty"}))
    server.say = by_words
    with serve(server) as url:
        named = named_by_model(TABLE, "local", at(url))
    assert named["name"].tolist() == ["Offers half", "turns it down #7", "turns it down #9"]
    assert len(server.bodies) > 3


def test_a_damaged_answer_is_told_and_asked_for_again(cache, caplog):
    server = FaultServer()
    server.say = by_words
    with serve(server) as url:
        named_by_model(TABLE, "local", at(url))
        (entry,) = entries(cache)
        file = entry.path / "names.jsonl"
        file.write_bytes(file.read_bytes().replace(b"Offers", b"0ffers"))
        assert [line.partition(": ")[0] for line in damages(cache)] == [str(file)]
        named = named_by_model(TABLE, "local", at(url))
    assert named["name"][0] == "Offers half"
    assert "their names are asked for again" in caplog.text
    assert len(server.bodies) == 4


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("<think>half? no: half.</think>\n\nsplits evenly", "splits evenly"),
        ("`asks\x1b[31m` the price", "asks\\x1b[31m` the price"),
        ("so " * 100, "so so so so so so so so so so so so so so so so so so so..."),
    ],
)
def test_a_name_is_one_short_line_that_steers_no_terminal(answer, name):
    server = FaultServer()
    server.say = lambda body: answer
    with serve(server) as url:
        assert named_by_model(TABLE[:1], "local", at(url))["name"].tolist() == [name]


def test_where_the_model_says_nothing_the_terms_stay_with_a_warning(caplog):
    server = FaultServer()
    server.say = lambda body: "..." if "never" in shown(body) else by_words(body)
    with serve(server) as url, caplog.at_level(logging.WARNING):
        named = named_by_model(TABLE, "local", at(url))
    assert named["name"].tolist() == ["Offers half", "never", "turns it down"]
    assert "m has no name for 1 of 3 intentions, which keep their terms" in caplog.text


def test_a_server_that_refuses_or_is_away_is_one_line_with_the_remedy():
    refused = pytest.raises(AriaError, match=r"endpoint local gave no names .*HTTP 401.*terms$")
    with serve(FaultServer(rate=1.0, faults=("401",))) as url, refused:
        named_by_model(TABLE, "local", at(url))
    gone = at(url).model_copy(update={"deadline_s": 0.2})
    with pytest.raises(AriaError, match=r"endpoint local gave no names .* or set report.names"):
        named_by_model(TABLE, "local", gone)


def test_a_key_that_a_model_says_is_not_kept(cache, monkeypatch):
    monkeypatch.setenv("NAMER_KEY", "sk-very-secret-key")
    server = FaultServer()
    server.say = lambda body: "asks for sk-very-secret-key"
    with serve(server) as url:
        endpoint = at(url).model_copy(update={"api_key_env": "NAMER_KEY"})
        assert named_by_model(TABLE[:1], "local", endpoint)["name"].tolist() == ["asks for ***"]
    assert b"secret" not in b"".join(f.read_bytes() for f in cache.rglob("*") if f.is_file())


def test_the_report_shows_the_names_of_the_endpoint_in_params(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = write_entries(tmp_path / "log.jsonl", stored_entries())
    run_to("aggregate", log)
    server = FaultServer()
    server.say = lambda body: f"says {shown(body).splitlines()[1]}"
    with serve(server) as url:
        params = params_of(log)
        report = params.report.model_copy(update={"names": "endpoint:local"})
        run = Run(params.model_copy(update={"report": report, "endpoints": {"local": at(url)}}))
        write_intentions(run, tmp_path / "intentions")
    found = pd.read_csv(tmp_path / "intentions" / f"{NAME}.csv")
    central = found["examples"].str.split(" | ", regex=False).str[0]
    assert found["name"].tolist() == [f"says - {text.rstrip('.')}" for text in central]
    assert len(found) == len(server.bodies) > 1
