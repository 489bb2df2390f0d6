"""Where models run and in which precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from aria_dvc.errors import AriaError
from aria_dvc.settings.machine import Precision

if TYPE_CHECKING:
    import torch


def best_device() -> torch.device:
    """A GPU if there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def bfloat16_is_faster() -> bool:
    """Whether the hardware multiplies bfloat16 faster than float32.

    That it can says little: Intel's processors whose matrix unit (AMX) is missing or hidden by a
    virtual machine have instructions for it that take nearly twice as long as float32's (measured:
    165 and 298 GFLOPS on two cores). An AMD EPYC trains 1.7 times as fast in it.
    """
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    able = torch.cpu.get_capabilities()
    intel = "intel" in str(able.get("cpu_name", "")).lower()
    return bool(able.get("amx_bf16") or (able.get("avx512_bf16") and not intel))


def uses_bfloat16(precision: Precision) -> bool:
    """Whether models run in bfloat16: "auto" says yes where it is faster.

    Training autocasts matrix products and keeps the weights that it moves in float32; weights
    that stay as they are, in play or under an adapter, are held in it.

    Raises:
        AriaError: there is no such precision.
    """
    if precision not in get_args(Precision):
        raise AriaError(f"dtype {precision} is unknown: use {', '.join(get_args(Precision))}")
    return bfloat16_is_faster() if precision == "auto" else precision == "bfloat16"


def inference_dtype(precision: Precision) -> torch.dtype:
    """The dtype of weights that are not trained: of a model that plays, or under an adapter."""
    import torch

    return torch.bfloat16 if uses_bfloat16(precision) else torch.float32
