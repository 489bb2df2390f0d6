"""`python -m aria_dvc credit`: the credit of every action of a log, without DVC.

Fits on LOGS and writes one row per action of LOGS (out of fold where the method is not defined in
sample; of a single episode then the mean of its role), or of the logs given with --score, whose
outcomes are not looked at:

    python -m aria_dvc credit games.json --method regression --out credit.parquet
    python -m aria_dvc credit games.json --score new.json --method regression --out credit.parquet
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.credit.methods.registry import method_class, method_names
from aria_dvc.errors import AriaError
from aria_dvc.records.names import game_names

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.log import Log
    from aria_dvc.params import AggregateParams

K_MAX, EXACT_LIMIT = 100, 100_000
EMBEDDER, NO_GAME = "all-minilm-l6-v2", "dialogue"
UNLIKE_VECTORS = (
    "the logs' embeddings differ in length: embed them with one model, or anew with --embed"
)


@dataclass
class Dialogues:
    """turns: one row an utterance (records/tables.py). vectors: (n, d) float32 or None."""

    turns: pd.DataFrame
    vectors: np.ndarray | None


def add_credit_parser(subparsers: Any) -> None:
    """Add the subcommand `credit`; its parsed arguments carry the function to call as `run`."""
    parser = subparsers.add_parser("credit", help="credit of every action of a log, without DVC")
    parser.add_argument("logs", nargs="+", type=Path, help="dialogues with outcomes, to fit on")
    parser.add_argument("--score", nargs="+", type=Path, help="credit these dialogues instead")
    parser.add_argument("--method", default="aria", choices=method_names())
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--quality", type=Path, help="also write the metrics of the fit (JSON)")
    parser.add_argument("--k", type=int, help="number of intentions; default by silhouette")
    parser.add_argument("--gamma", type=float, default=0.95, help="discount per own turn")
    parser.add_argument("--folds", type=int, default=5, help="folds by episode")
    parser.add_argument(
        "--embed", help=f"embedding model; default the logs' own vectors, else {EMBEDDER}"
    )
    parser.add_argument(
        "--game", choices=game_names(), help="what the logs are of; default what they say"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run_credit)


def run_credit(args: argparse.Namespace) -> None:
    """Do what the command line says.

    Raises:
        AriaError: see `read_log`; several games in one call, actions without an outcome in LOGS,
            or options out of range.
    """
    from aria_dvc.credit.aggregation import quality_of
    from aria_dvc.credit.methods.base import fit_credit
    from aria_dvc.files import write_json, write_parquet

    check_options(args)
    make, own = method_class(args.method), args.embed is None
    fitted = read_dialogues(args.logs, game=args.game, own_vectors=own)
    scored = read_dialogues(args.score, False, args.game, own) if args.score else None
    data, other = as_credit_data(fitted, scored, make(), args)
    if scored is None or other is None:
        credit = fit_credit(make(), data, args.folds, args.seed)
        table = credit_table(fitted.turns, data, credit)
    else:
        credit = make().fit(data).credit(other)
        table = credit_table(scored.turns, other, credit)
    write_parquet(args.out, table)
    if args.quality:
        write_json(args.quality, quality_of(args.method, data, args.folds, args.seed))


def check_options(args: argparse.Namespace) -> None:
    """Refuse what would only fail after the fit."""
    if args.folds < 2:
        raise AriaError(f"--folds is {args.folds}: at least 2 are needed to hold episodes out")
    if not 0.0 <= args.gamma <= 1.0:
        raise AriaError(f"--gamma is {args.gamma}: a discount runs from 0 to 1")
    for option, path in (("--out", args.out), ("--quality", args.quality)):
        if path and path.is_dir():
            raise AriaError(f"{option}: {path} is a folder: name a file to write")


def read_dialogues(
    paths: list[Path], need_rewards: bool = True, game: str | None = None, own_vectors: bool = True
) -> Dialogues:
    """The turns of one or more logs of one game; with several logs ids become `file:id`.

    Args:
        game: what the logs are of; None for what they say.
        own_vectors: take the vectors that the logs carry, scaled to unit length.

    Raises:
        AriaError: see `read_log`; a log given twice, several games, vectors of different lengths.
    """
    import pandas as pd

    from aria_dvc.intentions.embedding import unit
    from aria_dvc.records.readers import read_log
    from aria_dvc.records.tables import turns_table

    parts = []
    vectors: list[Any] = []
    for path, prefix in zip(paths, log_names(paths), strict=True):
        episodes = read_log(path, game, need_rewards)
        turns = turns_table(episodes)
        turns["episode_id"] = prefix + turns["episode_id"]
        parts.append(turns)
        vectors += [u.embedding for episode in episodes for u in episode.utterances]
    turns = pd.concat(parts, ignore_index=True)
    games = sorted(turns["game"].unique())
    if len(games) > 1:
        raise AriaError(f"logs of several games ({', '.join(games)}): credit one game at a time")
    if not own_vectors or any(vector is None for vector in vectors):
        return Dialogues(turns, None)
    if len({len(vector) for vector in vectors}) > 1:
        raise AriaError(UNLIKE_VECTORS)
    return Dialogues(turns, unit(np.stack(vectors)))


def log_names(paths: list[Path]) -> list[str]:
    """What the episode ids of each log begin with: nothing, `file:`, or `path:` for equal names.

    Raises:
        AriaError: a log is given twice.
    """
    twice = [path for path, n in Counter(os.path.realpath(p) for p in paths).items() if n > 1]
    if twice:
        raise AriaError(f"{twice[0]} is given twice: name every log once")
    if len(paths) == 1:
        return [""]
    names = [path.name for path in paths]
    return [f"{part}:" for part in (names if len(set(names)) == len(names) else paths)]


def as_credit_data(
    fitted: Dialogues, scored: Dialogues | None, method: Any, args: argparse.Namespace
) -> tuple[Log, Log | None]:
    """Arrays of both logs with what the method needs: vectors, and labels in one space."""
    from aria_dvc.credit.aggregation import returns_of
    from aria_dvc.credit.methods.base import credit_data
    from aria_dvc.params import AggregateParams

    logs = [fitted] if scored is None else [fitted, scored]
    if scored is not None:
        find_actions(scored.turns, fitted.turns)
    if method.uses_vectors or method.uses_labels:
        embed_where_needed(logs, args.embed or EMBEDDER)
    labels: list[Any] = [None] * len(logs)
    if method.uses_labels:
        credit = AggregateParams(method=args.method, gamma=args.gamma, folds=args.folds)
        labels = labels_of(logs, credit, args.k, args.seed)
    data = [
        credit_data(log.turns, returns_of(log.turns, args.gamma), log.vectors, labelled)
        for log, labelled in zip(logs, labels, strict=True)
    ]
    return data[0], data[1] if scored is not None else None


def find_actions(turns: pd.DataFrame, fitted: pd.DataFrame) -> None:
    """Mark in `turns` as actions what the roles that were fitted say.

    Raises:
        AriaError: the logs are of two games, or none of those roles says anything.
    """
    game, other = (str(frame["game"].iloc[0]) for frame in (fitted, turns))
    if game != other and NO_GAME not in (game, other):
        raise AriaError(f"fitted on {game}, to score {other}: credit one game at a time")
    acting = set(fitted["role"][fitted["is_action"]])
    turns["is_action"] = turns["role"].isin(acting)
    if not turns["is_action"].any():
        raise AriaError(
            f"--score: no action of {', '.join(sorted(acting))}, the fitted roles; the log has "
            f"{', '.join(sorted(set(turns['role'])))}: name the roles alike"
        )


def embed_where_needed(logs: list[Dialogues], source: str) -> None:
    """Fill in vectors, of one model for all logs: their own if every log has some."""
    from aria_dvc.intentions.embedding import embed_texts

    if all(log.vectors is not None for log in logs):
        if len({log.vectors.shape[1] for log in logs if log.vectors is not None}) > 1:
            raise AriaError(UNLIKE_VECTORS)
        return
    for log in logs:
        log.vectors = embed_texts(log.turns["text"].tolist(), source)


def labels_of(
    logs: list[Dialogues], credit: AggregateParams, k: int | None, seed: int
) -> list[np.ndarray]:
    """Intentions of the first log by clustering, of the second by the nearest cluster.

    credit: what the labels are for. k: how many; None for that of the best silhouette.
    """
    from aria_dvc.credit.aggregation import choose_k, chosen_labels, say_if_capped
    from aria_dvc.credit.labelling import unseen_labels
    from aria_dvc.intentions.space import build_space, distinct_points
    from aria_dvc.params import ClusterParams, SelectKParams

    first = logs[0]
    assert first.vectors is not None
    game = str(first.turns["game"].iloc[0])
    cluster = ClusterParams(k_max=K_MAX, linkage="ward", exact_limit=EXACT_LIMIT)
    tree, nested = build_space(first.turns, first.vectors, game, cluster)
    select = SelectKParams(method="silhouette", per_role=False, eps=0.01, tau=10)
    selection, _ = choose_k(
        first.turns,
        first.vectors,
        nested,
        distinct_points(tree[:, 2]),
        game,
        select,
        credit,
        k=k,
        seed=seed,
    )
    say_if_capped(selection, game)
    labels = [chosen_labels(first.turns, nested, selection)]
    for log in logs[1:]:
        assert log.vectors is not None
        known = (first.turns, first.vectors, labels[0])
        labels.append(unseen_labels(*known, log.turns, log.vectors, game))
    return labels


def credit_table(turns: pd.DataFrame, data: Log, credit: np.ndarray) -> pd.DataFrame:
    """One row an action: episode_id, position, role, return (NaN if not known), reward."""
    rows = turns.iloc[data.actions][["episode_id", "position", "role"]].reset_index(drop=True)
    return rows.assign(**{"return": data.targets, "reward": credit})
