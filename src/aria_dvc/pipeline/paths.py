"""Where each stage writes. dvc.yaml says the same; a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params
from aria_dvc.settings.dialogues import BASE_MODEL as BASE_MODEL_NAME

DATA = Path("data")
METRICS = Path("metrics")
DETAILS = METRICS / "details"
PLOTS = METRICS / "plots"
INTENTIONS = METRICS / "intentions"
REPORT = DATA / "report"
PAGE = "report.html"
BASE_MODEL = Path(BASE_MODEL_NAME)
CODE = DATA / "code"
LEARNED_FROM = ("episodes", "rewards", "turns")
"""Folders of which dvc.yaml makes those of a whole category what its stages depend on."""


@dataclass(frozen=True)
class LogFiles:
    """The files of one log, in the folder of its category under data/<what>/."""

    category: str
    name: str

    def _file(self, what: str, suffix: str) -> Path:
        return DATA / what / self.category / f"{self.name}.{suffix}"

    @property
    def raw(self) -> Path:
        return self._file("raw", "jsonl")

    @property
    def log_vectors(self) -> Path:
        return self._file("log_vectors", "parquet")

    @property
    def truth(self) -> Path:
        return self._file("truth", "parquet")

    @property
    def turns(self) -> Path:
        return self._file("turns", "parquet")

    @property
    def episodes(self) -> Path:
        return self._file("episodes", "parquet")

    @property
    def embeddings(self) -> Path:
        return self._file("embeddings", "parquet")

    @property
    def labels(self) -> Path:
        return self._file("labels", "parquet")

    @property
    def tree(self) -> Path:
        return self._file("tree", "parquet")

    @property
    def selected_k(self) -> Path:
        return self._file("selected_k", "json")

    @property
    def k_curve(self) -> Path:
        return self._file("k_curve", "csv")

    @property
    def rewards(self) -> Path:
        return self._file("rewards", "parquet")

    @property
    def contributions(self) -> Path:
        return self._file("progress", "parquet")

    @property
    def credit_quality(self) -> Path:
        return self._file("credit_quality", "json")


def files_of(params: Params, log: str) -> LogFiles:
    """The files of the log `log` of params.yaml."""
    return LogFiles(params.logs[log].category, log)


def base_model(params: Params) -> ModelSource:
    """The materialised base model, trusted as far as params.yaml says."""
    return ModelSource(BASE_MODEL, params.base_model.trust_remote_code)


def reward_model(category: str) -> Path:
    return DATA / "reward_model" / category


def progress(category: str) -> Path:
    return DATA / "progress" / category


def policy(variant: str, category: str) -> Path:
    """What `policy` trained; `online` writes beside it, and what is evaluated is their folder."""
    return DATA / "policy" / category / variant / "offline"


def online(variant: str, category: str) -> Path:
    return DATA / "policy" / category / variant / "online"


def evaluation(variant: str, category: str) -> Path:
    return DATA / "eval" / category / f"{variant}.parquet"


def leftovers(params: Params, category: str) -> list[Path]:
    """What lies in folders that the category's stages depend on and params.yaml names no more."""
    logs, trained = params.logs_of(category), params.online.variants
    files = (file for what in LEARNED_FROM for file in (DATA / what / category).glob("*.parquet"))
    folders = (online(variant, category) for variant in params.variants if variant not in trained)
    return [
        *sorted(file for file in files if file.stem not in logs),
        *(folder for folder in folders if folder.exists()),
    ]
