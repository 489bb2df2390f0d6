"""What `aria_dvc.credit` and `aria_dvc.intention_table` do: a log of any shape in, a table out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from aria_dvc.credit.logs import credit_of, embedded, log_of_entries, read_logs, with_actions
from aria_dvc.credit.settings import EMBEDDER, Aggregate, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.records.formats.base import BadEntry, is_number
from aria_dvc.records.names import PLAYABLE
from aria_dvc.records.reading import Outcome, Reading, described
from aria_dvc.records.row_entries import check_unique, entry_of
from aria_dvc.suggestions import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.log import Log

    Episodes: TypeAlias = Sequence[Mapping[str, Any]]
    AnyLog: TypeAlias = pd.DataFrame | str | Path | Sequence[str | Path] | Episodes

NEEDED = ("episode_id", "role", "text")


def credited_log(
    log: AnyLog,
    settings: CreditSettings,
    score: AnyLog | None = None,
    embed: str | None = None,
    game: str | None = None,
    reading: Reading | None = None,
) -> pd.DataFrame:
    """See `aria_dvc.credit`."""
    options = _options(settings, embed, game, reading)
    fitted, positions = _read(log, True, options)
    if score is None:
        frame, credited = credit_of(fitted, settings, None, embed)
    else:
        scored, positions = _read(score, False, options)
        credited = with_actions(scored, fitted)
        frame, _ = credit_of(fitted, settings, credited, embed)
    return frame if positions is None else frame.assign(position=positions[credited.actions])


def reading_by(
    agent: str | Sequence[str], group_by: str | None, outcome: Outcome, moves: bool
) -> Reading:
    """The arguments of `aria_dvc.credit` that say how a log is read.

    Raises AriaError for one of another type.
    """
    agents = (agent,) if isinstance(agent, str) else agent
    if not isinstance(agents, list | tuple) or not all(isinstance(one, str) for one in agents):
        raise AriaError(f"agent is {described(agent)}: give a role or name, or a list of them")
    if not isinstance(moves, bool):
        raise AriaError(f"moves is {described(moves)}: give True or False")
    return Reading(agents=tuple(agents), group_by=group_by, outcome=outcome, moves=moves)


def check_takes_k(settings: Aggregate) -> None:
    """Raise AriaError for a method that looks at no intentions."""
    from aria_dvc.credit.methods.registry import make_method

    if not make_method(settings.method, settings).uses_labels:
        raise AriaError(
            "k is for methods that look at intentions, such as aria, not method "
            f"{settings.method}: leave it out"
        )


def table_of_intentions(
    log: AnyLog,
    settings: CreditSettings,
    embed: str | None = None,
    game: str | None = None,
    reading: Reading | None = None,
) -> pd.DataFrame:
    """See `aria_dvc.intention_table`."""
    from aria_dvc.credit.chain import action_values, labelled
    from aria_dvc.report.intentions import intention_table

    read, _ = _read(log, True, _options(settings, embed, game, reading))
    known = labelled(embedded([read], embed or EMBEDDER)[0], settings)
    return intention_table(known, action_values(known, settings).q)


def _options(
    settings: CreditSettings, embed: str | None, game: str | None, reading: Reading | None
) -> dict[str, Any]:
    """How logs are read; raises AriaError for a game that nobody knows, an embedder of no name."""
    if game is not None and game not in tuple(PLAYABLE):
        raise AriaError(f"unknown game {described(game)}{did_you_mean(str(game), PLAYABLE)}")
    if not isinstance(embed, str | None):
        raise AriaError(f"embed is {described(embed)}: name an embedder, or leave it out")
    gamma = settings.aggregate.gamma
    return {"gamma": gamma, "game": game, "own_vectors": embed is None, "reading": reading}


def _read(
    log: AnyLog, need_rewards: bool, options: dict[str, Any]
) -> tuple[Log, np.ndarray | None]:
    """The log, and the (n,) positions that a frame names its utterances by."""
    import pandas as pd

    if not isinstance(log, str | Path | pd.DataFrame | list | tuple):
        raise AriaError(
            f"log is a {type(log).__name__}: give a path, a list of paths, a list of entries or a "
            "data frame"
        )
    if isinstance(log, str | Path):
        return read_logs([log], need_rewards=need_rewards, **options), None
    if isinstance(log, pd.DataFrame):
        rows = _in_order(log, need_rewards)
        entries = list(_entries(rows, need_rewards))
        read = log_of_entries(entries, need_rewards=need_rewards, **options)
        return read, _own_positions(rows, entries, read)
    if log and all(isinstance(part, str | Path) for part in log):
        paths = cast("Sequence[str | Path]", log)
        return read_logs(paths, need_rewards=need_rewards, **options), None
    entries = cast("list[dict[str, Any]]", log)
    return log_of_entries(entries, need_rewards=need_rewards, **options), None


def _in_order(frame: pd.DataFrame, need_rewards: bool) -> pd.DataFrame:
    """The rows with an episode's together, by position if there is one, else as they are.

    Raises AriaError for a missing column or one that stands twice, for an episode that comes back
    where no position tells the order of its rows, and as `_check_cells` does.
    """
    check_unique(frame.columns, "log")
    needed = (*NEEDED, "reward") if need_rewards else NEEDED
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise AriaError(
            f"log: no column {', '.join(missing)}: a frame needs {', '.join(needed)}; "
            "position, group_id and embedding are optional"
        )
    _check_cells(frame, need_rewards)
    episode = frame["episode_id"].factorize()[0]
    if "position" in frame:
        frame = frame.iloc[np.lexsort([frame["position"].to_numpy(), episode])]
    else:
        back = np.diff(episode, prepend=0) < 0
        _refuse(back, frame, "comes back: sort the rows by episode, or give a position")
    return frame.reset_index(drop=True)


def _check_cells(frame: pd.DataFrame, need_rewards: bool) -> None:
    """Raises AriaError for a row without an id, or with an odd position or reward."""
    _refuse(frame["episode_id"].isna(), frame, "has no episode_id")
    if "position" in frame:
        place = frame["position"]
        _refuse(~_numeric(place), frame, "has a position that is no number: count from 0")
        _refuse(~_whole(place), frame, "has a position that is no whole number: count from 0")
        again = frame.duplicated(["episode_id", "position"])
        _refuse(again, frame, "has a position that its episode had before: give each its own")
    if need_rewards:
        known = frame["reward"].notna()
        _refuse(known & ~_numeric(frame["reward"]), frame, "has a reward that is no number")


def _numeric(column: pd.Series) -> pd.Series:
    """(n,) bool: numbers, and no bool, which counts as 0 or 1 elsewhere."""
    if column.dtype.kind in "iuf":
        return column.notna()
    return column.map(is_number) & column.notna()


def _whole(column: pd.Series) -> pd.Series:
    """(n,) bool of numbers: those that an int64 holds."""
    number = column.astype("float64")
    return (number % 1 == 0) & (number.abs() < 2.0**63)


def _refuse(bad: pd.Series | np.ndarray, frame: pd.DataFrame, problem: str) -> None:
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if rows.size:
        episode = frame["episode_id"].iloc[rows[0]]
        raise AriaError(f"log: row {rows[0]} (episode {episode}) {problem}")


def _own_positions(
    rows: pd.DataFrame, entries: Sequence[Mapping[str, Any]], log: Log
) -> np.ndarray | None:
    """(n,) integers: what the ordered rows say for `position`; a log's own is the place in its
    episode."""
    if "position" not in rows:
        return None
    assert log.position is not None
    episode = rows["episode_id"].factorize()[0]
    messages = np.array([len(entry["messages"]) for entry in entries], np.int64)
    before = messages - np.bincount(episode)  # what a preamble puts before an episode's rows
    starts = np.searchsorted(episode, log.episode) - before[log.episode]
    place = rows["position"]
    whole = place if place.dtype.kind in "iu" else place.astype("int64")
    return cast("np.ndarray", whole.to_numpy()[starts + log.position])


def _entries(rows: pd.DataFrame, need_rewards: bool) -> Iterator[dict[str, Any]]:
    """One entry of the `messages` layout an episode.

    Raises AriaError for rows of an episode that do not go together.
    """
    known = rows.drop(columns="position", errors="ignore")
    if not need_rewards and "reward" in known:  # looked at by nothing but `is_action`
        known["reward"] = known["reward"].where(_numeric(known["reward"]))
    for episode, part in known.groupby("episode_id", sort=False):
        said = [
            {name: value for name, value in row.items() if not _is_missing(value)}
            for row in part.to_dict("records")
        ]
        try:
            yield entry_of(str(episode), said)
        except BadEntry as problem:
            raise AriaError(f"log: episode {episode}: {problem}") from None


def _is_missing(value: Any) -> bool:
    """None, or a NaN: an empty cell."""
    return value is None or (isinstance(value, float) and value != value)
