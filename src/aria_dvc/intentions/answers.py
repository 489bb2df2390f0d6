"""Answers with fixed labels: in Twenty Questions only the questions are clustered (paper App. D).

Everywhere else both sides' utterances share one tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from aria_dvc.records.names import FIXED_ANSWERS

YES, NO, OTHER = 0, 1, 2


def clustered_rows(role: np.ndarray, is_action: np.ndarray, game: str) -> np.ndarray:
    """(n,) bool: the utterances that are clustered; the rest are answers with fixed labels.

    A role that asks is clustered in every episode, also where its player is not trained.
    """
    if game not in FIXED_ANSWERS:
        return np.ones(len(is_action), bool)
    return np.isin(role, np.unique(role[is_action]))


def answer_kinds(texts: Iterable[str]) -> np.ndarray:
    """(n,) int64 YES, NO or OTHER by an answer's first word."""
    first = [re.split(r"\W+", text.strip().lower(), maxsplit=1)[0] for text in texts]
    return np.array([{"yes": YES, "no": NO}.get(word, OTHER) for word in first], np.int64)
