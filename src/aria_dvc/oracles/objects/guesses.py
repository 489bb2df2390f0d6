"""What names an object: guesses of it, in the singular or the plural."""

from __future__ import annotations

import re
from functools import cache

from aria_dvc.oracles.guesses import GuessGrammar, is_guess
from aria_dvc.oracles.objects.targets import find_object, objects
from aria_dvc.oracles.text import fold

_THING = (
    r"(?:(?:mystery|secret|hidden|target|correct|right) )?(?:object|thing|item|answer|word)"
    r"(?: (?:that )?(?:(?:you are|youre|i am) thinking (?:of|about)|in question|you have in mind))?"
)
_IT = rf"(?:it|this|that|they|these|those|(?:the|your) {_THING}|what you are thinking of)"
_SOFT = (
    r"(?: (?:perhaps|maybe|possibly|actually|really|just|simply|by any chance|probably|likely))*"
)
_GRAMMAR = GuessGrammar(
    lead=(
        rf"(?:(?:is|are|was|were) {_IT}|(?:could|might|can|would|must|may) {_IT} be"
        rf"|{_IT} (?:is|are|must be|has to be|could be|might be)|its|theyre"
        r"|my (?:\w+ )?guess is|(?:are|were) you thinking (?:of|about)"
        r"|(?:i|id|i would|i will) (?:guess|think|believe|say)(?: that)?"
        rf"(?: (?:{_IT} (?:is|are)|its))?)"
        rf"{_SOFT}(?: (?:called|named|known as))?(?: (?:a|an|the|some))?|a|an|the|some"
    )
)


def guesses(name: str, question: str) -> bool:
    """Whether the question guesses the object of that name, and nothing else."""
    return is_guess(question, _guesses(name), _guesses(None))


@cache
def _guesses(target: str | None) -> re.Pattern[str]:
    """Guesses of one target, or of any; plural forms count as the word."""
    chosen = objects() if target is None else [find_object(target)]
    spellings = {fold(spelling) for item in chosen for spelling in item.spellings}
    return _GRAMMAR.pattern(spellings | {form for one in spellings for form in plurals(one)})


def plurals(word: str) -> list[str]:
    """Spellings that are taken for the plural of a folded word."""
    forms = [word + "s", word + "es"]
    for ending, plural in (("y", "ies"), ("f", "ves"), ("fe", "ves")):
        if word.endswith(ending):
            forms.append(word.removesuffix(ending) + plural)
    return forms
