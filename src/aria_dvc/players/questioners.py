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
from functools import cache, lru_cache

from aria_dvc.games.guess_my_city import REFUSAL, GuessMyCityMatch, leaks
from aria_dvc.games.guessing import MAX_QUESTIONS, GuessingMatch
from aria_dvc.games.twenty_questions import INVALID, TwentyQuestionsMatch
from aria_dvc.oracles.base import Answer, Oracle
from aria_dvc.oracles.city.targets import cities, find_city
from aria_dvc.oracles.objects.targets import find_object, objects
from aria_dvc.oracles.text import fold
from aria_dvc.players import question_bank as bank

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


def narrowing(match: GuessingMatch, rng: random.Random) -> str:
    """Ask the most informative of some questions while many targets are left, then guess."""
    left = candidates(match)
    turns_left = match.config["max_questions"] - match.asked
    question = None if len(left) <= FEW or turns_left <= FEW else best_question(match, left, rng)
    return question or guess(match.game, rng.choice(left), rng)


def casual(match: GuessingMatch, rng: random.Random) -> str:
    """Ask anything that tells something, forget most answers, and guess early."""
    left = candidates(match, remembered=MEMORY)
    drawn = rng.sample(_unasked(match), CONSIDERED)
    telling = [question for question in drawn if information(match.game, left, question) > 0]
    if len(left) <= FEW or not telling or rng.random() < match.asked / 30:
        return guess(match.game, rng.choice(left), rng)
    return telling[0]


QUESTIONERS: dict[str, Questioner] = {"narrowing": narrowing, "casual": casual}


def candidates(match: GuessingMatch, remembered: int = MAX_QUESTIONS) -> list[str]:
    """The targets that the last answers leave, in the order of the list; never empty.

    Wrong guesses are always remembered.
    """
    asked = [text for role, text in match.lines if role == "agent"]
    given = [text for role, text in match.lines if role == "oracle"]
    guessed = {target for question in asked for target in solved_targets(match.game, question)}
    left = [target for target in targets(match.game) if target not in guessed]
    for question, heard in list(zip(asked, given, strict=False))[-remembered:]:
        left = _agreeing(match.game, left, question, heard) or left
    return left


def _agreeing(game: str, names: Sequence[str], question: str, heard: str) -> list[str]:
    if heard in (INVALID, REFUSAL):
        return list(names)
    same = [name for name in names if oracle_answer(game, name, question) == heard]
    if same:
        return same
    side = _yes_or_no(heard)
    return [
        name
        for name in names
        if side is None or _yes_or_no(oracle_answer(game, name, question)) in (side, None)
    ]


def _yes_or_no(answer: str) -> str | None:
    first = fold(answer).split(" ")[0]
    return first if first in ("yes", "no") else None


def best_question(match: GuessingMatch, left: Sequence[str], rng: random.Random) -> str | None:
    """The most informative of a few unasked questions; None when none tells anything."""
    unasked = _unasked(match)
    drawn = rng.sample(unasked, min(CONSIDERED, len(unasked)))
    bits = {question: information(match.game, left, question) for question in drawn}
    best = max(drawn, key=bits.__getitem__, default=None)
    return best if best is not None and bits[best] > 0.1 else None


def information(game: str, names: Sequence[str], question: str) -> float:
    """Entropy in bits of the answers over equally likely targets; 0 if they are often unknown."""
    known = sum(_answer(game, name, question).known for name in names)
    if known < KNOWN_SHARE * len(names):
        return 0.0
    counts = Counter(oracle_answer(game, name, question) for name in names)
    return -sum(n / len(names) * math.log2(n / len(names)) for n in counts.values())


def _unasked(match: GuessingMatch) -> list[str]:
    asked = {text for role, text in match.lines if role == "agent"}
    return [question for question in questions(match.game) if question not in asked]


def guess(game: str, target: str, rng: random.Random) -> str:
    """A question that names the target as its guess."""
    if game == "guess_my_city":
        city = find_city(target)
        return rng.choice(bank.CITY_GUESSES).format(city=city.name, country=city.country)
    return rng.choice(bank.OBJECT_GUESSES).format(thing=_with_article(target))


def _with_article(name: str) -> str:
    pair = [spelling for spelling in find_object(name).spellings if spelling.startswith("Pair ")]
    thing = (pair[0] if pair else name).lower()
    if thing in bank.WITHOUT_ARTICLE:
        return thing
    return f"an {thing}" if thing[0] in "aeiou" else f"a {thing}"


def targets(game: str) -> list[str]:
    """The names of all targets of a guessing game."""
    if game == "guess_my_city":
        return [city.word for city in cities()]
    return [item.name for item in objects()]


def questions(game: str) -> tuple[str, ...]:
    return bank.CITY_QUESTIONS if game == "guess_my_city" else bank.OBJECT_QUESTIONS


def oracle_answer(game: str, target: str, question: str) -> str:
    """What the agent reads when the embedded oracle answers for `target`."""
    answer = _answer(game, target, question)
    if game == "twenty_questions":
        return answer.text if answer.known else INVALID
    return REFUSAL if _leaks(answer.text, target) else answer.text


@lru_cache(maxsize=REMEMBERED_ANSWERS)
def _answer(game: str, target: str, question: str) -> Answer:
    return _oracle(game, target).answer(question)


@lru_cache(maxsize=REMEMBERED_ANSWERS)
def _leaks(answer: str, target: str) -> bool:
    return leaks(answer, find_city(target).name)


@cache
def _oracle(game: str, target: str) -> Oracle:
    if game == "guess_my_city":
        from aria_dvc.oracles.city.oracle import city_oracle

        return city_oracle(target)
    from aria_dvc.oracles.objects.oracle import object_oracle

    return object_oracle(target)


@cache
def _match(game: str, target: str) -> GuessingMatch:
    kind = GuessMyCityMatch if game == "guess_my_city" else TwentyQuestionsMatch
    return kind({"target": target, "max_questions": MAX_QUESTIONS})


@cache
def _spellings(game: str, target: str) -> tuple[str, ...]:
    if game == "guess_my_city":
        return find_city(target).names
    return tuple(map(fold, find_object(target).spellings))


@lru_cache(maxsize=REMEMBERED_ANSWERS)
def solved_targets(game: str, question: str) -> frozenset[str]:
    """The targets that `question` guesses: one or none."""
    folded = fold(question)
    return frozenset(
        target
        for target in targets(game)
        if any(spelling in folded for spelling in _spellings(game, target))
        and _match(game, target).solved_by(question)
    )
