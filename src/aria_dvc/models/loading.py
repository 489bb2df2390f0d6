"""The one loader of language models and of their tokenizers.

Weights are read from safetensors (or packaged GGUF files) alone, and no code from a model's
repository runs unless its source says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aria_dvc.errors import AriaError
from aria_dvc.memory import is_out_of_memory
from aria_dvc.models.hardware import best_device, inference_dtype
from aria_dvc.models.lora import merge_adapter
from aria_dvc.models.packaged import packaged_language_model
from aria_dvc.models.quiet import quiet_transformers
from aria_dvc.models.source import ModelSource
from aria_dvc.models.weights import check_finite, no_pickles, refuse_pickled
from aria_dvc.settings.dialogues import BASE_MODEL
from aria_dvc.shown import brief

if TYPE_CHECKING:
    import torch

    from aria_dvc.settings.machine import Precision

Head = Literal["causal", "score"]
FRESH_HEAD = "score.weight"  # which a model that has not learned to score has not


def load_model(
    source: ModelSource, *, head: Head = "causal", dtype: torch.dtype | None = None
) -> Any:
    """A model on the CPU, with a language-model head or a one-output score head.

    Args:
        dtype: of the weights; None for float32. An adapter is merged in float32 and the result
            rounded once.

    Raises:
        AriaError: `source` names no model with safetensors weights.
    """
    import torch

    dtype = dtype or torch.float32
    if source.is_adapter:
        base = load_model(source.base(), head=head)
        return merge_adapter(base, source.folder).to(dtype)
    packaged = packaged_language_model(source)
    if packaged is not None:
        return _dequantised(packaged, str(source), head).to(dtype)
    loader, extra = _loader(head)
    with _load_errors(source), quiet_transformers(), no_pickles():
        refuse_pickled(source.folder)
        model, report = loader.from_pretrained(
            str(source),
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=source.trust_remote_code,
            output_loading_info=True,
            **extra,
        )
        _check_whole(report)
        check_finite(model.state_dict())
    return model


def load_for_play(source: ModelSource, adapter: str | Path | None, precision: Precision) -> Any:
    """The model in evaluation mode on the best device, its adapter (if any) beside it, unrounded.

    Raises:
        AriaError: the model or the adapter cannot be loaded.
    """
    if source.is_adapter and not adapter:
        source, adapter = source.base(), source.folder
    model = load_model(source, dtype=inference_dtype(precision))
    if adapter:
        from aria_dvc.models.adapted import wear_adapter

        model = wear_adapter(model, adapter)
    return model.to(best_device()).eval()


def load_tokenizer(source: ModelSource) -> Any:
    """The model's tokenizer, padding with its end-of-turn token if it has no other.

    Raises:
        AriaError: `source` names no model with a tokenizer.
    """
    from transformers import AutoTokenizer

    if source.is_adapter and not (source.folder / "tokenizer_config.json").is_file():
        return load_tokenizer(source.base())
    packaged = packaged_language_model(source)
    if packaged is not None:
        with quiet_transformers(), _no_bar():
            return AutoTokenizer.from_pretrained(packaged.parent, gguf_file=packaged.name)
    with _load_errors(source), quiet_transformers(), no_pickles():
        tokenizer = AutoTokenizer.from_pretrained(
            str(source), trust_remote_code=source.trust_remote_code
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _check_whole(report: dict[str, Any]) -> None:
    """ValueError where weights are missing, which transformers would draw at random."""
    missing = sorted(name for name in report["missing_keys"] if name != FRESH_HEAD)
    if missing:
        raise ValueError(f"its files lack {len(missing)} weights, such as {missing[0]}")


def _loader(head: Head) -> tuple[Any, dict[str, Any]]:
    """The class that loads a model with such a head, and its further arguments."""
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    if head == "score":
        return AutoModelForSequenceClassification, {"num_labels": 1}
    return AutoModelForCausalLM, {}


def _dequantised(file: Path, name: str, head: Head) -> Any:
    """A GGUF file's weights in a model that does not count as quantised, which cannot be saved."""
    import torch

    loader, extra = _loader(head)
    with quiet_transformers(), _no_bar():
        loaded = loader.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32, **extra
        )
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config._name_or_path = name
    model = loader.from_config(config)
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    return model


def _no_bar() -> redirect_stderr[StringIO]:
    """The bar of reading GGUF files knows no switch."""
    return redirect_stderr(StringIO())


@contextmanager
def _load_errors(source: ModelSource) -> Iterator[None]:
    """Turns the many exceptions of loading into one line."""
    from safetensors import SafetensorError

    if str(source) == BASE_MODEL and not source.folder.is_dir():
        raise AriaError(f"there is no {source} yet: `dvc repro base_model` writes it")
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        if is_out_of_memory(error):
            raise
        raise AriaError(
            f"the model {source} cannot be loaded ({brief(error, 300)}): name a "
            "folder or model id with config.json, safetensors weights and a tokenizer"
        ) from error
