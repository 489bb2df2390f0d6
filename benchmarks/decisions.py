"""How well intentions tell what an offer demands, and what that does to the credit.

    python benchmarks/decisions.py [LOG ...] [--games 300] [--out table.md]

LOG: played bargaining or negotiation games (data/raw/.../bargaining.jsonl). Without any, games of
scripted players and of one that demands and accepts at random are played.

For every form of `prepare.decisions` a row has, by number of intentions, the share of the variance
of the demands (own share of the sum; price in units of the scale) that is between the groups of
equal role and intention (acceptances and refused texts demand nothing); then, at the chosen k, the
held-out R2 of some credits, and the variance of some in units of that of the returns.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np

from aria_dvc.arena.assignments import assign
from aria_dvc.arena.collection import collect_series
from aria_dvc.arena.series import Series
from aria_dvc.credit.chain import choose_k
from aria_dvc.credit.methods.base import fit_values, out_of_fold
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, CreditSettings
from aria_dvc.credit.variance import r_squared
from aria_dvc.files import written_aside
from aria_dvc.games.alternating import AlternatingMatch
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.decided import tell_decisions
from aria_dvc.games.registry import get_game
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions
from aria_dvc.params import load_params
from aria_dvc.players.scripted import ScriptedPlayer
from aria_dvc.players.strategies import STRATEGIES, Observation
from aria_dvc.records.episodes import Episode
from aria_dvc.records.readers import read_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.tables import turns_table
from aria_dvc.settings.intentions import Decisions

KS = (2, 5, 10, 20)
METHODS = ("turn_index", "aria", "aria_recent", "shrinkage", "regression")
VARIANCES = ("aria", "aria_recent")
GAMES = ("bargaining", "negotiation")


def main() -> None:
    args = parse()
    logs = [read_log(path, Reading(game=path.stem)) for path in args.logs]
    lines = [line for log in logs or played(args.games) for line in report(log)]
    if args.out:
        with written_aside(args.out) as aside:
            aside.write_text("\n".join(lines) + "\n", "utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="*", type=Path)
    parser.add_argument("--games", type=int, default=300, help="to play of each kind")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def anyhow(seen: Observation, rng: random.Random) -> float | None:
    """Demands and accepts at random, as a small model does."""
    accepts = seen.standing is not None and rng.random() < 0.25
    return None if accepts else rng.uniform(0.02, 0.98)


def played(games: int) -> Iterator[list[Episode]]:
    """Games of every pair of strategies."""
    params = load_params()
    STRATEGIES["anyhow"] = anyhow
    pairs = list(product(("conceding", "hard", "anyhow", "best_response"), repeat=2))
    for name in GAMES:
        game = get_game(name)
        wanted = assign(game, games, params.seed, "glee48")
        series = [
            Series(
                game,
                wanted[number :: len(pairs)],
                dict(zip(game.roles, map(ScriptedPlayer, pair), strict=True)),
                params.collect,
            )
            for number, pair in enumerate(pairs)
        ]
        yield [episode for episodes in collect_series(series, params.pace) for episode in episodes]


def report(episodes: list[Episode]) -> list[str]:
    """The table of one log, printed as it grows."""
    demands = np.array([d for episode in episodes for d in demanded(episode)])
    known = int(np.isfinite(demands).sum())
    name = episodes[0].game
    lines = [f"\n{name}: {len(episodes)} games, {len(demands)} utterances, {known} offers\n"]
    columns = [*(f"k = {k}" for k in KS), "chosen k", "R2 there", *METHODS]
    lines += table_head(
        ["embedded", "distinct", *columns, *(f"var {m}" for m in (*VARIANCES, "q - v"))]
    )
    print("\n".join(lines), flush=True)
    for form in get_args(Decisions):
        lines.append("| " + " | ".join(measured(form, episodes, demands)) + " |")
        print(lines[-1], flush=True)
    return lines


def table_head(names: list[str]) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def demanded(episode: Episode) -> Iterator[float]:
    """Own share of the sum, or price in units of the scale, of each utterance; NaN of no offer."""
    match = get_game(episode.game).start(episode.record.config)
    assert isinstance(match, AlternatingMatch)
    for utterance in episode.utterances:
        made = len(match.offers)
        try:
            match.play(utterance.text)
        except IllegalMove:
            yield np.nan
            continue
        if len(match.offers) == made:
            yield np.nan
            continue
        demand = match.amount_demanded(utterance.role)
        yield float(demand.part) * (2 if demand.of == "price" else 1)


def measured(form: Decisions, episodes: list[Episode], demands: np.ndarray) -> list[str]:
    """One row of the table."""
    for episode in episodes:
        for utterance in episode.utterances:
            utterance.embedded = None
    tell_decisions(episodes, form)
    turns, settings = turns_table(episodes), CreditSettings()
    vectors = embed_texts(turns["embedded"].tolist(), EMBEDDER, EMBED_BATCH, True, {})
    log = Log.of(turns, vectors, settings.aggregate.gamma)
    space = find_intentions(log, settings.cluster)
    chosen = choose_k(log, space, settings)[0]["selected_k"]
    largest = int(space.cuts.ks[-1])
    groups = [space.cuts.at(min(k, largest)).astype(int) for k in (*KS, chosen)]
    explained = [between(demands, 2 * g + log.role_codes) for g in groups]
    log = log.with_labels(groups[-1])
    r2 = [r_squared(out_of_fold(make_method(m), log).q, log.targets) for m in METHODS]
    credits = [fit_values(make_method(m), log).q for m in VARIANCES]
    credits.append(fit_values(make_method("regression"), log).advantage)
    var = [float(np.var(credit) / np.var(log.targets)) for credit in credits]
    numbers = [shown(value) for value in (*explained, *r2, *var)]
    numbers.insert(len(KS), str(chosen))
    return [form, str(space.distinct), *numbers]


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def between(values: np.ndarray, groups: np.ndarray) -> float:
    """Share of the variance of the known values that is between the groups."""
    known = np.isfinite(values)
    codes = np.unique(groups[known], return_inverse=True)[1]
    mean = np.bincount(codes, values[known]) / np.bincount(codes)
    return float(np.var(mean[codes]) / np.var(values[known]))


if __name__ == "__main__":
    main()
