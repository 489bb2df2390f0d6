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


def places_of_targets(data: Log) -> np.ndarray:
    """(E,) int64 place of every episode's own target among all, in any spelling that its oracle
    takes; -1 where it names none that they know."""
    knowledge = knowledge_of(data.game)
    named = [""] * data.episodes if data.target is None else data.target.tolist()
    return np.array([_place(knowledge, name) for name in named], np.int64)


def _place(knowledge: Knowledge, named: str) -> int:
    try:
        return knowledge.targets().index(knowledge.oracle(named).target)
    except AriaError:
        return -1


def replies(data: Log) -> tuple[np.ndarray, np.ndarray]:
    """Rows at which yes or no was heard, and their polarities (int8): what another role says right
    after an action's role has spoken."""
    rows = np.arange(len(data))
    same = np.r_[False, data.episode[1:] == data.episode[:-1]]
    other = np.r_[False, data.role[1:] != data.role[:-1]]
    asker = np.isin(data.role, np.unique(data.role[data.actions]))
    heard = np.array([polarity(text) for text in data.text], np.int8)
    found = rows[same & other & ~asker & (heard != 0)]
    return found, heard[found]


def beliefs(data: Log) -> np.ndarray:
    """(A, T) float64 probability of every target before each action, from answers heard so far."""
    rows, heard = replies(data)
    given = asked_of_all(data.game, data.text[rows - 1])[0]
    evidence = np.zeros((len(data) + 1, given.shape[1]))
    evidence[rows + 1] = np.log(_likelihood(given, heard))
    return _posterior(evidence, data)


def believed_after(belief: np.ndarray, given: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """(n, T) what the answer makes of a belief.

    given: (n, T) every target's answer. answer: (n,) the one that is heard, 0 for neither.
    """
    likelihood = np.where(answer[:, None] == 0, 1.0, _likelihood(given, answer))
    return _normalised(belief * likelihood)


def _likelihood(given: np.ndarray, heard: np.ndarray) -> np.ndarray:
    """(n, T) probability of what was heard, (n,), under every target, whose answers are (n, T)."""
    known = np.where(given == heard[:, None], AGREE, 1 - AGREE)
    return np.where(given == 0, 0.5, known)


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
    return _normalised(np.exp(found - found.max(axis=1, keepdims=True, initial=-np.inf)))


def _normalised(weight: np.ndarray) -> np.ndarray:
    return weight / weight.sum(axis=1, keepdims=True)
