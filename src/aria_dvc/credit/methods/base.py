"""What every credit method takes and gives: a log in, two values an action out.

q(h_t, a_t) is what is expected with the action, v(h_t) without it, both of one fit. The credit of
an action is q, its advantage q - v.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol, Self, cast

import numpy as np

from aria_dvc.credit.methods.shared import shared_by_methods
from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.workers import workers

Payment = Callable[[Log], Log]  # the same log, with these or with other returns


@dataclass(frozen=True)
class Values:
    """(A,) float64 each: q(h_t, a_t), and v(h_t) of the same actions."""

    q: np.ndarray
    v: np.ndarray

    @property
    def advantage(self) -> np.ndarray:
        """(A,) float64 q - v."""
        return self.q - self.v


class CreditMethod(Protocol):
    """Fitted on whole episodes, then asked for the values of any episode, seen or not.

    in_sample: the values of fitted episodes are read from the fit itself (`InSample.fitted`), own
        return included, as the paper does; False: `fit_values` gives them out of fold.
    uses_labels, uses_vectors: what of the log is read beside texts and roles.
    """

    in_sample: bool
    uses_labels: bool
    uses_vectors: bool

    def fit(self, data: Log) -> Self: ...

    def q(self, data: Log) -> np.ndarray:
        """(A,) float64 credit; returns in `data`, and what follows an action, are never read."""
        ...

    def v(self, data: Log) -> np.ndarray:
        """(A,) float64 value of what was said before each action; the action is not read either."""
        ...


class InSample(CreditMethod, Protocol):
    """A method whose values of fitted episodes hold their own returns."""

    def fitted(self) -> Values:
        """Of the A actions that were fitted."""
        ...


class ValueByHistory:
    """v of a method by a second fit of the same kind that sees no action.

    It is made when v is first asked for, so that q alone costs one fit.
    """

    _fitted: Log
    _history: CreditMethod | None = None

    def of_history(self) -> CreditMethod:
        """An unfitted method whose q looks at the history alone."""
        raise NotImplementedError

    def keep(self, data: Log) -> None:
        """Remember what was fitted; forget what an earlier fit was worth."""
        self._fitted, self._history = data, None

    def v(self, data: Log) -> np.ndarray:
        if self._history is None:
            self._history = self.of_history().fit(self._fitted)
        return self._history.q(data)


def episode_folds(data: Log, folds: int, seed: int) -> np.ndarray:
    """(n,) fold number of each row: whole groups of episodes, dealt evenly in random order.

    Where groups are known (the trials of a task, the games of a configuration), an episode is
    never fitted on others of its group; of a single group the episodes are dealt. Fewer groups
    than `folds` give as many folds as there are groups. Episodes without any action are not dealt
    but in fold 0, so that every fold holds out some action.

    Raises:
        AriaError: there is a single episode with actions, so that nothing can be held out.
    """
    acting = np.unique(data.episode[data.actions])
    if len(acting) < 2:
        raise AriaError("credit out of fold needs at least 2 episodes: give a longer log")
    units = _units(data, acting)
    dealt = np.zeros(data.episodes, np.int64)
    count = int(units.max()) + 1
    shuffled = np.random.default_rng(seed).permutation(count)
    dealt[acting] = shuffled[units] % min(folds, count)
    return dealt[data.episode]


def _units(data: Log, acting: np.ndarray) -> np.ndarray:
    """What is dealt: (a,) number of each acting episode's group, in order of appearance."""
    if data.group is not None:
        _, first, inverse = np.unique(data.group[acting], return_index=True, return_inverse=True)
        if len(first) > 1:
            return np.argsort(np.argsort(first))[inverse]
    return np.arange(len(acting))


def fit_values(
    method: CreditMethod, data: Log, folds: int = Aggregate.folds, seed: int = 0
) -> Values:
    """Values of the very episodes that are fitted.

    A method with `in_sample` reads them from its fit; any other is fitted on the other folds, so
    that no turn sees the returns of its own episode. Of a single episode nothing can be held out:
    there both are the mean return of the role.
    """
    if method.in_sample:
        return cast("InSample", method.fit(data)).fitted()
    if data.acting_episodes < 2:
        means = by_role(role_means(data), data.role[data.actions])
        return Values(means, means)
    return out_of_fold(method, data, folds, seed)


def out_of_fold(
    method: CreditMethod,
    data: Log,
    folds: int = Aggregate.folds,
    seed: int = 0,
    with_value: bool = True,
) -> Values:
    """The values of each action by a fit on the other folds' episodes.

    with_value: False leaves v NaN, which saves its fit.
    """
    return all_out_of_fold({"": method}, data, folds, seed, [""] if with_value else [])[""]


def all_out_of_fold(
    methods: Mapping[str, CreditMethod],
    data: Log,
    folds: int = Aggregate.folds,
    seed: int = 0,
    valued: Collection[str] | None = None,
) -> dict[str, Values]:
    """`out_of_fold` of several methods, which share what they compute of the same episodes.

    valued: those of which v is wanted too, the others' is NaN; None for all.
    """
    return out_of_fold_by_payment(methods, data, [as_paid], folds, seed, valued)[0]


def as_paid(data: Log) -> Log:
    """The payment that a log has."""
    return data


def out_of_fold_by_payment(
    methods: Mapping[str, CreditMethod],
    data: Log,
    payments: Sequence[Payment],
    folds: int = Aggregate.folds,
    seed: int = 0,
    valued: Collection[str] | None = None,
) -> list[dict[str, Values]]:
    """`all_out_of_fold` under several returns, which share what does not depend on them.

    Folds are judged side by side, each by fresh copies of the methods.

    payments: each is a pass of its own; some episodes of the log are paid as they would be in it.
    """
    fold = episode_folds(data, folds, seed)
    logs = {uses: data if uses else data.without_vectors() for uses in _used(methods)}
    found = [{name: np.full((2, len(data)), np.nan) for name in methods} for _ in payments]

    def judge(held: int) -> None:
        test = fold == held
        rows = np.flatnonzero(test & data.is_action)
        parts = {uses: (log.where(~test), log.where(test)) for uses, log in logs.items()}
        fresh = {name: copy(method) for name, method in methods.items()}
        with shared_by_methods(*(log for pair in parts.values() for log in pair)):
            for pay, columns in zip(payments, found, strict=True):
                paid = {uses: (pay(known), asked) for uses, (known, asked) in parts.items()}
                for name, (q, v) in _asked(fresh, paid, valued):
                    columns[name][0][rows], columns[name][1][rows] = q, v

    with workers() as pool:
        pool.run(judge, ((held,) for held in np.unique(fold)))
    acting = data.is_action
    return [
        {name: Values(q[acting], v[acting]) for name, (q, v) in columns.items()}
        for columns in found
    ]


def _asked(
    methods: Mapping[str, CreditMethod],
    parts: Mapping[bool, tuple[Log, Log]],
    valued: Collection[str] | None,
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray | float]]]:
    """Name, and q and v of what is asked, of each method; v is NaN where it is not wanted.

    parts: with and without vectors, what is fitted and what is asked.
    """
    with shared_by_methods(*(known for known, _ in parts.values())):
        for name, method in methods.items():
            known, asked = parts[method.uses_vectors]
            fitted, wanted = method.fit(known), valued is None or name in valued
            yield name, (fitted.q(asked), fitted.v(asked) if wanted else np.nan)


def _used(methods: Mapping[str, CreditMethod]) -> set[bool]:
    """Whether there are methods with vectors, and without."""
    return {method.uses_vectors for method in methods.values()}


def role_means(data: Log) -> dict[str, float]:
    """Mean return of each role's actions, and of all of them under the empty name."""
    rows = data.is_action
    if not rows.any() or not np.isfinite(data.targets).all():
        raise AriaError("an action without return cannot be fitted: give logs with final rewards")
    means = {"": float(data.targets.mean())}
    for role in np.unique(data.role[rows]):
        means[str(role)] = float(data.returns[rows & (data.role == role)].mean())
    return means


def by_role(means: dict[str, float], role: np.ndarray) -> np.ndarray:
    """The mean of each row's role; a role never fitted gets the mean of all."""
    return np.array([means.get(name, means[""]) for name in role.tolist()], np.float64)
