"""Sampling of next tokens: one uniform number a row decides, so rows never share randomness."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from aria_dvc.models.nucleus import candidate_counts, last_kept, running_mass


@dataclass(frozen=True)
class Sampling:
    """How one reply is drawn. temperature 0 is greedy; `logprobs` asks for them per token."""

    temperature: float
    top_p: float
    max_new_tokens: int
    seed: int
    logprobs: bool


def choose(
    logits: torch.Tensor, temperature: list[float], top_p: list[float], uniform: list[float]
) -> torch.Tensor:
    """The token of every row: (n,) int64 from logits (n, vocabulary) float32.

    The distribution is softmax(logits / temperature), cut to the fewest most probable tokens that
    together reach `top_p` and renormalised; row i takes the token where the cumulative
    probability, from the most probable token down, passes uniform[i] in [0, 1).
    """
    drawn = [row for row, value in enumerate(temperature) if value > 0]
    if len(drawn) < len(temperature):
        tokens = logits.argmax(dim=-1)
        if drawn:
            picked = [[values[row] for row in drawn] for values in (temperature, top_p, uniform)]
            tokens[drawn] = choose(logits[drawn], *picked)
        return tokens
    # Large temporaries cost more than the arithmetic, so all of it happens in one.
    weights = logits - logits.amax(dim=-1, keepdim=True)
    weights.div_(logits.new_tensor(temperature)[:, None]).exp_()
    return _draw(weights, logits.new_tensor(top_p), logits.new_tensor(uniform))


def token_logprobs(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Log-probabilities (n,) in nats of `tokens` at temperature 1 and without any cut."""
    picked = logits.gather(-1, tokens[:, None])[:, 0]
    return picked - logits.logsumexp(dim=-1)


def _draw(weights: torch.Tensor, top_p: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Tokens (n,) drawn from unnormalised probabilities (n, vocabulary)."""
    total = weights.sum(dim=-1, keepdim=True)
    tokens = torch.zeros(len(weights), dtype=torch.long, device=weights.device)
    left = torch.arange(len(weights), device=weights.device)
    width = weights.shape[-1]
    for count in candidate_counts(width):
        rows = weights if len(left) == len(weights) else weights[left]
        best = rows.topk(count, dim=-1)
        mass = running_mass(best.values, total[left], count == width)
        picked, found = _pick(best.indices, mass, top_p[left], uniform[left])
        tokens[left[found]] = picked[found]
        left = left[~found]
        if not len(left):
            break
    return tokens


def _pick(
    order: torch.Tensor, mass: torch.Tensor, top_p: torch.Tensor, uniform: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens (n,), and whether the candidates reached far enough to tell (n,)."""
    last = order.shape[-1] - 1
    cut, reached = last_kept(mass, top_p)
    kept = torch.where(top_p[:, None] < 1, mass.gather(-1, cut), torch.ones_like(top_p)[:, None])
    place = torch.searchsorted(mass, uniform[:, None] * kept, right=True)
    enough = reached | (top_p[:, None] >= 1)
    found = (enough & (place <= last)) | (mass[:, -1:] == 1)
    return order.gather(-1, place.clamp(max=last))[:, 0], found[:, 0]
