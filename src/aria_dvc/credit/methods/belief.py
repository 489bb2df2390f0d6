"""Credit of questions by what they can tell: a belief over the targets of a guessing game.

The belief before an action (see answers.py) gives v its features: how many targets are left
(entropy), how sure the best one is, and the turn. q sees the action besides: how evenly it splits
what is left, whether it is a guess and how probable what it guesses is. The target itself is never
looked at, so games on targets that were never fitted are credited alike.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from aria_dvc.credit.methods.answers import asked_of_all, beliefs
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.intentions.log import Log

TINY = 1e-12
LEAF = 20  # actions at least


class BeliefCredit:
    """Boosted trees on the belief's features, over the turn index. Out of fold.

    v is a fit of its own to the features of the history.

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
        before, both = features_of(data)
        self.with_action_ = self._trees().fit(both, residual)
        self.history_ = self._trees().fit(before, residual)
        return self

    def q(self, data: Log) -> np.ndarray:
        return self._predict(self.with_action_, features_of(data)[1], data)

    def v(self, data: Log) -> np.ndarray:
        return self._predict(self.history_, features_of(data)[0], data)

    def _predict(self, trees: Any, features: np.ndarray, data: Log) -> np.ndarray:
        deviation = trees.predict(features) if len(features) else np.zeros(0)
        return self.turn_index_.q(data) + deviation

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


def features_of(data: Log) -> tuple[np.ndarray, np.ndarray]:
    """(A, 4) of the history, and (A, 8) of history and action; float64.

    History: own turn, entropy in nats, largest probability, that of the second. Action: mass of
    the targets that answer yes, and no, entropy of the answer, mass of what is guessed.
    """
    belief = beliefs(data)
    given, guessed = asked_of_all(data.game, data.text[data.actions])
    top = np.sort(belief, axis=1)[:, -2:]
    before = np.column_stack([data.turn[data.actions], _entropy(belief), top[:, ::-1]])
    yes, no = ((belief * (given == sign)).sum(axis=1) for sign in (1, -1))
    split = _entropy(np.column_stack([yes, no]))
    action = np.column_stack([yes, no, split, (belief * guessed).sum(axis=1)])
    return before, np.column_stack([before, action])


def _entropy(probabilities: np.ndarray) -> np.ndarray:
    """(n,) nats."""
    return -(probabilities * np.log(np.maximum(probabilities, TINY))).sum(axis=1)
