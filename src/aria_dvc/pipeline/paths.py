"""Where each stage writes. dvc.yaml says the same; a test compares the two."""

from __future__ import annotations

from pathlib import Path

DATA = Path("data")
METRICS = Path("metrics")
PLOTS = METRICS / "plots"
BASE_MODEL = DATA / "base_model"


def logs(game: str) -> Path:
    """The folder that DVC watches for a user's own log of `game`."""
    return DATA / "logs" / game


def raw(game: str) -> Path:
    return DATA / "raw" / f"{game}.jsonl"


def turns(game: str) -> Path:
    return DATA / "turns" / f"{game}.parquet"


def episodes(game: str) -> Path:
    return DATA / "episodes" / f"{game}.parquet"


def embeddings(game: str) -> Path:
    return DATA / "embeddings" / f"{game}.parquet"


def labels(game: str) -> Path:
    return DATA / "labels" / f"{game}.parquet"


def tree(game: str) -> Path:
    return DATA / "tree" / f"{game}.parquet"


def selected_k(game: str) -> Path:
    return DATA / "selected_k" / f"{game}.json"


def k_curve(game: str) -> Path:
    return DATA / "k_curve" / f"{game}.csv"


def rewards(game: str) -> Path:
    return DATA / "rewards" / f"{game}.parquet"


def credit_quality(game: str) -> Path:
    return DATA / "credit_quality" / f"{game}.json"


def reward_model(category: str) -> Path:
    return DATA / "reward_model" / category


def policy(category: str) -> Path:
    return DATA / "policy" / category


def evaluation(game: str) -> Path:
    return DATA / "eval" / f"{game}.parquet"
