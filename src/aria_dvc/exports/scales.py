"""Advantages in units of their own spread, by role, and what trainers take in their place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.credit.variance import variance
from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 20.0


@dataclass(frozen=True)
class Scale:
    """spread: standard deviation of a role's advantages, by role.

    beta: the temperature of positive weights, and least: what is too small to have a sign, both
    in these units. A weight lies between 1 / LARGEST and LARGEST. rounding: a difference that is
    none, by role.
    """

    spread: dict[str, float]
    beta: float = 1.0
    least: float = 0.1
    rounding: Mapping[str, float] = field(default_factory=dict)

    def weight(self, role: str, advantage: float) -> float:
        """exp(A / beta), positive: trainers mask a weight of 0 or less, they do not push down."""
        power = advantage / (self.beta * self.spread[role])
        return float(np.clip(np.exp(min(power, 50.0)), 1 / LARGEST, LARGEST))

    def is_small(self, role: str, difference: float) -> bool:
        """Whether it has no sign: it is below `least`, or nothing but rounding."""
        size = abs(difference)
        return size < self.least * self.spread[role] or size <= self.rounding[role]


def scale_of(table: pd.DataFrame, beta: float = 1.0, least: float = 0.1) -> Scale:
    """The scale of a credit table.

    Raises:
        AriaError: numbers out of range, or a role whose advantages are all equal.
    """
    from aria_dvc.learning.advantages import EQUAL

    check_numbers(beta, least)
    spread, rounding = {}, {}
    for role, own in table.groupby("role")[["advantage", "credit"]]:
        deviation = math.sqrt(variance(own["advantage"].to_numpy()))
        rounding[str(role)] = EQUAL * float(own["credit"].abs().max())
        if not deviation > rounding[str(role)]:
            raise AriaError(
                f"all advantages of {role} are equal: nothing to learn from; take another "
                "--method, or more episodes of different outcome, or name the others by --agent"
            )
        spread[str(role)] = deviation
    return Scale(spread, beta, least, rounding)


def check_numbers(beta: float, least: float) -> None:
    """Raises AriaError for numbers out of range."""
    if not (0 < beta < math.inf and 0 <= least < math.inf):
        raise AriaError("--beta must be above 0 and --least not below it, and both be finite")
