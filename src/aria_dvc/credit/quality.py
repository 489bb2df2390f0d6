"""How good is a credit? Held-out accuracy, calibration, variance, sample size and bias.

R2 here is the share of the variance of the realised discounted returns R(h_t, a_t) of episodes
that were not fitted which their credit explains: 1 - SSE / SST, both over all held-out actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from aria_dvc.credit.methods.base import (
    CreditMethod,
    InSample,
    as_paid,
    episode_folds,
    out_of_fold,
)
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.methods.shared import shared_by_methods
from aria_dvc.credit.settings import Aggregate
from aria_dvc.credit.skill import skill_scores, with_baselines
from aria_dvc.credit.variance import r_squared, variance, variances
from aria_dvc.intentions.log import Log

DECILES = 10
ENOUGH_FREEDOM = 50.0
MOST_DRAWS = 25


def credit_quality(
    make: Callable[[], CreditMethod], data: Log, folds: int = Aggregate.folds, seed: int = 0
) -> dict[str, Any]:
    """Everything that is reported of a credit method on one log.

    Args:
        make: gives an unfitted method.
        data: the log, at least two episodes, with returns.
        folds: episodes are held out in so many parts.

    Returns:
        r2: of `method`, of each baseline, and of `cell_means` of the log's intentions if it has
            some, pooled over the held-out actions; null if all returns are equal. r2_folds: mean
            and standard deviation over the folds.
        calibration, calibration_error: see `calibration`.
        variance_before, variance_after, variance_ratio: of the returns and of the credit that
            the policy would be trained with.
        skill: see credit/skill.py, of the discounted returns; undiscounted_skill: the same of a
            fit on undiscounted ones, of which no part is the clock's; null where gamma is 1.
        effective_sample_size: see `effective_sample_size`; by_turn: see `by_turn`.
    """
    method = make()
    payments = [as_paid, Log.undiscounted] if data.is_discounted else [as_paid]
    passes = with_baselines({"method": method}, data, payments, folds, seed)
    skill, *undiscounted = [
        skill_scores(held["method"], over, pay(data), seed)
        for pay, (held, over) in zip(payments, passes, strict=True)
    ]
    values, over = passes[0][0]["method"], passes[0][1]
    held = {**over, **_cell_means(data, folds, seed), "method": values.q}
    used = _in_sample(method, data) if method.in_sample else values.q
    noise = noise_variance(make, data, used, folds, seed)
    return {
        "episodes": data.acting_episodes,
        "actions": len(data.targets),
        **_accuracy(held, data, folds, seed),
        **_variances(data.targets, used),
        "skill": skill,
        "undiscounted_skill": undiscounted[0] if undiscounted else None,
        "effective_sample_size": effective_sample_size(noise),
        "by_turn": by_turn(data, used, noise),
    }


def _cell_means(data: Log, folds: int, seed: int) -> dict[str, np.ndarray]:
    """The paper's credit, held out, where the log has intentions."""
    if not data.labels.any():
        return {}
    return {"cell_means": out_of_fold(make_method("aria"), data, folds, seed, with_value=False).q}


def _in_sample(method: CreditMethod, data: Log) -> np.ndarray:
    return cast("InSample", method.fit(data)).fitted().q


def _accuracy(held: dict[str, np.ndarray], data: Log, folds: int, seed: int) -> dict[str, Any]:
    """R2 of each (A,) held-out credit, and the calibration of that of `method`."""
    fold = episode_folds(data, folds, seed)[data.actions]
    table = calibration(held["method"], data.targets)
    return {
        "r2": {name: r_squared(credit, data.targets) for name, credit in held.items()},
        "r2_folds": {name: _spread(credit, data.targets, fold) for name, credit in held.items()},
        "calibration": table,
        "calibration_error": _calibration_error(table),
    }


def calibration(credit: np.ndarray, returns: np.ndarray) -> list[dict[str, float]]:
    """Mean credit and mean realised return of ten equal groups in the order of the credit.

    Actions of equal credit stay in one group, so that a constant has a single row.
    """
    _, inverse = np.unique(credit, return_inverse=True)
    rank = np.cumsum(np.bincount(inverse)) - 1
    group = (rank * DECILES // len(credit))[inverse]
    return [
        {
            "decile": number,
            "actions": int((group == value).sum()),
            "credit": float(credit[group == value].mean()),
            "return": float(returns[group == value].mean()),
        }
        for number, value in enumerate(np.unique(group), start=1)
    ]


def noise_variance(
    make: Callable[[], CreditMethod],
    data: Log,
    credit: np.ndarray,
    folds: int = Aggregate.folds,
    seed: int = 0,
) -> np.ndarray:
    """(A,) squared change of each action's credit when noise is added to the returns, in units
    of the noise's variance; NaN where it was not measured.

    The noise is +-1 standard deviation of the returns, independent for every action. For a credit
    that is a weighted sum of returns the expectation is the sum of the squared weights; for the
    mean of n returns that is 1 / n. Methods that are credited out of fold are measured on their
    first fold, which costs one fit. The noise is drawn anew until the squares add up to
    ENOUGH_FREEDOM (they follow a chi-squared law with about so many degrees of freedom).

    Args:
        credit: (A,) the credit without noise, of the same folds and seed.
    """
    scale = float(np.sqrt(variance(data.targets))) or 1.0
    rng = np.random.default_rng(seed)
    held = episode_folds(data, folds, seed) == 0
    known, asked = data.where(~held), data.where(held)
    drawn: list[np.ndarray] = []
    with shared_by_methods(known, asked):
        while len(drawn) < MOST_DRAWS and np.nansum(drawn) < ENOUGH_FREEDOM:
            signs = rng.choice((-1.0, 1.0), size=len(credit))
            returns = data.returns.copy()
            returns[data.is_action] += scale * signs
            method, moved = make(), np.full(len(credit), np.nan)
            if method.in_sample:
                moved[:] = _in_sample(method, data.with_returns(returns))
            else:
                noisy = known.with_returns(returns[~held])
                moved[held[data.is_action]] = method.fit(noisy).q(asked)
            drawn.append(((moved - credit) / scale) ** 2)
    return np.mean(drawn, axis=0)


def effective_sample_size(noise: np.ndarray) -> float | None:
    """How many returns the credit of a turn averages over: 1 / mean of `noise_variance`.

    For cell means it is the number of turns divided by the number of cells. None where the credit
    does not depend on the returns, or was not measured.
    """
    measured = noise[np.isfinite(noise)]
    mean = float(measured.mean()) if len(measured) else 0.0
    return 1.0 / mean if mean > 0 else None


def by_turn(data: Log, credit: np.ndarray, noise: np.ndarray) -> list[dict[str, Any]]:
    """Per role and own-turn index: actions, bias proxy (mean |credit - return|), sample size."""
    role, turn = data.role[data.actions], data.turn[data.actions]
    rows = []
    for name in np.unique(role):
        for index in np.unique(turn[role == name]):
            chosen = (role == name) & (turn == index)
            gap = np.abs(credit[chosen] - data.targets[chosen])
            row = {"role": str(name), "turn": int(index), "actions": int(chosen.sum())}
            row["bias"] = float(gap.mean())
            row["effective_sample_size"] = effective_sample_size(noise[chosen])
            rows.append(row)
    return rows


def _spread(credit: np.ndarray, returns: np.ndarray, fold: np.ndarray) -> dict[str, float] | None:
    scores = [r_squared(credit[fold == f], returns[fold == f]) for f in np.unique(fold)]
    known = [score for score in scores if score is not None]
    if not known:
        return None
    return {"mean": float(np.mean(known)), "std": float(np.std(known))}


def _calibration_error(table: list[dict[str, float]]) -> float:
    """Mean |credit - return| over the groups, weighted by their sizes."""
    total = sum(row["actions"] for row in table)
    return sum(row["actions"] * abs(row["credit"] - row["return"]) for row in table) / total


def _variances(returns: np.ndarray, credit: np.ndarray) -> dict[str, float | None]:
    before, after = variances(returns, credit)
    ratio = after / before if before > 0 else None
    return {"variance_before": before, "variance_after": after, "variance_ratio": ratio}
