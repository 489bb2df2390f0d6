"""The embedded oracle of Twenty Questions.

`object_oracle("Cat").answer("Is it a mammal?")` -> `Yes.` Questions that are not yes-or-no
questions about the object, or that the property table does not cover, get `Invalid question.`

A contracted `Isn't it alive?` is answered like `Is it alive?`; a literal not is taken literally:
`Is it not alive?` is true of a chair.
"""

from __future__ import annotations

from functools import cache

from aria_dvc.oracles.base import MAX_QUESTION_CHARS, Answer
from aria_dvc.oracles.objects.claims import meaning
from aria_dvc.oracles.objects.targets import Object, find_object

YES, NO, INVALID = "Yes.", "No.", "Invalid question."


class ObjectOracle:
    """Answers yes-or-no questions about one of the 157 objects."""

    def __init__(self, item: Object) -> None:
        self.item = item

    def answer(self, question: str) -> Answer:
        """`Yes.`, `No.` or, with `known` False, `Invalid question.`; never raises on odd text."""
        if len(question) > MAX_QUESTION_CHARS:
            return Answer(INVALID, False, "too long")
        claim = meaning(question)
        if self.item.name in claim.yes:
            return Answer(YES, True, "property")
        if self.item.name in claim.no:
            return Answer(NO, True, "property")
        return Answer(INVALID, False, "unknown")


@cache
def _oracle(name: str) -> ObjectOracle:
    return ObjectOracle(find_object(name))


def object_oracle(name: str) -> ObjectOracle:
    """The oracle for a target such as `Cat`; the same one for the same object.

    Raises:
        AriaError: `name` spells no target.
    """
    return _oracle(find_object(name).name)
