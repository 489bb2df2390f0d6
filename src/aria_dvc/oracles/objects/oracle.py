"""The embedded oracle of Twenty Questions.

`oracle("Cat").answer("Is it a mammal?")` -> `Yes.` Questions that are not yes-or-no
questions about the object, or that the property table does not cover, get `Invalid question.`

A contracted `Isn't it alive?` is answered like `Is it alive?`; a literal not is taken literally:
`Is it not alive?` is true of a chair.
"""

from __future__ import annotations

from functools import cache, cached_property

from aria_dvc.oracles.base import MAX_QUESTION_CHARS, Answer
from aria_dvc.oracles.objects.claims import meaning
from aria_dvc.oracles.objects.guesses import (
    guesses,
    guesses_any,
    wavers,
    winning_names,
    without_apposition,
)
from aria_dvc.oracles.objects.targets import PACKAGE, Object, find_object, objects
from aria_dvc.oracles.objects.words import WITHOUT_ARTICLE
from aria_dvc.packaged import read_lines

YES, NO, INVALID = "Yes.", "No.", "Invalid question."


class ObjectOracle:
    """Answers yes-or-no questions about one of the 157 objects."""

    def __init__(self, item: Object) -> None:
        self.item = item
        self.target = item.name
        self.spellings = winning_names(item)

    @cached_property
    def guesses(self) -> tuple[str, ...]:
        """Questions that guess the object, as a player may put them."""
        thing = _with_article(self.item)
        return tuple(pattern.format(thing=thing) for pattern in read_lines(PACKAGE, "guesses.txt"))

    def is_guess(self, question: str) -> bool:
        """Whether the question names the object as its guess, read strictly."""
        if guesses(self.item.name, question):
            return True
        guess, described = without_apposition(question)
        named = bool(guess) and guesses(self.item.name, guess)
        return named and self.item.name in meaning(described).yes

    def answer(self, question: str) -> Answer:
        """`Yes.`, `No.` or, with `known` False, `Invalid question.`; never raises on odd text."""
        if len(question) > MAX_QUESTION_CHARS:
            return Answer(INVALID, False, "too long")
        if self.is_guess(question):
            return Answer(YES, True, "guess")
        if wavers(self.item.name, question):
            return Answer(INVALID, False, "two guesses")
        named = without_apposition(question)[0]
        if named and guesses_any(named) and not guesses(self.item.name, named):
            question = named
        claim = meaning(question)
        if self.item.name in claim.yes:
            return Answer(YES, True, "property")
        if self.item.name in claim.no:
            return Answer(NO, True, "property")
        if guesses_any(question):
            return Answer(NO, True, "guess")
        return Answer(INVALID, False, "unknown")


def _with_article(item: Object) -> str:
    """`a cat`, `an apple`, `a pair of socks`, `glue`."""
    pair = [spelling for spelling in item.spellings if spelling.startswith("Pair ")]
    thing = (pair[0] if pair else item.name).lower()
    if thing in WITHOUT_ARTICLE:
        return thing
    return f"an {thing}" if thing[0] in "aeiou" else f"a {thing}"


@cache
def targets() -> tuple[str, ...]:
    """The names of the 157 targets, grouped by category in the published order."""
    return tuple(item.name for item in objects())


@cache
def familiar() -> tuple[str, ...]:
    """32 objects that small models name, in the order in which small grids take them."""
    return tuple(read_lines(PACKAGE, "familiar.txt"))


def oracle(target: str) -> ObjectOracle:
    """The oracle for a target such as `Cat`; the same one for the same object.

    Raises:
        AriaError: `target` spells no target.
    """
    return _oracle(find_object(target))


@cache
def _oracle(item: Object) -> ObjectOracle:
    return ObjectOracle(item)


@cache
def questions() -> tuple[str, ...]:
    """Everyday questions that can be answered for every object."""
    return tuple(read_lines(PACKAGE, "questions.txt"))
