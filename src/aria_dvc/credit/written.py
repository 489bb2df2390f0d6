"""A credit table as it was written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.credit.table import COLUMNS
from aria_dvc.errors import AriaError
from aria_dvc.records.parquet_names import is_of_other_format

if TYPE_CHECKING:
    import pandas as pd


TEXTS = ("episode_id", "group_id", "role", "text_sha")
UNKNOWN = ("return", "standard_error")  # null where nobody knows


def read_credit(path: Path) -> pd.DataFrame:
    """A table that `aria credit` wrote.

    Raises:
        AriaError: no Parquet file, without rows or one of the columns, an action that stands twice
            or has no credit, text or nothing where numbers belong.
    """
    from pandas.api.types import is_numeric_dtype

    from aria_dvc.files import read_parquet

    if not path.is_file():
        raise AriaError(f"--credit: there is no file {path}: name what `aria credit` wrote")
    if is_of_other_format(path):
        raise AriaError(f"--credit: {path} is no Parquet: give what `aria credit` wrote")
    table = read_parquet(path)
    if missing := [name for name in COLUMNS if name not in table]:
        raise AriaError(f"{path}: no column {missing[0]}: give what `aria credit` writes")
    if table.duplicated(["episode_id", "position"]).any():
        raise AriaError(f"{path}: an action stands there twice: give what `aria credit` writes")
    if table.empty:
        raise AriaError(f"{path}: there is no action in it: keep some, or make the table anew")
    for name in COLUMNS:
        if name not in TEXTS and not is_numeric_dtype(table[name]):
            raise AriaError(f"{path}: {name} is no number: give what `aria credit` writes")
        if name not in UNKNOWN and table[name].isna().any():
            raise AriaError(f"{path}: {name} is null: make the table anew")
    if not np.isfinite(table[["credit", "advantage"]].to_numpy(float)).all():
        raise AriaError(f"{path}: a credit is no finite number: make the table anew")
    return table
