"""Cells and aggregated rewards at one k (paper sec. 3.3).

The cell of an action is the label sequence of everything said before it, by both sides, and its
own label; its aggregated reward R~ is the mean return of the cell. Returns of the two sides
differ in meaning, so the acting role is part of the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aria_dvc.errors import AriaError


@dataclass(frozen=True)
class Log:
    """n utterances in the order of their episodes.

    order: (n,) int64: rows of the caller's arrays sorted by episode, then position; what follows
        is in this order.
    episode: (n,) int64, 0 .. E - 1; place: (n,) int64, 0-based place in the episode.
    action: (A,) int64 places in this order of the actions.
    role, returns: (A,) role code and float64 return of each action.
    kind: (A,) int64, equal for actions of one role whose histories and texts are equal, or None
        if it is not known which utterances are equal.
    """

    order: np.ndarray
    episode: np.ndarray
    place: np.ndarray
    action: np.ndarray
    role: np.ndarray
    returns: np.ndarray
    kind: np.ndarray | None = None


@dataclass(frozen=True)
class Aggregated:
    """One entry per action, in the order of the caller's rows.

    row: (A,) int64 row of the action in the caller's arrays.
    label: (A,) its intention. cell: (A,) int64 in 0 .. C - 1, the same for any order of episodes.
    cell_size: (A,) int64. returns, reward: (A,) float64, R and R~.
    """

    row: np.ndarray
    label: np.ndarray
    cell: np.ndarray
    cell_size: np.ndarray
    returns: np.ndarray
    reward: np.ndarray


def make_log(
    episode: np.ndarray,
    position: np.ndarray,
    role: np.ndarray,
    is_action: np.ndarray,
    returns: np.ndarray,
    utterance: np.ndarray | None = None,
) -> Log:
    """Sort utterances into a `Log`.

    episode: (n,) integers or strings. position: (n,) integers, unique in an episode.
    role: (n,) small non-negative integers. is_action: (n,) bool.
    returns: (n,) float64, read where `is_action`.
    utterance: (n,) integers, equal for equal utterances (`Distinct.point`); actions that no label
        can tell apart are then handled as one, and known never to part.

    Raises:
        AriaError: no actions, an action without a finite return, a position twice in an episode.
    """
    position, code = np.asarray(position), _episode_codes(np.asarray(episode))
    new = np.ones(code.size, bool)
    new[1:] = np.diff(code) != 0
    order = np.arange(code.size)
    if (np.diff(code) < 0).any() or (np.diff(position)[~new[1:]] <= 0).any():
        order = np.lexsort((position, code))
        code = code[order]
        new[1:] = np.diff(code) != 0
    if (np.diff(position[order])[~new[1:]] == 0).any():
        raise AriaError("log: an episode has a position twice; give every utterance its own")
    starts = np.flatnonzero(new)
    place = np.arange(code.size) - starts[code] if code.size else np.zeros(0, np.int64)
    action = np.flatnonzero(np.asarray(is_action, bool)[order])
    gained = np.asarray(returns, np.float64)[order][action]
    if not action.size or not np.isfinite(gained).all():
        raise AriaError("log: credit needs actions with a return each; give logs with rewards")
    roles = np.asarray(role)[order][action].astype(np.int64)
    kind = None
    if utterance is not None:
        same = history_nodes(code, place, np.asarray(utterance, np.int64)[order])
        kind = same[action] * (int(roles.max()) + 1) + roles
    return Log(order, code, place, action, roles, gained, kind)


def _episode_codes(episode: np.ndarray) -> np.ndarray:
    """(n,) int64, 0 .. E - 1, one per episode; ascending numbers keep their order."""
    ascending = episode.dtype.kind in "iu" and not (episode[1:] < episode[:-1]).any()
    if ascending:
        return np.cumsum(np.diff(episode, prepend=episode[:1]) != 0)
    return np.unique(episode, return_inverse=True)[1].astype(np.int64)


def aggregate(log: Log, labels: np.ndarray) -> Aggregated:
    """Cells and R~ of every action under (n,) integer labels of the caller's rows."""
    labels = np.asarray(labels, np.int64)[log.order]
    node = history_nodes(log.episode, log.place, labels)
    roles = int(log.role.max()) + 1
    cell, size = np.unique(
        node[log.action] * roles + log.role, return_inverse=True, return_counts=True
    )[1:]
    whole, unit = to_fixed(log.returns)
    total = np.zeros(size.size, np.int64)
    np.add.at(total, cell, whole)
    reward = (total / size * unit)[cell]
    row = log.order[log.action]
    back = np.argsort(row, kind="stable")
    columns = (row, labels[log.action], cell, size[cell], log.returns, reward)
    return Aggregated(*(column[back] for column in columns))


def history_nodes(episode: np.ndarray, place: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) int64: a number per distinct label sequence from the start up to each utterance.

    Numbers go by length, then by the sequence itself, so they do not depend on episode order.
    """
    node = np.zeros(episode.size, np.int64)
    span = int(labels.max(initial=0)) + 1
    by_place = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[by_place], np.arange(int(place.max(initial=-1)) + 2))
    used = 0
    for at in range(ends.size - 1):
        rows = by_place[ends[at] : ends[at + 1]]
        parent = node[rows - 1] if at else 0
        values, inverse = np.unique(parent * span + labels[rows], return_inverse=True)
        node[rows] = used + inverse
        used += values.size
    return node


def to_fixed(returns: np.ndarray) -> tuple[np.ndarray, float]:
    """(A,) int64 multiples of the returned unit: sums of these are exact in any order.

    The unit is the smallest power of two that keeps every sum of A values in 62 bits, so that a
    value is off by less than 2^-41 of the largest for up to a million actions.
    """
    largest = float(np.abs(returns).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(returns.size, np.int64), 1.0
    bits = 62 - int(np.ceil(np.log2(returns.size + 1)))
    unit = 2.0 ** (np.ceil(np.log2(largest)) - bits)
    return np.rint(returns / unit).astype(np.int64), float(unit)
