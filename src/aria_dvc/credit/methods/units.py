"""The units of credit by outcome: the actions of one role in one episode, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.credit.methods.base import by_role
from aria_dvc.intentions.log import Log


@dataclass(frozen=True)
class Units:
    """U units of the A actions of a log.

    order: (A,) actions sorted by unit, then as they were said. unit: (A,) unit of each action.
    first, last: (U,) actions. role: (U,) str. episode: (U,) int64.
    """

    order: np.ndarray
    unit: np.ndarray
    first: np.ndarray
    last: np.ndarray
    role: np.ndarray
    episode: np.ndarray

    def running(self, values: np.ndarray) -> np.ndarray:
        """Sums of (A, ...) values over the actions of a unit up to each one, itself included."""
        total = np.cumsum(values[self.order], axis=0)
        starts = np.searchsorted(self.unit[self.order], np.arange(len(self.first)))
        before = np.concatenate([np.zeros_like(total[:1]), total])[starts]
        found = np.empty_like(total)
        found[self.order] = total - before[self.unit[self.order]]
        return found

    def following(self) -> np.ndarray:
        """(A,) the unit's next action, -1 after its last one."""
        found = np.full(len(self.order), -1)
        same = self.unit[self.order[1:]] == self.unit[self.order[:-1]]
        found[self.order[:-1][same]] = self.order[1:][same]
        return found


def discounts(data: Log, following: np.ndarray) -> np.ndarray:
    """(A,) float64 gamma for every own turn up to the `following` action; 0 where there is none.

    Own turns that are no actions (buttons, with `moves: false`) count as they do in returns.
    """
    turn = data.turn[data.actions]
    later = following >= 0
    found = np.zeros(len(turn))
    found[later] = np.power(float(data.gamma), turn[following[later]] - turn[later])
    return found


def units_of(data: Log) -> Units:
    """The units of a log with at least one action."""
    rows = data.actions
    codes = data.episode[rows] * len(data.role_names) + data.role_codes[rows]
    unit = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(unit, kind="stable")
    ends = np.searchsorted(unit[order], np.arange(int(unit.max(initial=-1)) + 1), "right") - 1
    first = order[np.r_[0, ends[:-1] + 1]] if len(ends) else order
    return Units(order, unit, first, order[ends], data.role[rows][first], data.episode[rows][first])


def outcome_means(data: Log, units: Units) -> dict[str, float]:
    """Mean outcome R of each role's units, and of all under the empty name."""
    outcome = data.outcomes[units.first]
    means = {"": float(outcome.mean())}
    for role in np.unique(units.role):
        means[str(role)] = float(outcome[units.role == role].mean())
    return means


def mean_outcomes(means: dict[str, float], data: Log) -> np.ndarray:
    """(A,) the mean outcome of each action's role."""
    return by_role(means, data.role[data.actions])
