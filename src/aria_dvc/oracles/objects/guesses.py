"""What names an object: guesses of it, in the singular or the plural."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from aria_dvc.oracles.guesses import AM_I_RIGHT, SURE, GuessGrammar, guess_sentence, is_guess
from aria_dvc.oracles.objects.claims import meaning, said_to_be
from aria_dvc.oracles.objects.patterns import RELATIVE
from aria_dvc.oracles.objects.question import KIND
from aria_dvc.oracles.objects.shades import shade
from aria_dvc.oracles.objects.targets import Object, find_object, objects
from aria_dvc.oracles.objects.words import JOINING, plurals
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

_NOT_DESCRIBING = JOINING - {"used", "made", "found"} | {"of", "a", "an", "the", "it", "you"}
"""Words that no description before a name contains."""
_KIND_OF = re.compile(r"\b(?:kind|type|sort|form|variety)s? of\b")
"""What is a kind of cat is spoken of, and no cat is guessed."""
_DETERMINER = re.compile(r"^(?:one of (?:the|your|my|these)|an?|the|some|any|your|my|one) ")
_AND = re.compile(r",? and |, (?:but )?| but ")


def guesses(name: str, question: str) -> bool:
    """Whether the question guesses the object of that name, and nothing else.

    A name may be described: `a pet cat` is a guess of a cat because the oracle says yes to it,
    `a toy cat` is none because it says no.
    """
    return _asks(name, question) and not _says_another(name, question)


def wavers(name: str, question: str) -> bool:
    """Whether it guesses that object after it has named another: `It is a dog. Is it a cat?`."""
    return _asks(name, question) and _says_another(name, question)


def _asks(name: str, question: str) -> bool:
    if _guesses(name).fullmatch(guess_sentence(question)[0]):
        return True
    return name in said_with_more(question) and name in meaning(question).yes


def _says_another(name: str, question: str) -> bool:
    """Whether a sentence besides the guess is a guess of another object."""
    return any(
        said_with_more(each) - {name}
        or (_guesses(None).fullmatch(each) and not _guesses(name).fullmatch(each))
        for each in guess_sentence(question)[1]
    )


@lru_cache(maxsize=4096)
def said_with_more(question: str) -> frozenset[str]:
    """The objects that it says it is in more words: `a pet cat`, `a cat that purrs`.

    Of `a furry animal and a cat` any part may name the object.
    """
    said = said_to_be(question)
    if re.search(r"\bor\b", said) or _KIND_OF.search(question.lower()):
        return frozenset()
    parts = _AND.split(said)
    if not all(JOINING.isdisjoint(part.split()) for part in parts):  # `made of wood and paper`
        parts = [said]
    return frozenset(filter(None, map(_headed, parts)))


def _headed(phrase: str) -> str:
    """The object whose name is the head of a noun phrase; "" if there is none."""
    clause = RELATIVE.match(phrase)
    return _last_named(phrase) or (_last_named(clause["head"]) if clause else "")


def _last_named(phrase: str) -> str:
    """The object whose name ends a phrase of describing words; `bright orange` is a colour."""
    words = _DETERMINER.sub("", phrase).split()
    if shade(phrase, False):
        return ""
    for start in range(len(words)):
        last = " ".join(words[start:])
        found = _forms().get(last) or _forms().get(f"{last}s")  # "a sharp scissor"
        if found:
            return found if _NOT_DESCRIBING.isdisjoint(words[:start]) else ""
    return ""


@cache
def _forms() -> dict[str, str]:
    """Every name that wins, in the singular and the plural -> the object."""
    names = [(item.name, name) for item in objects() for name in winning_names(item)]
    return {form: name for name, each in names for form in (*plurals(each), each)}


@cache
def _guesses(target: str | None) -> re.Pattern[str]:
    """Guesses of one target, or of any; plural forms count as the word."""
    chosen = find_object(target).name if target else None
    return _GRAMMAR.pattern(form for form, name in _forms().items() if chosen in {None, name})


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
