"""Similarities of actions by words, by meaning and by turn, and kernels made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from aria_dvc.credit.methods.features import mean_rows, unit_rows, views_of
from aria_dvc.credit.methods.shared import kept
from aria_dvc.credit.methods.text import TextBlocks, unit_bags
from aria_dvc.intentions.log import Log

Columns: TypeAlias = np.ndarray | sp.csr_matrix
Matrix = TypeVar("Matrix", np.ndarray, sp.csr_matrix, Columns)
FULL = 0.1  # of the entries a product meets: where more are not 0, it is faster with all of them
MOST_FULL = 2**25  # entries, an eighth of a gigabyte


class ByView(dict[str, Matrix]):
    """View -> its matrix, made when some kernel first looks at it."""

    def __init__(self, make: Callable[[str], Matrix]) -> None:
        super().__init__()
        self.make: Callable[[str], Matrix] = make

    def __missing__(self, view: str) -> Matrix:
        found = self[view] = self.make(view)
        return found


@dataclass(frozen=True)
class Described:
    """A actions as unit vectors by view (see `features`), and their turn; all float32.

    words: view -> (A, v) sparse TF-IDF. meaning: view -> (A, d) mean embedding.
    turn: (A,) own-turn index in units of its standard deviation over the fitted actions.
    growth: (A,) own-turn index in units of its mean.
    """

    words: ByView[sp.csr_matrix]
    meaning: ByView[np.ndarray]
    turn: np.ndarray
    growth: np.ndarray

    def __len__(self) -> int:
        return len(self.turn)

    @cached_property
    def word_columns(self) -> ByView[Columns]:
        """view -> (v, A) `words` transposed, as an array where a product meets few zeros.

        A product has the same bits either way: its terms are summed in the same order.
        """
        return ByView(lambda view: _columns(self.words[view]))

    def take(self, rows: np.ndarray | slice) -> Described:
        return self._each(lambda matrix: matrix[rows])

    def in_float64(self) -> Described:
        """The same numbers, so that what is computed of them is rounded less."""
        return self._each(lambda matrix: matrix.astype(np.float64))

    def _each(self, change: Callable[[Any], Any]) -> Described:
        words, meaning = self.words, self.meaning
        return Described(
            ByView(lambda view: change(words[view])),
            ByView(lambda view: change(meaning[view])),
            change(self.turn),
            change(self.growth),
        )


def _columns(words: sp.csr_matrix) -> Columns:
    columns = words.T.tocsr()
    small = words.dtype == np.float32 and words.shape[0] * words.shape[1] <= MOST_FULL
    return columns.toarray() if small and _met(columns) > FULL else columns


def _met(columns: sp.csr_matrix) -> float:
    """Share of entries that are not 0 in the rows of (v, A) columns that a like matrix meets: a
    row counts as often as its word is said, and few words are most of what is said."""
    said = np.diff(columns.indptr).astype(np.float64)
    return float((said**2).sum() / max(said.sum() * columns.shape[1], 1))


class Describer:
    """Vocabulary, centre of the embeddings and scale of the turns, from the fitted episodes."""

    def fit(self, data: Log) -> Self:
        turn = data.turn[data.actions]
        self.text_ = cache(lambda: TextBlocks().fit(data))
        self.centre_ = data.vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.spread_ = float(turn.std()) or 1.0
        self.mean_ = float(turn.mean())
        return self

    def describe(self, data: Log) -> Described:
        views = views_of(data)
        words = cache(lambda: self.text_().words(data))

        def meaning(view: str) -> np.ndarray:
            return unit_rows(mean_rows(getattr(views, view), data.vectors, self.centre_))

        return Described(
            ByView(lambda view: unit_bags(getattr(views, view), words())),
            ByView(meaning),
            (views.turn / self.spread_).astype(np.float32),
            (views.turn / self.mean_).astype(np.float32),
        )


def described_by(describer: Describer, data: Log) -> Described:
    """The actions of `data`, shared by methods that describe alike."""
    return kept(data.told, describer, lambda: describer.describe(data))


def describer_of(data: Log) -> Describer:
    """The describer of the fitted episodes in `data`, shared in the same way."""
    return kept(data.told, "describer", lambda: Describer().fit(data))


@dataclass(frozen=True)
class Similarity:
    """Between a and m actions: every method gives (a, m) in the precision of their numbers."""

    left: Described
    right: Described

    def words(self, view: str) -> np.ndarray:
        """Cosine of the TF-IDF vectors."""
        product = self.left.words[view] @ self.right.word_columns[view]
        return product.toarray() if sp.issparse(product) else np.asarray(product)

    def meaning(self, view: str) -> np.ndarray:
        """Cosine of the centred mean embeddings."""
        return self.left.meaning[view] @ self.right.meaning[view].T

    def turn(self) -> np.ndarray:
        """1 at the same turn, falling as a Gaussian of their distance."""
        return np.exp(-((self.left.turn[:, None] - self.right.turn[None]) ** 2) / 2)

    def growth(self) -> np.ndarray:
        """Product of the turns: what is linear in the turn, as discounted returns nearly are."""
        return self.left.growth[:, None] * self.right.growth[None]


Kernel = Callable[[Similarity], np.ndarray]


def same_words_heard(of: Similarity) -> np.ndarray:
    """Like histories of what others said, at a like turn, followed by like words."""
    heard = of.words("heard")
    return (heard + heard**2) * (1 + of.turn()) * (1 + of.words("said")) * (1 + of.growth()) / 8


def same_words_said(of: Similarity) -> np.ndarray:
    """The action's own words at a like turn."""
    return of.turn() * of.words("said")


def same_words_exchanged(of: Similarity) -> np.ndarray:
    """Like words in any of the action, the utterance before it and the history."""
    exchanged = (1 + of.words("said")) * (1 + of.words("last")) * (1 + of.words("heard"))
    return (1 + of.turn()) * exchanged / 4


def same_meaning_heard(of: Similarity) -> np.ndarray:
    """Like actions after histories of like meaning: intentions without hard borders."""
    return (1 + of.turn()) * (1 + of.meaning("said")) * (1 + of.meaning("heard")) ** 2 / 4


def words_before(of: Similarity) -> np.ndarray:
    """`same_words_heard` of the history alone, whatever the action."""
    heard = of.words("heard")
    return (heard + heard**2) * (1 + of.turn()) * (1 + of.growth()) / 4


def words_before_and_last(of: Similarity) -> np.ndarray:
    """`same_words_exchanged` of the history alone."""
    return (1 + of.turn()) * (1 + of.words("last")) * (1 + of.words("heard")) / 2


def meaning_before(of: Similarity) -> np.ndarray:
    """`same_meaning_heard` of the history alone."""
    return (1 + of.turn()) * (1 + of.meaning("heard")) ** 2 / 2
