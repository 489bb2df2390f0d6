"""SPAG (Cheng et al. 2024): self-play of adversarial games, the winner's turns alone.

The k-th of a winner's K turns is worth r_k = lambda^(K - k), normalised to sum 1. A token's
advantage is A = r_k - beta log(pi / pi_ref), its second part without a gradient, in the clipped
ratio, times N / (roles x N_role) for N winners of which N_role have the role, so that all roles
count alike. `sft` weighs the imitation that keeps the language: the original imitates instruction
data for it, here it is the same turns, since there is no other data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from aria_dvc.learning.advantages import actions, successful
from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import Example, Key, LogFrames, keys_of
from aria_dvc.learning.objective import Tensors
from aria_dvc.learning.objectives.base import Figures, Note
from aria_dvc.learning.objectives.clipped import ClippedRatio, clipped_surrogate
from aria_dvc.learning.objectives.scoring import OLD, REFERENCE, Scorer

BALANCE = "balance"  # the score that makes roles count alike


class Spag(ClippedRatio):
    """See the module."""

    @property
    def scores(self) -> tuple[str, ...]:
        return (OLD, REFERENCE)

    def tabled(self, frames: Sequence[LogFrames]) -> tuple[dict[Key, float], Figures]:
        found: dict[Key, float] = {}
        for log in frames:
            won = set(successful(log))
            for _, rows in actions(log).groupby(["episode_id", "role"], sort=False):
                keys = sorted(keys_of(log.name, rows))
                if won.issuperset(keys):
                    shares = decayed(len(keys), self.params.spag.decay).tolist()
                    found |= dict(zip(keys, shares, strict=True))
        return found, {"winners": float(len({key[:2] for key in found}))}

    def scored(self, data: Sequence[Paired], scorer: Scorer) -> list[Paired]:
        # by winner: a dialogue may be several windows
        won = {(one.log, one.episode_id, one.role): (one.log, one.role) for one, _ in data}
        of_winner = dict(zip(won, role_weights(list(won.values())), strict=True))
        weights = [of_winner[one.log, one.episode_id, one.role] for one, _ in data]
        return [
            (replace(example, scores={**example.scores, BALANCE: _everywhere(example, w)}), values)
            for (example, values), w in zip(super().scored(data, scorer), weights, strict=True)
        ]

    def surrogate(self, logprobs: torch.Tensor, inputs: Tensors, note: Note) -> torch.Tensor:
        spag = self.params.spag
        moved = (logprobs - inputs[REFERENCE]).detach()
        advantages = inputs["weights"] - spag.beta * moved
        gained = clipped_surrogate(logprobs, inputs, advantages, self.params.clip, note)
        return inputs[BALANCE] * gained + spag.sft * logprobs


def decayed(turns: int, decay: float) -> np.ndarray:
    """(turns,) float64 that sum to 1, each `decay` of the one after it."""
    shares = decay ** np.arange(turns - 1, -1, -1, dtype=np.float64)
    return shares / shares.sum()


def role_weights(roles: Sequence[tuple[str, str]]) -> list[float]:
    """N / (roles x N_role) of every winner, given its (log, role), log by log."""
    of_role, of_log = Counter(roles), Counter(log for log, _ in roles)
    here = Counter(log for log, _ in of_role)
    return [of_log[log] / (here[log] * of_role[log, role]) for log, role in roles]


def _everywhere(example: Example, weight: float) -> np.ndarray:
    return np.full(len(example), weight, dtype=np.float32)
