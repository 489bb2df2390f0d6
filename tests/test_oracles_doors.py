"""Both oracles have the same doors, and whoever plays asks them instead of naming a game."""

from __future__ import annotations

import ast
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from aria_dvc.errors import AriaError
from aria_dvc.games.registry import get_game
from aria_dvc.oracles.base import Knowledge
from aria_dvc.oracles.city import oracle as city
from aria_dvc.oracles.city import reading, topics
from aria_dvc.oracles.numbers import number
from aria_dvc.oracles.objects import claims as meanings
from aria_dvc.oracles.objects import oracle as objects
from aria_dvc.oracles.text import fold
from aria_dvc.packaged import read_lines, read_rows, split
from aria_dvc.records.names import PLAYABLE

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "aria_dvc"
both = pytest.mark.parametrize(
    ("knowledge", "count", "spelled"),
    [(city, 100, ("shanghai", "Shanghai, China")), (objects, 157, ("tv", "Television"))],
    ids=["city", "objects"],
)


@both
def test_every_target_has_its_oracle(knowledge: Knowledge, count, spelled):
    targets = knowledge.targets()
    assert len(targets) == len(set(targets)) == count
    assert [knowledge.oracle(target).target for target in targets] == list(targets)
    assert knowledge.oracle(spelled[0]) is knowledge.oracle(spelled[1])
    with pytest.raises(AriaError, match="Nowhere"):
        knowledge.oracle("Nowhere")


@both
def test_what_scripted_players_say_as_a_guess_is_one(knowledge: Knowledge, count, spelled):
    oracles = [knowledge.oracle(target) for target in knowledge.targets()]
    for each in oracles:
        for question in each.guesses:
            assert each.is_guess(question)
            assert any(spelling in fold(question) for spelling in each.spellings)
    for each, other in pairwise(oracles):
        assert not any(each.is_guess(question) for question in other.guesses)


@both
def test_questions_are_distinct_and_no_guesses(knowledge: Knowledge, count, spelled):
    questions = knowledge.questions()
    assert len(questions) == len(set(questions)) > 70
    oracle = knowledge.oracle(spelled[0])
    assert all(oracle.answer(question).text for question in questions)
    assert not any(oracle.is_guess(question) for question in questions)


@pytest.mark.parametrize(
    ("knowledge", "module", "parse"),
    [
        (city, reading, "plain_question"),
        (city, topics, "_longest"),
        (objects, meanings, "read_question"),
    ],
    ids=["city", "topics of a city", "objects"],
)
def test_a_question_to_all_targets_is_read_once(monkeypatch, knowledge, module, parse):
    heard, real = [], getattr(module, parse)
    monkeypatch.setattr(module, parse, lambda text: heard.append(text) or real(text))
    forms = ("Is it known for its {} temples?", "Does it have {} trams or {} tea?", "Is it {} red?")
    for form in forms:
        heard.clear()
        question = form.replace("{}", f"truly {knowledge.__name__} {parse}")  # asked nowhere else
        for target in knowledge.targets():
            oracle = knowledge.oracle(target)
            oracle.answer(question)
            oracle.is_guess(question)
        assert 1 <= len(heard) == len(set(heard)), heard


def test_games_offer_all_targets_of_their_knowledge():
    for name, knowledge in (("guess_my_city", city), ("twenty_questions", objects)):
        grid = get_game(name).grids()["default"]
        assert [config["target"] for config in grid] == list(knowledge.targets())


def test_nobody_but_the_game_and_the_records_knows_a_game_by_name():
    for path in SOURCE.rglob("*.py"):
        if path.parent.name in {"games", "records", "formats"}:
            continue
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        named = {node.value for node in nodes if isinstance(node, ast.Constant)} & set(PLAYABLE)
        assert not named, path


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("2.5", 2.5), ("twelve", 12), ("two hundred", 200), ("twenty five", 25),
     ("a", 1), ("a hundred", 100), ("half", 0.5), ("half a", 0.5), ("1.2.3", None),
     ("many", None), ("", None)],
)  # fmt: skip
def test_numbers_in_digits_and_words(text, value):
    assert number(text) == value


def test_odd_numbers_are_no_claim():
    tokyo = city.oracle("Tokyo, Japan")
    assert not tokyo.answer("Does your city have over 1.2.3 million people?").known
    assert objects.oracle("Car").answer("Is it longer than ten feet?").text == "Yes."
    assert objects.oracle("Bus").answer("Is it longer than twenty five feet?").text == "Yes."


def test_sights_come_in_one_order_in_every_run():
    answer = city.oracle("Rio de Janeiro, Brazil").answer("What mountains are near your city?")
    assert answer.text == "In or near it rise Tijuca, Corcovado."


def test_packaged_tables():
    rows = read_rows("aria_dvc.oracles.city", "cities.csv")
    assert set(rows[0]) == {"name", "country", "aliases"}
    assert not any(
        line.startswith("#") for line in read_lines("aria_dvc.oracles.city", "guesses.txt")
    )
    assert split("a| b|") == ("a", "b")
    assert split("") == ()


def test_the_wheel_carries_every_table():
    """`data/*` of every package: no folder of tables lies deeper or without a package above."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "data/*" in project["tool"]["setuptools"]["package-data"]["*"]
    tables = [path for path in SOURCE.rglob("*") if path.suffix in {".csv", ".yaml", ".txt"}]
    assert len(tables) > 20
    for path in tables:
        assert path.parent.name == "data", path
        assert (path.parents[1] / "__init__.py").exists(), path
