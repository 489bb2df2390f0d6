"""Credit of questions by what they can tell: a belief over the targets of a guessing game.

The belief before an action (see answers.py) gives v its features: how many targets are left
(entropy), how sure the best one is, the turn, and what was heard and guessed so far. q sees the
action besides: how evenly it splits what is left, and how probable what it guesses is. Of an
episode that names its target both know it, too, as a critic may know what its policy does not
(asymmetric actor critic, Pinto et al. 2018): how probable it is, and for q what its oracle answers
and what that leaves. No target is told from another but by this, so games on targets that were
never fitted are credited alike.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Self

import numpy as np

from aria_dvc.credit.methods.answers import (
    asked_of_all,
    beliefs,
    believed_after,
    knowledge_of,
    places_of_targets,
    replies,
)
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.intentions.log import Log
from aria_dvc.oracles.text import phrase_pattern

TINY = 1e-12
LEAF = 20  # actions at least


class Features(NamedTuple):
    """float64, a row an action; `both` begins with the columns of `history`."""

    history: np.ndarray
    both: np.ndarray


class Fitted(NamedTuple):
    """Trees for what is left over the turn index."""

    history: Any
    both: Any


class BeliefCredit:
    """Boosted trees on the belief's features, over the turn index. Out of fold.

    v is a fit of its own to the features of the history. Episodes that name their target are judged
    by trees that saw it, fitted on such episodes; all others by trees that saw none.

    Raises:
        AriaError: the game has no packaged oracles.
    """

    in_sample = False
    uses_labels = False
    uses_vectors = False

    def __init__(self, trees: int = 150, rate: float = 0.05, depth: int = 3, seed: int = 0) -> None:
        self.trees, self.rate, self.depth, self.seed = trees, rate, depth, seed

    def fit(self, data: Log) -> Self:
        self.turn_index_ = TurnIndexCredit().fit(data)
        residual = data.targets - self.turn_index_.q(data)
        features = features_of(data)
        self.blind_ = self._fitted(features, residual)
        knows = names_target(data)
        told = informed(features, data)
        self.informed_ = self._fitted(told, residual[knows]) if knows.any() else None
        return self

    def q(self, data: Log) -> np.ndarray:
        return self._predict("both", data)

    def v(self, data: Log) -> np.ndarray:
        return self._predict("history", data)

    def _fitted(self, features: Features, residual: np.ndarray) -> Fitted:
        return Fitted(*(self._trees().fit(columns, residual) for columns in features))

    def _predict(self, part: str, data: Log) -> np.ndarray:
        found = self.turn_index_.q(data)
        features = features_of(data)
        knows = names_target(data) if self.informed_ else np.zeros(len(found), bool)
        if knows.any():
            told = getattr(informed(features, data), part)
            found[knows] += getattr(self.informed_, part).predict(told)
        if not knows.all():
            found[~knows] += getattr(self.blind_, part).predict(getattr(features, part)[~knows])
        return found

    def _trees(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            max_iter=self.trees,
            learning_rate=self.rate,
            max_depth=self.depth,
            min_samples_leaf=LEAF,
            early_stopping=False,
            random_state=self.seed,
        )


def features_of(data: Log) -> Features:
    """Of every action, (A, 7) and (A, 11), what can be told without the target.

    History: own turn, entropy in nats, largest probability, that of the second; how many guesses
    were made, and how many answers were yes, and no. Action: mass of the targets that answer yes,
    and no, entropy of the answer, mass of what is guessed.
    """
    belief = beliefs(data)
    given, guessed = _asked(data)
    top = np.sort(belief, axis=1)[:, -2:]
    guesses, heard = np.zeros(len(data)), np.zeros(len(data), np.int8)
    guesses[data.actions] = guessed.any(axis=1)
    rows, polarities = replies(data)
    heard[rows] = polarities
    so_far = [_so_far(flags, data) for flags in (guesses, heard == 1, heard == -1)]
    history = np.column_stack([data.turn[data.actions], _entropy(belief), top[:, ::-1], *so_far])
    yes, no = ((belief * (given == sign)).sum(axis=1) for sign in (1, -1))
    split = _entropy(np.column_stack([yes, no]))
    action = np.column_stack([yes, no, split, (belief * guessed).sum(axis=1)])
    return Features(history, np.column_stack([history, action]))


def names_target(data: Log) -> np.ndarray:
    """(A,) bool: the action's episode names a target that the oracles know."""
    knows: np.ndarray = places_of_targets(data)[data.episode[data.actions]] >= 0
    return knows


def informed(features: Features, data: Log) -> Features:
    """(a, 9) and (a, 19): the same of the `a` actions whose episode names its target, who know it.

    History: log-probability of the target and how many are more probable. Action: the target's
    answer, the same two and the entropy after that answer, whether it is the guess that wins, and
    whether it says the target's name at all (which ended a game in the published dialogues).
    """
    knows = names_target(data)
    place = places_of_targets(data)[data.episode[data.actions]][knows]
    each = np.arange(len(place))
    belief = beliefs(data)[knows]
    given, guessed = (of_all[knows] for of_all in _asked(data))
    answer = given[each, place]
    after = believed_after(belief, given, answer)
    history = np.column_stack([features.history[knows], *_standing(belief, place)])
    action = [answer, *_standing(after, place), _entropy(after), guessed[each, place]]
    named = _named(data.text[data.actions][knows], place, data.game)
    asked = features.both[knows, features.history.shape[1] :]
    return Features(history, np.column_stack([history, asked, *action, named]))


def _asked(data: Log) -> tuple[np.ndarray, np.ndarray]:
    return asked_of_all(data.game, data.text[data.actions])


def _standing(belief: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) log-probability of each row's target, and how many are more probable."""
    own = belief[np.arange(len(place)), place]
    return np.log(np.maximum(own, TINY)), (belief > own[:, None]).sum(axis=1)


def _named(texts: np.ndarray, place: np.ndarray, game: str) -> list[bool]:
    """Whether a text has the name of its target as it is published, accents and all."""
    targets = knowledge_of(game).targets()
    names: list[re.Pattern[str]] = [
        phrase_pattern([target.split(",")[0].lower()]) for target in targets
    ]
    pairs = zip(texts.tolist(), place.tolist(), strict=True)
    return [bool(names[own].search(text.lower())) for text, own in pairs]


def _so_far(flags: np.ndarray, data: Log) -> np.ndarray:
    """(A,) how many of an action's episode were set before it; flags: (n,)."""
    total = np.r_[0.0, np.cumsum(flags)]
    found: np.ndarray = total[data.actions] - total[data.actions - data.place[data.actions]]
    return found


def _entropy(probabilities: np.ndarray) -> np.ndarray:
    """(n,) nats."""
    return -(probabilities * np.log(np.maximum(probabilities, TINY))).sum(axis=1)
