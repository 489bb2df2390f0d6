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
from aria_dvc.credit.methods.registry import make_method, method_class, method_names
from aria_dvc.credit.quality import Baselines, baselines, credit_quality
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, Aggregate, CreditSettings
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
    "all, s",
)


def main() -> None:
    args = parse()
    lines = []
    for path in args.logs:
        data = data_of(path, args)
        start = time.perf_counter()
        known = baselines(data, args.folds, args.seed)
        lines += [
            f"{path.name}: {data.episodes} episodes, {len(data.actions)} actions, k = "
            f"{data.labels.max() + 1}, gamma = {args.gamma}, {args.folds} folds by "
            f"{args.group_by or 'episode'}, outcome {args.outcome}, moves "
            f"{'left out' if args.no_moves else 'credited'}; baselines in "
            f"{time.perf_counter() - start:.0f} s",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
        ]
        print("\n".join(lines[-4:]), flush=True)
        for name in args.methods:
            lines.append("| " + " | ".join(row(name, data, known, args)) + " |")
            print(lines[-1], flush=True)
        lines.append("")
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


def row(name: str, data: Log, known: Baselines, args: argparse.Namespace) -> list[str]:
    start = time.perf_counter()
    try:
        make_method(name).fit(data.where(data.episode < 2))
    except AriaError:
        return [name, *("-" for _ in COLUMNS[1:])]
    quality = credit_quality(
        method_class(name), data, args.folds, args.seed, sample_size=False, known=known
    )
    with_gamma = quality["skill"]["all"]
    plain = (quality["undiscounted_skill"] or quality["skill"])["all"]
    return [
        name,
        shown(with_gamma["r2"]),
        shown(with_gamma["value_r2"]),
        shown(with_gamma["action_adds"]),
        f"{shown(with_gamma['skill'])} over {with_gamma['over']}",
        shown(plain["r2"]),
        shown(plain["action_adds"]),
        f"{quality['variance_ratio']:.3f}",
        f"{time.perf_counter() - start:.1f}",
    ]


def shown(score: dict[str, Any]) -> str:
    """A score with its interval."""
    if score["value"] is None:
        return "-"
    low, high = (np.nan if score[of] is None else score[of] for of in ("low", "high"))
    return f"{score['value']:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
