"""Parquet under the name of another format is read as what it is not."""

from __future__ import annotations

from pathlib import Path

from aria_dvc.errors import AriaError

NOT_PARQUET = (".csv", ".tsv", ".json", ".jsonl", ".xlsx")


def check_parquet_name(
    out: Path, remedy: str = "name it credit.parquet, say; `aria export --to csv` writes CSV"
) -> None:
    """Raises AriaError for a table in Parquet under the name of another format."""
    if is_of_other_format(out):
        raise AriaError(f"--out: {out} would hold Parquet: {remedy}")


def is_of_other_format(path: Path) -> bool:
    return path.suffix.lower() in NOT_PARQUET
