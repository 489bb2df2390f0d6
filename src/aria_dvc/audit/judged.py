"""What a credit consists of, and what it leaks, on a log with outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from aria_dvc.credit.cells import cell_codes
from aria_dvc.credit.skill import groups_of
from aria_dvc.credit.variance import variance
from aria_dvc.intentions.log import Log
from aria_dvc.records.episodes import Episode
from aria_dvc.records.turns import own_turns
from aria_dvc.resampling import groups_drawn

DRAWS = 200
TWINS_DIFFER = 1e-6
"""Of the largest credit: what is less is rounding."""


@dataclass(frozen=True)
class Tasks:
    """What was known before the first word: a credit may know it, and so does not look ahead.

    code: (E,) int64, equal for episodes of one task as far as the log says. by: what says it, for
        several episodes of several tasks; None where nothing does.
    """

    code: np.ndarray
    by: Literal["group", "prompt"] | None


def tasks_of(episodes: list[Episode], log: Log) -> Tasks:
    """Of the log's episodes by group; where each is its own, by prompts and configuration."""
    if log.group is not None:
        return Tasks(log.group, "group")
    told = [json.dumps([e.prompts, e.record.config], sort_keys=True) for e in episodes]
    code, known = pd.factorize(np.array(told, dtype=object))
    return Tasks(code.astype(np.int64), "prompt" if 1 < len(known) < len(told) else None)


def judged(
    log: Log, tasks: Tasks, credit: np.ndarray, final: np.ndarray, q: np.ndarray, v: np.ndarray
) -> dict[str, Any]:
    """All that is said of one credit.

    credit: (A,) finite. final: (A,) the acting role's final reward. q, v: (A,) what is expected
    with and without the action, by fits on other groups.
    """
    largest = float(np.abs(credit).max(initial=0.0))
    frame = _frame(log, tasks, credit / (largest or 1.0), final)  # shares have no scale
    spread, whole = variance(credit), variance(log.targets)
    centred = frame["credit"] - frame.groupby("role")["credit"].transform("mean")
    squares = float((centred**2).sum())
    return {
        "actions": len(frame),
        "mean": float(credit.mean()),
        "variance": spread,
        "variance_over_returns": spread / whole if whole > 0 else None,
        "parts": parts(frame),
        "leakage": {**leakage(frame, q, tasks.by is not None), "tasks": tasks.by},
        "effective_turns": float(centred.abs().sum() ** 2 / squares) if squares > 0 else 0.0,
        "sum_to_outcome": _sums(frame.assign(credit=credit)),
        "sign_agreement": _signs(frame, centred.to_numpy(), q - v),
    }


def _frame(log: Log, tasks: Tasks, credit: np.ndarray, final: np.ndarray) -> pd.DataFrame:
    rows = log.actions
    turns = own_turns(log.episode, log.role)[1][rows]
    words = pd.factorize(np.array([text.strip() for text in log.text], dtype=object))[0]
    return pd.DataFrame(
        {
            "episode": log.episode[rows],
            "group": groups_of(log),
            "task": tasks.code[log.episode[rows]],
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
    between = 1.0 if len(own) == len(frame) else _explained(frame, ["role", "episode"])
    return _explained(own, ["role", "value"]) * between


def _explained(frame: pd.DataFrame, columns: list[str]) -> float:
    grouped = frame.groupby(columns)["credit"]
    total = float(((frame["credit"] - frame["credit"].mean()) ** 2).sum())
    freedom = len(frame) - grouped.ngroups
    if total <= 1e-12 or freedom < 1:
        return 0.0
    within = float(((frame["credit"] - grouped.transform("mean")) ** 2).sum())
    return max(0.0, 1 - (within / freedom) / (total / (len(frame) - 1)))


def leakage(
    frame: pd.DataFrame, q: np.ndarray, within: bool = True, seed: int = 0
) -> dict[str, Any]:
    """Whether the credit depends on what came after the action.

    within: outcomes are compared within role and task, so that to know the task is no leak.

    Returns:
        twins: actions said word for word after the same history in several episodes of one task;
            differing: the share of them whose credits differ, which only the future can explain
            where that task is known. later: what the outcome and the turns to go add to the R2 of
            turn and expectation q, with a 95 % interval over groups (see `_interval`); an upper
            bound, as far as q is not the whole expectation.
    """
    cell = frame.groupby(["task", "cell"])
    several = cell["episode"].transform("nunique") > 1
    gap = cell["credit"].transform("max") - cell["credit"].transform("min")
    differing = float((gap[several] > TWINS_DIFFER).mean()) if several.any() else None
    roles = pd.get_dummies(frame["role"]).to_numpy(float)
    known = np.column_stack([roles, roles * frame[["turn"]].to_numpy(float), q])
    later = frame[["final"]].to_numpy(float), (frame["turns"] - frame["turn"]).to_numpy(float)
    full = np.column_stack([known, *later, later[0][:, 0] * later[1]])
    whole = credit = frame["credit"].to_numpy()
    if within:
        known, full, credit = (_less_means(frame, of) for of in (known, full, credit))
    value = _added(known, full, credit, whole)
    draws = groups_drawn(frame["group"].to_numpy(), DRAWS, seed)
    interval = _interval([_added(known[d], full[d], credit[d], whole[d]) for d in draws])
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


def _less_means(frame: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    """(A,) or (A, m) values less their means over the role's actions in the task."""
    columns = pd.DataFrame(values)
    means = columns.groupby([frame["role"], frame["task"]]).transform("mean")
    return (columns - means).to_numpy(float).reshape(values.shape)


def _added(known: np.ndarray, full: np.ndarray, credit: np.ndarray, whole: np.ndarray) -> float:
    """The share of the whole credit's variance that the further columns add, from 0 to 1."""
    total = float(((whole - whole.mean()) ** 2).sum())
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
    varies = variance(own["credit"].to_numpy()) > 0 and variance(own["final"].to_numpy()) > 0
    return {
        "distance": float((own["credit"] - own["final"]).abs().mean()),
        "correlation": float(own["credit"].corr(own["final"])) if varies else None,
    }


def _signs(frame: pd.DataFrame, centred: np.ndarray, advantage: np.ndarray) -> dict[str, Any]:
    """How often the credit, less its role's mean, has the sign of a held-out q - v.

    Chance is 0.5. Turns for which one of the two is 0 do not count.
    """
    least = 1e-12 * float(np.abs(advantage).max(initial=0.0))
    counted = (np.abs(centred) > 1e-12) & (np.abs(advantage) > least)
    if not counted.any():
        return {"value": None, "low": None, "high": None, "turns": 0}
    same = np.sign(centred[counted]) == np.sign(advantage[counted])
    draws = groups_drawn(frame["group"].to_numpy()[counted], DRAWS, 0)
    interval = _interval([float(same[rows].mean()) for rows in draws])
    return {"value": float(same.mean()), **interval, "turns": int(counted.sum())}
