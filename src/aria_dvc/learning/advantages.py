"""What each action's log-probability is multiplied by (paper, sec. 3.5, and its ablations)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from aria_dvc.errors import AriaError
from aria_dvc.learning.examples import Key, LogFrames, keyed_rows, keys_of
from aria_dvc.seeds import derived_seed

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.settings.training import PolicyParams

logger = logging.getLogger(__name__)
AGGREGATED = "aria"  # stands for the column `reward`, whoever wrote it
CLONED_ABOVE = 0.5  # a success of a role that acts alone
EQUAL = 1e-9  # a spread below this share of the largest value is rounding


def policy_weights(
    frames: Sequence[LogFrames], params: PolicyParams, seed: int
) -> dict[Key, float]:
    """The weight of every action for `params.method`, `.credit`, `.advantage` and `.placebo`."""
    if params.method == "behaviour_cloning":
        return cloning_weights(frames)
    weights = all_advantages(frames, params.credit, params.advantage)
    return shuffled(frames, weights, seed) if params.placebo else weights


def shuffled(
    frames: Sequence[LogFrames], weights: Mapping[Key, float], seed: int
) -> dict[Key, float]:
    """The same weights on other actions of the same log and role, drawn by seed.

    A placebo: it takes steps of the same size from the same games and can teach nothing.
    """
    groups: dict[tuple[str, str], list[Key]] = {}
    for log in frames:
        for key, row in keyed_rows(log.name, log.rewards):
            if key in weights:
                groups.setdefault((log.name, str(row.role)), []).append(key)
    given: dict[Key, float] = {}
    for name, keys in groups.items():
        order = np.random.default_rng(derived_seed(seed, "placebo", *name)).permutation(len(keys))
        given |= {key: weights[keys[place]] for key, place in zip(keys, order, strict=True)}
    return given


def cloning_weights(frames: Sequence[LogFrames]) -> dict[Key, float]:
    """1 for the actions of successful roles, nothing for the others."""
    weights = {key: 1.0 for log in frames for key in successful(log)}
    if not weights:
        logger.warning(
            "policy.method: behaviour_cloning finds no success to imitate in %s: the policy stays "
            "the base model",
            ", ".join(log.name for log in frames),
        )
    return weights


def successful(log: LogFrames) -> list[Key]:
    """The actions of roles with a final reward above every other role's in the episode.

    A role that acts alone is successful above CLONED_ABOVE. No threshold would do for two: with
    the reward rule `utility` a reward is a share of money.
    """
    finals: dict[str, dict[str, float]] = {}
    for row in log.turns[log.turns["reward"].notna()].itertuples(index=False):
        finals.setdefault(row.episode_id, {})[row.role] = row.reward
    keys = []
    for key, row in keyed_rows(log.name, actions(log)):
        others = [value for role, value in finals[row.episode_id].items() if role != row.role]
        if row.final > max(others, default=CLONED_ABOVE):
            keys.append(key)
    return keys


def all_advantages(frames: Sequence[LogFrames], credit: str, advantage: str) -> dict[Key, float]:
    """The advantages of several logs, each centred or normalised by itself."""
    return {
        key: value for log in frames for key, value in advantages(log, credit, advantage).items()
    }


def advantages(log: LogFrames, credit: str, advantage: str) -> dict[Key, float]:
    """One log's advantages A(h_t, a_t).

    Args:
        credit: "discounted" (gamma^(T-t) R), "terminal" (R), or anything else for the column
            `reward` of the rewards table.
        advantage: "return" takes the credit itself; "centred" subtracts the value of the state
            (see `state_values`), by the other episodes; "group" that by other groups' episodes,
            and what the episode's configuration is worth (see `group_effects`; where there is one
            group alone it is "centred"); "normalised"
            subtracts the mean and divides by the standard deviation over all actions of the same
            role; "value" subtracts the method's own v(h_t), the column `value`.

    Raises:
        AriaError: "value" where the credit has none.
    """
    table = actions(log)
    column = {"discounted": "return", "terminal": "final"}.get(credit, "reward")
    values = table[column].to_numpy(dtype=np.float64)
    if advantage == "centred":
        values = _above(values, state_values(table, values))
    elif advantage == "group":
        several = table["group_id"].nunique() > 1
        own = [state_values(table, values, "group_id" if several else "episode_id")]
        if several:
            own.append(group_effects(table, values - own[0]))
        values = _above(values, *own)
    elif advantage == "normalised":
        values = _normalised(table, values)
    elif advantage == "value":
        values = _above(values, _own_values(table, column, log.name))
    return dict(zip(keys_of(log.name, table), values.tolist(), strict=True))


def paid_by_return(log: LogFrames) -> LogFrames:
    """The same log with the discounted return as the credit, above the same value."""
    return replace(log, rewards=log.rewards.assign(reward=log.rewards["return"]))


def actions(log: LogFrames) -> pd.DataFrame:
    """The rewards table with the role's undiscounted final reward as `final`, and its `group_id`.

    An episode of which no group is known is a group of its own.

    Raises:
        AriaError: rewards and turns do not belong together.
    """
    finals = log.turns.loc[log.turns["is_action"], ["episode_id", "position", "reward"]]
    finals = finals.rename(columns={"reward": "final"})
    table = log.rewards.merge(finals, on=["episode_id", "position"], how="left")
    table["group_id"] = table["episode_id"].map(groups_of(log.episodes))
    if table["final"].isna().any():
        raise AriaError(
            f"rewards of {log.name} name actions that its turns do not have: "
            "run the aggregate stage again"
        )
    return table


def groups_of(episodes: pd.DataFrame) -> dict[str, str]:
    """episode_id -> its group: the episodes that share one configuration, else itself."""
    column = "group_id" if "group_id" in episodes else "episode_id"
    named = episodes[["episode_id", column]].set_axis(["episode", "group"], axis=1)
    named["group"] = named["group"].where(named["group"].fillna("") != "", named["episode"])
    return dict(zip(named["episode"], named["group"], strict=True))


def group_effects(table: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    """What a configuration is worth to a role beyond the value of the turn.

    The mean over the *other* episodes of the same group of their mean value per action of the
    same role. It does not depend on the action where `values` are centred by other groups alone:
    by other episodes of the group they would hold its return. A group of one has none: 0.

    Args:
        table: with `group_id`.
        values: (n,) centred by `state_values`.

    Returns:
        (n,) float64, rows in the order of `table`.
    """
    rows = table[["group_id", "role", "episode_id"]].assign(value=values)
    names = ["group_id", "role", "episode_id"]
    episodes = rows.groupby(names, as_index=False)["value"].mean()
    of_group = episodes.groupby(["group_id", "role"])["value"]
    count, total = of_group.transform("count"), of_group.transform("sum")
    episodes["effect"] = (total - episodes["value"]) / (count - 1).clip(lower=1)
    episodes.loc[count == 1, "effect"] = 0.0
    merged: pd.DataFrame = rows.merge(episodes.drop(columns="value"), on=names, how="left")
    return merged["effect"].to_numpy(dtype=np.float64)


def state_values(table: pd.DataFrame, values: np.ndarray, unit: str = "episode_id") -> np.ndarray:
    """V(h_t): mean value of the *other* episodes' actions by the same role at the same own turn.

    The cell of a full history is nearly always a singleton, in which V would equal the credit
    itself and every advantage be 0; the turn is the coarsest history that still carries value.
    Where other episodes' values do not (returns do not; those of cells, which pool returns, do a
    little) it does not depend on the action, and leaves the expected gradient unchanged.
    A turn that nobody else reached takes the others' mean of its role; a role that nobody else has,
    its own mean.

    Args:
        unit: column of what is left out as one: the episode, or its whole `group_id`.

    Returns:
        (n,) float64, rows in the order of `table`.
    """
    rows = table[["role", "turn", unit]].assign(value=values)
    found = _others_mean(rows, ["role", "turn"], unit)
    found = found.fillna(_others_mean(rows, ["role"], unit))
    found = found.fillna(rows.groupby("role")["value"].transform("mean"))
    return found.to_numpy(dtype=np.float64)


def _others_mean(rows: pd.DataFrame, keys: list[str], unit: str) -> pd.Series:
    """(n,) mean `value` of the rows of equal `keys` in other units; NaN where there is none."""
    equal, own = rows.groupby(keys)["value"], rows.groupby([*keys, unit])["value"]
    count = equal.transform("count") - own.transform("count")
    return (equal.transform("sum") - own.transform("sum")) / count.where(count > 0)


def _own_values(table: pd.DataFrame, column: str, log: str) -> np.ndarray:
    """(n,) float64 v(h_t) of the method whose q is the column `reward`."""
    found = table["value"].to_numpy(dtype=np.float64) if column == "reward" else np.array([np.nan])
    if np.isnan(found).any():
        raise AriaError(
            f"{log}: policy.advantage = value needs a credit with a value: a plain return and a "
            "reward model's score have none; choose another advantage"
        )
    return found


def _above(values: np.ndarray, *own: np.ndarray) -> np.ndarray:
    """(n,) float64 values less each of `own`; a difference that may be rounding is 0."""
    apart = reduce(np.subtract, own, values)
    largest = max(float(np.abs(part).max(initial=0.0)) for part in (values, *own))
    return np.where(np.abs(apart) > EQUAL * largest, apart, 0.0)


def _normalised(table: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    """Zero mean and unit standard deviation per role; 0 where all values of a role are equal."""
    import pandas as pd

    of_role = pd.Series(values, index=table.index).groupby(table["role"])
    spread = of_role.transform("std", ddof=0).to_numpy()
    centred = values - of_role.transform("mean").to_numpy()
    largest = pd.Series(np.abs(values), index=table.index).groupby(table["role"]).transform("max")
    varies = spread > EQUAL * largest.to_numpy()
    return np.where(varies, centred / np.where(varies, spread, 1.0), 0.0)
