"""Models on disk as other machines can use them: safetensors, portable names, no notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aria_dvc.files import read_json, write_json
from aria_dvc.models.quiet import quiet_transformers
from aria_dvc.models.source import ADAPTER_CONFIG, ModelSource


def save_model(model: Any, folder: Path, base: ModelSource | None = None) -> None:
    """Write the weights as safetensors.

    Args:
        base: what an adapter on `model` was trained on.
    """
    with quiet_transformers():
        model.save_pretrained(str(folder))
    tidy(folder, base)


def tidy(folder: Path, base: ModelSource | None) -> None:
    """No model card, and an adapter's base named relative to the repository, never absolutely."""
    (folder / "README.md").unlink(missing_ok=True)
    file = folder / ADAPTER_CONFIG
    if base is not None and file.is_file():
        config = read_json(file)
        config["base_model_name_or_path"] = _portable(base.folder)
        config["target_modules"] = sorted(config["target_modules"])  # peft writes a set
        write_json(file, config)


def _portable(path: Path) -> str:
    if path.is_absolute():
        inside = path.is_relative_to(Path.cwd())
        path = path.relative_to(Path.cwd()) if inside else Path(path.name)
    return path.as_posix()
