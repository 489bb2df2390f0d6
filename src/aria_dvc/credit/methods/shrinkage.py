"""Back-off over shortened histories: the more often a context was seen, the more it counts.

The contexts of an action are its own intention, then that with the last utterance, the last two,
and so on up to the whole history. Each level's estimate is the mean of the deviations from the
turn-index mean in its cell, shrunk towards the level before by `strength` pseudo-actions:

    c_m = (sum of deviations in the cell + strength * c_{m-1}) / (size of the cell + strength)

Strength 0 gives the cell means of `aria`, an infinite strength the mean by role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import numpy as np

from aria_dvc.credit.cells import cell_means
from aria_dvc.credit.methods.base import ValueByHistory, episode_folds
from aria_dvc.credit.methods.contexts import Contexts, Level
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.intentions.log import Log

STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
WHOLE = 1_000_000
DEPTHS = (0, 1, 2, 4, WHOLE)
Fit = tuple[np.ndarray, np.ndarray]


class ShrinkageCredit(ValueByHistory):
    """History back-off with `strength` and `depth` (utterances looked back) by cross-validation.

    v is the same back-off over histories without the action. Both are out of fold.

    Args:
        strength, depth: fixed values; None chooses from STRENGTHS and DEPTHS.
        folds: episodes are held out in so many parts to choose.
        with_action: False backs off over what was said before the action.
    """

    in_sample = False
    uses_labels = True
    uses_vectors = False

    def __init__(
        self,
        strength: float | None = None,
        depth: int | None = None,
        folds: int = 5,
        seed: int = 0,
        with_action: bool = True,
    ) -> None:
        self.options = strength, depth, folds, seed
        self.skipped = 0 if with_action else 1
        self.strengths = STRENGTHS if strength is None else (strength,)
        self.depths = DEPTHS if depth is None else (depth,)
        self.folds, self.seed = folds, seed

    def fit(self, data: Log) -> Self:
        self.keep(data.without_vectors())
        self.contexts_ = Contexts(max(self.depths), self.skipped)
        levels = self.contexts_.fit(data)
        self.strength_, self.depth_ = self._choose(data, levels)
        self.turn_index_ = TurnIndexCredit(self.strength_).fit(data)
        residual = data.targets - self.turn_index_.q(data)
        self.effects_ = list(cell_effects(levels, residual, self.strength_))
        return self

    def of_history(self) -> ShrinkageCredit:
        return ShrinkageCredit(*self.options, with_action=False)

    def q(self, data: Log) -> np.ndarray:
        levels = self.contexts_.find(data)[: self.depth_ + 1]
        deviation = np.zeros(len(data.actions))
        for level, effects in zip(levels, self.effects_, strict=False):
            deviation[level.actions] = effects[level.cells]
        return self.turn_index_.q(data) + deviation

    def _choose(self, data: Log, levels: list[Level]) -> tuple[float, int]:
        pairs = [(s, d) for s in self.strengths for d in self.depths]
        if len(pairs) == 1 or data.acting_episodes < 2:
            return pairs[-1]
        fold = episode_folds(data, self.folds, self.seed)
        fits = [(s, turn_index_fits(data, fold, s)) for s in self.strengths]
        errors = held_out_errors(levels, data.targets, fits, self.depths)
        return pairs[int(np.argmin(errors))]


def cell_effects(
    levels: Sequence[Level], residual: np.ndarray, strength: float, weight: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """Per level the shrunken mean residual of each cell, (cells,) float64.

    weight: (A,) 1 for an action that counts, 0 for one held out; None counts all.
    """
    before = np.zeros(1)
    for level in levels:
        before = cell_means(
            level.cells,
            residual[level.actions],
            len(level.parents),
            weight=None if weight is None else weight[level.actions],
            strength=strength,
            prior=before[level.parents],
        )
        yield before


def held_out_errors(
    levels: list[Level],
    targets: np.ndarray,
    fits: Iterable[tuple[float, Iterable[Fit]]],
    depths: Sequence[int],
    counted: np.ndarray | None = None,
) -> np.ndarray:
    """(strengths, depths, M) sums of squared errors on held-out episodes.

    targets: (A,) returns. fits: the turn-index fits of each strength.
    counted: (M, A) masks of the actions that are summed over; None for a single one of all.
    """
    counted = np.ones((1, len(targets)), bool) if counted is None else counted
    return np.stack(
        [
            sum(
                _fold_errors(levels, targets - turn_index, strength, weight, depths, counted)
                for turn_index, weight in folds
            )
            for strength, folds in fits
        ]
    )


def turn_index_fits(data: Log, fold: np.ndarray, strength: float) -> Iterator[Fit]:
    """Per fold held out: (A,) turn-index credit fitted without it, (A,) 1 where not held out."""
    for held in np.unique(fold):
        fitted = TurnIndexCredit(strength).fit(data.where(fold != held))
        yield fitted.q(data), (fold != held)[data.actions].astype(np.float64)


def _fold_errors(
    levels: list[Level],
    residual: np.ndarray,
    strength: float,
    weight: np.ndarray,
    depths: Sequence[int],
    counted: np.ndarray,
) -> np.ndarray:
    """(depths, M) sums of squared errors of the actions with weight 0."""
    held = counted & (weight == 0)
    errors = np.full((len(depths), len(counted)), np.nan)
    effect = np.zeros(len(residual))
    for number, effects in enumerate(cell_effects(levels, residual, strength, weight)):
        level = levels[number]
        effect[level.actions] = effects[level.cells]
        for index, depth in enumerate(depths):
            if depth == number or (number == len(levels) - 1 and depth > number):
                errors[index] = held @ (residual - effect) ** 2
    return errors
