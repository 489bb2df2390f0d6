"""How the policies did: rates, means and paired differences, each with its interval.

Rates have Wilson's interval with the design effect of configurations, means and differences a t
interval clustered by configuration, those of won games McNemar's exact p too, adjusted by Holm for
all differences that are shown together. Games that somebody broke off who is not judged are counted
apart: they are in no rate, mean or pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aria_dvc.report.intervals import (
    clustered_interval,
    doubt,
    holm,
    paired_difference,
    rate,
    share_of_turns,
)
from aria_dvc.settings.training import VANILLA

if TYPE_CHECKING:
    import pandas as pd

    Parts = list[tuple[str, pd.DataFrame]]

PAIR = ["role", "opponent", "episode"]
MEASURES = (
    "reward",
    "utility",
    "opponent_utility",
    "efficiency",
    "fairness",
    "turns",
    "completion_tokens",
)
PAIRED = ("reward", "utility")
"""Measures whose paired differences are reported beside that of won games."""
RATE = ("rate", "low", "high", "episodes")
FAMILIES = ("all", "by_role", "by_opponent", "by_pairing")
"""Differences of one family stand in one table, over all games: Holm's p is for all of them."""


def evaluation_metrics(
    games: pd.DataFrame, adversarial: bool, baselines: Sequence[str] = (VANILLA,)
) -> dict[str, Any]:
    """One game's evaluation: rates and means with 95 % intervals, failures, and differences.

    Args:
        games: one row an episode (see arena/evaluate.py), of all variants, whether its
            configuration can be won by its role (bool column `winnable`), its kind of task
            (column `kind`, null without kinds), and what it was worth (float64 columns
            `efficiency` and `fairness`, NaN where a game has none).
        adversarial: the rate is the win rate (own utility strictly above the opponent's), with
            the shares of games with and without a deal; otherwise the success rate.
        baselines: what all others are compared with, besides vanilla; two of them are once.

    Returns:
        all: by variant (see `_variant_metrics`); by_role, by_opponent: name -> by variant;
        differences: baseline -> the others minus it: `all`, `by_role`, `by_opponent`, and
        `by_pairing` ("alice against scripted:fair"), empty for one role or opponent;
        minus_vanilla: its `all` for vanilla; winnable: rates and differences of the winnable games
        alone; by_kind: kind -> by variant, where tasks have kinds.
    """
    games = games.assign(broken_off=broken_off(games))
    roles, opponents = (_parts(games, name) for name in ("role", "opponent"))
    by_kind = {k: _by_variant(rows, adversarial) for k, rows in _parts(games, "kind")}
    compared = tuple(dict.fromkeys((VANILLA, *baselines)))
    parts = {"by_role": roles, "by_opponent": opponents, "by_pairing": _pairings(roles, opponents)}
    differences = {
        name: _differences(games, compared[: place + 1], parts)
        for place, name in enumerate(compared)
    }
    return {
        "all": _by_variant(games, adversarial),
        "by_role": {role: _by_variant(rows, adversarial) for role, rows in roles},
        "by_opponent": {name: _by_variant(rows, adversarial) for name, rows in opponents},
        "minus_vanilla": differences[VANILLA]["all"],
        "differences": differences,
        "winnable": {
            "all": _winnable_rates(games),
            "by_role": {role: _winnable_rates(rows) for role, rows in roles},
            "minus_vanilla": _gains(games[games["winnable"]], (VANILLA,)),
        },
        **({"by_kind": by_kind} if by_kind else {}),
    }


def broken_off(games: pd.DataFrame) -> pd.Series:
    """Whether somebody broke a game off who has no reward in it, such as a model as oracle.

    Its outcome says nothing about those who acted: training leaves such games out too (see
    `without_broken_off`). Who has a reward is a role of the table, since all of them are judged.
    """
    by = games["failure_role"]
    return (by != "") & ~by.isin(games["role"].unique())


def with_holm(evaluation: dict[str, Any]) -> dict[str, Any]:
    """The evaluation of all games with `p_holm` and `comparisons` in every difference.

    p is adjusted within a family (see FAMILIES), over all games, variants and baselines.
    """
    for family in FAMILIES:
        adjust([gain for of in evaluation.values() for gain in _family(of, family)])
    adjust([g for of in evaluation.values() for g in of["winnable"]["minus_vanilla"].values()])
    return evaluation


def adjust(gains: Sequence[dict[str, Any]]) -> None:
    """Add `p_holm` and `comparisons`, the number of rows, to every row of one table, and say by the
    adjusted p whether it is undecided."""
    for gain, p in zip(gains, holm([gain["p"] for gain in gains]), strict=True):
        gain |= {"p_holm": p, "comparisons": len(gains)}
        gain |= doubt(gain)


def _family(of: dict[str, Any], family: str) -> Iterator[dict[str, Any]]:
    for compared in of["differences"].values():
        groups = [compared[family]] if family == "all" else compared[family].values()
        for gains in groups:
            yield from gains.values()


def _parts(games: pd.DataFrame, name: str) -> Parts:
    return [(str(value), rows) for value, rows in games.groupby(name, sort=name != "kind")]


def _pairings(roles: Parts, opponents: Parts) -> Parts:
    """The games of a role against an opponent; none where that is what the others show."""
    if len(roles) < 2 or len(opponents) < 2:
        return []
    return [
        (f"{role} against {opponent}", rows)
        for role, played in roles
        for opponent, rows in _parts(played, "opponent")
    ]


def _differences(
    games: pd.DataFrame, baselines: Sequence[str], parts: Mapping[str, Parts]
) -> dict[str, Any]:
    """The other variants minus the last baseline: over all games, and by part of each family."""
    by_family = {
        family: {name: _gains(rows, baselines) for name, rows in of} for family, of in parts.items()
    }
    return {"all": _gains(games, baselines), **by_family}


def _by_variant(rows: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    return {
        str(name): _variant_metrics(part, adversarial)
        for name, part in rows.groupby("variant", sort=False)
    }


def _winnable_rates(rows: pd.DataFrame) -> dict[str, Any]:
    """By variant the rate on winnable games; null where there are none."""
    return {
        str(name): _rate(part[part["winnable"] & ~part["broken_off"]], "won")
        for name, part in rows.groupby("variant", sort=False)
    }


def _gains(games: pd.DataFrame, baselines: Sequence[str]) -> dict[str, Any]:
    """The paired difference of every variant but the baselines to the last of these, over the
    games that both have played."""
    games = games[~games["broken_off"]]
    names, baseline = [str(name) for name in games["variant"].unique()], baselines[-1]
    if baseline not in names:
        return {}
    tables = {
        measure: games.pivot(index=[*PAIR, "config"], columns="variant", values=measure)
        for measure in ("won", *PAIRED)
        if measure in games
    }
    return {name: _gain(tables, name, baseline) for name in names if name not in baselines}


def _gain(tables: dict[str, pd.DataFrame], name: str, baseline: str) -> dict[str, Any]:
    """See `paired_difference`; `<measure>`: mean difference with its `clustered_interval` by
    configuration, null where the two have no game with that measure."""
    pairs = tables["won"][[name, baseline]].dropna()
    after, before = pairs.to_numpy(dtype=bool).T
    result = paired_difference(after, before, pairs.index.get_level_values("config").to_numpy())
    for measure in PAIRED:
        if measure in tables:
            known = tables[measure][[name, baseline]].astype(float).dropna()
            gap = (known[name] - known[baseline]).to_numpy()
            configs = known.index.get_level_values("config").to_numpy()
            result[measure] = clustered_interval(gap, configs) if len(gap) else None
    return result


def _variant_metrics(part: pd.DataFrame, adversarial: bool) -> dict[str, Any]:
    """One variant's games.

    rate, low, high, episodes: won or solved. means: measure -> mean over the games that have it,
    interval by configuration. failed: games that a player could not go on with; failures: their
    number by role and kind, failure_rates: the same as rates. agreement: games with a deal.
    losing_deals: number of games that left it less than no deal does (utility below 0).
    broken_off: number of games, by role and kind, that are in none of these (see `broken_off`).
    """
    labels = (part["failure_role"] + ": " + part["failure_kind"]).where(part["failure_kind"] != "")
    broken = Counter(labels[part["broken_off"]].tolist())
    part, labels = part[~part["broken_off"]], labels[~part["broken_off"]]
    kinds = Counter(labels.dropna().tolist())
    result = {
        **_rate(part, "won"),
        "mean_reward": float(part["reward"].mean()),
        "mean_turns": float(part["turns"].mean()),
        "means": _means(part),
        "refused_per_turn": float(part["refused"].sum() / max(part["turns"].sum(), 1)),
        "failed": kinds.total(),
        "failures": dict(sorted(kinds.items())),
        "failure_rates": {
            kind: _rate(part.assign(failed=labels == kind), "failed") for kind in sorted(kinds)
        },
        "broken_off": dict(sorted(broken.items())),
    }
    if adversarial:
        result["no_deal_rate"] = float(part["no_deal"].mean())
        agreed = ~part["no_deal"].astype(bool) & (part["failure_kind"] == "")
        result["agreement"] = _rate(part.assign(agreed=agreed), "agreed")
        if "utility" in part:
            result["losing_deals"] = int((part["utility"] < 0).sum())
    answered = part[part["executed"].notna()]
    if len(answered):
        counts = (answered[name].to_numpy(dtype=int) for name in ("executed", "turns"))
        result["grounding"] = share_of_turns(*counts)
    return result


def _rate(part: pd.DataFrame, column: str) -> dict[str, Any]:
    """Share of the games of which a column is true; those of one configuration are a cluster."""
    return rate(part[column].to_numpy(dtype=bool), part["config"].to_numpy())


def _means(part: pd.DataFrame) -> dict[str, Any]:
    """Measure -> its mean with an interval, of those that any game has."""
    found = {}
    for name in MEASURES:
        if name in part and len(known := part[part[name].notna()]):
            values = known[name].to_numpy(dtype=float)
            found[name] = clustered_interval(values, known["config"].to_numpy())
    return found


def rates(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a game, role and variant: rate, low, high, episodes."""
    return [
        {"game": game, "role": role, "variant": name, **rate_of(numbers)}
        for game, metrics in evaluation.items()
        for role, by_variant in metrics["by_role"].items()
        for name, numbers in by_variant.items()
    ]


def rate_of(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The rate of some games, with its interval."""
    return {key: numbers[key] for key in RATE}


def leaderboard(evaluation: dict[str, Any]) -> pd.DataFrame:
    """Who did best: one row a game and variant, over all roles and opponents, best rate first.

    Columns: game, variant, episodes; rate, low, high; agreement, utility, efficiency, fairness,
    turns, completion_tokens, failed_rate (means; NaN where a game has none); minus_vanilla,
    minus_low, minus_high, p_holm (NaN for vanilla and without pairs).
    """
    import pandas as pd

    rows = [
        _row(game, name, numbers, of["minus_vanilla"].get(name, {}))
        for game, of in evaluation.items()
        for name, numbers in of["all"].items()
    ]
    table = pd.DataFrame(rows, columns=list(LEADERBOARD))
    return table.sort_values(["game", "rate"], ascending=[True, False], ignore_index=True)


LEADERBOARD = (
    *("game", "variant", "episodes", "rate", "low", "high", "agreement"),
    *("utility", "efficiency", "fairness", "turns", "completion_tokens", "failed_rate"),
    *("minus_vanilla", "minus_low", "minus_high", "p_holm"),
)


def _row(game: str, name: str, numbers: dict[str, Any], gain: dict[str, Any]) -> dict[str, Any]:
    means = {measure: found["mean"] for measure, found in numbers["means"].items()}
    compared = {"minus_vanilla": "mean", "minus_low": "low", "minus_high": "high"}
    return {
        "game": game,
        "variant": name,
        **{key: numbers[key] for key in ("episodes", "rate", "low", "high")},
        "agreement": numbers.get("agreement", {}).get("rate"),
        "failed_rate": numbers["failed"] / max(numbers["episodes"], 1),
        **means,
        **{column: gain.get(key) for column, key in compared.items()},
        "p_holm": gain.get("p_holm"),
    }
