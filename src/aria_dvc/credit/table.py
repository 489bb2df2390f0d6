"""The credit table: one row an action, with all that a trainer or a person may want beside it.

Cells and anchors go by what the method takes for equal: intentions where it finds some, else the
very words; of the whole history, or of as much of it as the method's own cells hold.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.credit.cells import cell_codes, cell_means
from aria_dvc.credit.methods.base import CreditMethod, Values
from aria_dvc.credit.methods.histories import HistoryMeans
from aria_dvc.intentions.log import Log, joined
from aria_dvc.records.turns import own_turns

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "episode_id": "the episode",
    "group_id": "equal for episodes of one configuration, task or prompt; else the episode",
    "position": "the message's place in its episode of the log, from 0; system messages count",
    "role": "who acts",
    "turn": "the role's own turns so far in the episode, from 1",
    "turns": "the role's own turns in the whole episode",
    "text_sha": "SHA-256 of the text (UTF-8, hexadecimal)",
    "intention": "the action's intention; -1 where the method finds none",
    "cell": "same number: same role, history and action, as intentions, else word for word; of "
    "the last utterances alone where the method's cells hold no more (aria_recent, gigpo)",
    "anchor": "same number: same role and history; the cell without the action",
    "return": "the role's final reward, discounted once for every own turn to go; null if unknown",
    "credit": "q, what is expected with the action; out of fold unless it is defined in sample",
    "baseline": "v, what the same method expects of the history, whatever the action",
    "advantage": "credit - baseline",
    "n_cell": "fitted actions in the cell",
    "standard_error": "of a credit that is a cell's mean: the deviation of returns within the "
    "role's cells, pooled, over the root of n_cell; null for other credits and where every cell "
    "has one member",
}


def credit_rows(fitted: Log, asked: Log, values: Values, method: CreditMethod) -> pd.DataFrame:
    """The table of `asked`, which may be `fitted` itself; `values` are of its actions by the fitted
    `method`."""
    import pandas as pd

    cells, anchors = _codes(fitted, asked, method)
    rows, episode = asked.actions, asked.episode[asked.actions]
    frame = asked.action_frame()
    groups = asked.episode_ids if asked.group_ids is None else asked.group_ids
    assert groups is not None
    labels = asked.labels[rows] if method.uses_labels else np.full(len(rows), -1)
    turns = own_turns(asked.episode, asked.role)[1][rows]
    columns = {
        "group_id": pd.Series(groups[episode], dtype="str"),
        "turns": turns.astype(np.int32),
        "text_sha": pd.Series([sha_of(text) for text in asked.text[rows]], dtype="str"),
        "intention": labels.astype(np.int64),
        "cell": cells[1],
        "anchor": anchors[1],
        "return": asked.targets,
        "credit": values.q,
        "baseline": values.v,
        "advantage": values.advantage,
        "n_cell": np.bincount(cells[0], minlength=int(cells[1].max(initial=-1)) + 1)[cells[1]],
        "standard_error": _standard_error(fitted, asked, cells, method),
    }
    return frame.assign(**columns)[list(COLUMNS)]


def sha_of(text: str) -> str:
    """By which a table's row is told to belong to a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _codes(
    fitted: Log, asked: Log, method: CreditMethod
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Cells and anchors, each of the fitted actions and of the asked ones, in one numbering."""
    import pandas as pd

    same = asked is fitted
    both = fitted if same else joined([fitted.without_vectors(), asked.without_vectors()])
    words = np.array([text.strip() for text in both.text], dtype=object)
    symbols = pd.factorize(both.labels if method.uses_labels else words)[0]
    span = getattr(method, "span", None)
    found = [cell_codes(both, symbols, span, with_action) for with_action in (True, False)]
    if same:
        cells, anchors = ((codes, codes) for codes in found)
        return cells, anchors
    split = len(fitted.actions)
    cells, anchors = ((codes[:split], codes[split:]) for codes in found)
    return cells, anchors


def _standard_error(
    fitted: Log, asked: Log, cells: tuple[np.ndarray, np.ndarray], method: CreditMethod
) -> np.ndarray:
    """(A,) float64; NaN where it is not known."""
    known, wanted = cells
    found = np.full(len(wanted), np.nan)
    if not isinstance(method, HistoryMeans):
        return found
    count = int(max(known.max(initial=-1), wanted.max(initial=-1))) + 1
    gap = fitted.targets - cell_means(known, fitted.targets, count)[known]
    size = np.bincount(known, minlength=count)
    role, asked_role = fitted.role[fitted.actions], asked.role[asked.actions]
    for name in np.unique(role):
        mine = role == name
        freedom = mine.sum() - len(np.unique(known[mine]))
        chosen = (asked_role == name) & (size[wanted] > 0)
        if freedom > 0:
            deviation = np.sqrt((gap[mine] ** 2).sum() / freedom)
            found[chosen] = deviation / np.sqrt(size[wanted[chosen]])
    return found
