"""The choice of k from the curves of all cuts (paper sec. 3.4, App. C and E).

Every method's choice is always recorded beside the one that counts. Geometric indices and
cross-validation take the best value, at equal values the smallest k; `split_score` takes the
smallest k from which R~ stays put: SplitScore(j) < eps for all j in [k, k + tau].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.curves import CellCurves
from aria_dvc.credit.settings import SelectK
from aria_dvc.errors import AriaError
from aria_dvc.intentions.cuts import NestedLabels
from aria_dvc.intentions.indices import Indices

if TYPE_CHECKING:
    import pandas as pd

METHODS = (
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "split_score",
    "cross_validated",
)


@dataclass(frozen=True)
class Selection:
    """A chosen k and how it came about.

    method: the method asked for. overridden: whether an integer k was given instead.
    capped_from: that integer, if it exceeded the number of distinct utterances.
    choices: what each method with a curve would choose, the asked one included.
    converged: whether some k fulfilled the rule of `split_score` (else it chose the largest k).
    """

    k: int
    method: str
    overridden: bool
    capped_from: int | None
    choices: dict[str, int]
    converged: bool

    def record(self) -> dict[str, Any]:
        """The fields as plain values for JSON; `runners_up` are the choices of other methods."""
        others = {name: k for name, k in self.choices.items() if name != self.method}
        return {
            "k": self.k,
            "method": self.method,
            "overridden": self.overridden,
            "capped_from": self.capped_from,
            "runners_up": others,
            "split_score_converged": self.converged,
        }


def curve_frame(
    indices: Indices, cells: CellCurves, role: int | None = None, r2: np.ndarray | None = None
) -> pd.DataFrame:
    """One row per k: every index and cell statistic, in the columns that `select_k` reads.

    role: code of the role whose actions count; None for all. `indices` should then have been
        computed on that role's utterances.
    r2: (J,) held-out R2 of the credit at each k, for `cross_validated`.

    Raises:
        AriaError: curves over different k.
    """
    import pandas as pd

    if not np.array_equal(indices.ks, cells.ks) or (r2 is not None and len(r2) != len(cells.ks)):
        raise AriaError("curves: indices, cells and r2 are not over the same k; compute them again")
    column = 0 if role is None else role + 1
    frame = pd.DataFrame(
        {
            "k": indices.ks,
            "silhouette": indices.silhouette,
            "calinski_harabasz": indices.calinski_harabasz,
            "davies_bouldin": indices.davies_bouldin,
            "inertia": indices.inertia,
            "split_score": cells.split_score[:, column],
            "cells": cells.cells[:, column],
            "singleton_share": cells.singletons[:, column],
            "live_share": cells.live[:, column],
            "variance": cells.variance[:, column],
            "variance_ratio": _ratio(cells.variance[:, column], cells.variance_of_returns[column]),
        }
    )
    if r2 is not None:
        frame["r2"] = r2
    return frame


def drawn_curve(curve: pd.DataFrame) -> pd.DataFrame:
    """The curve with a gap where every cluster is a single point, which these indices cannot judge.

    Their values there, 0 and 1, would look like the best and like a fall.
    """
    known = _known(curve["davies_bouldin"].to_numpy())
    told = curve["calinski_harabasz"].where(~np.isnan(known))
    return curve.assign(davies_bouldin=known, calinski_harabasz=told)


def select_k(
    curve: pd.DataFrame,
    *,
    method: str = SelectK.method,
    distinct: int,
    eps: float = SelectK.eps,
    tau: int = SelectK.tau,
    k: int | None = None,
) -> Selection:
    """Choose k from a curve made by `curve_frame`.

    distinct: number of distinct utterances; beyond it no cluster can split.
    k: overrides the method; capped at `distinct`.

    Raises:
        AriaError: unknown method, `cross_validated` without its column or without any value in it,
            k below 2 or above k_max, eps or tau out of range.
    """
    _check(curve, method, eps, tau)
    if k is None and method == "cross_validated" and curve["r2"].isna().all():
        raise AriaError(
            "select_k.method = cross_validated needs at least 2 episodes: give a longer log, or "
            "choose another method"
        )
    ks = curve["k"].to_numpy()
    complete = int(ks[-1]) >= distinct
    stable, converged = split_score_choice(ks, curve["split_score"].to_numpy(), eps, tau, complete)
    choices = {
        "silhouette": _best(ks, curve["silhouette"].to_numpy()),
        "calinski_harabasz": _best(ks, curve["calinski_harabasz"].to_numpy()),
        "davies_bouldin": _best(ks, -_known(curve["davies_bouldin"].to_numpy())),
        "split_score": stable,
    }
    if "r2" in curve:
        choices["cross_validated"] = _best(ks, curve["r2"].to_numpy())
    if k is None:
        return Selection(choices[method], method, False, None, choices, converged)
    return _overridden(k, ks, complete, method, choices, converged)


def split_score_choice(
    ks: np.ndarray, scores: np.ndarray, eps: float, tau: int, complete: bool
) -> tuple[int, bool]:
    """(k, whether the rule was fulfilled): the smallest k with scores below eps on [k, k + tau].

    scores: (J,) SplitScore at each k; the last is unknown (NaN) unless `complete`, when no cluster
        can split any more and it and all later ones are 0. Where no k qualifies the largest is
        taken.
    """
    calm = np.asarray(np.nan_to_num(scores, nan=0.0 if complete else np.inf) < eps)
    tail = np.full(tau, complete)
    run = np.lib.stride_tricks.sliding_window_view(np.concatenate([calm, tail]), tau + 1)
    fits = np.flatnonzero(np.asarray(run.all(axis=1))[: len(ks)])
    return (int(ks[fits[0]]), True) if fits.size else (int(ks[-1]), False)


def labels_by_role(nested: NestedLabels, role: np.ndarray, k_of_role: dict[int, int]) -> np.ndarray:
    """(n,) uint8 labels where each role's utterances are cut at that role's k.

    role: (n,) role codes; a role without a k of its own is cut at the largest k given.
    """
    labels = nested.at(max(k_of_role.values()))
    for code, k in k_of_role.items():
        labels = np.where(role == code, nested.at(k), labels)
    return labels


def _check(curve: pd.DataFrame, method: str, eps: float, tau: int) -> None:
    if method not in METHODS:
        raise AriaError(f"select_k.method = '{method}' is unknown; choose one of {METHODS}")
    if method == "cross_validated" and "r2" not in curve:
        raise AriaError("select_k.method = cross_validated needs the held-out R2 of every k")
    if not eps > 0 or tau < 0:
        raise AriaError(f"select_k: eps = {eps} must be above 0 and tau = {tau} at least 0")


def _best(ks: np.ndarray, values: np.ndarray) -> int:
    """The smallest k with the highest value; NaN never wins, all NaN gives the smallest k."""
    return int(ks[np.argmax(np.nan_to_num(values, nan=-np.inf))])


def _known(davies_bouldin: np.ndarray) -> np.ndarray:
    """NaN where the index is 0: with every cluster a single point it says nothing."""
    return np.where(davies_bouldin > 0.0, davies_bouldin, np.nan)


def _overridden(
    k: int, ks: np.ndarray, complete: bool, method: str, choices: dict[str, int], converged: bool
) -> Selection:
    largest = int(ks[-1])
    if k < min(2, largest) or (k > largest and not complete):
        raise AriaError(f"k = {k} is outside 2..{largest}, the finest cut (cluster.k_max)")
    capped = k if k > largest else None
    return Selection(min(k, largest), method, True, capped, choices, converged)


def _ratio(part: np.ndarray, whole: float) -> np.ndarray:
    return part / whole if whole > 0 else np.full_like(part, np.nan)
