"""Variants compared over several trainings: rates and differences, with intervals over the seeds.

Games of one training are not independent evidence about the training method, so a seed's games are
one cluster of a rate, which has Wilson's interval (see `rate`); t intervals of differences are over
the seeds' means, and p values are adjusted for the comparisons that stand in one table. What
the games of one training show by themselves stands apart (`within`), with intervals clustered by
configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aria_dvc.report.intervals import (
    SIGNIFICANT,
    clustered_interval,
    holm,
    mean_interval,
    rate,
)
from aria_dvc.settings.training import VANILLA

if TYPE_CHECKING:
    import pandas as pd

TRAINING = ["seed", "variant"]
PAIR = ["seed", "game", "role", "opponent", "episode"]
COSTS = ("completion_tokens",)
FEWEST_SEEDS = 5
"""With fewer, the t interval hangs on hardly any evidence about how much trainings differ."""


def compared(games: pd.DataFrame, reference: str) -> dict[str, Any]:
    """Per game and role, over all games, and by game on the winnable ones: see `_compared`.

    `p_holm` is p adjusted for the comparisons of one table: those over all games and by game on
    winnable games, as `table` prints them, are one, those of all games and roles another.
    `broken_off`: variant -> number of games that are in none of them.

    Args:
        games: rows of evaluation tables (see arena/evaluate.py) with columns `seed` and `winnable`,
            and maybe `broken_off` (see report/evaluation.py).
        reference: the variant that every other is compared with, beside vanilla.
    """
    out: dict[str, Any] = {"seeds": sorted(games["seed"].unique().tolist()), "games": {}}
    if "broken_off" in games:
        out["broken_off"] = games["variant"][games["broken_off"]].value_counts().to_dict()
    games = _counted(games)
    for (game, role), rows in games.groupby(["game", "role"], sort=True):
        out["games"].setdefault(game, {})[role] = _compared(rows, reference)
    out["all"] = _compared(games, reference)
    out["winnable"] = {
        str(game): _compared(rows, reference)
        for game, rows in games[games["winnable"]].groupby("game", sort=True)
    }
    _adjust([numbers for roles in out["games"].values() for numbers in roles.values()])
    _adjust_printed(out["all"], list(out["winnable"].values()))
    return out


def within(games: pd.DataFrame, reference: str) -> dict[str, Any]:
    """What the games of each training show, which is nothing of further trainings.

    Args:
        games: as above, with the column `config`: the same for games of one configuration, in
            which roles and opponents meet at different episode numbers; "" where it is not known.

    Returns:
        seed -> "all" or a game, of which only the winnable games count -> `<variant>_minus_<other>`
        -> see `clustered_interval`, by configuration. Seeds with unknown configurations have none.
    """
    return {
        str(seed): {
            "all": _within(rows, reference),
            **{
                str(game): _within(part, reference)
                for game, part in rows[rows["winnable"]].groupby("game", sort=True)
            },
        }
        for seed, rows in _counted(games).groupby("seed", sort=True)
        if (rows["config"] != "").all()
    }


def learning(curves: pd.DataFrame, reference: str) -> dict[str, Any]:
    """How well each variant did while it learned: the area under its learning curve.

    The area is the mean win rate of all its training games of a seed against others (with itself,
    where it had no others; see `role_rows` in learning/course.py), so that a credit can win by
    learning faster. Every variant played as many games.

    Args:
        curves: rows of online.csv (see learning/course.py) with columns `seed` and `variant`.

    Returns:
        log, and "all" -> variant -> area, the mean over seeds; and, where the reference trained
        on that log, `<variant>_minus_<reference>` as in `compared`, p adjusted over all of them.
    """
    return _by_log(curves, reference, _area)


def at_equal_tokens(curves: pd.DataFrame, reference: str) -> dict[str, Any]:
    """As `learning`, over as many tokens of every variant: all of the seed's thriftiest one.

    The area is the mean, over the first tokens that the policy said while it learned, of the win
    rate of the iteration in which they were said.
    """
    return _by_log(curves, reference, _area_at_equal_tokens)


def _by_log(
    curves: pd.DataFrame, reference: str, area: Callable[[pd.DataFrame], pd.Series]
) -> dict[str, Any]:
    """area: of every seed and variant (its index) of the rows."""
    tables = {
        str(log): _areas(area(rows), reference) for log, rows in curves.groupby("log", sort=True)
    }
    everything = _areas(area(curves), reference)
    _adjust_printed(everything, list(tables.values()))
    return {**tables, "all": everything}


def _area(rows: pd.DataFrame) -> pd.Series:
    won = (rows["win_rate"] * rows["episodes"]).groupby([rows["seed"], rows["variant"]]).sum()
    return won / rows["episodes"].groupby([rows["seed"], rows["variant"]]).sum()


def _area_at_equal_tokens(rows: pd.DataFrame) -> pd.Series:
    sums = rows.assign(won=rows["win_rate"] * rows["episodes"])
    rounds = sums.groupby([*TRAINING, "iteration"])[["won", "episodes", "tokens"]].sum()
    said = rounds["tokens"].groupby(TRAINING)
    most = said.sum().groupby("seed").min()
    left = most.reindex(rounds.index, level="seed") - (said.cumsum() - rounds["tokens"])
    counted = rounds["tokens"].clip(upper=left.clip(lower=0))
    won = rounds["won"] / rounds["episodes"] * counted
    return won.groupby(TRAINING).sum() / counted.groupby(TRAINING).sum()


def _areas(by_seed: pd.Series, reference: str) -> dict[str, Any]:
    areas = by_seed.unstack("variant")
    result: dict[str, Any] = {"area": areas.mean().to_dict()}
    for name in areas.columns if reference in areas else ():
        if name != reference:
            result[f"{name}_minus_{reference}"] = _difference(areas[name] - areas[reference])
    return result


def minutes(curves: pd.DataFrame) -> dict[str, float]:
    """Variant -> minutes of play and training online, the mean over seeds.

    Args:
        curves: as above, and with the column `category`: each trains a policy of its own. An
            iteration's times stand in the rows of all its logs and roles.
    """
    rounds = curves.drop_duplicates(["seed", "variant", "category", "iteration"])
    seconds = rounds["play_seconds"] + rounds["train_seconds"]
    trainings = seconds.groupby([rounds["seed"], rounds["variant"]]).sum()
    return {str(name): mean / 60 for name, mean in trainings.groupby("variant").mean().items()}


def _compared(rows: pd.DataFrame, reference: str) -> dict[str, Any]:
    """Win rates and costs by variant, and `<variant>_minus_<other>`: see `_difference`.

    cost: sums of the columns of COSTS that the tables have.
    """
    won = rows.pivot(index=PAIR, columns="variant", values="won").astype(float)
    variants = [str(name) for name in won.columns]
    by_variant = rows.groupby("variant")
    result: dict[str, Any] = {
        "win_rate": {name: _rate(won[name].dropna()) for name in variants},
        "by_seed": won.groupby("seed").mean().rename(index=str).to_dict("index"),
        "by_opponent": won.groupby("opponent").mean().to_dict("index"),
        "no_deal_rate": by_variant["no_deal"].mean().to_dict(),
        "failed_rate": (rows["failure_kind"] != "").groupby(rows["variant"]).mean().to_dict(),
        "cost": {name: by_variant[name].sum().to_dict() for name in COSTS if name in rows},
    }
    for name, other in _pairs(variants, reference):
        if other in won:
            result[f"{name}_minus_{other}"] = _difference(won[name] - won[other])
    return result


def _pairs(variants: Sequence[str], reference: str) -> Iterator[tuple[str, str]]:
    """Who is compared with whom."""
    for other in dict.fromkeys((VANILLA, reference)):
        yield from ((name, other) for name in variants if name not in (VANILLA, other))


def _counted(games: pd.DataFrame) -> pd.DataFrame:
    return games[~games["broken_off"]] if "broken_off" in games else games


def _within(rows: pd.DataFrame, reference: str) -> dict[str, Any]:
    """The comparisons of one training's games."""
    won = rows.pivot(index=[*PAIR, "config"], columns="variant", values="won").astype(float)
    result = {}
    for name, other in _pairs([str(name) for name in won.columns], reference):
        if other in won:
            pairs = (won[name] - won[other]).dropna()
            configs = pairs.index.get_level_values("config").to_numpy()
            result[f"{name}_minus_{other}"] = clustered_interval(pairs.to_numpy(), configs)
    return result


def _rate(won: pd.Series) -> dict[str, Any]:
    """Share of won games with an interval for further seeds (`seed` is in the index), of which a
    single one says nothing."""
    seeds = won.index.get_level_values("seed").to_numpy()
    found = rate(won.to_numpy(dtype=bool), seeds)
    return found if len(set(seeds)) > 1 else {**found, "low": None, "high": None}


def _difference(pairs: pd.Series) -> dict[str, Any]:
    """Mean difference of won games, its t interval over seeds, and whether these are too few.

    pairs: values with `seed` in the index; games that only one of the two played are null.
    """
    seeds = pairs.dropna().groupby("seed").mean().to_numpy()
    return {**mean_interval(seeds), "few_seeds": len(seeds) < FEWEST_SEEDS}


def _adjust(table: Sequence[dict[str, Any]]) -> None:
    """Add `p_holm` to every comparison of one table."""
    rows = [row for numbers in table for name, row in numbers.items() if "_minus_" in name]
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p


def _adjust_printed(everything: dict[str, Any], parts: Sequence[dict[str, Any]]) -> None:
    """`_adjust` for what is printed as one table: all games, and each."""
    others = _others(everything, parts)
    _adjust([everything, *others])
    if not others:
        _adjust(parts)


def _others(everything: dict[str, Any], parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts, but for one that is all of everything: a study of one game has one table."""
    alone = len(parts) == 1 and _differences(parts[0]) == _differences(everything)
    return [] if alone else list(parts)


def _differences(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [row["mean"], row["p"]] for name, row in numbers.items() if "_minus_" in name}


def table(found: dict[str, Any], reference: str) -> str:
    """What `compared`, `within`, `learning`, `at_equal_tokens` and `minutes` found, as a Markdown
    table: a row a variant, all games first, then each game's winnable ones; intervals of 95 %, over
    seeds.

    Of a single seed the differences have those of its games. The heading says which intervals
    these are, and of which commits the seeds are, by `commits` of `found`: seed -> commit.
    """
    scopes = {"all": found["all"], **found["winnable"]}
    single = len(found["seeds"]) == 1
    alone = found.get("within", {}).get(str(found["seeds"][0])) if single else None
    areas, spent = found.get("learning", {}), found.get("minutes", {})
    thrifty = found.get("at_equal_tokens", {})
    lines = [
        f"Seeds: {_seeds(found['seeds'], found.get('commits', {}))}.",
        "A game's rows are of its winnable games; area: the mean win rate of all training games "
        "against others; equal tokens: its difference over as many tokens that the policy said; "
        "minutes: play and training online, of one seed.",
        _meaning(single, alone is not None),
        *([] if single else [_how_sure(found)]),
        "",
        f"| games | variant | won | minus vanilla | minus {reference} | area | minus {reference} "
        f"| minus {reference}, equal tokens | minutes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for scope, numbers in scopes.items():
        learned = areas.get(scope, {})
        rates, differences = numbers["win_rate"], alone[scope] if alone else numbers
        for name in sorted(rates, key=lambda name: -rates[name]["rate"]):
            row = (
                scope,
                name,
                _interval(rates[name], "rate", sign=""),
                _interval(differences.get(f"{name}_minus_{VANILLA}"), "mean"),
                _interval(differences.get(f"{name}_minus_{reference}"), "mean"),
                f"{learned['area'][name]:.2f}" if name in learned.get("area", {}) else "",
                _interval(learned.get(f"{name}_minus_{reference}"), "mean"),
                _interval(thrifty.get(scope, {}).get(f"{name}_minus_{reference}"), "mean"),
                f"{spent[name]:.0f}" if scope == "all" and name in spent else "",
            )
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _meaning(single: bool, known: bool) -> str:
    """Which intervals are shown."""
    if not single:
        return "Intervals of `won`: Wilson's, a seed's games as one cluster; else t over the seeds."
    if not known:
        return "No interval: one seed, of whose games the configurations are not known."
    return (
        "Intervals are of this one training's games, clustered by configuration: they say nothing "
        "of further trainings."
    )


def _how_sure(found: Mapping[str, Any]) -> str:
    """How many of the differences of the table are shown; one game that is all counts once."""
    games = _others(found["all"], list(found["winnable"].values()))
    parts = (found["all"], *games)
    rows = [row for part in parts for name, row in part.items() if "_minus_" in name]
    apart = [row for row in rows if row["low"] is not None and (row["low"] > 0 or row["high"] < 0)]
    shown = [row for row in rows if row["p_holm"] is not None and row["p_holm"] < SIGNIFICANT]
    few = f"; with fewer than {FEWEST_SEEDS} seeds intervals hang on hardly any evidence"
    return (
        f"Of {len(rows)} differences of win rates {len(apart)} have an interval off 0, and "
        f"{len(shown)} p below {SIGNIFICANT} by Holm's correction"
        f"{few if any(row['few_seeds'] for row in rows) else ''}."
    )


def commit_named(commit: str) -> str:
    """A commit as readers see it; "" is one that was not written down."""
    return f"commit {commit[:7]}" if commit else "no commit recorded"


def _seeds(seeds: Sequence[int], commits: Mapping[str, str]) -> str:
    """Seeds and their commits: `0, 1 (commit 4f1c2d3); 2 (commit 9a8b7c6)`."""
    together: dict[str, list[str]] = {}
    for seed in map(str, seeds):
        together.setdefault(commits.get(seed, ""), []).append(seed)
    return "; ".join(f"{', '.join(of)} ({commit_named(commit)})" for commit, of in together.items())


def _interval(numbers: dict[str, Any] | None, middle: str, sign: str = "+") -> str:
    """Empty where there is none; without the interval where the seeds are too few for one."""
    if not numbers or numbers[middle] is None:
        return ""
    shown = f"{numbers[middle]:{sign}.2f}"
    if numbers["low"] is None:
        return shown
    return f"{shown} ({numbers['low']:{sign}.2f} to {numbers['high']:{sign}.2f})"
