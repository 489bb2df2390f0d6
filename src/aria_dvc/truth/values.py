"""Q, V and A = Q - V of turns from the returns of continuations, with their standard errors.

Q is the mean return of the continuations of the recorded action. V is the mean over other actions
that were drawn from the same player at the same history, each with continuations of its own. The
recorded action is a draw of the policy too, but it has no part in V: with it among K + 1 draws,
A would be K / (K + 1) of what it is, and its error would be correlated with that of V. Nor has the
recorded game a part in Q, on whose outcome a credit is fitted. So A is unbiased given the history
and the action, whatever made the turn be chosen.

Squared standard errors are unbiased, but where few continuations meet a rare end a single one may
be far too small. 0 says that all games that were played on ended alike: certain after a move that
ends the game or where nothing can be won any more, likely where many were played.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Values:
    """(n,) float64 each, one a turn; errors are standard errors.

    first, second: A by one half of the continuations of the action and of the draws, and by the
    other; the halves share nothing. Their mean is `advantage` where nothing is missing.
    """

    q: np.ndarray
    v: np.ndarray
    advantage: np.ndarray
    se_q: np.ndarray
    se_v: np.ndarray
    se_advantage: np.ndarray
    first: np.ndarray
    second: np.ndarray


def values_of(own: np.ndarray, drawn: np.ndarray) -> Values:
    """The values of n turns; NaN is a continuation that says nothing, and what follows from none.

    The error of v is that of the mean of K independent draws, whose spread holds both the choice of
    the action and the chance of its continuations; more of these make the draws less noisy, more
    draws do that too.

    Args:
        own: (n, N) returns of the continuations of the recorded action.
        drawn: (n, K, M) returns of M continuations of each of K drawn actions.
    """
    draws = mean_and_error(drawn)[0]
    (q, se_q), (v, se_v) = mean_and_error(own), mean_and_error(draws)
    halves = [
        mean_and_error(own[:, half::2])[0] - mean_and_error(draws[:, half::2])[0]
        for half in range(2)
    ]
    return Values(q, v, q - v, se_q, se_v, np.hypot(se_q, se_v), *halves)


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the last axis of what is not NaN, and its standard error.

    Equal values have exactly their value as the mean and exactly 0 as the error. The mean of none
    is NaN, and so is the error of fewer than two.
    """
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    first = np.take_along_axis(values, known.argmax(axis=-1)[..., None], axis=-1)
    apart = np.where(known, values - first, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = apart.sum(axis=-1) / count
        spread = np.where(known, apart - shift[..., None], 0.0)
        variance = (spread**2).sum(axis=-1) / (count - 1)
        error = np.where(count > 1, np.sqrt(variance / count), np.nan)
    return first[..., 0] + shift, error
