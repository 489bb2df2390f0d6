"""Episodes as tables: one row an utterance, or one row an acting role (see schemas.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records.episodes import Episode, Record
from aria_dvc.records.names import is_trained
from aria_dvc.records.schemas import EMBEDDINGS, Schema, check_file, whole_parquet
from aria_dvc.records.turns import own_turns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# How much of a log is laid out at once: utterances, and their characters.
PART_ROWS, PART_CHARS = 20_000, 16_000_000


def acting_roles(episode: Episode, players: Collection[str] | None = None) -> set[str]:
    """The roles whose utterances get credit.

    They have a reward, and were played by one of the kinds `players` (see player_specs.py; None:
    all), as far as is recorded. Where a role forfeits a game of ours, nobody else is among them:
    what it wins by the other's failure says nothing about its own moves.
    """
    record, failure = episode.record, episode.failure
    judged = set(episode.rewards)
    if failure is not None:
        judged &= {failure.role}
    if players is None:
        return judged
    names = {role: player.name or "" for role, player in record.players.items()}
    return {role for role in judged if is_trained(names.get(role, ""), players)}


def turns_table(
    episodes: Sequence[Episode], players: Collection[str] | None = None
) -> pd.DataFrame:
    """One row an utterance, in the order of the episodes.

    players: kinds of player whose utterances may be actions (see `acting_roles`).
    """
    import pandas as pd

    said = [(e, *numbered) for e in episodes for numbered in e.numbered()]
    lengths = [len(e.utterances) for e in episodes]
    episode = np.repeat(np.arange(len(episodes)), lengths)
    roles = np.array([utterance.role for _, _, utterance in said], dtype=object)
    turn, turns = own_turns(episode, roles)
    rewards = [e.rewards.get(utterance.role) for e, _, utterance in said]
    acting = [acting_roles(e, players) for e in episodes]
    groups = [e.group_id for e in episodes]
    grounded = [e.record.grounded for e in episodes]
    targets = [e.target for e in episodes]
    columns = {
        "game": [e.game for e, _, _ in said],
        "episode_id": [e.episode_id for e, _, _ in said],
        "group_id": [groups[index] for index in episode],
        "position": np.array([position for _, position, _ in said], np.int32),
        "role": roles.tolist(),
        "is_action": np.array([r in acting[i] for i, r in zip(episode, roles, strict=True)], bool)
        & ~np.concatenate([np.zeros(0, bool), *map(moves_left_out, episodes)]),
        "turn": turn.astype(np.int32),
        "turns": turns.astype(np.int32),
        "text": [utterance.text for _, _, utterance in said],
        "embedded": [utterance.embedded or utterance.text for _, _, utterance in said],
        "reward": np.array(rewards, np.float64),
        "grounded": np.array(
            [
                _at(grounded[i].get(role, ()), number)
                for i, role, number in zip(episode, roles, turn - 1, strict=True)
            ],
            np.float64,
        ),
        "target": [targets[index] for index in episode],
    }
    return pd.DataFrame(columns)


def moves_left_out(episode: Episode) -> np.ndarray:
    """(n,) bool: moves that are no utterances, where the episode's moves are left out of credit."""
    found = np.zeros(len(episode.utterances), bool)
    if episode.info.get("moves_credited") is False:
        found[np.array(episode.info.get("moves", ()), np.int64)] = True
    return found


def log_table(episodes: Sequence[Episode]) -> pd.DataFrame:
    """`turns_table` with what makes it the same log again: system messages, prompts, `info`."""
    table = turns_table(episodes)
    first = ~table.duplicated("episode_id")
    first_of_role = ~table.duplicated(["episode_id", "role"])
    of = {episode.episode_id: episode for episode in episodes}
    rows = list(zip(table["episode_id"], table["role"], first, first_of_role, strict=True))
    return table.assign(
        preamble=[
            sorted_json(of[e].preamble) if at and of[e].preamble else "" for e, _, at, _ in rows
        ],
        system_prompt=[of[e].prompts.get(r, "") if at else "" for e, r, _, at in rows],
        info=[sorted_json(of[e].info) if at and of[e].info else "" for e, _, at, _ in rows],
    )


def sorted_json(value: Any) -> str:
    """As columns of tables have it: equal values are equal texts."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _at(values: Sequence[bool], place: int) -> float:
    """1 or 0; NaN where there is no value."""
    return float(values[place]) if place < len(values) else float("nan")


def episodes_table(episodes: Sequence[Episode]) -> pd.DataFrame:
    """One row per episode and acting role."""
    import pandas as pd

    rows = [
        (
            episode.game,
            episode.episode_id,
            episode.group_id,
            role,
            episode.prompts.get(role, ""),
            sorted_json(episode.info),
        )
        for episode in episodes
        for role in episode.rewards
    ]
    columns = ["game", "episode_id", "group_id", "role", "system_prompt", "info"]
    return pd.DataFrame(rows, columns=columns)


def records_of(episodes: pd.DataFrame) -> dict[str, Record]:
    """What is recorded of every episode of such a table, by its id."""
    first = episodes.drop_duplicates("episode_id")
    named = zip(first["episode_id"], first["info"], strict=True)
    return {episode: Record.from_json(orjson.loads(info)) for episode, info in named}


def log_tables(episodes: Iterable[Episode]) -> Iterator[pd.DataFrame]:
    """`log_table` in parts of whole episodes, as they come in."""
    for part in in_parts(episodes):
        yield log_table(part)


def in_parts(episodes: Iterable[Episode]) -> Iterator[list[Episode]]:
    """Lists of episodes with about PART_ROWS utterances or PART_CHARS characters."""
    part: list[Episode] = []
    rows = chars = 0
    for episode in episodes:
        part.append(episode)
        rows += len(episode.utterances)
        chars += sum(len(utterance.text) for utterance in episode.utterances)
        if rows >= PART_ROWS or chars >= PART_CHARS:
            yield part
            part, rows, chars = [], 0, 0
    if part:
        yield part


def check_lengths(episodes: Sequence[Episode], max_chars: int, where: Any) -> None:
    """Refuse utterances of more than `max_chars` characters.

    Raises AriaError naming the first one.
    """
    for episode in episodes:
        for position, utterance in episode.numbered():
            if len(utterance.text) > max_chars:
                raise AriaError(
                    f"{where}: episode {episode.episode_id}, utterance {position} has "
                    f"{len(utterance.text)} characters, over prepare.max_chars = {max_chars}: "
                    "raise the limit or mend the log"
                )


def empty_table(schema: Schema) -> pd.DataFrame:
    """A table of that schema without any row; of columns that need not be, none."""
    import pandas as pd

    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in schema.dtypes.items()})


def embeddings_table(turns: pd.DataFrame, vectors: np.ndarray) -> pa.Table:
    """`vectors` (n, d) float32, one row a row of `turns`, as an Arrow table."""
    import pyarrow as pa

    flat = pa.array(vectors.reshape(-1), type=pa.float32())
    return pa.table(
        {
            "episode_id": pa.array(turns["episode_id"], type=pa.string()),
            "position": pa.array(turns["position"], type=pa.int32()),
            "embedding": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        }
    )


def read_vectors(
    path: Any, turns: pd.DataFrame | None = None, schema: Schema = EMBEDDINGS
) -> np.ndarray:
    """The (n, d) float32 matrix of an embeddings file, rows in the order of the turns; finite.

    Raises AriaError as `read_table` does; `turns` are those that the rows must belong to.
    """
    import pyarrow.parquet as pq

    check_file(path, schema, turns)
    with whole_parquet(path, schema):
        file = pq.ParquetFile(path)
        width = file.schema_arrow.field("embedding").type.list_size
        matrix, at = np.empty((file.metadata.num_rows, width), np.float32), 0
        for batch in file.iter_batches(1024, columns=["embedding"]):  # a whole column: 4 copies
            flat = batch.column(0).flatten()
            if len(flat) != len(batch) * width:
                raise schema.wrong(path, f"some of rows {at} to {at + len(batch)} have no vector")
            rows = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
            matrix[at : at + len(rows)] = rows
            at += len(rows)
    _check_finite(matrix, path, schema)
    return matrix


def _check_finite(matrix: np.ndarray, path: Any, schema: Schema) -> None:
    for start in range(0, len(matrix), 1024):
        bad = ~np.isfinite(matrix[start : start + 1024]).all(axis=1)
        if bad.any():
            row = start + int(np.flatnonzero(bad)[0])
            raise schema.wrong(path, f"row {row}: the vector holds NaN or an infinite number")
