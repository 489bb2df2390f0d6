"""What a model is, as a hash: equal weights, settings and tokenizers have equal fingerprints."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson

from aria_dvc.files import read_json
from aria_dvc.models.source import ADAPTER_CONFIG

SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".jinja", ".model", ".txt", ".py"})
# Notes on how the model was trained, which change nothing in it.
NOTES = frozenset({"metrics.json", "trainer_state.json", "training_args.bin"})


def fingerprint(source: object) -> str:
    """Hash of all that decides how a model behaves.

    Args:
        source: a folder (or a `ModelSource` that names one). A name that is no folder, such as a
            Hugging Face id, stands for itself.
    """
    folder = Path(str(source))
    if not folder.is_dir():
        return str(source)
    state = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES and file.name not in NOTES and file.is_file():
            state.update(file.relative_to(folder).as_posix().encode() + b"\0" + _content(file))
    return state.hexdigest()


def _content(file: Path) -> bytes:
    if file.name == ADAPTER_CONFIG:
        return _adapter_config(file)
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _adapter_config(file: Path) -> bytes:
    """Without where the base lies, and in one order: peft writes sets."""
    config = read_json(file)
    config.pop("base_model_name_or_path", None)
    ordered = {key: sorted(v, key=str) if isinstance(v, list) else v for key, v in config.items()}
    return hashlib.sha256(orjson.dumps(ordered, option=orjson.OPT_SORT_KEYS)).digest()


def weights_fingerprint(model: Any) -> str:
    """Hash of the weights of a loaded model, wherever they were read from."""
    import torch

    state = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        state.update(name.encode())
        state.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return state.hexdigest()
