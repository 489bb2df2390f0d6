"""What every target of a guessing game would answer, and what the answers heard make probable.

The posterior tolerates noise: an answer that agrees with a target's has probability AGREE under
it, one that contradicts it 1 - AGREE, and one that either side leaves open says nothing. Each
distinct question is read once, asked of all targets, and the answers are kept.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, cast

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.records.names import KNOWLEDGE

if TYPE_CHECKING:
    from aria_dvc.oracles.base import Knowledge, Oracle

AGREE = 0.9
KEPT = 20_000  # questions
_ASKING = Lock()  # folds are judged side by side and ask the same: the second finds the answers
_YES = re.compile(r"\W*(?:yes|yeah|yep|correct|right|indeed|exactly|that is (?:right|correct))\b")
_NO = re.compile(r"\W*(?:no|nope|not|incorrect|wrong)\b")


def knowledge_of(game: str) -> Knowledge:
    """The packaged oracles of a game.

    Raises:
        AriaError: it has none.
    """
    if game not in KNOWLEDGE:
        raise AriaError(
            f"this credit method needs a game whose targets are known ({' or '.join(KNOWLEDGE)}), "
            f"not {game or 'one without a name'}: name the game (--game) or choose another method"
        )
    return cast("Knowledge", import_module(f"aria_dvc.oracles.{KNOWLEDGE[game]}.oracle"))


def polarity(answer: str) -> int:
    """1 for yes, -1 for no, 0 for anything else."""
    said = answer.lower()
    return 1 if _YES.match(said) else -1 if _NO.match(said) else 0


@lru_cache(maxsize=KEPT)
def answers_of(game: str, question: str) -> tuple[np.ndarray, np.ndarray]:
    """(T,) int8 polarity of every target's answer, and (T,) bool: the question guesses it."""
    oracles = _oracles(game)
    found = np.array([polarity(oracle.answer(question).text) for oracle in oracles], np.int8)
    return found, np.array([oracle.is_guess(question) for oracle in oracles])


@cache
def _oracles(game: str) -> list[Oracle]:
    """Of every target, in their order."""
    knowledge = knowledge_of(game)
    return [knowledge.oracle(target) for target in knowledge.targets()]


def asked_of_all(game: str, questions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, T) int8 polarities and (n, T) bool guesses of n questions."""
    with _ASKING:
        found = [answers_of(game, question) for question in questions.tolist()]
    targets = len(knowledge_of(game).targets())
    if not found:
        return np.zeros((0, targets), np.int8), np.zeros((0, targets), bool)
    polarities, guesses = zip(*found, strict=True)
    return np.stack(polarities), np.stack(guesses)


def beliefs(data: Log) -> np.ndarray:
    """(A, T) float64 probability of every target before each action, from answers heard so far.

    An answer is what another role says right after an action's role has spoken.
    """
    rows = np.arange(len(data))
    same = np.r_[False, data.episode[1:] == data.episode[:-1]]
    other = np.r_[False, data.role[1:] != data.role[:-1]]
    asker = np.isin(data.role, np.unique(data.role[data.actions]))
    heard = np.array([polarity(text) for text in data.text], np.int8)
    replies = rows[same & other & ~asker & (heard != 0)]
    given = asked_of_all(data.game, data.text[replies - 1])[0]
    evidence = np.zeros((len(data) + 1, given.shape[1]))
    agrees = given == heard[replies, None]
    known = np.where(agrees, np.log(AGREE), np.log(1 - AGREE))
    evidence[replies + 1] = np.where(given == 0, np.log(0.5), known)
    return _posterior(evidence, data)


def _posterior(evidence: np.ndarray, data: Log) -> np.ndarray:
    """(A, T) from (n + 1, T) log-likelihoods, row i + 1 being those of utterance i."""
    found = np.empty((len(data.actions), evidence.shape[1]))
    start = np.arange(len(data)) - data.place
    place = 0
    for first in np.unique(start):
        own = data.actions[(start[data.actions] == first)]
        total = np.cumsum(evidence[first + 1 : own[-1] + 1], axis=0) if len(own) else None
        for row in own:
            found[place] = 0.0 if row == first or total is None else total[row - first - 1]
            place += 1
    weight = np.exp(found - found.max(axis=1, keepdims=True, initial=-np.inf))
    return weight / weight.sum(axis=1, keepdims=True)
