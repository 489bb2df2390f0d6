"""PPO's value head: V(h_t), linear in the policy's hidden state at the end of the history.

It is fitted at the start of every iteration to the rewards to come, by ridge regression, and a
group of episodes is valued by a head that has not seen the group. A head that is trained beside the
policy starts from nothing, and offline there is one iteration only; one that has seen an outcome
would explain it away, and the advantage with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aria_dvc.learning.advantages import EQUAL
from aria_dvc.learning.examples import Key

FOLDS = 5
PENALTIES = np.logspace(0, 6, 7)  # that are tried, on standardised states


@dataclass(frozen=True)
class Steps:
    """n turns, those of one dialogue one after the other.

    keys: their actions; dialogues: (log, episode, role); groups: of episodes with one
    configuration; rewards: (n,) float64, of the turn itself; states: (n, H) float32, the hidden
    state from which the turn begins.
    """

    keys: Sequence[Key]
    dialogues: Sequence[tuple[str, str, str]]
    groups: Sequence[str]
    rewards: np.ndarray
    states: np.ndarray


def rewards_to_come(steps: Steps) -> np.ndarray:
    """(n,) float64: the sum of the dialogue's rewards from each turn on."""
    total = steps.rewards.astype(np.float64).copy()
    for t in reversed(range(len(total) - 1)):
        if steps.dialogues[t + 1] == steps.dialogues[t]:
            total[t] += total[t + 1]
    return total


def fitted_values(steps: Steps) -> tuple[np.ndarray, float]:
    """(n,) float64 values of the histories, and their R2, both out of fold by group.

    Where there is nothing to learn (one group, equal targets) the value is the targets' mean and
    the R2 0.
    """
    targets = rewards_to_come(steps)
    groups = sorted(set(steps.groups))
    constant = np.full(len(targets), targets.mean() if len(targets) else 0.0)
    spread = np.ptp(targets) if len(targets) else 0.0
    if len(groups) < 2 or spread <= EQUAL * np.abs(targets).max():
        return constant, 0.0
    fold_of = {group: number % FOLDS for number, group in enumerate(groups)}
    folds = np.array([fold_of[group] for group in steps.groups])
    values = constant.copy()
    for fold in np.unique(folds):
        values[folds == fold] = _valued(steps.states, targets, folds != fold)[folds == fold]
    r2 = 1 - ((targets - values) ** 2).sum() / ((targets - constant) ** 2).sum()
    return values, float(r2)


def _valued(states: np.ndarray, targets: np.ndarray, fit: np.ndarray) -> np.ndarray:
    """(n,) values by a head that is fitted to the rows in `fit`."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    head = make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
    head.fit(states[fit].astype(np.float64), targets[fit])
    values: np.ndarray = head.predict(states.astype(np.float64))
    return values
