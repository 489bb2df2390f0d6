"""Speed and memory of the intention space and its credit, against SciPy, fastcluster, scikit-learn.

    python benchmarks/intentions.py                 # everything: about a quarter of an hour
    python benchmarks/intentions.py --quick         # the same on small sizes: a minute
    python benchmarks/intentions.py --only wide silhouette

Every measurement runs in a process of its own, after its compiled loops are loaded. Memory is the
peak over what the process held when the data were ready. A ratio is the reference's time over ours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

MB = 2**20
KINDS = {"separated": 3.0, "overlapping": 0.7, "structureless": 0.0}
KS = (2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak: float
    value: Any = None

    def __str__(self) -> str:
        return f"{self.seconds:9.3f} s {self.peak / MB:8.0f} MB"


def points(n: int, d: int, kind: str, duplicates: float = 0.0, seed: int = 0) -> np.ndarray:
    """(n, d) float32 points around 50 centres, made in place; a share are exact copies."""
    rng = np.random.default_rng(seed)
    centres = (KINDS[kind] * rng.standard_normal((50, d))).astype(np.float32)
    out = np.empty((n, d), np.float32)
    for start in range(0, n, 8192):
        rows = out[start : start + 8192]
        rng.standard_normal(dtype=np.float32, out=rows)
        rows += centres[rng.integers(0, 50, len(rows))]
    copies = np.flatnonzero(rng.random(n) < duplicates)
    sources = np.setdiff1d(np.arange(n), copies)
    out[copies] = out[rng.choice(sources, copies.size)] if copies.size else out[copies]
    return out


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024.0 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {field}")


def timed(run: Callable[[], Any], keep: bool = True) -> Measured:
    """Time one call and take the peak memory over its start."""
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    start = time.perf_counter()
    value = run()
    seconds = time.perf_counter() - start
    return Measured(seconds, resident("VmHWM") - before, value if keep else None)


def apart(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


def tree_of(x: np.ndarray, **options: Any) -> np.ndarray:
    from aria_dvc.intentions.linkage import linkage

    return linkage(x, small=0, **options)


def warm() -> None:
    """Load the compiled loops."""
    from aria_dvc.intentions.cuts import cut_all
    from aria_dvc.intentions.indices import index_curves

    x = points(2200, 8, "overlapping")
    index_curves(x, cut_all(tree_of(x)))


# Tasks that run in their own process


def own_ward(n: int, d: int, kind: str, duplicates: float = 0.0, limit: int = 10**9) -> Measured:
    warm()
    x = points(n, d, kind, duplicates)
    return timed(lambda: tree_of(x, exact_limit=limit))


def scipy_ward(n: int, d: int, kind: str, duplicates: float = 0.0) -> Measured:
    from scipy.cluster.hierarchy import linkage

    x = points(n, d, kind, duplicates)
    return timed(lambda: linkage(x, "ward"))


def fastcluster_ward(n: int, d: int, kind: str) -> Measured:
    import fastcluster

    x = points(n, d, kind).astype(np.float64)
    return timed(lambda: fastcluster.linkage(x, "ward"))


def fastcluster_vector(n: int, d: int, kind: str) -> Measured:
    import fastcluster

    x = points(n, d, kind).astype(np.float64)
    return timed(lambda: fastcluster.linkage_vector(x, "ward"))


def near_exact_quality(n: int, d: int, kind: str, limit: int) -> list[tuple[int, float, float]]:
    """(k, relative excess inertia, adjusted Rand) of the near-exact against the exact tree."""
    from sklearn.metrics import adjusted_rand_score

    from aria_dvc.intentions.cuts import cut_all
    from aria_dvc.intentions.indices import index_curves

    x = points(n, d, kind)
    exact, near = cut_all(tree_of(x)), cut_all(tree_of(x, exact_limit=limit))
    inertia = [index_curves(x, cuts).inertia for cuts in (exact, near)]
    return [
        (k, inertia[1][k - 2] / inertia[0][k - 2] - 1, adjusted_rand_score(exact.at(k), near.at(k)))
        for k in KS
    ]


def cuts_against_fcluster(n: int) -> tuple[Measured, Measured]:
    from scipy.cluster.hierarchy import fcluster

    from aria_dvc.intentions.cuts import cut_all

    tree = tree_of(points(n, 64, "overlapping"))
    cut_all(tree)
    ours = min((timed(lambda: cut_all(tree).labels) for _ in range(5)), key=lambda m: m.seconds)
    theirs = timed(lambda: [fcluster(tree, k, "maxclust") for k in range(2, 101)])
    for k in range(2, 101):
        pairs = np.unique(np.stack([ours.value[:, k - 2], theirs.value[k - 2]]), axis=1)
        if pairs.shape[1] != k:
            raise SystemExit(f"cuts differ from fcluster at k = {k}")
    return ours, theirs


def indices_against_sklearn(n: int, d: int, ks: tuple[int, ...]) -> dict[str, Any]:
    """Our time for all k, scikit-learn's at some k scaled to all, and the largest difference."""
    from sklearn import metrics

    from aria_dvc.intentions.cuts import cut_all
    from aria_dvc.intentions.indices import index_curves

    warm()
    x = points(n, d, "overlapping")
    cuts = cut_all(tree_of(x))
    ours = timed(lambda: index_curves(x, cuts))
    scores = {
        "silhouette": metrics.silhouette_score,
        "calinski_harabasz": metrics.calinski_harabasz_score,
        "davies_bouldin": metrics.davies_bouldin_score,
    }
    out: dict[str, Any] = {"ours": Measured(ours.seconds, ours.peak), "theirs": {}, "gap": {}}
    exact = x.astype(np.float64)
    for name, score in scores.items():
        some = ks if name == "silhouette" else KS

        def at_some(score: Callable[..., float] = score, some: Any = some) -> list[float]:
            return [score(exact, cuts.at(k)) for k in some]

        theirs = timed(at_some)
        found = [getattr(ours.value, name)[k - 2] for k in some]
        out["theirs"][name] = Measured(theirs.seconds / len(some) * cuts.ks.size, theirs.peak)
        gap = np.abs(np.array(found) - theirs.value)
        relative = gap if name == "silhouette" else gap / np.abs(theirs.value)
        out["gap"][name] = float(relative.max())
    return out


def games(count: int, codes: int = 100, seed: int = 0) -> tuple[tuple[np.ndarray, ...], Any]:
    """Arrays of `count` games of about 16 utterances, and labels at all k from a Ward tree."""
    from aria_dvc.intentions.cuts import NestedLabels, cut_all
    from aria_dvc.records.turns import discounted_returns, own_turns

    rng = np.random.default_rng(seed)
    lengths = rng.integers(10, 23, count)
    episode = np.repeat(np.arange(count), lengths)
    position = np.arange(episode.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    role = position % 2
    turn, turns = own_turns(episode, role)
    reward = rng.integers(0, 2, (count, 2)).astype(np.float64)[episode, role]
    cuts = cut_all(tree_of(points(4000, 16, "overlapping")), codes)
    share = np.bincount(cuts.finest) ** 2.0
    finest = rng.choice(codes, episode.size, p=share / share.sum()).astype(np.uint8)
    log = (episode, position, role, np.ones(episode.size, bool))
    returns = discounted_returns(reward, turn, turns, 0.95)
    return (*log, returns), NestedLabels(cuts.ks, finest, cuts.table)


def own_cells(count: int) -> tuple[Measured, int]:
    from aria_dvc.credit.curves import cell_curves
    from aria_dvc.intentions.log import Log

    (episode, _, role, is_action, returns), nested = games(count)
    n = episode.size
    text, vectors = np.full(n, "", object), np.zeros((n, 0), np.float32)
    labels, names = np.zeros(n, np.int64), np.array(["alice", "bob"])[role]

    def log() -> Log:
        return Log(episode, names, is_action, text, vectors, labels, returns)

    runs = [timed(lambda: cell_curves(log(), nested)) for _ in range(3)]
    best = min(runs, key=lambda m: m.seconds)
    return Measured(best.seconds, runs[0].peak, best.value), n


def dictionary_cells(count: int) -> Measured:
    """All k with a dictionary of label strings, as published code does it."""
    log, nested = games(count)
    return timed(lambda: _dictionary(log, nested))


def _dictionary(log: tuple[np.ndarray, ...], nested: Any) -> tuple[np.ndarray, np.ndarray]:
    episode, returns, before = log[0].tolist(), log[4].tolist(), None
    variance, score = [], []
    for k in nested.ks:
        names = nested.at(k).astype(str).tolist()
        cells: dict[str, list[float]] = {}
        keys, history, current = [], "", -1
        for row, name in enumerate(names):
            history = f"{history}_{name}" if episode[row] == current else name
            current = episode[row]
            keys.append(history)
            cells.setdefault(history, []).append(returns[row])
        means = {key: sum(values) / len(values) for key, values in cells.items()}
        now = np.array([means[key] for key in keys])
        variance.append(now.var())
        score.append(np.nan if before is None else np.abs(now - before).mean())
        before = now
    return np.array(variance), np.array([*score[1:], np.nan])


def cold_start(n: int, d: int) -> float:
    """Seconds from the start of an interpreter to the labels of n utterances at all k."""
    code = (
        "import numpy as np\n"
        "from aria_dvc.intentions.linkage import linkage\n"
        "from aria_dvc.intentions.cuts import cut_all\n"
        "from aria_dvc.intentions.indices import index_curves\n"
        f"x = np.random.default_rng(0).standard_normal(({n}, {d})).astype(np.float32)\n"
        "index_curves(x, cut_all(linkage(x)))\n"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


# What is printed


def show(what: str, ours: Measured, others: dict[str, Measured], target: str) -> None:
    print(f"\n{what}   [target: {target}]")
    print(f"  {'here':24s}{ours}")
    for name, other in others.items():
        print(f"  {name:24s}{other}   ratio {other.seconds / ours.seconds:8.1f}", flush=True)


def bench_start(quick: bool) -> None:
    seconds = [cold_start(500, 384) for _ in range(3)]
    print(f"\n500 utterances, d = 384, from process start   [target: 2 s]\n  {min(seconds):.2f} s")


def bench_ward(n: int, d: int, target: str) -> None:
    others = {"SciPy linkage": apart(scipy_ward, n, d, "overlapping")}
    if d == 1536:
        others["fastcluster"] = apart(fastcluster_ward, n, d, "overlapping")
    print(f"\ninput {n * d * 4 / MB:.0f} MB as float32", end="")
    for kind in KINDS:
        ours = apart(own_ward, n, d, kind)
        show(f"Ward, n = {n}, d = {d}, {kind}", ours, others, target)


def bench_wide(quick: bool) -> None:
    bench_ward(2048 if quick else 16_384, 1536, "12 x SciPy, 3.5 x input + 100 MB")


def bench_long(quick: bool) -> None:
    bench_ward(4096 if quick else 32_768, 384, "15 x SciPy")


def bench_vector(quick: bool) -> None:
    n = 2048 if quick else 16_384
    ours = apart(own_ward, n, 1536, "overlapping")
    other = {"fastcluster, vectors": apart(fastcluster_vector, n, 1536, "overlapping")}
    show(f"Ward, n = {n}, d = 1536, against vectors", ours, other, "12 x SciPy")


def bench_ladder(quick: bool) -> None:
    sizes = (2048, 4096, 8192) if quick else (16_384, 32_768, 65_536, 100_000)
    for kind in ("overlapping", "structureless"):
        print(f"\nExact Ward, d = 384, {kind}   [target: exponent 2.15; 100,000 in 150 s, 1.2 GB]")
        last = None
        for n in sizes:
            run = apart(own_ward, n, 384, kind)
            growth = ""
            if last is not None:
                exponent = np.log(run.seconds / last[1]) / np.log(n / last[0])
                growth = f"   exponent {exponent:.2f}"
            total = run.peak / MB + n * 384 * 4 / MB
            print(f"  n = {n:7d} {run}, {total:.0f} MB with the input{growth}", flush=True)
            last = (n, run.seconds)


def bench_million(quick: bool) -> None:
    from aria_dvc.intentions.linkage import EXACT_LIMIT

    n, limit = (50_000, 10_000) if quick else (1_000_000, EXACT_LIMIT)
    run = apart(own_ward, n, 384, "overlapping", 0.0, limit)
    print(f"\nNear-exact Ward, n = {n}, d = 384   [target: 180 s, 6 GB]")
    print(f"  {run}, {run.peak / MB + n * 384 * 4 / MB:.0f} MB with the input", flush=True)
    n = 8192 if quick else 16_384
    print(f"near-exact against exact, n = {n}   [target: inertia 1 %, Rand 0.99 where separated]")
    for kind in KINDS:
        rows = apart(near_exact_quality, n, 384, kind, n // 4)
        text = "  ".join(f"k={k}: {100 * excess:+.3f} %, {rand:.3f}" for k, excess, rand in rows)
        print(f"  {kind:14s}{text}", flush=True)


def bench_duplicates(quick: bool) -> None:
    n = 2048 if quick else 8192
    without = apart(own_ward, n, 384, "overlapping")
    ours = apart(own_ward, n, 384, "overlapping", 1 / 3)
    others = {
        "here, no duplicates": without,
        "SciPy": apart(scipy_ward, n, 384, "overlapping", 1 / 3),
    }
    show(f"Ward, n = {n}, d = 384, a third duplicates", ours, others, "1 x no duplicates")


def bench_cuts(quick: bool) -> None:
    n = 2048 if quick else 16_384
    ours, theirs = apart(cuts_against_fcluster, n)
    show(f"All 99 cuts, n = {n}", ours, {"SciPy fcluster": theirs}, "30 x, same partitions")


def bench_silhouette(quick: bool) -> None:
    ks = (2, 20, 100)
    for n, d in ((2048, 384),) if quick else ((16_384, 384), (16_384, 1536)):
        run = apart(indices_against_sklearn, n, d, ks)
        names = {f"sklearn {name}": other for name, other in run["theirs"].items()}
        show(f"All three indices at 99 k, n = {n}, d = {d}", run["ours"], names, "200 x silhouette")
        print(f"  scikit-learn at {len(ks)} (others {len(KS)}) k, scaled to 99; differences:")
        print("  " + "  ".join(f"{name} {gap:.1e}" for name, gap in run["gap"].items()))


def bench_cells(quick: bool) -> None:
    count = 1000 if quick else 10_000
    (ours, n), theirs = apart(own_cells, count), apart(dictionary_cells, count)
    show(f"Cells at 99 k, {count} games, {n} utterances", ours, {"dictionary": theirs}, "400 x")
    gaps = [
        np.nanmax(np.abs(a - b))
        for a, b in zip(
            (ours.value.variance[:, 0], ours.value.split_score[:, 0]), theirs.value, strict=True
        )
    ]
    print(f"  differences: variance {gaps[0]:.1e}, SplitScore {gaps[1]:.1e}")
    print(f"  {ours.peak / n:.0f} bytes an utterance   [target: 200]")
    count *= 10
    ours, n = apart(own_cells, count)
    print(f"  {count} games, {n} utterances: {ours}, {ours.peak / n:.0f} bytes   [target: 3 s]")


BENCHES = {
    "start": bench_start,
    "wide": bench_wide,
    "long": bench_long,
    "vector": bench_vector,
    "ladder": bench_ladder,
    "million": bench_million,
    "duplicates": bench_duplicates,
    "cuts": bench_cuts,
    "silhouette": bench_silhouette,
    "cells": bench_cells,
}
DEFAULT = tuple(name for name in BENCHES if name != "vector")


def print_machine(threads: int) -> None:
    import fastcluster
    import scipy
    import sklearn
    from threadpoolctl import threadpool_info

    blas = {
        f"{p['internal_api']} {p['version']} {p.get('architecture')}"
        for p in threadpool_info()
        if p["user_api"] == "blas"
    }
    print(f"threads {threads} of {os.cpu_count()}, load {os.getloadavg()[0]:.1f}, {blas}")
    print(f"OPENBLAS_CORETYPE = {os.environ.get('OPENBLAS_CORETYPE', '(not set)')}")
    print(
        f"numpy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"fastcluster {fastcluster.__version__}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=DEFAULT, help="what to run")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--threads", type=int, default=2, help="threads of every measurement")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    print_machine(options.threads)
    for name in options.only:
        BENCHES[name](options.quick)


if __name__ == "__main__":
    main()
