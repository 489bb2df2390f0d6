"""The tables of one log as the stages read them: checked row by row, and against its turns.

What a stage wrote is right; what lies there may be of another run, sorted anew or edited. A table
that does not belong to the turns beside it would give an utterance the credit of another.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from aria_dvc.errors import AriaError
from aria_dvc.records.schemas import (
    CONTRIBUTIONS,
    EPISODES,
    EVALUATION,
    REWARDS,
    TURNS,
    read_table,
)
from aria_dvc.records.turns import own_turns

if TYPE_CHECKING:
    import pandas as pd

_ACTION = ["episode_id", "position", "role", "turn"]


def read_turns(path: str | Path) -> pd.DataFrame:
    """The turns of a log (see records/schemas.py), without what `aria read` alone adds.

    Raises:
        AriaError: as `read_table`; no rows, an episode whose rows are apart or out of order, own
            turns that are counted wrongly, an action without a reward, an empty text, or several
            games, groups or rewards where there is one.
    """
    turns = read_table(path, TURNS)[[column.name for column in TURNS.columns if column.needed]]
    if not len(turns):
        raise TURNS.wrong(path, "has no rows")
    episode = turns["episode_id"].factorize()[0]
    step, position = np.diff(episode, prepend=-1), turns["position"].to_numpy(np.int64)
    inside = step == 0
    TURNS.refuse(step < 0, turns, path, "the rows of its episode are not together")
    TURNS.refuse(inside & (np.diff(position, prepend=0) <= 0), turns, path, "position out of order")
    TURNS.refuse(position < 0, turns, path, "the position is below 0")
    for name in ("text", "embedded"):
        TURNS.refuse((turns[name].str.len() == 0).to_numpy(bool), turns, path, f"{name} is empty")
    _check_own_turns(turns, episode, path)
    _check_constant(turns, episode, inside, path)
    return turns


def _check_own_turns(turns: pd.DataFrame, episode: np.ndarray, path: str | Path) -> None:
    counted = own_turns(episode, turns["role"].factorize()[0])
    for name, right in zip(("turn", "turns"), counted, strict=True):
        wrong = turns[name].to_numpy() != right
        TURNS.refuse(wrong, turns, path, f"{name} does not count the role's own utterances")


def _check_constant(
    turns: pd.DataFrame, episode: np.ndarray, inside: np.ndarray, path: str | Path
) -> None:
    reward, is_action = turns["reward"].to_numpy(), turns["is_action"].to_numpy(bool)
    TURNS.refuse(is_action & np.isnan(reward), turns, path, "an action without a reward")
    TURNS.refuse(np.isinf(reward), turns, path, "the reward is infinite")
    first = turns.groupby([episode, "role"], sort=False)["reward"].transform("first").to_numpy()
    differs = ~((reward == first) | (np.isnan(reward) & np.isnan(first)))
    TURNS.refuse(differs, turns, path, "another reward than the role has before")
    group, game = (turns[name].factorize()[0] for name in ("group_id", "game"))
    TURNS.refuse(inside & (np.diff(group, prepend=0) != 0), turns, path, "another group_id")
    TURNS.refuse(game != 0, turns, path, "another game than in the first row")


def read_episodes(path: str | Path, turns: pd.DataFrame) -> pd.DataFrame:
    """The episodes of a log, which are those of `turns`, in the same order.

    Raises:
        AriaError: as `read_table`; an episode twice, missing or of other turns, a role of the
            turns with a reward but no row, or `info` that is no JSON object.
    """
    episodes = read_table(path, EPISODES)
    key = ["episode_id", "role"]
    EPISODES.refuse(episodes[key].duplicated(), episodes, path, "stands there twice")
    ids, known = (list(table["episode_id"].unique()) for table in (episodes, turns))
    if ids != known:
        raise EPISODES.wrong(path, f"its episodes are not those of the turns{_first(ids, known)}")
    asked = turns.loc[turns["reward"].notna(), key].drop_duplicates()
    missing = ~_in(asked[key], episodes[key])
    EPISODES.refuse(missing, asked, path, "has a reward in the turns but no row here")
    same = episodes[["episode_id"]].merge(
        turns.drop_duplicates("episode_id")[["episode_id", "game", "group_id"]], on="episode_id"
    )
    for name in ("game", "group_id"):
        differs = episodes[name].to_numpy(object) != same[name].to_numpy(object)
        EPISODES.refuse(differs, episodes, path, f"another {name} than in the turns")
    _check_info(episodes, path)
    return episodes


def _check_info(episodes: pd.DataFrame, path: str | Path) -> None:
    """Every `info` is a JSON object; all are parsed at once."""
    texts = episodes["info"].to_numpy(dtype=object)
    try:
        found = orjson.loads("[" + ",".join(texts) + "]")
    except orjson.JSONDecodeError:
        found = []
    if len(found) != len(texts) or not all(type(info) is dict for info in found):
        bad = np.array([not _is_object(text) for text in texts])
        EPISODES.refuse(bad, episodes, path, "info is no JSON object")


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def read_rewards(path: str | Path, turns: pd.DataFrame) -> pd.DataFrame:
    """The rewards of a log: one row an action of `turns`, in the same order.

    Raises:
        AriaError: as `read_table`; another number of rows, rows of other actions, or a cell whose
            size is not the number of its rows.
    """
    rewards = read_table(path, REWARDS)
    actions = turns.loc[turns["is_action"], _ACTION]
    if len(rewards) != len(actions):
        problem = f"has {len(rewards)} rows for {len(actions)} actions of the turns"
        raise REWARDS.wrong(path, problem)
    for name in _ACTION:
        differs = rewards[name].to_numpy() != actions[name].to_numpy()
        REWARDS.refuse(differs, rewards, path, f"the turns have another {name} there")
    for name in ("label", "cell"):
        REWARDS.refuse(rewards[name] < 0, rewards, path, f"{name} is below 0")
    cell = rewards["cell"].factorize()[0]
    wrong = np.bincount(cell, minlength=1)[cell] != rewards["cell_size"].to_numpy()
    REWARDS.refuse(wrong, rewards, path, "cell_size is not the number of rows of its cell")
    return rewards


def read_contributions(path: str | Path, turns: pd.DataFrame) -> pd.DataFrame:
    """What the stage progress says of a log: one row an action of `turns`, in the same order.

    Raises:
        AriaError: as `read_table`; rows of other actions.
    """
    return read_table(path, CONTRIBUTIONS, turns[turns["is_action"]].reset_index(drop=True))


def read_evaluation(path: str | Path, variant: str) -> pd.DataFrame:
    """The evaluation games of one policy.

    Raises:
        AriaError: as `read_table`; games of another policy, or one twice.
    """
    games = read_table(path, EVALUATION)
    named = games.rename(columns={"episode": "episode_id"})
    EVALUATION.refuse(games["variant"] != variant, named, path, f"not a game of {variant}")
    key = ["game", "role", "opponent", "episode"]
    EVALUATION.refuse(games[key].duplicated(), named, path, "stands there twice")
    return games


def read_stage_json(path: str | Path, stage: str) -> dict[str, Any]:
    """The JSON object that a stage wrote.

    Raises:
        AriaError: no such file, or another content; says which stage to run.
    """
    try:
        found = orjson.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise AriaError(f"{path} is missing: run the stage {stage}") from None
    except orjson.JSONDecodeError as error:
        raise AriaError(
            f"{path}: broken JSON ({error.msg} at line {error.lineno}): run the stage {stage} again"
        ) from None
    if not isinstance(found, dict):
        raise AriaError(f"{path}: no JSON object: run the stage {stage} again")
    return found


def read_stage_csv(path: str | Path, columns: Collection[str], stage: str) -> pd.DataFrame:
    """The CSV table that a stage wrote.

    Raises:
        AriaError: no such file, no CSV, or a column too few; says which stage to run.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise AriaError(f"{path} is missing: run the stage {stage}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
        raise AriaError(f"{path}: no table in CSV: run the stage {stage} again") from None
    if missing := [name for name in columns if name not in table]:
        raise AriaError(f"{path}: no column {', '.join(missing)}: run the stage {stage} again")
    return table


def _in(rows: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """(n,) bool: which rows are rows of the table."""
    import pandas as pd

    return pd.MultiIndex.from_frame(rows).isin(pd.MultiIndex.from_frame(table))


def _first(found: list[str], wanted: list[str]) -> str:
    """Where two lists of ids part."""
    pairs = zip(found, wanted, strict=False)
    place = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(found), len(wanted)))
    ours, theirs = (ids[place] if place < len(ids) else "none" for ids in (found, wanted))
    return f" (episode {place} is {ours}, there {theirs})"
