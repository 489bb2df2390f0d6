"""Data sets and plain reference implementations shared by the tests of intentions and credit."""

from __future__ import annotations

import numpy as np
from scipy.cluster import hierarchy

from aria_dvc.intentions.cuts import NestedLabels, cut_all
from aria_dvc.intentions.log import Log

KINDS = ("separated", "overlapping", "structureless")


def embeddings(n: int, d: int, kind: str, seed: int = 0, duplicates: float = 0.0) -> np.ndarray:
    """(n, d) float32 points; a share of them are copies of earlier ones."""
    rng = np.random.default_rng([seed, n, d, KINDS.index(kind)])
    spread = {"separated": 3.0, "overlapping": 0.7, "structureless": 0.0}[kind]
    centres = spread * rng.standard_normal((40, d))
    points = (centres[rng.integers(0, 40, n)] + rng.standard_normal((n, d))).astype(np.float32)
    copies = rng.random(n) < duplicates
    copies[0] = False
    sources = np.flatnonzero(~copies)
    points[copies] = points[sources[rng.integers(0, sources.size, copies.sum())]]
    return points


def reference_cuts(points: np.ndarray, method: str = "ward", k_max: int = 100):
    """The cuts of SciPy's float64 tree."""
    return cut_all(hierarchy.linkage(points.astype(np.float64), method), k_max)


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    pairs = np.unique(np.stack([a, b], axis=1).astype(np.int64), axis=0)
    return len(pairs) == np.unique(a).size == np.unique(b).size


def nested(rng: np.random.Generator, codes: int) -> np.ndarray:
    """A random (codes, codes - 1) table of nested labels at k = 2 .. codes."""
    parts, label = [np.arange(codes)], np.zeros(codes, np.int64)
    table = np.zeros((codes, codes - 1), np.uint8)
    for new in range(1, codes):
        pick = int(rng.choice([i for i, part in enumerate(parts) if part.size > 1]))
        at = int(rng.integers(1, parts[pick].size))
        parts[pick], later = parts[pick][:at], parts[pick][at:]
        parts.append(later)
        label[later] = new
        table[:, new - 1] = label
    ordered = np.empty_like(table)
    ordered[label] = table
    return ordered


def dialogues(episodes: int, length: int, codes: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays of a random log with two alternating roles, some of whose turns are no actions."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 2 * length, episodes)
    episode = np.repeat(np.arange(episodes), lengths)
    position = np.concatenate([np.arange(n) for n in lengths])
    share = 1.0 / np.arange(1, codes + 1) ** 1.5
    finest = rng.choice(codes, episode.size, p=share / share.sum()).astype(np.uint8)
    reward = rng.choice([0.0, 0.5, 1.0], episodes)[episode]
    return {
        "episode": episode,
        "position": position,
        "role": (position + episode) % 2,
        "is_action": rng.random(episode.size) < 0.9,
        "returns": reward * 0.95 ** (lengths[episode] - position),
        "finest": finest,
        "table": nested(rng, codes),
    }


def log_of(data: dict[str, np.ndarray], known: bool = False) -> Log:
    """A log without texts; `known`: utterances of one finest label are equal."""
    n = len(data["episode"])
    vectors = data["finest"][:, None].astype(np.float32) if known else np.zeros((n, 0), np.float32)
    episode = np.cumsum(np.diff(data["episode"], prepend=data["episode"][:1]) != 0)
    columns = (data["role"].astype(str), data["is_action"], np.full(n, "", object), vectors)
    return Log(episode, *columns, np.zeros(n, np.int64), data["returns"])


def reordered(data: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """The same episodes in another order."""
    rank = np.random.default_rng(seed).permutation(data["episode"].max() + 1)
    order = np.lexsort((data["position"], rank[data["episode"]]))
    return {name: a[order] if name != "table" else a for name, a in data.items()}


def nested_of(data: dict[str, np.ndarray]) -> NestedLabels:
    codes = len(data["table"])
    return NestedLabels(np.arange(2, codes + 1), data["finest"], data["table"])


def reference_cells(data: dict[str, np.ndarray], labels: np.ndarray) -> tuple[list, np.ndarray]:
    """Keys of the cells and R~ of all actions in row order, by a dictionary of tuples."""
    keys: dict[int, tuple] = {}
    history: dict[object, tuple] = {}
    for row in np.lexsort((data["position"], data["episode"])):
        episode = data["episode"][row]
        history[episode] = (*history.get(episode, ()), int(labels[row]))
        if data["is_action"][row]:
            keys[row] = (history[episode], int(data["role"][row]))
    cells: dict[tuple, list[float]] = {}
    for row, key in keys.items():
        cells.setdefault(key, []).append(data["returns"][row])
    means = {key: float(np.mean(values)) for key, values in cells.items()}
    rows = sorted(keys)
    return [keys[row] for row in rows], np.array([means[keys[row]] for row in rows])
