"""Embedding a log: distinct texts in order of length, against every text in dialogue order.

    python benchmarks/embedding.py LOG [--episodes 100]

Baseline: the same model and batch size on all utterances as they come. Then the cost of 10 % more
games with the cache of the first run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from aria_dvc.intentions.embedding import _encoder, embed_texts
from aria_dvc.records.readers import read_log
from aria_dvc.records.tables import turns_table

MODEL, BATCH = "all-minilm-l6-v2", 64


def naive(texts: list[str]) -> np.ndarray:
    encode = _encoder(MODEL, {})
    return np.concatenate([encode(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)])


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
    ours, fast = timed(embed_texts, texts, MODEL, BATCH, normalize=False, cache=None)
    print(f"{len(episodes)} episodes, {len(texts)} utterances, {len(set(texts))} distinct")
    print(f"every text in order   {slow:7.1f} s")
    print(f"distinct, by length   {fast:7.1f} s   {slow / fast:.1f} times faster")
    print(f"largest difference    {np.abs(plain - ours).max():.1e}")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.sqlite"
        _, before = timed(embed_texts, first, MODEL, BATCH, cache=cache)
        _, after = timed(embed_texts, texts, MODEL, BATCH, cache=cache)
    print(
        f"{tenth} more episodes to {len(episodes) - tenth}: {after / before:.0%} of the first run"
    )


if __name__ == "__main__":
    main()
