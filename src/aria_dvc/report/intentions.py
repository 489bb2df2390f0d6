"""What the intentions turned out to be: one row each, with a name, examples, and what it is worth.

Raw credit mostly rises with the turn, since what is near the end is discounted less; `above_turn`
therefore says how far an intention's credit is above that of its role's other actions at the same
own turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.skill import groups_of
from aria_dvc.report.intervals import clustered_interval
from aria_dvc.report.names import class_terms, shortened, told_apart

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.log import Log

EXAMPLES = 3
LONGEST_TERM = 40  # characters: without blanks a whole utterance is one word
COLUMNS = {
    "intention": "its number, as in `rewards.label` and `aria_dvc.credit`",
    "name": "up to five distinctive terms (report/names.py), or what a language model calls it "
    "(report/namer.py); with its number if two are alike",
    "examples": "list of different texts: the nearest to the mean vector, then the most frequent",
    "size": "utterances",
    "actions": "those of them that have a credit",
    "role": "who says it most",
    "role_share": "which share of it",
    "turn": "mean own turn of the speaker, from 1",
    "position": "mean place in the dialogue, from 0 (first utterance) to 1 (last)",
    "credit": "mean credit of its actions",
    "above_turn": "mean of the credit minus the mean credit of the same role and own turn",
    "above_turn_low": "lower end of its 95 % t interval clustered by group of episodes",
    "above_turn_high": "upper end",
    "spread": "standard deviation (population) of the credit of its actions",
}


DIGITS = 12


def intention_table(
    log: Log, credit: np.ndarray, words: Sequence[str] | None = None, examples: int = EXAMPLES
) -> pd.DataFrame:
    """One row an intention, the most frequent first.

    Args:
        log: n utterances under their intentions (`Log.with_labels`); A of them are actions.
        credit: (A,) float64 of the actions, in the log's order: the column `reward` of the rewards.
        words: (n,) what the intentions were found in (`embedded` of the turns), which names are
            made of; None for what was said.
        examples: so many are shown.

    Returns:
        The columns of COLUMNS; what is said of credit is NaN without actions, an interval also
        where there is none (see `clustered_interval`).
    """
    import pandas as pd

    names = _names(log, log.text.tolist() if words is None else words)
    value = spread_out(log, credit)
    above = spread_out(log, above_turn(log, credit))
    rows = [
        {
            "intention": number,
            "name": names[number],
            "examples": central_texts(log, rows, examples),
            **_said(log, rows),
            **_worth(log, rows, value, above),
        }
        for number, rows in _members(log.labels)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.sort_values("size", ascending=False, kind="stable", ignore_index=True)


def above_turn(log: Log, credit: np.ndarray) -> np.ndarray:
    """(A,) credit minus the mean credit of all actions of the same role and own turn."""
    turn = log.turn[log.actions]
    cell = log.role_codes[log.actions] * (int(turn.max(initial=0)) + 1) + turn
    sums = np.bincount(cell, weights=credit)
    above = credit - (sums / np.maximum(np.bincount(cell), 1))[cell]
    return above.round(DIGITS) + 0.0  # a mean of equal numbers may miss them by a rounding error


def spread_out(log: Log, of_actions: np.ndarray) -> np.ndarray:
    """(n,) what is known of the (A,) actions; NaN for other utterances."""
    found = np.full(len(log), np.nan)
    found[log.actions] = of_actions
    return found


def central_texts(log: Log, rows: np.ndarray, count: int) -> list[str]:
    """Up to `count` different texts of (m,) rows: nearest to the rows' mean, then most frequent."""
    vectors = log.vectors[rows].astype(np.float64)
    distance = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).round(6)
    texts = [" ".join(str(text).split()) for text in log.text[rows]]
    often, nearest = Counter(texts), dict(zip(texts, distance, strict=True))
    for text, found in zip(texts, distance, strict=True):
        nearest[text] = min(nearest[text], found)
    return sorted(often, key=lambda text: (nearest[text], -often[text], text))[:count]


def _members(labels: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Every intention with the (m,) rows of its utterances."""
    for number in np.unique(labels):
        yield int(number), np.flatnonzero(labels == number)


def _names(log: Log, words: Sequence[str]) -> dict[int, str]:
    """Intention -> name."""
    terms = class_terms([str(text) for text in words], log.labels)
    named = {n: ", ".join(shortened(t, LONGEST_TERM) for t in best) for n, best in terms.items()}
    return told_apart({number: name or "(no words)" for number, name in named.items()})


def _said(log: Log, rows: np.ndarray) -> dict[str, Any]:
    """How often, by whom and when an intention is said."""
    roles = np.bincount(log.role_codes[rows])
    length = np.bincount(log.episode)[log.episode[rows]]
    return {
        "size": len(rows),
        "actions": int(log.is_action[rows].sum()),
        "role": log.role_names[int(roles.argmax())],
        "role_share": float(roles.max() / len(rows)),
        "turn": float(log.turn[rows].mean()),
        "position": float((log.place[rows] / np.maximum(length - 1, 1)).mean()),
    }


def _worth(log: Log, rows: np.ndarray, value: np.ndarray, above: np.ndarray) -> dict[str, Any]:
    """Credit of an intention's actions; NaN where it has none, or no interval."""
    acting = rows[log.is_action[rows]]
    found = clustered_interval(above[acting], groups_of(log, acting))
    low, high = (np.nan if found[name] is None else found[name] for name in ("low", "high"))
    return {
        "credit": float(value[acting].mean()) if len(acting) else np.nan,
        "above_turn": np.nan if found["mean"] is None else found["mean"],
        "above_turn_low": low,
        "above_turn_high": high,
        "spread": float(value[acting].std()) if len(acting) else np.nan,
    }
