"""Weights on disk, checked before they are believed: no pickles, no NaN, the right base."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aria_dvc.errors import AriaError
from aria_dvc.files import read_json
from aria_dvc.models.source import ADAPTER_CONFIG, ADAPTER_WEIGHTS

if TYPE_CHECKING:
    import torch

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
NOT_WEIGHTS = frozenset({"training_args.bin"})  # notes of a trainer, which nothing here reads
FORCE, FORCE_NOT = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


@contextmanager
def no_pickles() -> Iterator[None]:
    """Whatever library loads in this block, torch unpickles no code, whoever asks it to."""
    before = {name: os.environ.pop(name, None) for name in (FORCE, FORCE_NOT)}
    os.environ[FORCE] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def refuse_pickled(folder: Path) -> None:
    """Refuse a folder whose weights are pickled alone.

    Raises:
        AriaError: it holds pickles and no safetensors.
    """
    if not folder.is_dir() or any(folder.glob("*.safetensors")):
        return
    pickles = sorted(f.name for p in PICKLES for f in folder.glob(p) if f.name not in NOT_WEIGHTS)
    if pickles:
        raise AriaError(
            f"{folder} has only pickled weights ({', '.join(pickles[:3])}), which may run any code "
            "when they are read, and safetensors alone are read here: save it again with "
            "save_pretrained(), on a machine that may run what its author wrote"
        )


def check_adapter(folder: Path, model: Any) -> None:
    """Check an adapter's files before PEFT reads them.

    Args:
        model: what it is to be put on.

    Raises:
        AriaError: its weights are pickled.
        OSError, ValueError: they are missing or not finite, it is no LoRA, or of another base.
    """
    from safetensors.torch import load_file

    if not folder.is_dir():
        raise OSError("there is no such folder")
    refuse_pickled(folder)
    for name in (ADAPTER_CONFIG, ADAPTER_WEIGHTS):
        if not (folder / name).is_file():
            raise OSError(f"it has no {name}")
    config = read_json(folder / ADAPTER_CONFIG)
    kind = config.get("peft_type") if isinstance(config, dict) else None
    if kind != "LORA":
        raise ValueError(f"its peft_type is {kind}, and only LORA is read")
    check_finite(load_file(folder / ADAPTER_WEIGHTS))
    _check_base(config.get("base_model_name_or_path"), getattr(model, "name_or_path", ""))


def check_finite(weights: dict[str, torch.Tensor]) -> None:
    """Raises:
    ValueError: a weight is NaN or infinite.
    """
    import torch

    for name, tensor in weights.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ValueError(f"{name} holds NaN or infinity")


def _check_base(named: object, used: str) -> None:
    """ValueError where an adapter names one folder, and goes on the different model of another."""
    from aria_dvc.models.fingerprint import fingerprint

    folders = [Path(str(name)) for name in (named, used)]
    if not named or not used or not all(folder.is_dir() for folder in folders):
        return  # a hub's name, or a folder of another machine, tells nothing
    if folders[0].resolve() != folders[1].resolve() and fingerprint(named) != fingerprint(used):
        raise ValueError(f"it was trained on {named}, which is another model than {used}")
