"""Bags of words of an action and of its past, as unit vectors weighted by TF-IDF."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp

from aria_dvc.credit.methods.features import TINY
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

    def words(self, data: Log) -> sp.csr_matrix:
        """(n, words) float32 TF-IDF of every utterance."""
        return self.vectorizer_.transform(data.text)


def unit_bags(selection: sp.csr_matrix, words: sp.csr_matrix) -> sp.csr_matrix:
    """(A, words) float32 unit rows of the words in the selected utterances (see `Views`); the
    square root damps words said again."""
    bags = np.sqrt(selection @ words)
    norms = np.sqrt(np.asarray(bags.multiply(bags).sum(axis=1)).ravel())
    scale = (1 / np.maximum(norms, TINY)).astype(bags.dtype)
    return sp.csr_matrix(sp.diags(scale) @ bags)
