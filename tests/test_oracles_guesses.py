"""One grammar for the oracles and the win: what an oracle confirms as the guess wins the game."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aria_dvc.games.registry import get_game
from aria_dvc.oracles.city import oracle as city
from aria_dvc.oracles.city.oracle import RIGHT
from aria_dvc.oracles.city.targets import cities
from aria_dvc.oracles.objects import oracle as objects_oracle
from aria_dvc.oracles.objects.guesses import winning_names
from aria_dvc.oracles.objects.oracle import NO, YES
from aria_dvc.oracles.objects.table import written
from aria_dvc.oracles.objects.targets import objects
from aria_dvc.oracles.objects.words import JOINING
from aria_dvc.players.questioners import guessed_by

DATA = Path(__file__).parent / "data"
FORMS = {
    name: [row["form"] for row in csv.DictReader((DATA / "guess_forms.csv").open(encoding="utf-8"))
           if row["game"] == name]
    for name in ("guess_my_city", "twenty_questions")
}  # fmt: skip


def wins(game, target, question):
    match = get_game(game).start({"target": target})
    match.play(question)
    return match.outcome is not None


@pytest.mark.parametrize("target", cities(), ids=lambda target: target.name)
def test_a_city_is_confirmed_exactly_where_it_wins(target):
    oracle = city.oracle(target.word)
    neighbour = cities()[(cities().index(target) + 31) % len(cities())]
    for form in FORMS["guess_my_city"]:
        for name in (target.name, *target.aliases, neighbour.name):
            question = form.replace("{}", name).replace("{country}", target.country)
            confirmed = oracle.answer(question).text == RIGHT
            assert oracle.is_guess(question) == confirmed, question
            assert not confirmed or name != neighbour.name
        assert oracle.is_guess(form.replace("{}", target.name).replace("{country}", target.country))


@pytest.mark.parametrize("target", objects(), ids=lambda target: target.name)
def test_an_object_is_confirmed_exactly_where_it_wins(target):
    oracle = objects_oracle.oracle(target.name)
    other = objects()[(objects().index(target) + 17) % len(objects())]
    for form in FORMS["twenty_questions"]:
        for name in winning_names(target):
            question = form.replace("{}", name)
            assert oracle.is_guess(question), question
            assert oracle.answer(question).text == YES
        question = form.replace("{}", other.name.lower())
        assert not oracle.is_guess(question)
        assert oracle.answer(question).text == NO, question


def test_names_of_objects_are_nobody_elses():
    owners = {}
    for item in objects():
        for name in winning_names(item):
            assert owners.setdefault(name, item.name) == item.name
    kinds = [name for item in objects() for name in set(item.names) - set(winning_names(item))]
    assert sorted(kinds) == ["bat", "jigsaw", "mower", "racket"], "kinds of it, not it"


@pytest.mark.parametrize(
    ("game", "target", "question"),
    [
        ("guess_my_city", "Dalian", "Does it call itself Dalian?"),
        ("guess_my_city", "New York", "Is it New York, New York?"),
        ("guess_my_city", "Paris", "Is it Paris, a large city in France?"),
        ("guess_my_city", "Bombay", "Is it Mumbai (Bombay)?"),
        ("guess_my_city", "Bombay", "Is it Mumbai, formerly Bombay?"),
        ("guess_my_city", "Los Angeles", "Is it LA?"),
        ("guess_my_city", "Los Angeles", "Is it Los Angeles, CA?"),
        ("guess_my_city", "New York", "Is it New York, NY?"),
        ("guess_my_city", "Toronto", "Is it Toronto, ON?"),
        ("guess_my_city", "Sydney", "Is it Sydney, NSW?"),
        ("guess_my_city", "Paris", "Is it the City of Light, Paris?"),
        ("guess_my_city", "Cairo", "Is it the capital of Egypt, Cairo?"),
        ("guess_my_city", "Cairo", "Is it Egypt's capital Cairo?"),
        ("guess_my_city", "Paris", "Is it the French capital, Paris?"),
        ("twenty_questions", "Cat", "Is this animal a cat?"),
        ("twenty_questions", "Cat", "Is it a Cat (the animal)?"),
        ("twenty_questions", "Toothpaste", "Is it a tube of toothpaste?"),
        ("twenty_questions", "Paper", "Is it a sheet of paper?"),
        ("twenty_questions", "Cat", "Is it a house cat?"),
        ("twenty_questions", "Smartphone", "Is it a smart phone?"),
        ("twenty_questions", "Refrigerator", "Is it a fridge?"),
        ("twenty_questions", "Cat", "Is it a cat, a small domesticated animal?"),
        ("twenty_questions", "Cat", "Is it a cat, a furry creature with whiskers?"),
        ("twenty_questions", "Cat", "Is the animal a cat?"),
        ("twenty_questions", "Violin", "Is the instrument a violin?"),
        ("twenty_questions", "Pants", "Is it a pair of trousers?"),
        ("twenty_questions", "Headphone", "Is it a pair of earphones?"),
        ("twenty_questions", "Cat", "Q: Is it a cat?"),
        ("twenty_questions", "Cat", "Q. Is it a cat?"),
        ("guess_my_city", "Paris", "Q: Is it Paris?"),
        ("twenty_questions", "Cat", "I believe the object is a cat. Am I right?"),
    ],
)
def test_plain_guesses_win_and_are_confirmed(game, target, question):
    assert wins(game, target, question)
    knowledge = {"guess_my_city": city, "twenty_questions": objects_oracle}[game]
    assert knowledge.oracle(target).answer(question).text in (YES, RIGHT)


@pytest.mark.parametrize(
    ("game", "target", "question"),
    [
        ("guess_my_city", "Paris", "Is it Paris, a city in Texas?"),
        ("guess_my_city", "Dalian", "Is it the sister city of Dalian?"),
        ("guess_my_city", "Dalian", "Does it call Dalian its neighbour?"),
        ("guess_my_city", "Dalian", "I am not sure that it is Dalian."),
        ("guess_my_city", "Mexico City", "Is it the capital of Mexico?"),
        ("guess_my_city", "Paris", "Is it Paris? Is it London?"),
        ("guess_my_city", "Los Angeles", "Is it La Paz?"),
        ("guess_my_city", "Chicago", "Is it Chicago, TX?"),
        ("guess_my_city", "Cairo", "Is it the capital of Peru, Cairo?"),
        ("guess_my_city", "Paris", "Is it the Windy City, Paris?"),
        ("guess_my_city", "New York", "Is it the Big Apple?"),
        ("twenty_questions", "Cat", "Cat or dog?"),
        ("twenty_questions", "Cat", "Is it a dog? My guess: a cat."),
        ("twenty_questions", "Cat", "Which question: is it a dog or a cat?"),
        ("twenty_questions", "Orange", "Is its color orange?"),
        ("twenty_questions", "Orange", "Is it bright orange?"),
        ("twenty_questions", "Cat", "Is it a cat, a dog?"),
        ("twenty_questions", "Cat", "Is it a cat, a vehicle?"),
        ("twenty_questions", "Cat", "Is it a cat, a dog or a bird?"),
        ("twenty_questions", "Cat", "Is the animal bigger than a cat?"),
        ("twenty_questions", "Cat", "Does it sound like a cat?"),
        ("twenty_questions", "Baseball bat", "Is it a bat?"),
        ("twenty_questions", "Cat", "I believe it is a dog. Is it a cat? Am I right?"),
    ],
)
def test_what_is_no_guess_wins_nothing(game, target, question):
    assert not wins(game, target, question)


DESCRIBING = (
    "pet", "real", "house", "kitchen", "wedding", "acoustic", "wooden", "metal", "plush", "toy",
    "stuffed", "paper", "small", "red", "sharp", "wild", "sea", "office", "soft", "electric",
    "pocket", "frumious",
)  # fmt: skip
"""Words before a name: kinds, materials, colours, copies, other things and nonsense."""


@pytest.mark.parametrize("target", objects(), ids=lambda target: target.name)
def test_a_described_object_is_confirmed_exactly_where_it_wins(target):
    oracle = objects_oracle.oracle(target.name)
    other = objects()[(objects().index(target) + 17) % len(objects())]
    for described in DESCRIBING:
        for form in ("Is it a {}?", "Could it be a {}?", "{}, right?", "I think it's a {}."):
            for name in winning_names(target):
                question = form.format(f"{described} {name}")
                assert oracle.is_guess(question) == (oracle.answer(question).text == YES), question
            question = form.format(f"{described} {other.name.lower()}")
            assert not oracle.is_guess(question), question
            assert oracle.answer(question).text != YES, question


@settings(deadline=None)
@given(st.sampled_from(objects()), st.sampled_from(sorted(written("is"))), st.data())
def test_any_known_description_before_a_name_is_no_way_around_the_win(target, described, data):
    assume((JOINING | {"of", "a", "an", "the"}).isdisjoint(described.split()))
    form = data.draw(st.sampled_from(FORMS["twenty_questions"]))
    name = data.draw(st.sampled_from(winning_names(target)))
    question = form.replace("{}", f"{described} {name}")
    confirmed = objects_oracle.oracle(target.name).answer(question).text == YES
    assert wins("twenty_questions", target.name, question) == confirmed, question


@pytest.mark.parametrize(
    ("target", "phrases"),
    [
        ("Cat", "pet cat|real cat|domestic cat|cat that people keep as a pet"),
        ("Cat", "furry animal and a cat"),
        ("Key", "house key"),
        ("Ring", "wedding ring|ring worn on a finger|diamond ring"),
        ("Guitar", "acoustic guitar"),
        ("Knife", "kitchen knife"),
        ("Orange", "sweet orange"),
        ("Paper", "white piece of paper"),
        ("Boots", "pair of leather boots"),
        ("Couch", "plush couch|one of the couches"),
        ("Scissors", "scissor|sharp scissor"),
    ],
)
def test_a_description_that_fits_wins(target, phrases):
    for phrase in phrases.split("|"):
        for form in ("Is it a {}?", "I think it is a {}."):
            question = form.format(phrase).replace("a one of", "one of")
            assert objects_oracle.oracle(target).answer(question).text == YES, question
            assert wins("twenty_questions", target, question), question


OTHER_THINGS = (
    """
hot dog|sea dog|corn dog|teddy bear|gummy bear|sea horse|saw horse|clothes horse|sea cow|sea lion
toy cat|plush cat|stuffed cat|plush dog|paper plane|toy car|toy train|cable car|space ship|seat belt
car boot|pool table|river bed|sea bed|play pen|toilet paper|wall paper|sweet potato|pop corn
license plate|home plate|hot plate|toilet bowl|world cup|measuring cup|fire drill|see saw
desk phone|house phone|boxing ring|key ring|ear drum|oil drum|computer mouse|piggy bank|star fish
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


@pytest.mark.parametrize("other", OTHER_THINGS)
def test_another_thing_whose_name_ends_in_a_target_is_neither_confirmed_nor_wins(other):
    for target in objects():
        oracle = objects_oracle.oracle(target.name)
        for form in ("Is it a {}?", "Could it be a {}?", "Is it a real {}?", "Is it {}s?"):
            question = form.format(other)
            assert oracle.answer(question).text != YES, (target.name, question)
            assert not oracle.is_guess(question), (target.name, question)


@pytest.mark.parametrize(
    ("target", "question"),
    [
        ("Cat", "My guess: a dog. Is it a cat?"),
        ("Cat", "My guess: a dog. Is it a pet cat?"),
        ("Cat", "I believe it is a pet dog. Is it a cat?"),
        ("Paper", "Is it made of wood and paper?"),
        ("Paper", "Is it used with a pen and paper?"),
        ("Ring", "Is it ringing?"),
        ("Jacket", "Is it coated?"),
        ("Knife", "Is it a pocket knife?"),
        ("Table", "Is it a dining table?"),
    ],
)
def test_what_wavers_or_cannot_be_known_is_not_confirmed(target, question):
    assert objects_oracle.oracle(target).answer(question).text != YES
    assert not wins("twenty_questions", target, question)


@pytest.mark.parametrize(
    "question",
    ["Is it orange in color?", "Is it orange on the outside?", "Is it round and orange?"],
)
def test_a_colour_is_confirmed_and_is_no_fruit(question):
    assert objects_oracle.oracle("Orange").answer(question).text == YES
    assert not wins("twenty_questions", "Orange", question)


def test_a_guess_by_a_synonym_is_heard_by_scripted_players():
    kind = type(get_game("twenty_questions").start({"target": "Cat"}))
    assert guessed_by(kind, "Is it a sofa?") == {"Couch"}
    assert guessed_by(kind, "Is it a mug?") == {"Cup"}


def test_simple_questions_are_answered():
    """`A|B` in a row: the answer is the same for both."""
    wrong = []
    for row in csv.DictReader((DATA / "city_questions.csv").open(encoding="utf-8")):
        for name in row["city"].split("|"):
            found = city.oracle(name).answer(row["question"]).text
            if not found.startswith(row["answer"]):
                wrong.append((name, row["question"], row["answer"], found))
    assert not wrong
