"""The nucleus of top-p: the fewest most probable tokens that together reach a probability.

Playing draws from it and training scores it, so both find it here.
"""

from __future__ import annotations

import torch

# Most probable tokens that are sorted first; only rows that need more go on to the next number.
CANDIDATES = (128, 2048)


def candidate_counts(vocabulary: int) -> tuple[int, ...]:
    """How many of the most probable tokens to look at, attempt by attempt; at last all."""
    return (*(count for count in CANDIDATES if count < vocabulary), vocabulary)


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


@torch.no_grad()
def nucleus_floor(logits: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """The smallest logit inside the nucleus of every row: (n,) float32, -inf where top_p is 1.

    Tokens that tie with the last one of the nucleus count as inside.

    Args:
        logits: (n, vocabulary) float32, already divided by the temperature.
        top_p: (n,) in (0, 1].
    """
    floor = logits.new_full(top_p.shape, float("-inf"))
    left = torch.nonzero(top_p < 1)[:, 0]
    total = logits.logsumexp(dim=-1, keepdim=True) if len(left) else logits
    for count in candidate_counts(logits.shape[-1]):
        if not len(left):
            break
        best = _rows(logits, left).topk(count, dim=-1).values
        mass = (best - total[left]).exp_().cumsum(dim=-1)
        place, reached = last_kept(mass, top_p[left])
        found = reached[:, 0] | (count == logits.shape[-1])
        floor[left[found]] = best.gather(-1, place)[found, 0]
        left = left[~found]
    return floor


def _rows(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Some rows; not a copy if it is all of them."""
    return tensor if len(places) == len(tensor) else tensor[places]
