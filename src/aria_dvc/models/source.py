"""Where a model comes from, and whether code that lies beside it may run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json

ADAPTER_CONFIG = "adapter_config.json"
_BASE = "base_model_name_or_path"
_AGAIN = "give the folder that a stage wrote"
ADAPTER_WEIGHTS = "adapter_model.safetensors"


@dataclass(frozen=True)
class ModelSource:
    """A model to load.

    name: a folder, a Hugging Face id or the name of packaged weights. A folder may hold a LoRA
        adapter alone, which stands for its base with the adapter merged into it.
    trust_remote_code: whether Python code from the model's repository may run.
    """

    name: str | Path
    trust_remote_code: bool = False

    def __str__(self) -> str:
        return str(self.name)

    @property
    def folder(self) -> Path:
        return Path(self.name)

    @property
    def is_adapter(self) -> bool:
        return (self.folder / ADAPTER_CONFIG).is_file()

    def named(self, name: str | Path) -> ModelSource:
        """Another model that is trusted as far as this one."""
        return replace(self, name=name)

    def base(self) -> ModelSource:
        """What an adapter says it was trained on; a folder counts from the repository's root.

        Raises AriaError if it does not say.
        """
        file = self.folder / ADAPTER_CONFIG
        try:
            found = read_json(file)
        except (orjson.JSONDecodeError, UnicodeDecodeError):
            raise AriaError(f"{file}: broken JSON: {_AGAIN}") from None
        name = found.get(_BASE) if isinstance(found, dict) else None
        if not isinstance(name, str) or not name:
            raise AriaError(f"{file}: no {_BASE}, the model that it adapts: {_AGAIN}")
        return self.named(name)
