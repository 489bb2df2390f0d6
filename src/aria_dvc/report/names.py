"""Names for groups of texts: their distinctive terms by class-based TF-IDF (Grootendorst 2022).

A class is all texts of one group. Unlike the textbook, a word that is repeated in a row is one term
with its count ("mine×4"): parsed moves say amounts that way (see games/decisions.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from textwrap import shorten
from typing import Any

import numpy as np

FEWEST, MOST = 3, 5
SHARE = 0.3
"""Beyond the fewest, a term is named only with at least this share of the best one's weight."""
SUPPORT = 0.05
"""Share of a group's texts that must have a term for it to name the group."""
OFTEN, WIDESPREAD = 0.1, 0.5
"""A term is widespread where more than half of the groups have it in a tenth of their texts."""
NOTHING = 3
SHORT = 2  # letters
MEANT = frozenset(
    "no not never none nothing cannot who whose what where when why how which keep give take find "
    "call fire bill system".split()
)
"""Of scikit-learn's list of common words, those that say what an utterance is for."""
_WORD = re.compile(r"[$€£]?\d[\d.,]*%?(?![^\W_])|[^\W_]+(?:['’-][^\W_]+)*")


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, each run of one word as `word×length`."""
    words = [word.rstrip(".,") for word in _WORD.findall(text.lower())]
    runs = ((word, sum(1 for _ in run)) for word, run in groupby(words))
    return [word if count == 1 else f"{word}×{count}" for word, count in runs]


def class_terms(texts: Sequence[str], labels: np.ndarray) -> dict[int, list[str]]:
    """The most distinctive terms of every group.

    The weight of term t in class c is (count of t in c / terms of c) * log(1 + A / count of t in
    all classes), A being the mean number of terms a class; 0 where fewer than SUPPORT of the
    class's texts have the term. What OFTEN stands in most classes, and then what any English text
    has, fills a name of under FEWEST terms; what is both, or a short word of any text ("is", "a"),
    is named only where there is nothing else.

    Args:
        texts: n texts. labels: (n,) integers, the group of each.

    Returns:
        label -> up to MOST terms, no two of which share a word, in the order of the group's most
        frequent text; none where no text has a word.
    """
    groups, own = np.unique(labels), list(texts)
    names, counts = _counted(own)
    if not len(names):
        return {int(label): [] for label in groups}
    members = [np.flatnonzero(labels == group) for group in groups]
    sums = np.stack([np.asarray(counts[rows].sum(axis=0)).ravel() for rows in members])
    said = counts.sign()
    share = np.stack([np.asarray(said[rows].mean(axis=0)).ravel() for rows in members])
    weights = np.where(share >= SUPPORT, _class_tf_idf(sums), 0.0)
    rank = _ranks(names, (share >= OFTEN).mean(axis=0) > WIDESPREAD)
    return {
        int(group): _as_said(_best(names, row, rank), [own[place] for place in rows])
        for group, row, rows in zip(groups, weights, members, strict=True)
    }


def told_apart(names: Mapping[int, str]) -> dict[int, str]:
    """Number -> name; what nobody can tell apart by words is told apart by its number."""
    often = Counter(names.values())
    return {n: f"{name} #{n}" if often[name] > 1 else name for n, name in names.items()}


def shortened(text: str, most: int, mark: str = "...") -> str:
    """`text` in one line of at most `most` characters, cut between words as far as that leaves half
    of them; else, as in scripts without blanks, inside of one."""
    cut = shorten(text, most, placeholder=mark)
    if len(cut) >= most / 2 or len(line := " ".join(text.split())) <= most:
        return cut
    return line[: most - len(mark)] + mark


def _counted(texts: list[str]) -> tuple[np.ndarray, Any]:
    """The T terms of n texts, and their (n, T) sparse counts; no terms where no text has a word."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=_terms)
    try:
        counts = counter.fit_transform(texts).tocsr()
    except ValueError:
        return np.zeros(0, dtype=object), None
    return counter.get_feature_names_out(), counts


def _ranks(names: np.ndarray, widespread: np.ndarray) -> np.ndarray:
    """(T,) int: 0 distinctive, 1 widespread, 2 common English, NOTHING where it tells nothing."""
    common = np.array([_is_common(name) for name in names])
    short = np.array([len(name) <= SHORT for name in names])
    return np.where(common & short, NOTHING, 1 * widespread + 2 * common)


def _as_said(terms: list[str], texts: Sequence[str]) -> list[str]:
    """The terms in the order of the most frequent text; those that it has not come last."""
    words = tokens(Counter(texts).most_common(1)[0][0])
    place = {word: number for number, word in reversed(list(enumerate(words)))}
    return sorted(terms, key=lambda term: place.get(term.split()[0], len(words)))


def _terms(text: str) -> Iterator[str]:
    """Words, and pairs of neighbours that both mean something."""
    words = tokens(text)
    yield from words
    for first, second in pairwise(words):
        if not _is_common(first) and not _is_common(second):
            yield f"{first} {second}"


def _class_tf_idf(counts: np.ndarray) -> np.ndarray:
    """(C, T) weights of (C, T) counts of terms by class."""
    total = counts.sum(axis=1, keepdims=True)
    rarity = np.log1p(total.mean() / counts.sum(axis=0))
    return counts / np.maximum(total, 1) * rarity


def _best(names: np.ndarray, weights: np.ndarray, rank: np.ndarray) -> list[str]:
    """The terms of the largest of (T,) weights, those of rank 0 first, no word twice.

    rank: (T,) int, from 0 (distinctive) to NOTHING (only where there is nothing else).
    """
    used = np.flatnonzero(weights)
    order = used[np.lexsort([names[used], -weights[used], rank[used]])]
    chosen: list[int] = []
    words: set[str] = set()
    for place in order:
        weak = bool(chosen) and weights[place] < SHARE * weights[chosen[0]]
        filler = len(chosen) >= FEWEST and (weak or rank[place] > 0)
        if len(chosen) == MOST or filler or (chosen and rank[place] == NOTHING):
            break
        own = {word.partition("×")[0] for word in names[place].split()}
        if not own & words:
            chosen.append(int(place))
            words |= own
    return [str(names[place]) for place in chosen]


def _is_common(word: str) -> bool:
    """Whether any English text has the word; pairs of words are not common."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return word in ENGLISH_STOP_WORDS and word not in MEANT
