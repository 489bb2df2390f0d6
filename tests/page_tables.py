"""A table of intentions that has the page's columns: names are the first words of an example."""

from __future__ import annotations

import numpy as np
import pandas as pd

from aria_dvc.intentions.log import Log
from aria_dvc.report.page.blocks import over_turn


def intention_table(log: Log, rewards: pd.DataFrame) -> pd.DataFrame:
    """One row an intention of a labelled log."""
    credit, over = (np.full(len(log), np.nan) for _ in range(2))
    credit[log.actions], over[log.actions] = rewards["reward"], over_turn(rewards)
    return pd.DataFrame([_row(log, label, credit, over) for label in np.unique(log.labels)])


def _row(log: Log, label: int, credit: np.ndarray, over: np.ndarray) -> dict:
    mine = log.labels == label
    texts, counts = np.unique(log.text[mine].astype(str), return_counts=True)
    examples = texts[np.argsort(-counts, kind="stable")][:3].tolist()
    roles, said = np.unique(log.role[mine], return_counts=True)
    known = credit[mine][~np.isnan(credit[mine])]
    return {
        "intention": int(label),
        "name": " ".join(examples[0].split()[:4]),
        "examples": examples,
        "size": int(mine.sum()),
        "role": str(roles[said.argmax()]),
        "role_share": said.max() / mine.sum(),
        "position": float(log.turn[mine].mean() / log.turn.max()),
        "credit": known.mean() if len(known) else np.nan,
        "credit_over_turn": np.nanmean(over[mine]) if len(known) else np.nan,
        "spread": known.std() if len(known) else np.nan,
    }
