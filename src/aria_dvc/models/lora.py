"""LoRA adapters: put on a model to be trained, loaded from a folder, merged into their base."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from aria_dvc.errors import AriaError
from aria_dvc.memory import is_out_of_memory
from aria_dvc.models.quiet import quiet_transformers
from aria_dvc.models.source import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from aria_dvc.models.weights import check_adapter, no_pickles
from aria_dvc.shown import brief

if TYPE_CHECKING:
    import torch

    from aria_dvc.settings.training import Lora

Kind = Literal["policy", "reward_model"]
# What PEFT raises for a configuration of no kind it knows, with odd values, or for another model.
_OF_PEFT = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError)
SHOWN = 300  # characters of a library's error
TASK_TYPES = {"policy": "CAUSAL_LM", "reward_model": "SEQ_CLS"}


def add_lora(model: torch.nn.Module, lora: Lora, kind: Kind) -> Any:
    """`model` with fresh LoRA adapters (and, for a reward model, its trained score head).

    Raises:
        AriaError: a target name is no linear module's, or there is none.
    """
    from peft import LoraConfig, TaskType, get_peft_model

    linear = linear_names(model)
    missing = [target for target in lora.target_modules if target not in linear]
    if missing or not lora.target_modules:
        problem = f"the model has no module named {', '.join(missing)}" if missing else "none named"
        raise AriaError(
            f"{kind}.lora.target_modules: {problem}: choose from {', '.join(sorted(linear))}"
        )
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=cast(int, lora.alpha),  # floats are fine, its annotation is too narrow
        lora_dropout=lora.dropout,
        target_modules=list(lora.target_modules),
        layers_to_transform=top_layers(model, lora.layers),
        task_type=TaskType(TASK_TYPES[kind]),
    )
    with quiet_transformers():
        return get_peft_model(model, config)


def cast_by_autocast(model: Any) -> Any:
    """`model` with adapters that leave the casting of their inputs to autocast, under which it must
    then run: PEFT casts to float32 what autocast casts back (6 % of a training step)."""
    for module in model.modules():
        if hasattr(module, "lora_A"):
            module.cast_input_dtype_enabled = False
    return model


def linear_names(model: torch.nn.Module) -> set[str]:
    """Last parts of the names of all linear modules."""
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    kinds = (nn.Linear, Conv1D)
    return {name.rpartition(".")[2] for name, m in model.named_modules() if isinstance(m, kinds)}


def top_layers(model: Any, count: int | None) -> list[int] | None:
    """Indices of the `count` layers nearest the output; None (all) if `count` is None."""
    if count is None:
        return None
    depth = model.config.get_text_config().num_hidden_layers
    return list(range(max(0, depth - count), depth))


def load_adapter(
    model: Any, folder: str | Path, *, base_name: str | None = None, trainable: bool = False
) -> Any:
    """`model` with the adapter in `folder` on it.

    Args:
        base_name: where `model` came from. Saving looks the base up there: on the network, where
            the name that the adapter itself remembers is no folder here.

    Raises:
        AriaError: the folder holds no adapter for this model.
    """
    from peft import PeftModel

    with _adapter_errors(folder), quiet_transformers(), no_pickles(), _nothing_missing():
        check_adapter(Path(folder), model)
        worn = PeftModel.from_pretrained(model, str(folder), is_trainable=trainable)
    if base_name is not None:
        worn.peft_config["default"].base_model_name_or_path = base_name
    return worn


def wear(model: Any, folder: str | Path) -> None:
    """Give `model`, which has an adapter of the same shape, the weights of the one in `folder`.

    Raises:
        AriaError: the folder holds none for this model.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    with _adapter_errors(folder), quiet_transformers():
        set_peft_model_state_dict(model, load_file(Path(folder) / ADAPTER_WEIGHTS))


def merge_adapter(model: Any, folder: str | Path) -> Any:
    """`model` with the adapter in `folder` added to its weights, which should be float32.

    Raises:
        AriaError: the folder holds no adapter for this model.
    """
    return load_adapter(model, folder).merge_and_unload()


@contextmanager
def _nothing_missing() -> Iterator[None]:
    """OSError where PEFT only warns: weights that the file lacks would stay as they were drawn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="Found missing adapter keys")
        yield
    if any("missing adapter keys" in str(warning.message) for warning in caught):
        raise OSError(f"its {ADAPTER_WEIGHTS} lacks weights that its {ADAPTER_CONFIG} asks for")


@contextmanager
def _adapter_errors(folder: str | Path) -> Iterator[None]:
    """Turns the many exceptions of loading into one line."""
    from safetensors import SafetensorError

    try:
        yield
    except (*_OF_PEFT, SafetensorError) as error:
        if is_out_of_memory(error):
            raise
        raise AriaError(
            f"the adapter {folder} cannot be put on the base model "
            f"({brief(error, SHOWN)}): give the folder that the policy stage wrote for this base "
            "model"
        ) from None
