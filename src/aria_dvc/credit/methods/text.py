"""Bags of words of an action and of its past, as unit vectors weighted by TF-IDF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import scipy.sparse as sp

from aria_dvc.credit.methods.features import TINY, Views
from aria_dvc.intentions.log import Log

WORDS = r"\w+|[^\w\s]"
RARE = 3


class TextBlocks:
    """TF-IDF over single words, fitted on the utterances of the training episodes.

    Words in fewer than RARE utterances are left out, unless the log is short (under 200
    utterances) or has no others.
    """

    def fit(self, data: Log) -> Self:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer_ = TfidfVectorizer(
            sublinear_tf=True,
            token_pattern=WORDS,
            min_df=RARE if len(data) >= 200 else 1,
            dtype=np.float32,
        )
        try:
            self.vectorizer_.fit(data.text)
        except ValueError:  # every word is rare
            self.vectorizer_.set_params(min_df=1).fit(data.text)
        return self

    def blocks(self, data: Log, views: Views, names: Sequence[str]) -> dict[str, sp.csr_matrix]:
        """View -> (A, words) float32 unit rows; the square root damps words said again."""
        words = self.vectorizer_.transform(data.text)
        return {name: _unit(np.sqrt(getattr(views, name) @ words)) for name in names}


def _unit(matrix: sp.csr_matrix) -> sp.csr_matrix:
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scale = (1 / np.maximum(norms, TINY)).astype(matrix.dtype)
    return sp.csr_matrix(sp.diags(scale) @ matrix)
