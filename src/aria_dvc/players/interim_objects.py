"""Stand-in for the object oracle until `aria_dvc.oracles.object` exists: knows categories only."""

from __future__ import annotations

from aria_dvc.games.twenty_questions import INVALID, NO, YES
from aria_dvc.oracles.base import Answer
from aria_dvc.oracles.object_data import Object, find_object

_CATEGORIES = {
    "Is it alive?": {"Animals"},
    "Is it an animal?": {"Animals"},
    "Can you eat it?": {"Fruits", "Vegetables"},
    "Is it edible?": {"Fruits", "Vegetables"},
    "Is it a fruit?": {"Fruits"},
    "Is it a vegetable?": {"Vegetables"},
    "Is it found in nature?": {"Animals", "Fruits", "Vegetables", "Nature"},
    "Is it man-made?": {
        "Sports", "Vehicles", "Clothes", "Electronics", "Musical instruments", "Furniture",
        "Office supplies", "Art", "Kitchen tools", "Toys", "Jewelry", "Garden supplies", "Tools",
    },
    "Is it a vehicle?": {"Vehicles"},
    "Is it a tool?": {"Tools", "Garden supplies", "Kitchen tools"},
    "Is it used in the garden?": {"Garden supplies"},
    "Is it used in the kitchen?": {"Kitchen tools"},
    "Is it used in sports?": {"Sports"},
    "Is it a toy?": {"Toys"},
    "Is it a musical instrument?": {"Musical instruments"},
    "Is it clothing?": {"Clothes"},
    "Can you wear it?": {"Clothes", "Jewelry"},
    "Is it jewelry?": {"Jewelry"},
    "Is it furniture?": {"Furniture"},
    "Is it found in an office?": {"Office supplies", "Electronics"},
    "Is it used for art?": {"Art"},
    "Is it electronic?": {"Electronics"},
    "Does it use electricity?": {"Electronics"},
}  # fmt: skip


class CategoryOracle:
    def __init__(self, item: Object) -> None:
        self.item = item

    def answer(self, question: str) -> Answer:
        if question in _CATEGORIES:
            yes = self.item.category in _CATEGORIES[question]
            return Answer(YES if yes else NO, True, "category")
        from aria_dvc.players.questioners import solved_targets

        guessed = solved_targets("twenty_questions", question)
        if guessed:
            return Answer(YES if self.item.name in guessed else NO, True, "guess")
        return Answer(INVALID, False, "unknown")


def object_oracle(name: str) -> CategoryOracle:
    return CategoryOracle(find_object(name))
