"""What a credit knows that cheaper ones do not: scores within role, on held-out episodes.

R2 within role is 1 - SSE / SST with SST around each role's own mean, so that telling the roles
apart earns nothing. Skill is 1 - SSE / SSE of the best baseline; what the action adds is the R2 of
q less that of v, the same method without the action. Intervals resample whole groups of episodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aria_dvc.credit.methods.base import CreditMethod, Payment, Values, out_of_fold_by_payment
from aria_dvc.credit.methods.constant import ConstantCredit
from aria_dvc.credit.methods.regression import RegressionCredit
from aria_dvc.credit.methods.turn_index import TurnIndexCredit
from aria_dvc.credit.settings import Aggregate
from aria_dvc.credit.variance import ROUNDING
from aria_dvc.intentions.log import Log

ALL = "all"
REPLICATES = 1000
LANDMARKS = 500  # of the baseline: 1600 take six times as long, for an R2 of 0.1637 against 0.1631
TAILS = (0.025, 0.975)
Predictions = Mapping[str, np.ndarray]


def baseline_methods() -> dict[str, CreditMethod]:
    """What a credit has to beat, unfitted.

    constant: the role's mean. turn_index: the mean at the own turn. history: the turn index and
    everything said before the action, by regression; the action itself is not seen.
    """
    return {
        "constant": ConstantCredit(),
        "turn_index": TurnIndexCredit(),
        "history": RegressionCredit(landmarks=LANDMARKS).of_history(),
    }


def with_baselines(
    methods: Mapping[str, CreditMethod],
    data: Log,
    payments: Sequence[Payment],
    folds: int = Aggregate.folds,
    seed: int = 0,
) -> list[tuple[dict[str, Values], dict[str, np.ndarray]]]:
    """Under each payment the held-out values of some methods, and q of the baselines, (A,).

    One pass, which shares what is computed of the same episodes.
    """
    baselines = {f"baseline {name}": of for name, of in baseline_methods().items()}
    every = {**methods, **baselines}
    passes = out_of_fold_by_payment(every, data, payments, folds, seed, valued=methods)
    return [
        ({name: held[name] for name in methods}, {_bare(name): held[name].q for name in baselines})
        for held in passes
    ]


def _bare(name: str) -> str:
    return name.removeprefix("baseline ")


def skill_scores(
    values: Values, baselines: Predictions, data: Log, seed: int = 0, replicates: int = REPLICATES
) -> dict[str, dict[str, Any]]:
    """Scores by role, and of all actions together under `all`.

    Args:
        values: held-out q and v of the A actions. baselines: see `with_baselines`.
        seed: draws the samples of groups.

    Returns:
        r2, value_r2 (of v), action_adds (r2 - value_r2) and skill, each with `value`, `low` and
        `high` (95 %, null for a single group); baselines: R2 of each; over: the best of them,
        that `skill` is measured against. Null where the returns do not vary.
    """
    named = {"q": values.q, "v": values.v, **baselines}
    sums = _cluster_sums(named, data)
    samples = _samples(sums, seed, replicates)
    roles = np.unique(data.role[data.actions]).tolist()
    asked = {ALL: slice(None), **{name: slice(i, i + 1) for i, name in enumerate(roles)}}
    return {name: _scores(sums.sum(axis=0), samples, of, named) for name, of in asked.items()}


def groups_of(data: Log, rows: np.ndarray | None = None) -> np.ndarray:
    """(A,) number of each action's group, or of (m,) rows'; the episode's if none are known."""
    episode = data.episode[data.actions if rows is None else rows]
    return episode if data.group is None else data.group[episode]


def _cluster_sums(named: Predictions, data: Log) -> np.ndarray:
    """(C, R, 3 + m) sums over the actions of each group and role: 1, y, y^2, squared errors.

    y is the return less its role's mean, which keeps the sum of squares exact.
    """
    cluster = np.unique(groups_of(data), return_inverse=True)[1]
    role = np.unique(data.role[data.actions], return_inverse=True)[1]
    means = np.bincount(role, data.targets) / np.bincount(role)
    y = data.targets - means[role]
    errors = [(data.targets - credit) ** 2 for credit in named.values()]
    shape = int(cluster.max()) + 1, int(role.max()) + 1
    cell, count = cluster * shape[1] + role, shape[0] * shape[1]
    columns = [np.bincount(cell, of, count) for of in (np.ones_like(y), y, y**2, *errors)]
    return np.stack(columns, axis=1).reshape(*shape, -1)


def _samples(sums: np.ndarray, seed: int, replicates: int) -> np.ndarray:
    """(replicates, R, 3 + m) sums over as many groups, drawn with replacement; none of one."""
    count, rng = len(sums), np.random.default_rng(seed)
    flat = sums.reshape(count, -1)
    drawn = [
        np.bincount(rng.integers(count, size=count), minlength=count) @ flat
        for _ in range(replicates if count > 1 else 0)
    ]
    return np.reshape(drawn, (len(drawn), *sums.shape[1:]))


def _scores(
    sums: np.ndarray, samples: np.ndarray, roles: slice, named: Predictions
) -> dict[str, Any]:
    """The scores of some roles from their sums, and their intervals from those of the samples."""
    total, errors = _of_roles(sums[None], roles)
    others = list(named)[2:]
    best = 2 + int(np.argmin(errors[0, 2:]))
    drawn = _ratios(*_of_roles(samples, roles), best)
    found = {
        name: _interval(value[0], drawn[name])
        for name, value in _ratios(total, errors, best).items()
    }
    r2 = [None if total[0] == 0 else float(1 - e / total[0]) for e in errors[0, 2:]]
    return {**found, "baselines": dict(zip(others, r2, strict=True)), "over": others[best - 2]}


def _of_roles(sums: np.ndarray, roles: slice) -> tuple[np.ndarray, np.ndarray]:
    """(B,) sum of squares around the roles' means, and (B, m) squared errors."""
    part = sums[:, roles]
    count, y, squared = part[..., 0], part[..., 1], part[..., 2]
    within = squared - y**2 / np.maximum(count, 1)
    total = np.where(within > ROUNDING * np.maximum(squared, 1), within, 0.0).sum(axis=1)
    return total, part[..., 3:].sum(axis=1)


def _ratios(total: np.ndarray, errors: np.ndarray, best: int) -> dict[str, np.ndarray]:
    """(B,) each score; NaN where it is not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(total[:, None] > 0, 1 - errors / total[:, None], np.nan)
        over = np.where(total > 0, 1 - errors[:, 0] / errors[:, best], np.nan)
    adds = r2[:, 0] - r2[:, 1]
    return {"r2": r2[:, 0], "value_r2": r2[:, 1], "action_adds": adds, "skill": over}


def _interval(value: float, drawn: np.ndarray) -> dict[str, float | None]:
    known = drawn[np.isfinite(drawn)]
    low, high = np.quantile(known, TAILS) if known.size else (np.nan, np.nan)
    numbers = {"value": value, "low": low, "high": high}
    return {name: float(of) if np.isfinite(of) else None for name, of in numbers.items()}
