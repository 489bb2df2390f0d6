"""What names an object: guesses of it, in the singular or the plural."""

from __future__ import annotations

import re
from functools import cache

from aria_dvc.oracles.guesses import AM_I_RIGHT, SURE, GuessGrammar, is_guess
from aria_dvc.oracles.objects.question import KIND
from aria_dvc.oracles.objects.targets import Object, find_object, objects
from aria_dvc.oracles.text import fold

_THING = (
    rf"(?:(?:mystery|secret|hidden|target|correct|right|everyday|chosen) )*"
    rf"(?:object|thing|item|answer|word|{KIND})"
    r"(?: (?:that )?(?:(?:you are|youre|i am) thinking (?:of|about)|in question|you have in mind))?"
)
_IT = rf"(?:it|this|that|they|these|those|(?:the|your|this|that) {_THING}|what you are thinking of)"
_APPOSITION = re.compile(
    r"(?P<guess>[^,?.!]+), (?:which is |that is )?(?P<rest>(?:an?|the|something|used) "
    r"[^,?.!]+)[?.!]*",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\s*\(([^()]*)\)")
_SIZE = re.compile(r"\b(?:small|little|tiny|large|big|medium|medium-sized) ", re.IGNORECASE)
"""Left out of a description: what is small for an animal is not for a thing."""
_JOINED = re.compile(r"\b(?:or|and|not|nor)\b", re.IGNORECASE)
_PAIR = "pair of "
_SOFT = (
    r"(?: (?:perhaps|maybe|possibly|actually|really|just|simply|by any chance|probably|likely))*"
)
_GRAMMAR = GuessGrammar(
    lead=(
        rf"(?:(?:is|isnt|are|arent|was|were) {_IT}|(?:could|might|can|would|must|may) {_IT} be"
        rf"|{_IT} (?:is|are|must be|has to be|could be|might be)|its|theyre"
        r"|my (?:\w+ )?guess (?:is|would be)|(?:are|were) you thinking (?:of|about)"
        r"|(?:would|do|could) you (?:call|consider) it"
        rf"|(?:{SURE}|{AM_I_RIGHT})(?: (?:{_IT} (?:is|are)|its))?)"
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
    spellings = {name for item in chosen for name in winning_names(item)}
    return _GRAMMAR.pattern(spellings | {form for one in spellings for form in plurals(one)})


def guesses_any(question: str) -> bool:
    """Whether the question guesses some target, and nothing else."""
    return is_guess(question, _guesses(None), _guesses(None))


def without_apposition(question: str) -> tuple[str, str]:
    """`Is it a cat, a small pet?` as (`Is it a cat?`, `Is it a small pet?`); else ("", "")."""
    found = _APPOSITION.fullmatch(_BRACKETS.sub(r", \1", question.strip()))
    if not found or _JOINED.search(found["rest"]):
        return "", ""
    return f"{found['guess']}?", f"Is it {_SIZE.sub('', found['rest'])}?"


def winning_names(item: Object) -> tuple[str, ...]:
    """Folded spellings and synonyms that name the object.

    A synonym that only leaves out a word of a spelling ("bat" of "baseball bat") names its kind.
    What is spelled with "pair of" may be put so by all its names.
    """
    own = [set(fold(spelling).split()) for spelling in item.spellings]
    names = tuple(
        name
        for name in item.names
        if not any(set(name.split()) < whole for whole in own) or name in map(fold, item.spellings)
    )
    paired = any(name.startswith(_PAIR) for name in names)
    bare = [name for name in names if paired and not name.startswith(_PAIR)]
    return tuple(dict.fromkeys((*names, *(_PAIR + name for name in bare))))


def plurals(word: str) -> list[str]:
    """Spellings that are taken for the plural of a folded word."""
    forms = [word + "s", word + "es"]
    for ending, plural in (("y", "ies"), ("f", "ves"), ("fe", "ves")):
        if word.endswith(ending):
            forms.append(word.removesuffix(ending) + plural)
    return forms
