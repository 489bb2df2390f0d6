"""Embedding a log: distinct texts in order of length, against every text in dialogue order.

    python benchmarks/embedding.py LOG [--episodes 100]

Baseline: the same model and batch size on all utterances as they come. Then the cost of 10 % more
games with the cache of the first run; and the model in bfloat16: its time, how far its vectors are
off, and whether k (by silhouette) and the labels are the same (adjusted Rand index).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from aria_dvc.cache.folder import VARIABLE
from aria_dvc.credit.chain import labelled
from aria_dvc.credit.settings import EMBED_BATCH as BATCH
from aria_dvc.credit.settings import EMBEDDER as MODEL
from aria_dvc.credit.settings import CreditSettings
from aria_dvc.embedder_specs import HALF
from aria_dvc.intentions.embedding import embed_texts, unit
from aria_dvc.intentions.log import Log
from aria_dvc.models.sentences import load_encoder
from aria_dvc.records.readers import read_log
from aria_dvc.records.tables import turns_table


def naive(texts: list[str]) -> np.ndarray:
    encode = load_encoder(MODEL)
    parts = [encode(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
    return unit(np.concatenate(parts))


def ours(texts: list[str], model: str = MODEL) -> np.ndarray:
    return embed_texts(texts, model, BATCH, True, {})


def labels_of(log: Log, vectors: np.ndarray, k: int | Literal["auto"] = "auto") -> np.ndarray:
    return labelled(replace(log, vectors=vectors), CreditSettings(k, 0)).labels


def compare_half(log: Log) -> None:
    texts = log.text.tolist()
    exact, slow = timed(ours, texts)
    half, fast = timed(ours, texts, MODEL + HALF)
    print(f"in bfloat16           {fast:7.1f} s   {slow / fast:.1f} times faster")
    print(f"smallest cosine       {(exact * half).sum(axis=1).min():.5f}")
    labels, other = labels_of(log, exact), labels_of(log, half)
    print(f"k by silhouette       {labels.max() + 1} and {other.max() + 1}")
    for k in sorted({int(labels.max()) + 1, 5, 20}):
        same = adjusted_rand_score(labels_of(log, exact, k), labels_of(log, half, k))
        print(f"labels at k = {k:<3}     adjusted Rand index {same:.3f}")


def timed(function, *args, **kwargs):
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args()
    episodes = read_log(options.log)[: options.episodes]
    tenth = max(1, len(episodes) // 11)
    texts = turns_table(episodes)["text"].tolist()
    first = turns_table(episodes[:-tenth])["text"].tolist()
    naive(texts[:BATCH])  # loads the libraries, which neither side should pay for
    plain, slow = timed(naive, texts)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        distinct, fast = timed(ours, texts)
    print(f"{len(episodes)} episodes, {len(texts)} utterances, {len(set(texts))} distinct")
    print(f"every text in order   {slow:7.1f} s")
    print(f"distinct, by length   {fast:7.1f} s   {slow / fast:.1f} times faster")
    print(f"largest difference    {np.abs(plain - distinct).max():.1e}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        _, before = timed(ours, first)
        _, after = timed(ours, texts)
    print(
        f"{tenth} more episodes to {len(episodes) - tenth}: {after / before:.0%} of the first run"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        compare_half(Log.of(turns_table(episodes), np.zeros((len(texts), 0), np.float32), 0.95))


if __name__ == "__main__":
    main()
