"""The one draw of every bootstrap whose unit is a whole group of episodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def groups_drawn(group: np.ndarray, draws: int, seed: int) -> Iterator[np.ndarray]:
    """Row numbers of so many samples of as many whole groups, with replacement; none of one group.

    group: (n,) what each row belongs to, of any type.
    """
    codes = np.unique(group, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    rng, count = np.random.default_rng(seed), len(rows)
    for _ in range(draws if count > 1 else 0):
        yield np.concatenate([rows[one] for one in rng.integers(count, size=count)])
