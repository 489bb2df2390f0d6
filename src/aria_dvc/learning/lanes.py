"""The micro-batches of an optimiser step side by side, each in a thread with cores of its own.

The products of a small model's matrices hardly gain from a second core; under an adapter a second
micro-batch does as much as the first. Gradients are added in the order of the micro-batches, so
that a training repeats bit by bit on as many cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from aria_dvc.cores import cores_of_lane

# Kinds of rotary positions that a forward pass changes where it meets a longer text.
CHANGING = ("dynamic", "longrope")
MOST_TRAINED = 0.1  # of the weights


class Gradients(NamedTuple):
    """Of one micro-batch: its loss, a scalar, and a gradient for every parameter, None for 0."""

    loss: torch.Tensor
    of: Sequence[torch.Tensor | None]


def computes_alone(model: Any) -> bool:
    """Whether micro-batches must follow one another.

    A forward pass may draw from, or change, what those of other threads would meet. And where most
    weights train, each lane casts them anew and writes a gradient as large as the model: a step of
    the default warm start took 1.35 s in two lanes, 1.02 to 1.34 s without.
    """
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    if trained > MOST_TRAINED * sum(one.numel() for one in model.parameters()):
        return True
    config = model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    settings = config.to_dict()
    dropped = any("drop" in name and value for name, value in settings.items())
    modules = any(isinstance(one, torch.nn.Dropout) and one.p > 0 for one in model.modules())
    return dropped or modules or rope.get("rope_type") in CHANGING


def gradients_of(loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> Gradients:
    """Of a micro-batch's loss, besides any `.grad`."""
    return Gradients(loss.detach(), torch.autograd.grad(loss, parameters, allow_unused=True))


def side_by_side(
    compute: Callable[[Any], Any], batches: Sequence[Any], lanes: int
) -> Iterator[Any]:
    """`compute(batch)` of every batch, in their order, at most `lanes` at a time."""
    lanes = min(lanes, len(batches))
    with _cores(cores_of_lane(lanes)), ThreadPoolExecutor(lanes) as pool:
        yield from pool.map(compute, batches)


def add_to(parameters: Sequence[torch.nn.Parameter], gradients: Gradients) -> None:
    """Add to every parameter's `.grad`."""
    for parameter, gradient in zip(parameters, gradients.of, strict=True):
        if gradient is None:
            continue
        if parameter.grad is None:  # a copy: two parameters may share one gradient
            parameter.grad = gradient.clone()
        else:
            parameter.grad += gradient


@contextmanager
def _cores(threads: int) -> Iterator[None]:
    """New threads share their products among so many cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
