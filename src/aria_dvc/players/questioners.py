"""Scripted agents of the guessing games: they ask what splits the remaining targets, then guess.

They know what the packaged knowledge says about every target, but not which target it is: only
the answers in the dialogue narrow their candidates. Where an oracle words its answers otherwise
(a language model), answers are compared by their yes or no.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from aria_dvc.games.guessing import MAX_QUESTIONS, GuessingMatch
from aria_dvc.oracles.base import Answer
from aria_dvc.oracles.text import fold

CONSIDERED = 8
"""Questions drawn from the bank and compared at a turn; fewer give more varied dialogues."""
KNOWN_SHARE = 0.8
"""Questions that the oracle can answer for fewer of the remaining targets are not asked."""
FEW = 2
"""With this many candidates left, guess."""
MEMORY = 4
"""Answers that the casual player remembers."""
REMEMBERED_ANSWERS = 100_000

Questioner = Callable[[GuessingMatch, random.Random], str]
Kind = type[GuessingMatch]


def narrowing(match: GuessingMatch, rng: random.Random) -> str:
    """Ask the most informative of some questions while many targets are left, then guess."""
    left = candidates(match)
    turns_left = match.config["max_questions"] - match.asked
    question = None if len(left) <= FEW or turns_left <= FEW else best_question(match, left, rng)
    return question or guess(match, rng.choice(left), rng)


def steady(match: GuessingMatch, rng: random.Random) -> str:
    """Ask the most informative question of all, the same one after the same answers, then guess."""
    left = candidates(match)
    last = match.config["max_questions"] - match.asked <= FEW
    question = None if len(left) <= FEW or last else telling_most(match, left, _unasked(match))
    return question or match.knowledge.oracle(left[0]).guesses[0]


def casual(match: GuessingMatch, rng: random.Random) -> str:
    """Ask anything that tells something, forget most answers, and guess early."""
    left = candidates(match, remembered=MEMORY)
    drawn = rng.sample(_unasked(match), CONSIDERED)
    telling = [question for question in drawn if information(type(match), left, question) > 0]
    if len(left) <= FEW or not telling or rng.random() < match.asked / 30:
        return guess(match, rng.choice(left), rng)
    return telling[0]


QUESTIONERS: dict[str, Questioner] = {
    "narrowing": narrowing,
    "steady": steady,
    "casual": casual,
}


def candidates(match: GuessingMatch, remembered: int = MAX_QUESTIONS) -> list[str]:
    """The targets that the last answers leave, in the order of the list; never empty.

    Wrong guesses are always remembered.
    """
    asked = [text for role, text in match.lines if role == "agent"]
    given = [text for role, text in match.lines if role == "oracle"]
    guessed = {target for question in asked for target in guessed_by(type(match), question)}
    left = [target for target in match.targets if target not in guessed]
    for question, heard in list(zip(asked, given, strict=False))[-remembered:]:
        if heard != match.no_answer:
            left = _agreeing(type(match), left, question, heard) or left
    return left


def _agreeing(kind: Kind, names: Sequence[str], question: str, heard: str) -> list[str]:
    said = {name: _answer(kind, name, question).text for name in names}
    same = [name for name in names if said[name] == heard]
    if same:
        return same
    side = _yes_or_no(heard)
    return [name for name in names if side is None or _yes_or_no(said[name]) in (side, None)]


def _yes_or_no(answer: str) -> str | None:
    first = fold(answer).split(" ")[0]
    return first if first in ("yes", "no") else None


def best_question(match: GuessingMatch, left: Sequence[str], rng: random.Random) -> str | None:
    """The most informative of a few unasked questions; None when none tells anything."""
    unasked = _unasked(match)
    return telling_most(match, left, rng.sample(unasked, min(CONSIDERED, len(unasked))))


def telling_most(match: GuessingMatch, left: Sequence[str], asked: Sequence[str]) -> str | None:
    """The most informative of the questions, the first among equals; None when none tells."""
    bits = {question: information(type(match), left, question) for question in asked}
    best = max(asked, key=bits.__getitem__, default=None)
    return best if best is not None and bits[best] > 0.1 else None


def information(kind: Kind, names: Sequence[str], question: str) -> float:
    """Entropy in bits of the answers over equally likely targets; 0 if they are often unknown."""
    answers = [_answer(kind, name, question) for name in names]
    if sum(answer.known for answer in answers) < KNOWN_SHARE * len(names):
        return 0.0
    counts = Counter(answer.text for answer in answers)
    return -sum(n / len(names) * math.log2(n / len(names)) for n in counts.values())


def _unasked(match: GuessingMatch) -> list[str]:
    asked = {text for role, text in match.lines if role == "agent"}
    return [question for question in match.knowledge.questions() if question not in asked]


def guess(match: GuessingMatch, target: str, rng: random.Random) -> str:
    """A question that names the target as its guess."""
    return rng.choice(match.knowledge.oracle(target).guesses)


@cache
def _match(kind: Kind, target: str) -> GuessingMatch:
    return kind({"target": target, "max_questions": MAX_QUESTIONS})


@lru_cache(maxsize=REMEMBERED_ANSWERS)
def _answer(kind: Kind, target: str, question: str) -> Answer:
    return embedded_answer(_match(kind, target), question)


def embedded_answer(match: GuessingMatch, question: str) -> Answer:
    """The embedded oracle's answer, its text as the agent of this match reads it."""
    answer = match.oracle.answer(question)
    return replace(answer, text=match.read_answer(answer.text))


@lru_cache(maxsize=REMEMBERED_ANSWERS)
def guessed_by(kind: Kind, question: str) -> frozenset[str]:
    """The targets that `question` guesses: one or none."""
    folded = fold(question)
    oracles = map(kind.knowledge.oracle, kind.knowledge.targets())
    named = [each for each in oracles if any(spelling in folded for spelling in each.spellings)]
    return frozenset(each.target for each in named if each.is_guess(question))
