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


def read_credit(path: Path) -> pd.DataFrame:
    """A table that `aria credit` wrote.

    Raises:
        AriaError: no Parquet file, without one of the columns, an action that stands twice or has
            no credit.
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
    numbers = table[["credit", "advantage"]]
    if not all(map(is_numeric_dtype, numbers.dtypes)):
        raise AriaError(f"{path}: a credit is text: give what `aria credit` writes")
    if not np.isfinite(numbers.to_numpy(float)).all():
        raise AriaError(f"{path}: a credit is null or no finite number: make the table anew")
    return table
