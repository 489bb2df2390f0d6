"""Player specs: parsed once, unknown ones named with what may have been meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aria_dvc.errors import AriaError
from aria_dvc.player_specs import (
    PlayerSpec,
    endpoint_name,
    find_endpoint,
    parse_spec,
    strategies_of,
    weights_of,
)
from aria_dvc.records.names import is_trained, kind_of


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("policy", "policy", ""),
        ("base", "base", ""),
        ("embedded", "embedded", ""),
        ("scripted:fair", "scripted", "fair"),
        ("endpoint:local", "endpoint", "local"),
        ("endpoint:a:b", "endpoint", "a:b"),
    ],
)
def test_specs_are_read_and_written(text, kind, name):
    assert parse_spec(text) == PlayerSpec(kind, name)
    assert str(parse_spec(text)) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("polic", "unknown player polic .did you mean policy"),
        ("base:x", "unknown player base:x"),
        ("embedded:", "unknown player embedded:"),
        ("endpoint", "unknown player endpoint"),
        ("endpoint:", "did you mean endpoint:<name>"),
        ("scripted:<strategy>", "unknown strategy <strategy>"),
        ("scripted:fiar", "unknown strategy fiar .did you mean fair"),
        ("", "unknown player"),
    ],
)
def test_unknown_players_are_refused(text, complaint):
    with pytest.raises(AriaError, match=complaint):
        parse_spec(text)


def test_an_endpoint_is_told_from_a_model():
    assert endpoint_name("endpoint:local") == "local"
    assert endpoint_name("endpoint:") == ""
    for other in ("endpoint", "all-minilm-l6-v2", "C:/models", "my/endpoint:x", "in_process"):
        assert endpoint_name(other) is None
    assert find_endpoint("local", {"local": 1}) == 1
    with pytest.raises(AriaError, match=r"no endpoint locl under endpoints .did you mean local"):
        find_endpoint("locl", {"local": 1})


def test_recorded_names_have_kinds():
    names = ["policy", "base", "scripted:fair", "endpoint:x", "embedded", "gpt", "None"]
    kinds = ["policy", "base", "scripted", "endpoint", None, None, None]
    assert [kind_of(name) for name in names] == kinds


def test_strangers_are_trained_on_and_our_own_players_by_their_kind():
    names = ["policy", "base", "scripted:fair", "endpoint:x", "gpt", ""]
    trained = [is_trained(name, ("policy", "endpoint")) for name in names]
    assert trained == [True, False, False, True, True, True]


def test_a_pool_is_one_player_or_several_with_weights():
    assert weights_of("scripted:fair") == {"scripted:fair": 1.0}
    assert weights_of({"policy": 3, "base": 1, "scripted:fair": 0}) == {"policy": 3, "base": 1}


def test_a_mixture_is_itself_and_all_its_strategies():
    specs = ["policy", "scripted:mixed", "embedded", "endpoint:fair", "scripted:varied"]
    mixed = {"mixed", "conceding", "hard", "fair", "best_response"}
    assert strategies_of(specs) == {*mixed, "varied"}
    assert strategies_of(["scripted:fair"]) == {"fair"}


def test_naming_players_imports_none_of_them():
    code = (
        "import sys, aria_dvc.player_specs as p; p.parse_spec('policy'); "
        "print([m for m in sys.modules if m.startswith(('aria_dvc.games', 'aria_dvc.players', "
        "'torch', 'pandas', 'httpx'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
    )
    assert done.stdout.strip() == "[]"
