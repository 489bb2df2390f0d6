"""What the page says is what was computed; what a log says is never read as HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from report_page import HOSTILE, made_evaluation, made_log, made_page, made_tables

from aria_dvc.intentions.cuts import nested_labels
from aria_dvc.learning.calibration import fit_metrics
from aria_dvc.report.evaluation import rates
from aria_dvc.report.intervals import paired_difference
from aria_dvc.report.page.blocks import by_turn, log_block, occupancy, shares, sizes
from aria_dvc.report.page.document import Page, as_script, document, reach
from aria_dvc.report.page.results import learning_block, results, verdict
from aria_dvc.report.page.tree import tree_block
from aria_dvc.shown import printable


def test_credit_by_turn_is_the_mean_of_its_actions():
    rewards = pd.DataFrame(
        {"role": list("aaab"), "turn": [1, 1, 2, 1], "reward": [0.0, 1.0, 0.4, 0.9]}
    )
    found = by_turn(rewards)
    assert found[["role", "turn", "actions"]].values.tolist() == [
        ["a", 1, 2],
        ["a", 2, 1],
        ["b", 1, 1],
    ]
    assert found["mean"].tolist() == [0.5, 0.4, 0.9]
    assert (found["low"][0], found["high"][0]) == pytest.approx((0.1, 0.9))


def test_occupancy_counts_each_action_once():
    rewards = pd.DataFrame({"cell": np.repeat(np.arange(5), [1, 1, 2, 4, 150])})
    found = occupancy(rewards).set_index("size")
    assert found["cells"].to_dict() == {
        "1": 2,
        "2": 1,
        "3 to 5": 1,
        "6 to 10": 0,
        "11 to 30": 0,
        "31 to 100": 0,
        "over 100": 1,
    }
    assert found["share"].sum() == pytest.approx(1)
    assert found["share"]["over 100"] == pytest.approx(150 / 158)


def test_the_tree_splits_as_the_cuts_do():
    labels = np.array([[0, 0, 0], [0, 0, 3], [1, 1, 1], [1, 2, 2], [1, 2, 2]])
    over = np.array([0.1, 0.3, np.nan, -0.2, -0.4])
    cuts = nested_labels(labels, np.array([2, 3, 4]))
    names = {2: "walk, away, now", 0: "half, each, fair"}
    found = tree_block(cuts, 4, np.ones(5, bool), over, names)
    rows = {key: dict(zip(found["id"], found[key], strict=True)) for key in found}
    assert rows["parent"] == {
        "0@1": "",
        "0@2": "0@1",
        "1@2": "0@1",
        "1@3": "1@2",
        "2@3": "1@2",
        "0@4": "0@2",
        "3@4": "0@2",
    }
    assert rows["size"] == {
        "0@1": 5, "0@2": 2, "1@2": 3, "1@3": 1, "2@3": 2, "0@4": 1, "3@4": 1,
    }  # fmt: skip
    assert rows["intentions"]["0@1"] == 4
    assert rows["over"]["1@3"] is None
    assert rows["over"]["2@3"] == pytest.approx(-0.3)
    assert rows["name"]["2@3"] == "walk, away, now"
    assert rows["name"]["0@2"] == "half, each / intention 3"


def test_the_tree_stops_at_the_k_in_use_and_starts_from_one():
    labels = np.array([[0, 0], [1, 1], [1, 2]])
    two = tree_block(nested_labels(labels, np.array([2, 3])), 2, np.ones(3, bool), np.zeros(3), {})
    assert two["id"] == ["0@1", "0@2", "1@2"]
    one = nested_labels(np.zeros((3, 1), int), np.array([1]))
    assert tree_block(one, 1, np.ones(3, bool), np.zeros(3), {})["id"] == ["0@1"]


@pytest.fixture(scope="module")
def tables():
    return made_tables(made_log(20))


def test_a_block_holds_every_utterance_with_its_credit(tables):
    block, log = log_block(tables, 10**6), tables.log
    said = block["said"]
    assert [said["texts"][code] for code in said["text"]] == [printable(t) for t in log.text]
    assert [said["roles"][code] for code in said["role"]] == log.role.tolist()
    assert said["credit"] == pytest.approx(tables.rewards["reward"].tolist(), abs=1e-3)
    mean = tables.rewards.groupby(["role", "turn"])["reward"].transform("mean")
    assert said["over"] == pytest.approx((tables.rewards["reward"] - mean).tolist(), abs=1e-3)
    assert len(block["intentions"]) == block["k"] == 6
    assert sum(row["size"] for row in block["intentions"]) == len(log)
    x = [block["map"]["x"][point] for point in said["point"]]
    order = np.searchsorted(log.distinct.first, np.arange(len(log)))
    assert x == pytest.approx(tables.points[order, 0].tolist(), abs=1e-2)


def test_an_index_that_says_nothing_is_a_gap_of_its_curve(tables):
    columns = log_block(tables, 10**6)["curve"]["columns"]
    assert columns["k"] == [2, 3, 4, 5, 6]
    assert columns["davies_bouldin"] == [0.4] * 4 + [None]
    assert columns["calinski_harabasz"] == [9] * 4 + [None]


def test_who_hears_the_page_is_told_of_intervals(tables):
    (label,) = re.findall(
        r'data-plot="by-intention"[^>]* aria-label="([^"]*)"', document(made_page(tables))
    )
    assert "95 % interval" in label


def test_what_is_not_on_the_map_says_so(tables):
    from dataclasses import replace

    few = replace(tables, rows=tables.rows[:3], points=tables.points[:3])
    points = np.array(log_block(few, 10**6)["said"]["point"])
    assert sorted(points[points >= 0].tolist()) == [0, 1, 2]
    assert (points == -1).sum() == len(tables.log) - 3
    none = log_block(replace(tables, rows=tables.rows[:0], points=tables.points[:0]), 10**6)
    assert set(none["said"]["point"]) == {-1}
    assert none["map"]["x"] == []


def test_roles_with_cuts_of_their_own_name_no_cluster_of_the_tree(tables):
    from dataclasses import replace

    own = {**tables.selection, "per_role": {"alice": {"selected_k": 6}}}
    block = log_block(replace(tables, selection=own), 10**6)
    assert set(block["tree"]["name"][-2:]) == {"intention 5", block["tree"]["name"][-2]}
    assert all(name.startswith("intention") for name in block["tree"]["name"])


def test_too_long_a_log_keeps_its_first_dialogues_whole(tables):
    whole = log_block(tables, 10**6)["said"]
    assert sizes(tables.log).shape == (20,)
    cut = log_block(tables, sizes(tables.log)[:2].sum() + 1)["said"]
    assert cut["episode"] == [0] * 4 + [1] * 4
    assert cut["credit"] == whole["credit"][:8]
    assert len(cut["ids"]) == 2
    assert log_block(tables, 0)["said"]["episode"] == [0] * 4
    assert log_block(tables, 0)["episodes"] == 20


def test_room_goes_to_those_who_need_it():
    assert shares([10, 90, 5], 200) == [10, 90, 5]
    assert shares([10, 90, 5], 60) == [10, 45, 5]
    assert shares([80, 90], 60) == [30, 30]
    assert shares([], 60) == []


def test_a_text_that_is_said_again_takes_no_more_room():
    from dataclasses import replace

    log = made_log(4)
    same = replace(log, text=np.full(len(log), "ä" * 500, object))
    first, second = sizes(same)[:2].tolist()
    assert first - second == 1000


def test_better_needs_the_interval_and_the_corrected_p():
    row = {"low": 0.1, "high": 0.4, "p_holm": 0.01, "undecided": True, "games_needed": None}
    row["pairs"] = 24
    assert verdict(row) == "better"
    assert verdict({**row, "low": -0.4, "high": -0.1}) == "worse"
    assert verdict({**row, "p_holm": 0.2}) == "undecided"
    assert verdict({**row, "low": -0.1, "games_needed": 1200}) == (
        "undecided: about 1,200 games would tell"
    )
    assert verdict({**row, "low": None, "high": None, "p_holm": None}) == "undecided"
    assert verdict({**row, "p_holm": 0.2, "undecided": False}) == "not shown"


def test_vanilla_has_a_row_where_it_stands_alone():
    found = made_evaluation()
    (row,) = results(found)
    assert (row["variant"], row["verdict"]) == ("aria", "better")
    assert row["vanilla"]["rate"] == 0.25
    assert reach([row]) == 0.75
    found["bargaining"]["minus_vanilla"] = {}
    found["bargaining"]["all"].pop("aria")
    (alone,) = results(found)
    assert (alone["variant"], alone["difference"]) == ("vanilla", None)


def test_a_variant_without_a_game_of_vanillas_has_a_rate_and_no_difference():
    found, nothing = made_evaluation(), np.zeros(0, bool)
    gain = paired_difference(nothing, nothing, np.zeros(0, str))
    found["bargaining"]["minus_vanilla"]["aria"] = {**gain, "p_holm": None, "comparisons": 1}
    html = document(Page(0, results(found), rates(found), [], {}))
    shown = re.sub(r"\s+", " ", Elements(html).shown)
    assert "aria no game of both 0.75" in shown


class Elements(HTMLParser):
    """The tags of a page with their attributes, and what its scripts hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.scripts: list[str] = []
        self.shown, self.inside = "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.shown += data


@pytest.fixture(scope="module")
def page(tables):
    made = made_page(tables, made_tables(made_log(3, seed=1), 4))
    return made, document(made)


def test_no_text_of_a_log_becomes_an_element(page):
    made, html = page
    found = Elements(html)
    assert not {"img", "iframe", "link", "object"} & {tag for tag, _ in found.tags}
    assert not any(name.startswith("on") for _, attrs in found.tags for name in attrs)
    blocks = [attrs for tag, attrs in found.tags if tag == "script"]
    assert len(blocks) == 3 + len(made.logs)
    assert HOSTILE not in html
    assert printable(HOSTILE) in found.shown
    for (name, block), text in zip(made.logs.items(), found.scripts[1:], strict=False):
        assert json.loads(text) == json.loads(json.dumps(block))
        assert name in {attrs.get("data-block") for attrs in blocks}


def test_the_page_runs_its_own_two_scripts_and_fetches_nothing(page):
    found = Elements(page[1])
    (policy,) = (a["content"] for t, a in found.tags if "http-equiv" in a)
    own, plotly = found.scripts[-2:]
    sums = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in (own, plotly)]
    assert all(f"'sha256-{one}'" in policy for one in sums)
    assert "default-src 'none'" in policy
    assert "\r" not in own + plotly
    links = [a[key] for _, a in found.tags for key in ("src", "href") if key in a]
    assert links
    assert all(link.startswith("#") for link in links)
    assert plotly.count("plotly.js v") == 1


def test_the_first_screen_needs_no_script(page):
    shown = re.sub(r"\s+", " ", Elements(page[1]).shown)
    assert "better" in shown
    assert "+0.50" in shown
    assert "2 more" in shown
    assert "6 intentions of 80 utterances in 20 dialogues" in shown


def test_a_script_cannot_end_early():
    assert as_script("a = '</script><!-- b';") == r"a = '\x3c/script>\x3c!-- b';"


def test_equal_runs_are_equal_pages(page, tables):
    again = document(made_page(tables, made_tables(made_log(3, seed=1), 4)))
    assert again == page[1]
    other = document(made_page(tables))
    assert re.search(r"run (\w{8})", other)[1] != re.search(r"run (\w{8})", again)[1]


def test_the_script_reads_of_the_reward_model_what_the_page_holds():
    """A name that it does not hold ends the script, and with it the whole page."""
    metrics = {**fit_metrics(np.array([0.0, 1.0]), np.array([0.2, 0.9]), 0.5), "not_trained": "x"}
    held = learning_block("adversarial", pd.DataFrame(), {}, metrics)["reward_model"]
    script = (files("aria_dvc.report.page") / "data" / "figures.js").read_text()
    read = re.search(r"const \{([^}]*)\} = data\.learning\.reward_model", script)[1]
    names = {name.partition(":")[0].strip() for name in read.split(",")}
    assert {"r2", "mse", "not_trained"} <= names <= held.keys()


def test_a_page_without_evaluation_or_warnings():
    html = document(Page(1, [], [], [], {}))
    assert "Nothing was evaluated." in html
    assert "None." in html
