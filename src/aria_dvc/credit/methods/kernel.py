"""Soft intentions: an action is worth what actions of like meaning after like histories were."""

from __future__ import annotations

from aria_dvc.credit.methods.regression import RegressionCredit
from aria_dvc.credit.methods.similarity import Kernel, meaning_before, same_meaning_heard


class KernelCredit(RegressionCredit):
    """Similarity in embedding space in place of equal labels; words are not looked at."""

    def __init__(
        self,
        landmarks: int = 1600,
        folds: int = 4,
        seed: int = 0,
        kernel: Kernel = same_meaning_heard,
    ) -> None:
        super().__init__((kernel,), landmarks, folds=folds, seed=seed)

    def of_history(self) -> KernelCredit:
        return KernelCredit(self.landmarks, self.folds, self.seed, meaning_before)
