"""Names, examples and worth of intentions: distinctive terms, central texts, credit by turn."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import stored_log
from scipy.stats import entropy
from stored_log import NAME, params_of, run_to, write_entries

import aria_dvc
from aria_dvc.intentions.log import Log
from aria_dvc.pipeline.report import Run, _facts, _intention_map, write_intentions
from aria_dvc.report.agreement import agreement
from aria_dvc.report.figures import (
    NAMED,
    Pictures,
    counted,
    evaluation,
    intention_map,
    learning_curve,
)
from aria_dvc.report.health import LogFacts
from aria_dvc.report.intentions import COLUMNS, above_turn, central_texts, intention_table
from aria_dvc.report.names import FEWEST, MOST, class_terms, shortened, tokens

SAID = {
    0: ["Which country is your city in?", "Which country is it in?", "In which country is it?"],
    1: ["Is it a capital?", "Is your city a capital?", "Is it the capital?"],
    2: ["No, it is not.", "No, that is not the city.", "No."],
    3: ["I want more water and firewood.", "I need firewood and water.", "water and firewood!"],
}


def text_and_labels():
    texts = [text for said in SAID.values() for text in said]
    return texts, np.repeat(list(SAID), 3)


def test_terms_tell_groups_apart():
    terms = class_terms(*text_and_labels())
    assert {"which", "country"} <= {word for term in terms[0] for word in term.split()}
    assert "capital" in terms[1]
    assert terms[2][0] == "no"
    assert {"water", "firewood"} <= {word for term in terms[3] for word in term.split()}
    assert all(1 <= len(found) <= MOST for found in terms.values())
    for found in terms.values():
        words = [word for term in found for word in term.split()]
        assert len(set(words)) == len(words)


def test_what_all_groups_say_names_none_that_has_words_of_its_own():
    terms = class_terms(["apple pear", "apple plum", "apple fig"], np.arange(3))
    assert terms == {0: ["apple pear"], 1: ["apple plum"], 2: ["apple fig"]}
    alone = class_terms(["apple", "apple plum", "apple fig"], np.arange(3))
    assert alone[0] == ["apple"]


def test_a_run_of_one_word_is_one_term():
    assert tokens("offer: mine mine mine yours") == ["offer", "mine×3", "yours"]
    assert tokens("I keep $1,100,000. That's 60%!") == ["i", "keep", "$1,100,000", "that's", "60%"]
    moves = [f"offer: {'mine ' * n}{'yours ' * (10 - n)}" for n in (3, 6)]
    terms = class_terms(moves * 4, np.array([0, 1] * 4))
    assert {"mine×3", "yours×7"} <= {word for term in terms[0] for word in term.split()}
    assert {"mine×6", "yours×4"} <= {word for term in terms[1] for word in term.split()}


def test_groups_of_common_words_or_of_none_have_what_there_is():
    terms = class_terms(["is it?", "it is", "...", "?!"], np.array([0, 0, 1, 1]))
    assert terms[0]
    assert terms[1] == []
    assert class_terms(["...", "!"], np.array([0, 1])) == {0: [], 1: []}
    assert FEWEST <= MOST


def log_of(labels, vectors=None, acting=("alice",)):
    """Six dialogues of four utterances, Alice's first."""
    roles = ("alice", "bob")
    rows = [
        {
            "game": "chat",
            "episode_id": f"e{episode}",
            "position": place,
            "role": roles[place % 2],
            "is_action": roles[place % 2] in acting,
            "turn": place // 2 + 1,
            "turns": 2,
            "text": SAID[int(labels[4 * episode + place])][episode % 3],
            "reward": float(episode % 2) if roles[place % 2] in acting else math.nan,
        }
        for episode in range(6)
        for place in range(4)
    ]
    log = Log.of(pd.DataFrame(rows), vectors, gamma=0.5)
    return log.with_labels(np.asarray(labels))


def test_a_row_says_who_says_it_when_and_what_it_was_worth():
    labels = np.tile([0, 2, 1, 2], 6)
    log = log_of(labels)
    credit = log.targets
    table = intention_table(log, credit)
    assert list(table.columns) == list(COLUMNS)
    assert table["intention"].tolist() == [2, 0, 1]
    answer, first, second = (row for _, row in table.iterrows())
    assert (answer["size"], answer["actions"], answer["role"]) == (12, 0, "bob")
    assert math.isnan(answer["credit"])
    assert (first["turn"], first["position"], first["role_share"]) == (1.0, 0.0, 1.0)
    assert second["position"] == pytest.approx(2 / 3)
    assert (first["credit"], second["credit"]) == (0.25, 0.5)
    assert (first["spread"], second["spread"]) == (0.25, 0.5)


def test_credit_that_only_rises_with_the_turn_is_above_nothing():
    """Each intention has its own turn: whatever the raw credit, nothing is left of it."""
    log = log_of(np.tile([0, 2, 1, 2], 6))
    table = intention_table(log, np.tile([0.1, 0.9], 6))
    known = table[table["actions"] > 0]
    assert known["credit"].tolist() == pytest.approx([0.1, 0.9])
    assert known["above_turn"].tolist() == pytest.approx([0.0, 0.0])


def test_what_is_above_its_turn_is_found_with_an_interval():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 2, 1, 2], 6)
    labels[::8] = 3  # every other dialogue opens another way
    log = log_of(labels)
    credit = np.where(log.labels[log.actions] == 3, 1.0, 0.0) + rng.normal(0, 0.1, 12)
    table = intention_table(log, credit).set_index("intention")
    assert table.loc[3, "above_turn"] == pytest.approx(0.5, abs=0.1)
    assert 0.3 < table.loc[3, "above_turn_low"] < table.loc[3, "above_turn"]
    assert table.loc[0, "above_turn_high"] < 0
    sums = np.bincount(log.turn[log.actions], weights=above_turn(log, credit))
    assert sums == pytest.approx(np.zeros(3), abs=1e-10)


def test_roles_are_compared_with_themselves():
    """Bob earns more at every turn; neither role's intentions are above or below."""
    log = log_of(np.tile([0, 2, 1, 3], 6), acting=("alice", "bob"))
    values = np.tile([0.2, 0.7, 0.4, 0.9], 6)
    assert above_turn(log, values) == pytest.approx(np.zeros(24))


def test_central_texts_are_near_the_mean_and_then_frequent():
    vectors = np.zeros((24, 2), np.float32)
    labels = np.tile([0, 2, 1, 2], 6)
    vectors[0] = (10, 0)  # "Which country is your city in?" of the first dialogue
    log = log_of(labels, vectors)
    rows = np.flatnonzero(log.labels == 0)
    texts = central_texts(log, rows, 2)
    assert len(texts) == 2
    alone = central_texts(log_of(labels), rows, 3)  # without vectors by frequency, then by letter
    assert alone == sorted(alone)
    assert set(alone) == set(SAID[0])


def test_intentions_of_the_same_words_are_told_apart_by_number():
    log = log_of(np.tile([0, 2, 1, 2], 6))
    doubled = log.with_labels(log.labels + 10 * (log.episode % 2))
    names = intention_table(doubled, log.targets, ["same words"] * 24)["name"]
    assert names.is_unique
    assert all("#" in name for name in names)


def test_what_has_no_blanks_is_cut_and_does_not_vanish():
    water = "我想要更多的水" * 15
    assert shortened(water, 80) == water[:77] + "..."
    assert shortened(f"ok {water}", 80) == f"ok {water}"[:77] + "..."
    assert shortened("half each, I say", 12) == "half..."
    assert shortened("half  each", 12) == "half each"
    log = log_of(np.tile([0, 2, 1, 2], 6))
    names = intention_table(log, log.targets, [water] * 24)["name"]
    assert names.str.startswith(water[:37] + "... #").all()


def drawn(labels, counts):
    from matplotlib import pyplot as plt

    points = np.random.default_rng(0).normal(size=(len(labels), 2))
    names = {number: f"name {number}" for number in np.unique(labels)[::-1].tolist()}
    figure = intention_map(points, labels, counts, names, "title")
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    seen = [part for part in figure.axes[0].collections if len(part.get_offsets())]
    plt.close(figure)
    return legend, seen


def test_a_map_names_a_few_intentions_and_leaves_the_rest_grey():
    labels = np.arange(30)
    legend, seen = drawn(labels, np.ones(30))
    assert legend == [*(f"{n}  name {n}" for n in range(29, 29 - len(NAMED), -1)), "21 others"]
    colours = [tuple(part.get_facecolor()[0]) for part in seen]
    assert len(set(colours)) == len(colours) == len(NAMED) + 1
    assert len({part.get_paths()[0].vertices.tobytes() for part in seen[1:]}) == len(NAMED)


def test_what_is_said_often_is_drawn_large_and_all_are_named_where_they_are_few():
    legend, seen = drawn(np.array([0, 0, 1]), np.array([1, 100, 4]))
    assert legend == ["1  name 1", "0  name 0"]
    small, large = sorted(seen[1].get_sizes())
    assert large == pytest.approx(10 * small)


def test_a_dollar_in_a_name_begins_no_formula():
    figure = intention_map(
        np.zeros((2, 2)), np.array([0, 1]), np.ones(2), {0: "$5, $\\frac, $", 1: "cat"}, "title"
    )
    figure.canvas.draw()
    assert figure.legends[0].get_texts()[0].get_text().count("\\$") == 3


def test_a_variant_of_any_name_is_in_the_legends():
    from matplotlib import pyplot as plt

    rate = {"rate": 0.5, "win_rate": 0.5, "low": 0.4, "high": 0.6}
    frame = pd.DataFrame(
        {"game": "g", "role": "r", "log": "g", "variant": ["_own", "aria"], "games": 0, **rate}
    )
    for draw in (evaluation, learning_curve):
        figure = draw(frame)
        legend = figure.axes[0].get_legend().get_texts()
        assert [text.get_text().strip() for text in legend] == ["_own", "aria"]
        plt.close(figure)


@pytest.fixture
def run(tmp_path, monkeypatch) -> Run:
    """A log that has gone through the stages up to `aggregate`."""
    monkeypatch.chdir(tmp_path)
    log = write_entries(tmp_path / "log.jsonl", stored_log.entries())
    run_to("aggregate", log)
    return Run(params_of(log))


def test_the_stage_writes_a_small_table_of_every_log(run, tmp_path):
    write_intentions(run, tmp_path / "intentions")
    (file,) = (tmp_path / "intentions").iterdir()
    assert file.name == f"{NAME}.csv"
    found = pd.read_csv(file)
    assert list(found.columns) == list(COLUMNS)
    rewards = pd.read_parquet(run.logs[NAME].files.rewards)
    assert found["actions"].sum() == len(rewards)
    means = rewards.groupby("label")["reward"].mean()
    assert found.set_index("intention")["credit"].to_dict() == pytest.approx(
        means.to_dict(), abs=1e-5
    )
    assert found["examples"].str.contains(r"\(\d+\.\d\)").all()
    texts = [text for cell in found["examples"] for text in cell.split(" | ")]
    assert max(map(len, texts)) <= 80


def test_the_map_of_a_log_is_drawn_with_its_names(run, tmp_path):
    pictures = Pictures(tmp_path, tmp_path / "svg", 0, "a1b2c3d4")
    _intention_map(run, NAME, pictures)
    assert (tmp_path / f"intentions_{NAME}.png").stat().st_size > 10_000
    drawn = tmp_path / "svg" / f"intentions_{NAME}.svg"
    before = drawn.read_bytes()
    _intention_map(run, NAME, pictures)
    assert drawn.read_bytes() == before
    assert ElementTree.fromstring(before).tag.endswith("}svg")
    assert not re.search(rb"<(text|script|image)|href=\"(?!#)", before), "outlines alone"


def test_a_caption_says_of_what_run_a_picture_is(tmp_path):
    figure = intention_map(np.zeros((1, 2)), np.zeros(1), np.ones(1), {0: "a"}, "a title")
    pictures = Pictures(tmp_path, tmp_path, 7, "a1b2c3d4")
    pictures.save(figure, "a", f"mine and others, {counted(12, 3456, 'utterances')}")
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a.svg"}
    said = " ".join(figure.get_supxlabel().split())
    assert said == "mine and others, k = 12, n = 3,456 utterances, seed 7, run a1b2c3d4"


def test_the_facts_of_a_log_are_those_of_its_tables(run):
    facts = _facts(run.logs[NAME])
    assert facts == LogFacts((2, 6), 12, {}, (0.0, 1.0))


def entries():
    said = {"alice": SAID[0] + SAID[1], "bob": SAID[2] + SAID[3]}
    rng = np.random.default_rng(0)
    found = []
    for number in range(12):
        roles = ["alice", "bob"] * 2
        chosen = [int(rng.integers(6)) for _ in roles]
        messages = [
            {
                "role": role,
                "content": said[role][pick],
                "embedding": np.eye(4)[2 * (role == "bob") + (pick > 2)].tolist(),
            }
            for role, pick in zip(roles, chosen, strict=True)
        ]
        rewards = {"alice": float(chosen[0] > 2), "bob": 0.5}
        found.append({"episode_id": f"e{number}", "messages": messages, "rewards": rewards})
    return found


def test_the_table_of_a_log_goes_with_its_credit():
    table = aria_dvc.intention_table(entries(), k=4, method="aria")
    credit = aria_dvc.credit(entries(), k=4, method="aria")
    assert len(table) == 4
    assert table["size"].sum() == 48
    mean = credit.groupby("intention")["credit"].mean()
    for _, row in table.iterrows():
        assert row["credit"] == pytest.approx(mean[row["intention"]])
    named = credit.merge(table[["intention", "name"]], on="intention")
    assert len(named) == len(credit)
    best = table.loc[table["above_turn"].idxmax()]
    assert "capital" in best["name"]
    assert all(1 <= len(texts) <= 3 for texts in table["examples"])


def test_agreement_with_given_labels_is_that_of_the_textbook():
    given = np.array(["a", "a", "a", "b", "b", "c"])
    same = agreement(np.array([5, 5, 5, 1, 1, 0]), given)
    assert (same["purity"], same["nmi"], same["ami"]) == pytest.approx((1.0, 1.0, 1.0))
    one = agreement(np.zeros(6, int), given)
    assert one["purity"] == one["largest_class"] == 0.5
    assert one["nmi"] == pytest.approx(0.0)
    halves = agreement(np.array([0, 0, 1, 1, 1, 1]), given)
    assert halves["purity"] == pytest.approx(4 / 6)
    joint, rows, columns = [2, 1, 2, 1], [2, 4], [3, 2, 1]
    shared = entropy(rows) + entropy(columns) - entropy(joint)
    assert halves["nmi"] == pytest.approx(shared / ((entropy(rows) + entropy(columns)) / 2))
    assert (halves["utterances"], halves["intentions"], halves["classes"]) == (6, 2, 3)


def test_random_intentions_agree_with_nothing():
    rng = np.random.default_rng(0)
    found = agreement(rng.integers(0, 50, 500), rng.integers(0, 5, 500))
    assert found["nmi"] > 0.08  # many small cells look like agreement
    assert abs(found["ami"]) < 0.05
