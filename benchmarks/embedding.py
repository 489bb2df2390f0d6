"""Embedding a log: distinct texts in order of length, against every text in dialogue order.

    python benchmarks/embedding.py LOG [--episodes 100]

Baseline: the same model and batch size on all utterances as they come. Then the cost of 10 % more
games with the cache of the first run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from aria_dvc.cache.folder import VARIABLE
from aria_dvc.credit.settings import EMBED_BATCH as BATCH
from aria_dvc.credit.settings import EMBEDDER as MODEL
from aria_dvc.intentions.embedding import embed_texts
from aria_dvc.models.sentences import load_encoder
from aria_dvc.records.readers import read_log
from aria_dvc.records.tables import turns_table


def naive(texts: list[str]) -> np.ndarray:
    encode = load_encoder(MODEL)
    return np.concatenate([encode(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)])


def ours(texts: list[str]) -> np.ndarray:
    return embed_texts(texts, MODEL, BATCH, False, {})


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


if __name__ == "__main__":
    main()
