"""Compare the credit methods on logs: accuracy on unseen episodes, calibration, variance, time.

    python benchmarks/credit.py LOG [LOG ...] [--repeats 3] [--out table.md]

Every method is fitted on the same folds by episode, `--repeats` times with other folds; where the
log names the target of each game, whole targets are held out too, which shows how much of a
credit rests on targets that were seen before. The intentions are those of the whole log, cut at
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
from aria_dvc.credit.quality import credit_quality
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, Aggregate, CreditSettings
from aria_dvc.credit.variance import r_squared
from aria_dvc.files import written_aside
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.intentions.log import Log
from aria_dvc.records.readers import read_log

COLUMNS = (
    "method",
    "R2 (unseen episodes)",
    "R2 (unseen targets)",
    "calibration error",
    "variance ratio",
    "effective sample size",
    "fit, s",
    "score, ms a turn",
)


def main() -> None:
    args = parse()
    lines = []
    for path in args.logs:
        data = data_of(path, args)
        groups = targets_of(path, data)
        lines += [
            f"{path.name}: {data.episodes} episodes, {len(data.actions)} actions, k = "
            f"{data.labels.max() + 1}, gamma = {args.gamma}, {args.repeats} x {args.folds} folds",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
        ]
        for name in args.methods:
            lines.append("| " + " | ".join(row(name, data, groups, args)) + " |")
            print(lines[-1], flush=True)
        lines.append("")
    print("\n".join(lines))
    if args.out:
        with written_aside(args.out) as aside:
            aside.write_text("\n".join(lines), "utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--methods", nargs="+", default=method_names(), choices=method_names())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folds", type=int, default=Aggregate.folds)
    parser.add_argument("--k", type=int)
    parser.add_argument("--gamma", type=float, default=Aggregate.gamma)
    parser.add_argument("--embed", default=EMBEDDER)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def data_of(path: Path, args: argparse.Namespace) -> Log:
    log = read_logs([path], args.gamma)
    if not log.vectors.shape[1]:
        vectors = embed_texts(log.text.tolist(), args.embed, EMBED_BATCH, True, {})
        log = replace(log, vectors=vectors)
    settings = CreditSettings(args.k or "auto", args.seed)
    return labelled(log, settings)


def targets_of(path: Path, data: Log) -> np.ndarray | None:
    """(n,) code of the game's target of each utterance; None if the log names none."""
    targets = [episode.record.config.get("target") for episode in read_log(path)]
    if None in targets:
        return None
    return np.unique(targets, return_inverse=True)[1][data.episode]


def row(name: str, data: Log, groups: np.ndarray | None, args: argparse.Namespace) -> list[str]:
    seeds = range(args.seed, args.seed + args.repeats)
    quality = [
        credit_quality(method_class(name), data, args.folds, seed, sample_size=seed == args.seed)
        for seed in seeds
    ]
    r2 = [one["r2"]["method"] for one in quality]
    first = quality[0]
    fit, score = timed(name, data)
    return [
        name,
        f"{np.mean(r2):.3f} ± {np.std(r2):.3f} (folds ± {fold_spread(quality):.3f})",
        unseen_targets(name, data, groups, args),
        f"{np.mean([one['calibration_error'] for one in quality]):.3f}",
        f"{first['variance_ratio']:.3f}",
        shown(first["effective_sample_size"]),
        f"{fit:.1f}",
        f"{score:.2f}",
    ]


def fold_spread(quality: list[dict[str, Any]]) -> float:
    return float(np.mean([one["r2_folds"]["method"]["std"] for one in quality]))


def unseen_targets(
    name: str, data: Log, groups: np.ndarray | None, args: argparse.Namespace
) -> str:
    """R2 when all games of a fifth of the targets are held out."""
    if groups is None:
        return "-"
    dealt = np.random.default_rng(args.seed).permutation(groups.max() + 1) % args.folds
    credit = np.empty(len(data))
    for held in range(args.folds):
        test = dealt[groups] == held
        scored = make_method(name).fit(data.where(~test)).q(data.where(test))
        credit[np.flatnonzero(test & data.is_action)] = scored
    return f"{r_squared(credit[data.is_action], data.targets):.3f}"


def timed(name: str, data: Log) -> tuple[float, float]:
    """Seconds of a fit on all episodes, milliseconds an action to score them as unseen ones."""
    start = time.perf_counter()
    method = make_method(name).fit(data)
    fitted = time.perf_counter()
    method.q(replace(data, returns=np.full(len(data), np.nan)))
    return fitted - start, 1000 * (time.perf_counter() - fitted) / len(data.actions)


def shown(size: float | None) -> str:
    return "all" if size is None else f"{size:,.1f}" if size < 100 else f"{size:,.0f}"


if __name__ == "__main__":
    main()
