"""How noisy the policy gradient is under two credits, on the same dialogues.

The variance of a mini-batch gradient over resampled batches of m dialogues is tr(Cov(g)) / m, g
being one dialogue's gradient, so the ratio of two credits does not depend on m. It is estimated
from small disjoint batches at the start of training. Gradients are linear in the advantages: one
forward pass serves both credits. Only the top layers' adapters are looked at (a sketch: the
backward pass stops early).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from aria_dvc.learning.batches import Collate, Paired
from aria_dvc.learning.examples import Example, Key
from aria_dvc.learning.objective import selected_logits, weighted_nll
from aria_dvc.seeds import derived_seed

SKETCH_LAYERS = 4
DIALOGUES_PER_BATCH = 2


def gradient_variances(
    model: Any,
    examples: Sequence[Example],
    credits: tuple[Mapping[Key, float], Mapping[Key, float]],
    collate: Collate,
    *,
    batches: int,
    seed: int,
    bfloat16: bool,
) -> tuple[float, float]:
    """Variance of a small batch's gradient (trace of its covariance) under each of two credits.

    Args:
        credits: weights per action, e.g. aggregated and discounted; dialogues that are worth
            nothing under both are passed over.
        collate: a `policy_collate(..., keep_zero=True)`, so that both see the same tokens.
        batches: small batches sampled without replacement (fewer if the data ends).

    Returns:
        NaN twice with fewer than two batches.
    """
    live = [e for e in examples if any(credit.get(key) for credit in credits for key in e.keys)]
    order = np.random.default_rng(derived_seed(seed, "gradient variance")).permutation(len(live))
    chosen = [live[i] for i in order[: batches * DIALOGUES_PER_BATCH]]
    groups = [
        chosen[i : i + DIALOGUES_PER_BATCH]
        for i in range(0, len(chosen) - DIALOGUES_PER_BATCH + 1, DIALOGUES_PER_BATCH)
    ]
    if len(groups) < 2:
        return float("nan"), float("nan")
    with _only_top_gradients(model) as parameters:
        pairs = [
            _two_gradients(model, group, credits, collate, parameters, bfloat16) for group in groups
        ]
    first, second = (torch.stack(side).var(dim=0).sum() for side in zip(*pairs, strict=True))
    return float(first), float(second)


class _only_top_gradients:  # noqa: N801
    """Leaves gradients on in the last layers' trainable parameters alone."""

    def __init__(self, model: Any) -> None:
        self.trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]

    def __enter__(self) -> list[torch.nn.Parameter]:
        layers = sorted({layer for n, _ in self.trainable if (layer := _layer(n)) is not None})
        top = set(layers[-SKETCH_LAYERS:])
        kept = [p for n, p in self.trainable if _layer(n) in top]
        for _, parameter in self.trainable:
            parameter.requires_grad_(False)
        for parameter in kept:
            parameter.requires_grad_(True)
        return kept

    def __exit__(self, *exc: Any) -> None:
        for _, parameter in self.trainable:
            parameter.requires_grad_(True)


def _layer(name: str) -> int | None:
    numbers = [part for part in name.split(".") if part.isdigit()]
    return int(numbers[0]) if numbers else None


def _two_gradients(
    model: Any,
    group: Sequence[Example],
    credits: tuple[Mapping[Key, float], Mapping[Key, float]],
    collate: Collate,
    parameters: list[torch.nn.Parameter],
    bfloat16: bool,
) -> list[torch.Tensor]:
    """The flat gradients of one small batch under both credits."""
    inputs, other = (collate(_weighed(group, credit), len(group)) for credit in credits)
    device = next(model.parameters()).device
    inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
        logits = selected_logits(model, inputs)
    gradients = []
    for weights, keep in ((inputs["weights"], True), (other["weights"].to(device), False)):
        loss = weighted_nll(logits, {**inputs, "weights": weights})
        parts = torch.autograd.grad(loss, parameters, retain_graph=keep)
        gradients.append(torch.cat([part.flatten().float() for part in parts]))
    return gradients


def _weighed(group: Sequence[Example], credit: Mapping[Key, float]) -> list[Paired]:
    return [
        (example, np.array([credit.get(key, 0.0) for key in example.keys], dtype=np.float32))
        for example in group
    ]
