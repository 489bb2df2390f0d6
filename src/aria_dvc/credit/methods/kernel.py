"""Soft intentions: an action is worth what actions of like meaning after like histories were."""

from __future__ import annotations

from aria_dvc.credit.methods.regression import RegressionCredit
from aria_dvc.credit.methods.similarity import same_meaning_heard


class KernelCredit(RegressionCredit):
    """Similarity in embedding space in place of equal labels; words are not looked at."""

    uses_words = False

    def __init__(self, landmarks: int = 1600, folds: int = 4, seed: int = 0) -> None:
        super().__init__((same_meaning_heard,), landmarks, folds=folds, seed=seed)
