"""What a credit consists of, and what it leaks, on a log with outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from aria_dvc.credit.cells import cell_codes
from aria_dvc.credit.skill import groups_of
from aria_dvc.intentions.log import Log
from aria_dvc.records.turns import own_turns
from aria_dvc.resampling import groups_drawn

DRAWS = 200


def judged(
    log: Log, credit: np.ndarray, final: np.ndarray, q: np.ndarray, v: np.ndarray
) -> dict[str, Any]:
    """All that is said of one credit.

    credit: (A,) finite. final: (A,) the acting role's final reward. q, v: (A,) what is expected
    with and without the action, by fits on other groups.
    """
    frame = _frame(log, credit, final)
    spread, whole = float(frame["credit"].var(ddof=0)), float(log.targets.var())
    centred = frame["credit"] - frame.groupby("role")["credit"].transform("mean")
    squares = float((centred**2).sum())
    return {
        "actions": len(frame),
        "mean": float(credit.mean()),
        "variance": spread,
        "variance_over_returns": spread / whole if whole > 0 else None,
        "parts": parts(frame),
        "leakage": leakage(frame, q),
        "effective_turns": float(centred.abs().sum() ** 2 / squares) if squares > 0 else 0.0,
        "sum_to_outcome": _sums(frame),
        "sign_agreement": _signs(frame, centred.to_numpy(), q - v),
    }


def _frame(log: Log, credit: np.ndarray, final: np.ndarray) -> pd.DataFrame:
    rows = log.actions
    turns = own_turns(log.episode, log.role)[1][rows]
    words = pd.factorize(np.array([text.strip() for text in log.text], dtype=object))[0]
    return pd.DataFrame(
        {
            "episode": log.episode[rows],
            "group": groups_of(log),
            "role": log.role[rows],
            "turn": log.turn[rows],
            "turns": turns,
            "cell": cell_codes(log, words),
            "final": final,
            "credit": credit,
        }
    )


def parts(frame: pd.DataFrame) -> dict[str, float | None]:
    """Share of the credit's variance that each of these tells alone (adjusted R2, from 0).

    role; clock: role and turn index; length: role and the number of own turns, which is not known
    before the end; task: the group, null where every episode is a group of its own.
    """
    found: dict[str, float | None] = {
        "role": _explained(frame, ["role"]),
        "clock": _explained(frame, ["role", "turn"]),
        "length": _by_episode(frame, "turns"),
        "task": _by_episode(frame, "group"),
    }
    if frame["group"].nunique() == frame["episode"].nunique():
        found["task"] = None
    return found


def _by_episode(frame: pd.DataFrame, column: str) -> float:
    """What role and a property of whole episodes tell: of their means, as far as these differ.

    Turns of an episode are alike, so that to count them would take chance for an explanation.
    """
    own = frame.groupby(["role", "episode"], as_index=False).agg(
        credit=("credit", "mean"), value=(column, "first")
    )
    return _explained(own, ["role", "value"]) * _explained(frame, ["role", "episode"])


def _explained(frame: pd.DataFrame, columns: list[str]) -> float:
    grouped = frame.groupby(columns)["credit"]
    total = float(((frame["credit"] - frame["credit"].mean()) ** 2).sum())
    freedom = len(frame) - grouped.ngroups
    if total <= 1e-12 or freedom < 1:
        return 0.0
    within = float(((frame["credit"] - grouped.transform("mean")) ** 2).sum())
    return max(0.0, 1 - (within / freedom) / (total / (len(frame) - 1)))


def leakage(frame: pd.DataFrame, q: np.ndarray, seed: int = 0) -> dict[str, Any]:
    """Whether the credit depends on what came after the action.

    Returns:
        twins: actions said word for word after the same history in several episodes; differing:
            the share of them whose credits differ, which only the future can explain. later: what
            the outcome and the turns to go add to the R2 of turn and expectation q, with a 95 %
            interval over groups (see `_interval`); an upper bound, as far as q is not the whole
            expectation.
    """
    cell = frame.groupby("cell")
    several = cell["episode"].transform("nunique") > 1
    gap = cell["credit"].transform(lambda own: own.max() - own.min())
    least = 1e-9 + 1e-6 * float(frame["credit"].abs().max())
    differing = float((gap[several] > least).mean()) if several.any() else None
    roles = pd.get_dummies(frame["role"]).to_numpy(float)
    known = np.column_stack([roles, roles * frame[["turn"]].to_numpy(float), q])
    later = frame[["final"]].to_numpy(float), (frame["turns"] - frame["turn"]).to_numpy(float)
    full = np.column_stack([known, *later, later[0][:, 0] * later[1]])
    value = _added(known, full, frame["credit"].to_numpy())
    draws = groups_drawn(frame["group"].to_numpy(), DRAWS, seed)
    given = frame["credit"].to_numpy()
    interval = _interval([_added(known[d], full[d], given[d]) for d in draws])
    return {
        "twins": int(several.sum()),
        "differing": differing,
        "later": {"value": value, **interval},
    }


def _interval(values: list[float]) -> dict[str, float | None]:
    """`low` and `high` of 95 % of the values of draws; None where there was a single group."""
    if not values:
        return {"low": None, "high": None}
    low, high = np.quantile(values, [0.025, 0.975])
    return {"low": float(low), "high": float(high)}


def _added(known: np.ndarray, full: np.ndarray, credit: np.ndarray) -> float:
    """The R2 that the further columns add, from 0 to 1."""
    total = float(((credit - credit.mean()) ** 2).sum())
    if total <= 1e-12:
        return 0.0
    left = [_left(columns, credit) for columns in (known, full)]
    return max(0.0, (left[0] - left[1]) / total)


def _left(columns: np.ndarray, credit: np.ndarray) -> float:
    solution = np.linalg.lstsq(columns, credit, rcond=None)[0]
    return float(((credit - columns @ solution) ** 2).sum())


def _sums(frame: pd.DataFrame) -> dict[str, float | None]:
    """An episode's credits added up, beside its outcome: mean distance, and correlation."""
    own = frame.groupby(["episode", "role"]).agg(credit=("credit", "sum"), final=("final", "first"))
    varies = own["credit"].std() > 1e-12 and own["final"].std() > 1e-12
    return {
        "distance": float((own["credit"] - own["final"]).abs().mean()),
        "correlation": float(own["credit"].corr(own["final"])) if varies else None,
    }


def _signs(frame: pd.DataFrame, centred: np.ndarray, advantage: np.ndarray) -> dict[str, Any]:
    """How often the credit, less its role's mean, has the sign of a held-out q - v.

    Chance is 0.5. Turns for which one of the two is 0 do not count.
    """
    counted = (np.abs(centred) > 1e-12) & (np.abs(advantage) > 1e-12)
    if not counted.any():
        return {"value": None, "low": None, "high": None, "turns": 0}
    same = np.sign(centred[counted]) == np.sign(advantage[counted])
    draws = groups_drawn(frame["group"].to_numpy()[counted], DRAWS, 0)
    interval = _interval([float(same[rows].mean()) for rows in draws])
    return {"value": float(same.mean()), **interval, "turns": int(counted.sum())}
