"""A check that the credit of an action depends on nothing that comes after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from aria_dvc.credit.methods.base import CreditMethod
from aria_dvc.intentions.log import Log, joined

TOLERANCE = 1e-9
OF_VECTORS = 1e-6  # products of float32 round by their shapes on CPUs without AVX-512


class LeakageError(AssertionError):
    """A credit changed although nothing before its action did."""


def assert_no_leakage(
    make: Callable[[], CreditMethod],
    fitted: Log,
    scored: Log,
    cuts: tuple[int, ...] = (0, 1, 3),
    seed: int = 0,
) -> None:
    """Fit on `fitted`, then require that the future of `scored` episodes changes no credit.

    For every cut c each episode of `scored` is changed after its c-th action: cut off, everything
    replaced by utterances of other episodes, made longer. Outcomes are replaced throughout, and
    each episode is also scored without the others. The credit of the first c + 1 actions must
    stay the same to 1e-9, of methods that look at vectors to 1e-6.

    Raises:
        LeakageError: it does not; the message names the change and the action.
    """
    method = make().fit(fitted)
    tolerance = OF_VECTORS if method.uses_vectors else TOLERANCE
    for value in (method.q, method.v):
        _unchanged(value, scored, cuts, seed, tolerance)


def _unchanged(
    value: Callable[[Log], np.ndarray],
    scored: Log,
    cuts: tuple[int, ...],
    seed: int,
    tolerance: float,
) -> None:
    credit = value(scored)
    for name, changed in _alone_or_other_outcomes(scored, seed):
        _compare(credit[: len(changed.actions)], value(changed), name, tolerance)
    for cut in cuts:
        past = _up_to_action(scored, cut)
        kept = credit[past[scored.is_action]]
        for name, changed, same in _other_futures(scored, past, seed):
            found = value(changed)[same[changed.is_action]]
            _compare(kept, found, f"{name} after {cut}", tolerance)


def _alone_or_other_outcomes(data: Log, seed: int) -> Iterator[tuple[str, Log]]:
    noise = np.random.default_rng(seed).normal(size=len(data))
    yield "other outcomes", data.with_returns(np.where(data.is_action, noise, np.nan))
    yield "no outcomes", data.with_returns(np.full(len(data), np.nan))
    yield "first episode alone", data.where(data.episode == 0)


def _up_to_action(data: Log, cut: int) -> np.ndarray:
    """(n,) True up to and including the action number `cut` (0-based) of each episode."""
    done = np.cumsum(data.is_action) - data.is_action
    start = np.flatnonzero(np.r_[True, np.diff(data.episode) > 0])
    before = done - np.repeat(done[start], np.diff(np.r_[start, len(data)]))
    return before <= cut


def _other_futures(data: Log, past: np.ndarray, seed: int) -> Iterator[tuple[str, Log, np.ndarray]]:
    """(name, changed data, mask of its rows that are the unchanged past)."""
    rng = np.random.default_rng(seed)
    yield "cut off", data.where(past), np.ones(int(past.sum()), bool)
    other = np.where(past, np.arange(len(data)), rng.integers(0, len(data), len(data)))
    swapped = replace(
        data,
        role=data.role[other],
        is_action=data.is_action[other],
        text=data.text[other],
        vectors=data.vectors[other],
        labels=data.labels[other],
    )
    yield "other utterances", swapped, past
    yield "longer", *_longer(data, past, rng)


def _longer(data: Log, past: np.ndarray, rng: np.random.Generator) -> tuple[Log, np.ndarray]:
    """Every episode's past followed by seven utterances of any episode."""
    parts, masks = [], []
    for episode in np.unique(data.episode):
        own = data.where(past & (data.episode == episode))
        extra = np.zeros(len(data), bool)
        extra[rng.choice(len(data), min(7, len(data)), replace=False)] = True
        more = data.where(extra)
        both = joined([own, more])
        one = {"episode": np.zeros(len(both), np.int64), "target": own.target}
        parts.append(replace(both, **one))
        masks.append(np.arange(len(both)) < len(own))
    return joined(parts), np.concatenate(masks)


def _compare(expected: np.ndarray, found: np.ndarray, change: str, tolerance: float) -> None:
    gap = np.abs(expected - found)
    if len(expected) != len(found) or not (gap <= tolerance).all():
        worst = int(np.argmax(gap)) if len(expected) == len(found) else -1
        raise LeakageError(
            f"{change}: credit of action {worst} went from {expected[worst]:.6g} to "
            f"{found[worst]:.6g} though nothing up to it changed"
        )
