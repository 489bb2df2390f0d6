"""A LoRA adapter beside its base for play: what is played is what was trained.

Merged into bfloat16 weights, most of a small update is rounded away (three quarters of its energy
at a step of 1e-4); beside them it is not. Two small products a layer instead of PEFT's eight
operations: 4 to 9 % more time than the base alone, where PEFT takes 10 to 13 % (SmolLM2-135M, one
thread of a CPU).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from aria_dvc.models.lora import load_adapter


class AdaptedLinear(nn.Module):
    """base(x) + x down^T up, in the dtype of the base; for inference.

    Args:
        base: a linear layer (in, out).
        down: (rank, in).
        up: (rank, out), the adapter's scale included.
    """

    def __init__(self, base: nn.Linear, down: torch.Tensor, up: torch.Tensor) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(down.to(base.weight.dtype))
        self.up = nn.Parameter(up.to(base.weight.dtype).contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.base(x)
        low = nn.functional.linear(x, self.down)
        return torch.addmm(out.flatten(0, -2), low.flatten(0, -2), self.up).view_as(out)


def wear_adapter(model: Any, folder: str | Path) -> Any:
    """`model` with the adapter in `folder` beside its weights, not merged, for inference.

    An adapter that is more than products of two matrices stays in PEFT's modules.

    Raises:
        AriaError: the folder holds no adapter for this model.
    """
    worn = load_adapter(model, folder)
    layers = _layers(worn)
    if layers is None:
        return worn.to(model.dtype)
    base = worn.get_base_model()
    for name, layer in layers.items():
        base.set_submodule(name, _adapted(layer))
    # With a frozen head PyTorch copies all of it to multiply a single row: 20 times slower.
    return base.requires_grad_(True)


def _layers(worn: Any) -> dict[str, Any] | None:
    """The adapted layers by their names in the base; None if one is no plain LoRA."""
    from peft.tuners.lora import Linear
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import ModulesToSaveWrapper

    kinds = (BaseTunerLayer, ModulesToSaveWrapper)
    modules = worn.get_base_model().named_modules()
    found = {name: module for name, module in modules if isinstance(module, kinds)}
    plain = all(type(layer) is Linear and _is_plain(layer) for layer in found.values())
    return found if plain else None


def _is_plain(layer: Any) -> bool:
    variants, base = layer.lora_variant, layer.get_base_layer()
    biased = any(layer.lora_bias.values())
    return type(base) is nn.Linear and not variants and not biased and not layer.fan_in_fan_out


@torch.no_grad()
def _adapted(layer: Any) -> AdaptedLinear:
    (name,) = layer.active_adapters
    down, up = layer.lora_A[name].weight.float(), layer.lora_B[name].weight.float()
    return AdaptedLinear(layer.get_base_layer(), down, layer.scaling[name] * up.t())
