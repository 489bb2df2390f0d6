"""Kernel ridge regression on landmarks (Nystroem), its penalty chosen on held-out episodes.

With K_nm the kernel between n actions and m landmarks and K_mm = L L^T, every action has the
features K_nm L^-T, and the regression costs n m^2 instead of n^3. Features are float32: only L,
whose kernel may be nearly singular, is made in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.linalg
from scipy.linalg.blas import ssyrk

from aria_dvc.credit.methods.similarity import Described, Kernel, Similarity

PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
START = 8.0
JITTER = 1e-4
_BLOCK = 512  # actions whose kernel stays in the processor's cache


@dataclass(frozen=True)
class Fold:
    """One part held out: (A,) residual returns as a fit on the rest sees them, (A,) mask."""

    residual: np.ndarray
    held: np.ndarray


class LandmarkFeatures:
    """(m,) features of an action whose inner products are a kernel, as the landmarks see it."""

    def __init__(self, kernel: Kernel, landmarks: Described) -> None:
        self.kernel, self.landmarks = kernel, landmarks
        self.root = self._root()

    def of(self, actions: Described) -> np.ndarray:
        """(A, m) float32."""
        features = np.empty((len(actions), len(self.root)), np.float32)
        root = self.root.astype(np.float32, order="F")
        for start in range(0, len(actions), _BLOCK):
            block = slice(start, start + _BLOCK)
            kernel = self.kernel(Similarity(actions.take(block), self.landmarks))
            features[block] = scipy.linalg.solve_triangular(root, kernel.T, lower=True).T
        return features

    def on_landmarks(self, weights: np.ndarray) -> np.ndarray:
        """(m,) float64 weights of the landmarks for those of the features."""
        return scipy.linalg.solve_triangular(self.root.T, weights.astype(np.float64), lower=False)

    def _root(self) -> np.ndarray:
        """(m, m) float64 lower Cholesky factor of the landmarks' kernel."""
        exact = self.landmarks.in_float64()
        kernel = self.kernel(Similarity(exact, exact))
        kernel[np.diag_indices(len(kernel))] += JITTER * max(np.trace(kernel) / len(kernel), JITTER)
        return np.linalg.cholesky(kernel)


class Design:
    """What of a regression is the same whatever the returns.

    features: (A, m) float32. grams: one (m, m) float32 of each fold's held-out actions, of which
        the lower triangle is meant. gram: their sum.
    """

    def __init__(
        self, kernel: Kernel, landmarks: Described, actions: Described, held: list[np.ndarray]
    ) -> None:
        self.basis = LandmarkFeatures(kernel, landmarks)
        self.features = self.basis.of(actions)
        self.grams = [_lower_gram(self.features[rows]) for rows in held]
        self.gram = np.sum(self.grams, axis=0)


class LandmarkRidge:
    """Regression of residual returns on one kernel.

    Attributes:
        penalty_: chosen from PENALTIES. held_out_: (A,) prediction of each fitted action by the
        fit without its fold. weights_: (m,) weight of each landmark.
    """

    def __init__(self, kernel: Kernel, landmarks: Described) -> None:
        self.kernel, self.landmarks = kernel, landmarks

    def fit(self, design: Design, residual: np.ndarray, folds: list[Fold]) -> Self:
        """design: of this kernel, these landmarks and the folds' held-out actions."""
        features, gram = design.features, design.gram
        known = [np.where(fold.held, 0.0, fold.residual) for fold in folds]
        moments = features.T @ np.stack(known, axis=1).astype(np.float32)
        held = np.stack([fold.held for fold in folds], axis=1)

        def held_out(penalty: float) -> np.ndarray:
            fits = [
                _solution(gram - part, moment, penalty)
                for part, moment in zip(design.grams, moments.T, strict=True)
            ]
            return np.where(held, features @ np.stack(fits, axis=1), 0.0).sum(axis=1)

        self.penalty_, self.held_out_ = _descend(held_out, folds)
        solution = _solution(gram, features.T @ residual.astype(np.float32), self.penalty_)
        self.weights_ = design.basis.on_landmarks(solution)
        return self

    def predict(self, actions: Described) -> np.ndarray:
        """(A,) float64 residual returns."""
        return predicted(self.kernel, self.landmarks, self.weights_, actions)


def predicted(
    kernel: Kernel, landmarks: Described, weights: np.ndarray, actions: Described
) -> np.ndarray:
    """(A,) float64 weighted sums of the kernel with the landmarks, whose (m,) weights these are."""
    found = np.empty(len(actions))
    for start in range(0, len(actions), _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = kernel(Similarity(actions.take(block), landmarks)) @ weights
    return found


def _lower_gram(rows: np.ndarray) -> np.ndarray:
    """rows.T @ rows of (h, m) float32 rows, the lower triangle alone."""
    gram: np.ndarray = ssyrk(1.0, rows.T, lower=1)
    return gram


def _solution(gram: np.ndarray, moment: np.ndarray, penalty: float) -> np.ndarray:
    """(m,) float32 ridge coefficients; the lower triangle of the gram is read."""
    damped = gram.copy()
    damped[np.diag_indices(len(damped))] += np.float32(penalty)
    factor = scipy.linalg.cho_factor(damped, lower=True, overwrite_a=True)
    return scipy.linalg.cho_solve(factor, moment)


def _descend(
    held_out: Callable[[float], np.ndarray], folds: list[Fold]
) -> tuple[float, np.ndarray]:
    """The penalty at which the held-out error stops falling, and the predictions there."""
    tried: dict[int, tuple[float, np.ndarray]] = {}

    def error(place: int) -> float:
        if place not in tried:
            found = held_out(PENALTIES[place])
            tried[place] = (_squared_error(found, folds), found)
        return tried[place][0]

    best = PENALTIES.index(START)
    for step in (1, -1):
        while 0 <= best + step < len(PENALTIES) and error(best + step) < error(best):
            best += step
    return PENALTIES[best], tried[best][1]


def _squared_error(found: np.ndarray, folds: list[Fold]) -> float:
    return sum(float(((found - fold.residual)[fold.held] ** 2).sum()) for fold in folds)
