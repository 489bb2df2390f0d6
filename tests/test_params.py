"""params.yaml: every mistake at once, with did-you-mean; numbers survive what DVC writes."""

import copy
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from aria_dvc.errors import AriaError
from aria_dvc.params import check_params, load_params

ROOT = Path(__file__).parent.parent


@pytest.fixture
def raw():
    return copy.deepcopy(YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text()))


def test_the_shipped_file_is_valid(raw):
    params = check_params(raw)
    assert params.k == "auto"
    assert params.games_of("adversarial") == ["bargaining", "negotiation"]


def test_all_mistakes_come_in_one_line(raw):
    raw["polcy"] = 1
    raw["policy"]["learning_rte"] = 3
    raw["policy"]["online"]["iteratons"] = 3
    raw["collect"]["bargaining"]["sorce"] = "x"
    raw["collect"]["settings"]["top"] = 1
    raw["policy"]["epochs"] = "many"
    del raw["embed"]["batch_size"]
    with pytest.raises(AriaError) as caught:
        check_params(raw)
    message = str(caught.value)
    for part in (
        "polcy: unknown key (did you mean policy?)",
        "policy.learning_rte: unknown key (did you mean learning_rate?)",
        "policy.online.iteratons: unknown key (did you mean iterations?)",
        "collect.bargaining.sorce: unknown key (did you mean source?)",
        "collect.settings.top: unknown key (did you mean top_p?)",
        "policy.epochs: input should be a valid number",
        "embed.batch_size: field required",
    ):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"k": 1}, "k: 1 is outside 2..100"),
        ({"k": 101}, "k: 101 is outside 2..100"),
        ({"k": 2.5}, "k"),
        ({"k": "many"}, "k"),
        ({"games": ["bargainin"]}, "unknown game bargainin (did you mean bargaining?)"),
        ({"games": []}, "games"),
        ({"games": ["bargaining", "bargaining"]}, "listed twice"),
        ({"games": ["two_party_log"]}, "cannot be played; name a log file"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refusals(raw, change, expected):
    with pytest.raises(AriaError, match=r"params\.yaml") as caught:
        check_params({**raw, **change})
    assert expected in str(caught.value)


def set_at(raw, path, value):
    *parents, last = path.split(".")
    for part in parents:
        raw = raw[part]
    raw[last] = value


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy.lora", None, "policy.lora: online training reloads an adapter"),
        ("policy.online.rollouts", "vllm", "policy.online.rollouts: vllm is neither"),
        ("policy.online.rollouts", "endpoint:x", "policy.online.rollouts: no endpoint x"),
        ("policy.lora.target_modules", [], "policy.lora.target_modules: list should have at least"),
        ("policy.learning_rate", float("inf"), "policy.learning_rate: input should be a finite"),
        ("policy.players", ["base"], "policy.players.0: input should be 'policy'"),
        ("collect.bargaining.episodes", 0, "collect.bargaining.episodes: no game is played"),
        ("collect.bargaining.players.bob", "endpoint:x", "bob: no endpoint x under endpoints"),
        ("collect.settings.sampling", {"polcy": {}}, "unknown player polcy (did you mean policy?)"),
        ("evaluate.settings.sampling", {"endpoint:x": {}}, "evaluate.settings.sampling: no endpoi"),
        ("evaluate.bargaining.opponents.bob", "scriptd:fair", "opponents.bob: unknown player"),
        ("evaluate.bargaining.opponents.bob", "scripted:fiar", "unknown strategy fiar (did you"),
        ("evaluate.settings.adapter", "x", "evaluate.settings.adapter: evaluation plays the base"),
        ("embed.source", "endpoint:x", "embed.source: no endpoint x under endpoints (known: none)"),
    ],
)
def test_what_would_fail_hours_later_is_refused_at_once(raw, path, value, expected):
    raw["policy"]["online"]["iterations"] = 1
    check_params(raw)
    set_at(raw, path, value)
    with pytest.raises(AriaError) as caught:
        check_params(raw)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base_url", "ftp://h/v1"),
        ("base_url", "nowhere"),
        ("base_url", "http://user:sekret@h/v1"),
        ("base_url", "http://h/v1?key=sekret"),
        ("api_key_env", "sk-sekret-123"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused_without_showing_secrets(raw, key, value):
    raw["endpoints"] = {"x": {"base_url": "http://h/v1", "model": "m", key: value}}
    with pytest.raises(AriaError, match=rf"endpoints\.x\.{key}") as caught:
        check_params(raw)
    assert "sekret" not in str(caught.value)


def test_what_is_not_used_is_not_refused(raw):
    set_at(raw, "policy.lora", None)
    set_at(raw, "policy.online.rollouts", "endpoint:x")
    set_at(raw, "collect.bargaining", {"source": "log.json", "players": {"alice": "endpoint:x"}})
    check_params(raw)


def test_split_score_needs_an_eps_above_zero(raw):
    raw["select_k"]["eps"] = 0
    with pytest.raises(AriaError, match=r"select_k\.eps: input should be greater than 0"):
        check_params(raw)


def test_k_above_k_max_names_both(raw):
    raw["cluster"]["k_max"] = 30
    raw["k"] = 40
    with pytest.raises(AriaError, match=r"k: 40 is outside 2\.\.30 \(cluster\.k_max\)"):
        check_params(raw)


@pytest.mark.parametrize("text", ["1e-06", "1e-6", "0.000001", "1.0e-6"])
def test_small_numbers_as_dvc_writes_them(tmp_path, text):
    shipped = (ROOT / "params.yaml").read_text()
    path = tmp_path / "params.yaml"
    line = next(x for x in shipped.splitlines() if x.startswith("  learning_rate: 0.0001 "))
    path.write_text(shipped.replace(line, f"  learning_rate: {text}"))
    assert load_params(path).policy.learning_rate == 1e-6


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(AriaError, match="is missing: run from the repository's root"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("k: [1")
    with pytest.raises(AriaError, match="is not valid YAML"):
        load_params(tmp_path / "params.yaml")


def test_every_knob_says_its_effect_and_lists_are_block_style():
    """`-S` rewrites flow lists, so there are none; every scalar line teaches."""
    for number, line in enumerate((ROOT / "params.yaml").read_text().splitlines(), start=1):
        body, _, comment = line.partition("#")
        is_block = body.rstrip().endswith(":") or body.strip().startswith("- ")
        if body.strip() and not is_block:
            assert comment.strip() or "players" in body or ": policy" in body, f"line {number}"
        assert "[" not in body, f"line {number} holds a flow-style list"
