"""R2 of the credit on held-out episodes at every k, for `select_k.method: cross_validated`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aria_dvc.credit.cells import cell_codes, cell_means
from aria_dvc.credit.methods.aria import CANDIDATES, backed_off
from aria_dvc.credit.methods.base import episode_folds, out_of_fold
from aria_dvc.credit.methods.constant import ConstantCredit
from aria_dvc.credit.methods.contexts import Contexts
from aria_dvc.credit.methods.registry import RECENT, make_method
from aria_dvc.credit.methods.shrinkage import (
    DEPTHS,
    STRENGTHS,
    held_out_errors,
    turn_index_fits,
)
from aria_dvc.credit.settings import Aggregate
from aria_dvc.credit.variance import r_squared, variance
from aria_dvc.intentions.log import Log

HISTORIES = ("aria", RECENT)
Errors = Callable[[np.ndarray], np.ndarray]


def r2_by_k(
    data: Log,
    labels: np.ndarray,
    method: str = Aggregate.method,
    folds: int = Aggregate.folds,
    seed: int = 0,
    counted: np.ndarray | None = None,
    history: int = Aggregate.history,
) -> np.ndarray:
    """The R2 that `credit_quality` would report of `method` if k were another.

    aria: exactly that, and aria_recent of a given history; else at the best history of each k.
    shrinkage: with the strength and depth that are best at each k.
    Methods that look at no labels have one R2 for all k; for them it is that of shrinkage, which
    says how much the labels tell about the returns.

    Args:
        data: the log, at least two episodes; its own labels are not used.
        labels: (n, K) integers, one column a k.
        method: `aggregate.method`.
        counted: (M, A) masks of the actions whose returns are to be predicted (all are fitted);
            None for a single mask of all.
        history: utterances that make a cell of `aria_recent`; 0 for the best.

    Returns:
        (M, K) float64; 0 where all counted returns are equal.
    """
    if counted is None:
        counted = np.ones((1, len(data.targets)), bool)
    if method in HISTORIES:
        lengths = _lengths(method, history)
        errors = _cell_mean_errors(data, counted, folds, seed, lengths)
    else:
        errors = _shrinkage_errors(data, counted, folds, seed)
    squared = np.stack([errors(column.astype(np.int64)) for column in labels.T], axis=1)
    total = np.array([[variance(data.targets[mask]) * mask.sum()] for mask in counted])
    return np.where(total > 0, 1.0 - squared / np.where(total > 0, total, 1.0), 0.0)


def nested_r2(
    data: Log,
    labels: np.ndarray,
    method: str = Aggregate.method,
    folds: int = Aggregate.folds,
    seed: int = 0,
    history: int = Aggregate.history,
) -> tuple[float | None, list[int]]:
    """Held-out R2 of a method whose k is chosen without the episodes that it is judged on.

    Each fold's k is the best by `r2_by_k` of the other folds' episodes alone. The best of many k
    on the folds that choose it is flattered; this is what choosing brings.

    Returns:
        The R2 (None where it is not defined), and the column of `labels` that each fold chose.
    """
    judged = method if method in (*HISTORIES, "shrinkage") else "shrinkage"
    fold, credit, chosen = episode_folds(data, folds, seed), np.empty(len(data)), []
    for held in np.unique(fold):
        test = fold == held
        rest = data.where(~test)
        if rest.acting_episodes < 2:
            return None, []
        r2 = r2_by_k(rest, labels[~test], judged, folds, seed, history=history)[0]
        chosen.append(int(np.argmax(r2)))
        at = data.without_vectors().with_labels(labels[:, chosen[-1]])
        settings = Aggregate(history=history, folds=folds)
        scored = make_method(judged, settings, seed).fit(at.where(~test)).q(at.where(test))
        credit[np.flatnonzero(test & data.is_action)] = scored
    return r_squared(credit[data.is_action], data.targets), chosen


def _cell_mean_errors(
    data: Log, counted: np.ndarray, folds: int, seed: int, lengths: list[tuple[int | None, ...]]
) -> Errors:
    """From labels to the (M,) squared errors of the cell means of the other folds' episodes.

    lengths: each a length of cells and those that stand in for it; the best of them counts. Where
    the action is in no cell, its history is (see `HistoryMeans`).
    """
    unseen = out_of_fold(ConstantCredit(), data, folds, seed).q
    targets, fold = data.targets, episode_folds(data, folds, seed)[data.actions]
    parts = [(fold == held, (fold != held).astype(np.float64)) for held in np.unique(fold)]
    orders = [[(length, own) for own in (True, False) for length in of] for of in lengths]
    kinds = dict.fromkeys(kind for order in orders for kind in order)

    def errors(labels: np.ndarray) -> np.ndarray:
        means = {kind: held_out(labels, *kind) for kind in kinds}
        credits = [_first([means[kind] for kind in order], unseen) for order in orders]
        squared = [(targets - credit) ** 2 for credit in credits]
        return counted @ min(squared, key=np.sum)

    def held_out(labels: np.ndarray, length: int | None, with_action: bool) -> np.ndarray:
        cell = cell_codes(data, labels, length, with_action)
        credit, count = np.empty(len(targets)), int(cell.max()) + 1
        for held, weight in parts:
            credit[held] = cell_means(cell, targets, count, weight=weight)[cell[held]]
        return credit

    return errors


def _lengths(method: str, history: int) -> list[tuple[int | None, ...]]:
    """The lengths of cells of `aria` and `aria_recent`, with what they fall back to."""
    if method != RECENT:
        return [(None,)]
    return [backed_off(length) for length in ((history,) if history else CANDIDATES)]


def _first(found: list[np.ndarray], last: np.ndarray) -> np.ndarray:
    """(A,) of several credits the first that is known, else the last."""
    credit = found[0]
    for other in (*found[1:], last):
        credit = np.where(np.isnan(credit), other, credit)
    return credit


def _shrinkage_errors(data: Log, counted: np.ndarray, folds: int, seed: int) -> Errors:
    """From labels to the (M,) squared errors of the history back-off at its best settings."""
    fold = episode_folds(data, folds, seed)
    fits = [(s, list(turn_index_fits(data, fold, s))) for s in STRENGTHS]
    weighed = np.concatenate([np.ones_like(counted[:1]), counted])

    def errors(labels: np.ndarray) -> np.ndarray:
        levels = Contexts(max(DEPTHS)).fit(data.with_labels(labels))
        found = held_out_errors(levels, data.targets, fits, DEPTHS, weighed).reshape(
            -1, len(weighed)
        )
        return found[np.argmin(found[:, 0]), 1:]

    return errors
