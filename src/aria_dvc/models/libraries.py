"""The libraries on whose versions the last digits of what a model computes depend."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable

GENERATING = ("torch", "transformers", "peft", "accelerate")
"""They train and play language models."""
EMBEDDING = ("torch", "transformers", "sentence-transformers")


def library_versions(names: Iterable[str]) -> str:
    """The names with the versions that are installed."""
    return " ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
