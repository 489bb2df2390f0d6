"""The nucleus of top-p: the fewest most probable tokens that together reach a probability.

Playing draws from it and training scores it, so both find it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

# Most probable tokens that are sorted first; only rows that need more go on to the next number.
CANDIDATES = (128, 2048)


def candidate_counts(vocabulary: int) -> tuple[int, ...]:
    """How many of the most probable tokens to look at, attempt by attempt; at last all."""
    return (*(count for count in CANDIDATES if count < vocabulary), vocabulary)


def running_mass(best: torch.Tensor, total: torch.Tensor, whole: bool) -> torch.Tensor:
    """(n, c) cumulative probability from the most probable token down.

    Args:
        best: (n, c) unnormalised probabilities in descending order. total: (n, 1) sums over all
            tokens. whole: these are all tokens; then it ends at 1, whatever was lost in rounding.
    """
    mass = best.cumsum(dim=-1)
    return mass / (mass[:, -1:] if whole else total)


def last_kept(mass: torch.Tensor, top_p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the nucleus ends among the most probable tokens.

    Args:
        mass: (n, c) cumulative probability from the most probable token down.
        top_p: (n,).

    Returns:
        (n, 1) int64 place of its last token (of the last candidate if it ends further down), and
        (n, 1) bool: whether the candidates reach `top_p`.
    """
    place = torch.searchsorted(mass, top_p[:, None]).clamp(max=mass.shape[-1] - 1)
    return place, mass[:, -1:] >= top_p[:, None]


@dataclass(frozen=True)
class Nuclei:
    """The nuclei of some rows of logits.

    rows: (n,) int64. tokens: (n, c) int64, the most probable ones from the top down; kept: (n, c)
    bool, which of them are inside.
    """

    rows: torch.Tensor
    tokens: torch.Tensor
    kept: torch.Tensor


@torch.no_grad()
def nuclei(
    logits: torch.Tensor, temperature: torch.Tensor, top_p: torch.Tensor
) -> Iterator[Nuclei]:
    """The nucleus of every row, in groups that needed equally many candidates.

    Args:
        logits: (n, vocabulary) float32.
        temperature, top_p: (n,); top_p below 1.
    """
    weights = logits - logits.amax(dim=-1, keepdim=True)
    weights.div_(temperature[:, None]).exp_()
    total = weights.sum(dim=-1, keepdim=True)
    left = torch.arange(len(logits), device=logits.device)
    for count in candidate_counts(logits.shape[-1]):
        if not len(left):
            return
        best = (weights if len(left) == len(weights) else weights[left]).topk(count, dim=-1)
        whole = count == logits.shape[-1]
        mass = running_mass(best.values, total[left], whole)
        place, reached = last_kept(mass, top_p[left])
        found = reached[:, 0] | whole
        if found.any():
            kept = torch.arange(count, device=left.device) <= place[found]
            yield Nuclei(left[found], best.indices[found], kept)
        left = left[~found]
