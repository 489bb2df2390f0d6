"""Where models run and in which precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from aria_dvc.errors import AriaError
from aria_dvc.settings import Precision

if TYPE_CHECKING:
    import torch


def best_device() -> torch.device:
    """A GPU if there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def multiplies_bfloat16() -> bool:
    """Whether the hardware multiplies bfloat16 natively; emulation would be slower than float32."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def uses_bfloat16(precision: Precision) -> bool:
    """Whether models run in bfloat16: "auto" says yes where it is native.

    Training autocasts matrix products and keeps the weights that it moves in float32; weights
    that stay as they are, in play or under an adapter, are held in it.

    Raises:
        AriaError: there is no such precision.
    """
    if precision not in get_args(Precision):
        raise AriaError(f"dtype {precision} is unknown: use {', '.join(get_args(Precision))}")
    return multiplies_bfloat16() if precision == "auto" else precision == "bfloat16"


def inference_dtype(precision: Precision) -> torch.dtype:
    """The dtype of weights that are not trained: of a model that plays, or under an adapter."""
    import torch

    return torch.bfloat16 if uses_bfloat16(precision) else torch.float32
