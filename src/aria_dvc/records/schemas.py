"""The columns of every Parquet file of the pipeline, checked when one is written and read.

`python -m aria_dvc.records.schemas` prints them as the tables of docs/data.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.files import write_parquet, write_parquet_parts
from aria_dvc.shown import brief

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import ArrayLike

# What Arrow calls the types of a kind; a column without any value has the type null.
KINDS = {
    "text": ("string", "large_string"),
    "bool": ("bool",),
    "uint8": ("uint8",),
    "int32": ("int32",),
    "int64": ("int64",),
    "float64": ("double",),
    "float64, or null": ("double", "null"),
    "float32 vector": ("fixed_size_list<item: float>", "fixed_size_list<element: float>"),
}


@dataclass(frozen=True)
class Column:
    """name: may be a pattern (in <>) that stands for several columns. kind: see KINDS.

    needed: whether there must be one. empty: whether a row may have none (null, NaN).
    """

    name: str
    kind: str
    meaning: str
    needed: bool = True
    empty: bool = False

    @property
    def may_lack(self) -> bool:
        return self.empty or self.kind.endswith("or null")

    def stands_for(self, name: str) -> bool:
        pattern = self.name.replace("<number>", r"\d+").replace("<method>", "[a-z_]+")
        return re.fullmatch(pattern, name) is not None


@dataclass(frozen=True)
class Schema:
    """One file a log (or policy) at `path`, written by `stage`; one row is a `row`."""

    name: str
    path: str
    stage: str
    row: str
    columns: tuple[Column, ...]

    @property
    def dtypes(self) -> dict[str, str]:
        """pandas' types of the columns that must be there."""
        kinds = {c.name: c.kind.removesuffix(", or null") for c in self.columns if c.needed}
        return {name: "str" if kind == "text" else kind for name, kind in kinds.items()}

    def check(self, found: pa.Schema, where: str | Path) -> None:
        """Raises AriaError unless a table has all the columns, of their types, and no others."""
        for column in self.columns:
            names = [name for name in found.names if column.stands_for(name)]
            if not names and column.needed:
                raise self.wrong(where, f"has no column {column.name}")
            for name in names:
                kind = re.sub(r"\[\d+\]$", "", str(found.field(name).type))
                if kind not in KINDS[column.kind]:
                    raise self.wrong(where, f"column {name} holds {kind}, not {column.kind}")
        for name in found.names:
            if not any(column.stands_for(name) for column in self.columns):
                raise self.wrong(where, f"has a column {name} that {self.name} do not have")

    def check_values(self, table: pd.DataFrame, where: str | Path) -> None:
        """Raises AriaError for the first cell that is null, NaN or infinite and may not be."""
        for column in self.columns:
            for name in () if column.may_lack else table.columns:
                if column.stands_for(name):
                    self.refuse(_unknown(table[name]), table, where, f"column {name} has no value")

    def refuse(self, bad: ArrayLike, table: pd.DataFrame, where: str | Path, problem: str) -> None:
        """Raises AriaError for the first row where `bad`, (n,) bool, is true."""
        rows = np.flatnonzero(np.asarray(bad, dtype=bool))
        if not rows.size:
            return
        row = int(rows[0])
        names = [f"{key} {table[key].iloc[row]}" for key in _NAMES if key in table]
        at = f"row {row} ({', '.join(names)})" if names else f"row {row}"
        raise self.wrong(where, f"{at}: {problem}")

    def wrong(self, where: str | Path, problem: str) -> AriaError:
        """The error for a file of this kind, with its stage as the remedy."""
        return AriaError(f"{where}: {problem}: run the stage {self.stage} again")


def _unknown(column: pd.Series) -> np.ndarray:
    """(n,) bool: null, NaN or infinite."""
    missing = column.isna().to_numpy(dtype=bool)
    if column.dtype.kind == "f":
        return missing | ~np.isfinite(column.to_numpy())
    return missing


_NAMES = ("episode_id", "position", "role")  # what names a row in an error
_GAME = Column("game", "text", "the game, or the name of the log")
_EPISODE = Column("episode_id", "text", "the episode; ids are unique in a log")
_GROUP = Column(
    "group_id", "text", "equal for episodes of one configuration, task or prompt; else the episode"
)
_POSITION = Column("position", "int32", "place in the log's episode, from 0; system messages count")
_ROLE = Column("role", "text", "who speaks")

LOG_VECTORS = Schema(
    "vectors of the log",
    "data/log_vectors/<category>/<log>.parquet",
    "collect",
    "utterance of a log that came with embeddings; none otherwise",
    (
        _EPISODE,
        _POSITION,
        Column("embedding", "float32 vector", "the embedding that the log carries"),
    ),
)
_KEPT = (
    ("preamble", "in an episode's first row: JSON of the system messages before it; else empty"),
    ("system_prompt", "in a role's first row of an episode: what the role was told; else empty"),
    ("info", "in an episode's first row: JSON of what is recorded besides; else empty"),
)
TURNS = Schema(
    "turns",
    "data/turns/<category>/<log>.parquet",
    "prepare",
    "utterance, an episode's together in the order spoken",
    (
        _GAME,
        _EPISODE,
        _GROUP,
        _POSITION,
        _ROLE,
        Column(
            "is_action",
            "bool",
            "whether it gets credit: the role has a reward, its player is of a kind that is "
            "trained (prepare.players), and the other side did not forfeit",
        ),
        Column("turn", "int32", "the speaker's own turns so far in the episode, from 1"),
        Column("turns", "int32", "the speaker's own turns in the whole episode"),
        Column("text", "text", "what is said"),
        Column("embedded", "text", "what its intention is found in: the text, or the parsed move"),
        Column("reward", "float64", "the role's final reward R; NaN if it has none", empty=True),
        Column(
            "grounded",
            "float64",
            "1 if the environment carried it out, 0 if not; NaN where no environment says so",
            empty=True,
        ),
        Column("target", "text", "what is to be guessed, in a guessing game; else empty"),
        *(Column(name, "text", f"{what}; `aria read` alone", needed=False) for name, what in _KEPT),
    ),
)
EPISODES = Schema(
    "episodes",
    "data/episodes/<category>/<log>.parquet",
    "prepare",
    "acting role of an episode",
    (
        _GAME,
        _EPISODE,
        _GROUP,
        Column("role", "text", "a role that has a reward"),
        Column("system_prompt", "text", "what the role was told; empty if the log has none"),
        Column("info", "text", "JSON of what is recorded besides (see records/episodes.py)"),
    ),
)
EMBEDDINGS = Schema(
    "embeddings",
    "data/embeddings/<category>/<log>.parquet",
    "embed",
    "row of turns, in the same order",
    (
        _EPISODE,
        _POSITION,
        Column("embedding", "float32 vector", "the sentence embedding of what is embedded"),
    ),
)
LABELS = Schema(
    "labels",
    "data/labels/<category>/<log>.parquet",
    "cluster",
    "row of turns, in the same order",
    (
        _EPISODE,
        _POSITION,
        Column(
            "k<number>",
            "uint8",
            "the intention with so many clusters; k = 2, 3, .. as far as asked",
        ),
    ),
)
TREE = Schema(
    "tree",
    "data/tree/<category>/<log>.parquet",
    "cluster",
    "merge of two clusters, by height",
    (
        Column("left", "int64", "first cluster: a clustered utterance, or their number + a row"),
        Column("right", "int64", "second cluster, above the first"),
        Column("height", "float64", "distance at which they merge"),
        Column("size", "int64", "utterances in both"),
    ),
)
REWARDS = Schema(
    "rewards",
    "data/rewards/<category>/<log>.parquet",
    "aggregate",
    "action",
    (
        _EPISODE,
        _POSITION,
        _ROLE,
        Column("turn", "int32", "the role's own turns so far in the episode, from 1"),
        Column("label", "int64", "the intention at the chosen k"),
        Column("cell", "int64", "same number: same role and intentions up to and with the action"),
        Column("cell_size", "int64", "actions in the cell"),
        Column("live", "bool", "whether a finer cut can still split the cell"),
        Column(
            "pool",
            "int64",
            "same number: `reward` is the mean return of these actions; -1 where it is no mean",
        ),
        Column("return", "float64", "discounted return of the action, gamma^(turns - turn) R"),
        Column("reward", "float64", "q(h, a), the credit of aggregate.method"),
        Column(
            "value",
            "float64",
            "v(h), what the same fit expects without the action; NaN where nothing says so",
            empty=True,
        ),
        Column("credit_<method>", "float64", "q of each of aggregate.further", needed=False),
        Column("value_<method>", "float64", "v of each of aggregate.further", needed=False),
    ),
)
CONTRIBUTIONS = Schema(
    "contributions",
    "data/progress/<category>/<log>.parquet",
    "progress",
    "action, where progress.train is true",
    (
        _EPISODE,
        _POSITION,
        Column("contribution", "float64", "c(h, a), by a model that has not seen the episode"),
        Column("reward", "float64", "q(h, a): the mean outcome of the role, and all c so far"),
        Column("value", "float64", "v(h): the same without that of the action"),
    ),
)
_ERROR = "standard error"
_VALUES = (
    ("q", "mean return of the continuations of the action"),
    ("v", "mean return over actions drawn anew from the same player at the same history"),
    ("advantage", "q - v"),
    ("se_q", f"{_ERROR} of q; 0 where all games that were played on agree, as after an end"),
    ("se_v", f"{_ERROR} of v, the choice of the actions drawn included"),
    ("se_advantage", f"{_ERROR} of the advantage"),
    ("first", "the advantage by one half of the continuations and draws alone"),
    ("second", "by the other half, which shares nothing with the first"),
)
TRUTH = Schema(
    "truth",
    "data/truth/<category>/<log>.parquet",
    "truth",
    "action that was measured",
    (
        _EPISODE,
        _GROUP,
        _POSITION,
        _ROLE,
        Column("turn", "int32", "the role's own turns so far in the episode, from 1"),
        Column("action", "text", "what is said"),
        *(Column(name, "float64", meaning) for name, meaning in _VALUES),
        *(
            Column(f"plain_{name}", "float64", f"the same of returns without discount: {meaning}")
            for name, meaning in _VALUES
        ),
        Column(
            "continuations",
            "int32",
            "games that went on with the action; 0 where it ended the game, so that q is exact",
        ),
        Column("draws", "int32", "actions drawn anew for v"),
        Column("draw_continuations", "int32", "games that went on with each of these"),
    ),
)
EVALUATION = Schema(
    "evaluation",
    "data/eval/<category>/<variant>.parquet",
    "evaluate",
    "game of one policy in one role",
    (
        Column("game", "text", "the game"),
        Column("variant", "text", "the policy"),
        Column("role", "text", "the role that it plays"),
        Column("episode", "text", "the game's id, by role and opponent the same for all variants"),
        Column("config", "text", "JSON of the game's configuration"),
        Column("seed", "int64", "seeds what is random in the game"),
        Column("opponent", "text", "who plays the other side"),
        Column("won", "bool", "own utility strictly above the other's, or the game solved"),
        Column("reward", "float64", "final reward"),
        Column("utility", "float64, or null", "own utility, where the game has utilities"),
        Column("opponent_utility", "float64, or null", "the other side's"),
        Column("no_deal", "bool", "whether it ended without agreement, though nobody failed"),
        Column("reason", "text", "how it ended"),
        Column("failure_role", "text", "who could not go on; empty if nobody"),
        Column("failure_kind", "text", "with what kind of failure; empty if none"),
        Column("turns", "int64", "own utterances"),
        Column(
            "executed",
            "float64, or null",
            "how many of them the environment carried out, where one does",
        ),
        Column("refused", "int64", "own texts that were no legal move, re-asked ones included"),
        Column("completion_tokens", "int64", "tokens generated for the role"),
    ),
)
SCHEMAS = (
    LOG_VECTORS,
    TRUTH,
    TURNS,
    EPISODES,
    EMBEDDINGS,
    LABELS,
    TREE,
    REWARDS,
    CONTRIBUTIONS,
    EVALUATION,
)


def write_table(path: str | Path, table: pd.DataFrame | pa.Table, schema: Schema) -> None:
    """Write a table as `write_parquet` does.

    Raises AriaError, before anything is written, if it is not of the schema.
    """
    import pyarrow as pa

    found = table.schema if isinstance(table, pa.Table) else pa.Schema.from_pandas(table, False)
    schema.check(found, path)
    write_parquet(path, table)


def write_parts(path: str | Path, parts: Iterable[pd.DataFrame], schema: Schema) -> int:
    """Write a table that comes in parts, each a row group, and tell its number of rows.

    Raises AriaError as `write_table` does; then there is no file.
    """
    import pyarrow as pa

    def checked() -> Iterator[pa.Table]:
        for part in parts:
            table = pa.Table.from_pandas(part, preserve_index=False).replace_schema_metadata(None)
            schema.check(table.schema, path)
            yield table

    return write_parquet_parts(path, checked())


def read_table(path: str | Path, schema: Schema, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """The table in a file.

    Args:
        like: the turns that its rows must belong to, one by one.

    Raises:
        AriaError: no such file, another schema, or rows of other turns; says which stage to run.
    """
    import pandas as pd

    check_file(path, schema, like)
    with whole_parquet(path, schema):
        table = pd.read_parquet(path)
    schema.check_values(table, path)
    return table


def check_file(path: str | Path, schema: Schema, like: pd.DataFrame | None = None) -> None:
    """Raises AriaError as `read_table` does, without reading more than the rows' names."""
    import pyarrow.parquet as pq

    with whole_parquet(path, schema):
        schema.check(pq.read_schema(path), path)
        if like is None:
            return
        names = pq.read_table(path, columns=["episode_id", "position"])
        keys = [column.to_numpy() for column in names.itercolumns()]
    _check_rows(keys, like, path, schema)


@contextmanager
def whole_parquet(path: str | Path, schema: Schema) -> Iterator[None]:
    """Turns what reading a Parquet file may raise into one line with the stage that wrote it."""
    import pyarrow as pa

    try:
        if Path(path).is_dir():
            raise schema.wrong(path, "is a folder, not a Parquet file")
        yield
    except FileNotFoundError:
        raise AriaError(f"{path} is missing: run the stage {schema.stage}") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise schema.wrong(path, f"is not Parquet, or damaged ({brief(error)})") from None


def _check_rows(
    keys: list[np.ndarray], turns: pd.DataFrame, path: str | Path, schema: Schema
) -> None:
    """Raises AriaError unless (episode_id, position) are those of the turns, row by row."""
    wanted: list[Any] = [turns["episode_id"].to_numpy(dtype=object), turns["position"].to_numpy()]
    if len(keys[0]) != len(turns):
        problem = f"has {len(keys[0])} rows for {len(turns)} turns"
    elif differ := np.flatnonzero((keys[0] != wanted[0]) | (keys[1] != wanted[1])).tolist():
        found, right = ([column[differ[0]] for column in columns] for columns in (keys, wanted))
        problem = (
            f"row {differ[0]} is position {found[1]} of episode {found[0]} where the turns have "
            f"position {right[1]} of {right[0]}"
        )
    else:
        return
    raise schema.wrong(path, problem)


def data_dictionary() -> str:
    """Markdown: a table of columns for every file."""
    lines = [
        "# The data of a run",
        "",
        "Printed by `python -m aria_dvc.records.schemas`; do not edit by hand.",
    ]
    for schema in SCHEMAS:
        lines += [
            "",
            f"## {schema.name}: `{schema.path}`",
            "",
            f"Written by the stage `{schema.stage}`; one row is one {schema.row}.",
            "",
            "| column | type | meaning |",
            "|---|---|---|",
            *(f"| `{c.name}` | {c.kind} | {c.meaning} |" for c in schema.columns),
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(data_dictionary(), end="")
