"""What every credit method takes and gives: arrays of utterances in, one credit an action out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CreditData:
    """n utterances of E episodes, rows of one episode together and in the order spoken.

    episode: (n,) int64, 0..E-1 in order of appearance.
    role: (n,) str.
    is_action: (n,) bool; A = is_action.sum() rows get a credit.
    text: (n,) str objects.
    embeddings: (n, d) float32; d may be 0 for methods that do not use them.
    labels: (n,) integers, the intention of each utterance at the chosen k.
    returns: (n,) float64, R(h_t, a_t) of the actions (paper sec. 3.3), NaN where there is none.
    """

    episode: np.ndarray
    role: np.ndarray
    is_action: np.ndarray
    text: np.ndarray
    embeddings: np.ndarray
    labels: np.ndarray
    returns: np.ndarray

    def __len__(self) -> int:
        return len(self.episode)

    @property
    def actions(self) -> np.ndarray:
        """(A,) row numbers of the actions."""
        return np.flatnonzero(self.is_action)

    @property
    def targets(self) -> np.ndarray:
        """(A,) realised returns."""
        return self.returns[self.is_action]

    @property
    def position(self) -> np.ndarray:
        """(n,) 0-based place of each utterance in its episode."""
        return _running_count(self.episode)

    @property
    def turn(self) -> np.ndarray:
        """(n,) own-turn index of each utterance's speaker, from 1."""
        names, codes = np.unique(self.role, return_inverse=True)
        return _running_count(self.episode * len(names) + codes) + 1

    def where(self, rows: np.ndarray) -> CreditData:
        """The rows selected by an (n,) mask; episodes are numbered afresh."""
        episode = np.unique(self.episode[rows], return_inverse=True)[1]
        return CreditData(
            episode,
            self.role[rows],
            self.is_action[rows],
            self.text[rows],
            self.embeddings[rows],
            self.labels[rows],
            self.returns[rows],
        )

    def with_returns(self, returns: np.ndarray) -> CreditData:
        return replace(self, returns=returns)


class CreditMethod(Protocol):
    """Fitted on whole episodes, then asked for the credit of any episode, seen or not.

    in_sample: the credit of a fitted episode is read from the fit itself, own return included, as
        the paper does; False: `fit_credit` gives fitted episodes their credit out of fold.
    uses_labels, uses_embeddings: what of `CreditData` is read beside texts and roles.
    """

    in_sample: bool
    uses_labels: bool
    uses_embeddings: bool

    def fit(self, data: CreditData) -> Self: ...

    def credit(self, data: CreditData) -> np.ndarray:
        """(A,) float64, one number an action; returns in `data` are never read."""
        ...


def credit_data(
    turns: pd.DataFrame,
    returns: np.ndarray,
    embeddings: np.ndarray | None = None,
    labels: np.ndarray | None = None,
) -> CreditData:
    """A turns frame (see `records.tables`) with its aligned arrays.

    Args:
        returns: (n,) float64, NaN where there is no return.
        embeddings: (n, d) float32, or None for none.
        labels: (n,) integers, or None (every utterance gets label 0).

    Raises:
        AriaError: arrays of different lengths, or rows of one episode that are not together.
    """
    import pandas as pd

    n = len(turns)
    vectors = np.zeros((n, 0), np.float32) if embeddings is None else embeddings
    intentions = np.zeros(n, np.int64) if labels is None else np.asarray(labels, np.int64)
    if not len(vectors) == len(intentions) == len(returns) == n:
        raise AriaError(
            f"{n} turns, {len(vectors)} embeddings, {len(intentions)} labels and {len(returns)} "
            "returns: all must have one row an utterance; run embed and cluster again"
        )
    episode = pd.factorize(turns["episode_id"])[0].astype(np.int64)
    if (np.diff(episode) < 0).any():
        raise AriaError("the utterances of an episode are not together: sort by episode, position")
    return CreditData(
        episode,
        turns["role"].to_numpy(dtype=object).astype(str),
        turns["is_action"].to_numpy(dtype=bool),
        turns["text"].to_numpy(dtype=object),
        vectors,
        intentions,
        np.asarray(returns, np.float64),
    )


def concatenated(parts: Sequence[CreditData]) -> CreditData:
    """The episodes of several data sets, one after the other."""
    starts = np.cumsum([0, *(_episodes(part) for part in parts)])
    episode = np.concatenate([p.episode + s for p, s in zip(parts, starts, strict=False)])
    columns = ("role", "is_action", "text", "embeddings", "labels", "returns")
    return CreditData(episode, *(np.concatenate([getattr(p, c) for p in parts]) for c in columns))


def episode_folds(episode: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """(n,) fold number of each row: whole episodes, dealt evenly in random order.

    Fewer episodes than `folds` give as many folds as there are episodes.

    Raises:
        AriaError: there is a single episode, so that nothing can be held out.
    """
    count = int(episode.max(initial=-1)) + 1
    if count < 2:
        raise AriaError("credit out of fold needs at least 2 episodes: give a longer log")
    dealt = np.random.default_rng(seed).permutation(count) % min(folds, count)
    return dealt[episode]


def fit_credit(method: CreditMethod, data: CreditData, folds: int = 5, seed: int = 0) -> np.ndarray:
    """Credit of the very episodes that are fitted, (A,) float64; leaves `method` fitted on all.

    A method with `in_sample` reads it from its fit; any other is fitted on the other folds, so
    that no turn sees the returns of its own episode. Of a single episode nothing can be held out:
    there it is the mean return of the role.
    """
    if method.in_sample:
        return method.fit(data).credit(data)
    if _episodes(data) < 2:
        method.fit(data)
        return by_role(role_means(data), data.role[data.actions])
    credit = out_of_fold(method, data, folds, seed)
    method.fit(data)
    return credit


def out_of_fold(
    method: CreditMethod, data: CreditData, folds: int = 5, seed: int = 0
) -> np.ndarray:
    """(A,) float64: the credit of each action by a fit on the other folds' episodes."""
    fold = episode_folds(data.episode, folds, seed)
    if not method.uses_embeddings:
        data = replace(data, embeddings=data.embeddings[:, :0])  # not worth a copy per fold
    credit = np.empty(len(data))
    for held in np.unique(fold):
        test = fold == held
        scored = method.fit(data.where(~test)).credit(data.where(test))
        credit[np.flatnonzero(test & data.is_action)] = scored
    return credit[data.is_action]


def role_means(data: CreditData) -> dict[str, float]:
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


def _episodes(data: CreditData) -> int:
    return int(data.episode.max(initial=-1)) + 1


def _running_count(groups: np.ndarray) -> np.ndarray:
    """(n,) how many earlier rows have the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(ordered) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    sizes = np.diff(np.r_[starts, len(ordered)])
    count = np.empty(len(groups), np.int64)
    count[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return count
