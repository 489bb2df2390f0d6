"""The REINFORCE objective on whole dialogues: sum over t of log pi(a_t | h_t) A_t (sec. 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from aria_dvc.learning.batches import Collate, Paired, pad

Tensors = dict[str, torch.Tensor]


def policy_collate(pad_id: int, keep_zero: bool = False) -> Collate:
    """The collator of (example, weights of its actions).

    Every micro-batch has, for B sequences of at most L tokens with N trained tokens: input_ids,
    attention_mask, position_ids (B, L) int64; select (B, L) bool, true where the *next* token is
    trained; targets (N,) int64 and weights (N,) float32 in the order of `select`; count, the
    actions of the global batch.

    Args:
        keep_zero: train tokens of weight 0 too (a KL term needs them).
    """

    def collate(members: Sequence[Paired], count: int) -> Tensors:
        inputs, action = pad([example for example, _ in members], pad_id)
        weights = np.full(action.shape, np.nan, dtype=np.float32)
        for row, (_, values) in enumerate(members):
            on = action[row] >= 0
            weights[row, on] = values[action[row, on]]
        live = ~np.isnan(weights) & (keep_zero | (weights != 0.0))
        select = np.zeros_like(live)
        select[:, :-1] = live[:, 1:]
        inputs["select"] = torch.from_numpy(select)
        inputs["targets"] = inputs["input_ids"][torch.from_numpy(live)]
        inputs["weights"] = torch.from_numpy(weights[live])
        inputs["count"] = torch.tensor(float(count))
        return inputs

    return collate


@contextmanager
def only_at(head: torch.nn.Module, select: torch.Tensor) -> Iterator[None]:
    """Make the output head see only the selected positions: (B, L, H) becomes (N, H).

    A hook on the head works inside any wrapper (DDP, FSDP, DeepSpeed, LoRA), and the other
    positions' logits, most of the memory of a step, are never computed.
    """
    handle = head.register_forward_pre_hook(lambda module, args: (args[0][select], *args[1:]))
    try:
        yield
    finally:
        handle.remove()


def output_head(model: Any) -> torch.nn.Module:
    """The language-model head inside any wrapper."""
    while hasattr(model, "module"):
        model = model.module
    return model.get_output_embeddings()


def selected_logits(model: Any, inputs: Tensors) -> torch.Tensor:
    """Logits (N, V) float32 that predict the trained tokens."""
    with only_at(output_head(model), inputs["select"]):
        output = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            position_ids=inputs["position_ids"],
            use_cache=False,
        )
    return output.logits.float()


def weighted_nll(logits: torch.Tensor, inputs: Tensors) -> torch.Tensor:
    """-sum of A * log pi over the trained tokens, divided by the global batch's actions."""
    nll = nn.functional.cross_entropy(logits, inputs["targets"], reduction="none")
    return (inputs["weights"] * nll).sum() / inputs["count"]


def kl_to(reference: torch.Tensor, logits: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """KL(policy || reference) summed over the trained tokens, divided by the actions.

    Args:
        reference, logits: (N, V); exact over the vocabulary, no sampling.
    """
    policy_log, reference_log = logits.log_softmax(-1), reference.log_softmax(-1)
    return (policy_log.exp() * (policy_log - reference_log)).sum() / count


ReferenceLogits = Callable[[Any, Tensors], torch.Tensor]


@dataclass(frozen=True)
class KlPenalty:
    """What leaving the base model costs: `weight` times the KL divergence to `reference`."""

    weight: float
    reference: ReferenceLogits

    def __call__(self, model: Any, inputs: Tensors, logits: torch.Tensor) -> torch.Tensor:
        return self.weight * kl_to(self.reference(model, inputs), logits, inputs["count"])


@torch.no_grad()
def adapter_off(model: Any, inputs: Tensors) -> torch.Tensor:
    """Logits of the base model underneath a LoRA adapter."""
    inner = model
    while hasattr(inner, "module"):
        inner = inner.module
    with inner.disable_adapter():
        return selected_logits(model, inputs)


def frozen_copy(reference: Any) -> ReferenceLogits:
    """Logits of a separate frozen model, for full fine-tuning."""
    reference.requires_grad_(False).eval()

    @torch.no_grad()
    def logits(model: Any, inputs: Tensors) -> torch.Tensor:
        reference.to(inputs["input_ids"].device)
        return selected_logits(reference, inputs)

    return logits
