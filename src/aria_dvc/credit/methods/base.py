"""What every credit method takes and gives: a log in, one credit an action out."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from aria_dvc.credit.settings import Aggregate
from aria_dvc.errors import AriaError
from aria_dvc.intentions.log import Log


class CreditMethod(Protocol):
    """Fitted on whole episodes, then asked for the credit of any episode, seen or not.

    in_sample: the credit of a fitted episode is read from the fit itself, own return included, as
        the paper does; False: `fit_credit` gives fitted episodes their credit out of fold.
    uses_labels, uses_vectors: what of the log is read beside texts and roles.
    centred: the credit is a difference from what the state is worth, not an expected return.
    """

    in_sample: bool
    uses_labels: bool
    uses_vectors: bool
    centred: bool

    def fit(self, data: Log) -> Self: ...

    def credit(self, data: Log) -> np.ndarray:
        """(A,) float64, one number an action; returns in `data` are never read."""
        ...


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


def fit_credit(
    method: CreditMethod, data: Log, folds: int = Aggregate.folds, seed: int = 0
) -> np.ndarray:
    """Credit of the very episodes that are fitted, (A,) float64.

    A method with `in_sample` reads it from its fit; any other is fitted on the other folds, so
    that no turn sees the returns of its own episode. Of a single episode nothing can be held out:
    there it is the mean return of the role, or 0 of a method that is centred.
    """
    if method.in_sample:
        return method.fit(data).credit(data)
    if data.acting_episodes < 2:
        means = by_role(role_means(data), data.role[data.actions])
        return np.zeros_like(means) if method.centred else means
    return out_of_fold(method, data, folds, seed)


def out_of_fold(
    method: CreditMethod, data: Log, folds: int = Aggregate.folds, seed: int = 0
) -> np.ndarray:
    """(A,) float64: the credit of each action by a fit on the other folds' episodes."""
    fold = episode_folds(data, folds, seed)
    if not method.uses_vectors:
        data = data.without_vectors()
    credit = np.empty(len(data))
    for held in np.unique(fold):
        test = fold == held
        scored = method.fit(data.where(~test)).credit(data.where(test))
        credit[np.flatnonzero(test & data.is_action)] = scored
    return credit[data.is_action]


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
