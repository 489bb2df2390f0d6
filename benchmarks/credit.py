"""Compare the credit methods on logs: what they know of unseen games, variance, time.

    python benchmarks/credit.py LOG [LOG ...] [--group-by FIELD] [--methods ...] [--out table.md]

Every method is fitted on the same folds, and judged within role (see credit/skill.py): by its q, by
its v (the same without the action), by what the action adds, and by its skill over the best of role
mean, turn index, and turn index with history. Intervals (95 %) draw whole groups. --group-by keeps
groups (`word`, the target, in Guess My City dialogues) whole in the folds, which shows how much of
a credit rests on targets that were seen before. The intentions are those of the whole log, cut at
the k of the best silhouette (or --k), as in a pipeline run.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aria_dvc.credit.chain import labelled
from aria_dvc.credit.logs import read_logs
from aria_dvc.credit.methods.base import CreditMethod, as_paid, fit_values
from aria_dvc.credit.methods.registry import make_method, method_names
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, Aggregate, CreditSettings
from aria_dvc.credit.skill import skill_scores, with_baselines
from aria_dvc.credit.variance import variances
from aria_dvc.errors import AriaError
from aria_dvc.files import written_aside
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.records.reading import Reading

COLUMNS = (
    "method",
    "R2 of q",
    "R2 of v",
    "action adds",
    "skill",
    "gamma 1: R2 of q",
    "gamma 1: action adds",
    "variance ratio",
)


def main() -> None:
    args = parse()
    lines = []
    for path in args.logs:
        data = data_of(path, args)
        methods = {name: make_method(name) for name in args.methods if fits(name, data)}
        start = time.perf_counter()
        scores, undiscounted = scores_of(methods, data, args)
        took = time.perf_counter() - start
        lines += [
            f"{path.name}: {data.episodes} episodes, {len(data.actions)} actions, k = "
            f"{data.labels.max() + 1}, gamma = {args.gamma}, {args.folds} folds by "
            f"{args.group_by or 'episode'}, outcome {args.outcome}, moves "
            f"{'left out' if args.no_moves else 'credited'}; {len(methods)} methods and the "
            f"baselines fitted and scored out of fold, at both gammas, in {took:.0f} s",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
            *("| " + " | ".join(row(name, scores, undiscounted)) + " |" for name in methods),
            "",
        ]
    print("\n".join(lines))
    if args.out:
        with written_aside(args.out) as aside:
            aside.write_text("\n".join(lines), "utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--methods", nargs="+", default=method_names(), choices=method_names())
    parser.add_argument("--group-by", metavar="FIELD")
    parser.add_argument("--outcome", choices=("win_test", "recorded"), default="win_test")
    parser.add_argument("--no-moves", action="store_true")
    parser.add_argument("--folds", type=int, default=Aggregate.folds)
    parser.add_argument("--k", type=int)
    parser.add_argument("--gamma", type=float, default=Aggregate.gamma)
    parser.add_argument("--embed", default=EMBEDDER)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def data_of(path: Path, args: argparse.Namespace) -> Log:
    how = Reading(group_by=args.group_by, outcome=args.outcome, moves=not args.no_moves)
    log = read_logs([path], args.gamma, reading=how)
    if not log.vectors.shape[1]:
        vectors = embed_texts(log.text.tolist(), args.embed, EMBED_BATCH, True, {})
        log = replace(log, vectors=vectors)
    settings = CreditSettings(args.k or "auto", args.seed)
    return labelled(log, settings)


def fits(name: str, data: Log) -> bool:
    """Whether the method knows this game."""
    try:
        make_method(name).fit(data.where(data.episode < 2))
    except AriaError:
        return False
    return True


Scores = dict[str, dict[str, Any]]


def scores_of(
    methods: dict[str, CreditMethod], data: Log, args: argparse.Namespace
) -> tuple[Scores, Scores]:
    """Of each method the scores of all roles, at gamma and at gamma 1, and the variance ratio of
    what would be trained."""
    payments = [as_paid, Log.undiscounted] if data.is_discounted else [as_paid]
    passes = with_baselines(methods, data, payments, args.folds, args.seed)
    found = [
        {
            name: skill_scores(values, known, pay(data), args.seed)["all"]
            for name, values in held.items()
        }
        for pay, (held, known) in zip(payments, passes, strict=True)
    ]
    for name, values in passes[0][0].items():
        used = fit_values(methods[name], data) if methods[name].in_sample else values
        before, after = variances(data.targets, used.q)
        found[0][name]["variance_ratio"] = after / before if before else np.nan
    return found[0], found[-1]


def row(name: str, scores: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    own = scores[name]
    return [
        name,
        shown(own["r2"]),
        shown(own["value_r2"]),
        shown(own["action_adds"]),
        f"{shown(own['skill'])} over {own['over']}",
        shown(plain[name]["r2"]),
        shown(plain[name]["action_adds"]),
        f"{own['variance_ratio']:.3f}",
    ]


def shown(score: dict[str, Any]) -> str:
    """A score with its interval."""
    if score["value"] is None:
        return "-"
    low, high = (np.nan if score[of] is None else score[of] for of in ("low", "high"))
    return f"{score['value']:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
