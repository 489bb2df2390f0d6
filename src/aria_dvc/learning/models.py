"""Loading and preparing language models for training: dtype, precision, LoRA, trust.

Weights are read from safetensors alone and no code from a model's repository runs unless
`trust_remote_code` says so.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from aria_dvc.errors import AriaError

if TYPE_CHECKING:
    import torch

    from aria_dvc.params import Lora

# Raised by peft about a name inside transformers; nothing a user could act on.
warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")

Precision = Literal["auto", "float32", "bfloat16"]
TASK_TYPES = {"policy": "CAUSAL_LM", "reward_model": "SEQ_CLS"}


def uses_bfloat16(precision: Precision) -> bool:
    """Whether matrix products run in bfloat16 (autocast; weights and sums stay float32).

    "auto" says yes where the hardware multiplies bfloat16 natively, which about doubles the
    training speed of a CPU; elsewhere emulation would slow it down.
    """
    import torch

    if precision != "auto":
        return precision == "bfloat16"
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def load_model(
    folder: str | Path, *, head: str = "causal_lm", trust_remote_code: bool = False
) -> Any:
    """The model in `folder` in float32, with a language-model head or a one-output score head.

    Raises:
        AriaError: the folder holds no model with safetensors weights.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    loader: Any = AutoModelForCausalLM
    extra: dict[str, Any] = {}
    if head == "score":
        loader, extra = AutoModelForSequenceClassification, {"num_labels": 1}
    with _load_errors(folder), quiet_transformers():
        return loader.from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=trust_remote_code,
            **extra,
        )


def load_tokenizer(folder: str | Path, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer in `folder`, padding with its end-of-turn token if it has no other.

    Raises:
        AriaError: the folder holds no tokenizer.
    """
    from transformers import AutoTokenizer

    with _load_errors(folder), quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


class _load_errors:  # noqa: N801
    """Turns the many exceptions of loading into one line."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from safetensors import SafetensorError

        if isinstance(error, (OSError, ValueError, KeyError, SafetensorError)):
            raise AriaError(
                f"{self.folder} cannot be loaded as a model ({error}): "
                "name a folder or model id with config.json, safetensors weights and a tokenizer"
            ) from error


class quiet_transformers:  # noqa: N801
    """Silences the loading bars and notes of transformers; errors still come through."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._verbosity = logging.get_verbosity()
        self._bars = logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()

    def __exit__(self, *exc: Any) -> None:
        from transformers.utils import logging

        logging.set_verbosity(self._verbosity)
        if self._bars:
            logging.enable_progress_bar()


def add_lora(model: torch.nn.Module, lora: Lora, kind: str) -> Any:
    """`model` with LoRA adapters (and, for a reward model, its trained score head).

    Args:
        kind: "policy" or "reward_model".

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
    return get_peft_model(model, config)


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


def trainable_parameters(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}
