"""Answers with fixed labels: in Twenty Questions only the questions are clustered (paper App. D).

Everywhere else both sides' utterances share one tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from aria_dvc.records.names import FIXED_ANSWERS

YES, NO, OTHER = 0, 1, 2


def clustered_rows(is_action: np.ndarray, game: str) -> np.ndarray:
    """(n,) bool: the utterances that are clustered; the rest are answers with fixed labels."""
    return is_action if game in FIXED_ANSWERS else np.ones(len(is_action), bool)


def answer_kinds(texts: Iterable[str]) -> np.ndarray:
    """(n,) int64 YES, NO or OTHER by an answer's first word."""
    first = [re.split(r"\W+", text.strip().lower(), maxsplit=1)[0] for text in texts]
    return np.array([{"yes": YES, "no": NO}.get(word, OTHER) for word in first], np.int64)
