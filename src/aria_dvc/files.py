"""JSON, JSON lines, Parquet and CSV, each file whole or absent (see aside.py)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aria_dvc.aside import written_aside
from aria_dvc.errors import naming
from aria_dvc.shown import cell

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys (NaN becomes null)."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY
    with written_aside(path) as aside:
        aside.write_bytes(orjson.dumps(value, option=options) + b"\n")


def read_json(path: str | Path) -> Any:
    """The value in a JSON file; errors carry its name."""
    with naming(path):
        return orjson.loads(Path(path).read_bytes())


def write_jsonl(path: str | Path, rows: list[dict[str, Any]]) -> None:
    """Write one JSON object a line."""
    with written_aside(path) as aside:
        aside.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def write_parquet(path: str | Path, table: pd.DataFrame | pa.Table) -> None:
    """Write a frame as zstd Parquet whose bytes depend on the content alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    with written_aside(path) as aside:
        pq.write_table(table, aside, compression="zstd", use_dictionary=_repeating(table.schema))


def write_parquet_parts(path: str | Path, parts: Iterable[pa.Table]) -> int:
    """Write tables of one schema as the row groups of one file; the number of rows in all."""
    import pyarrow.parquet as pq

    rows, writer = 0, None
    with written_aside(path) as aside:
        try:
            for part in parts:
                if writer is None:
                    options: dict[str, Any] = {"use_dictionary": _repeating(part.schema)}
                    writer = pq.ParquetWriter(aside, part.schema, compression="zstd", **options)
                writer.write_table(part)
                rows += len(part)
        finally:
            if writer is not None:
                writer.close()
    return rows


def _repeating(schema: pa.Schema) -> list[str]:
    """Columns worth a dictionary: vectors and other floats hardly repeat, so that it saves nothing
    and costs time."""
    import pyarrow as pa

    return [
        field.name
        for field in schema
        if not (pa.types.is_floating(field.type) or pa.types.is_nested(field.type))
    ]


def read_parquet(path: str | Path) -> pd.DataFrame:
    """The table in a Parquet file; errors carry its name."""
    import pandas as pd

    with naming(path):
        return pd.read_parquet(path)


def write_csv(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a frame as CSV; text that begins like a formula is kept as text (see `shown.cell`)."""
    from pandas.api.types import is_numeric_dtype

    plain = frame.rename(columns=lambda name: cell(str(name)))
    for place, kind in enumerate(frame.dtypes):
        if not is_numeric_dtype(kind):
            plain.isetitem(place, [_cell(value) for value in frame.iloc[:, place]])
    with written_aside(path) as aside:
        plain.to_csv(aside, index=False, float_format="%.6g")


def _cell(value: Any) -> Any:
    return cell(value) if isinstance(value, str) else value
