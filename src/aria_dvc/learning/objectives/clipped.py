"""The clipped ratio (Schulman et al. 2017), which PPO, GRPO, GiGPO and SPAG share.

-sum over tokens of min(r A, clip(r, 1 - low, 1 + high) A), with r = pi / pi_old and one advantage A
for all tokens of an action, divided by the actions of the batch (the originals divide by tokens, so
that long actions count for no more than short ones). pi_old is the policy at the start of the
iteration. `policy.kl` weighs an estimate of KL(pi || base) from the same tokens: with
d = log pi_base - log pi it is exp(d) - 1 - d (Schulman's k3), at least 0, and unbiased where pi is
still pi_old and no nucleus is cut: with top_p below 1 the base is renormalised over a nucleus of
its own, and nothing outside of the policy's is ever drawn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from aria_dvc.learning.batches import Paired
from aria_dvc.learning.examples import Example, Key, LogFrames, with_values
from aria_dvc.learning.objective import Tensors, token_logprobs
from aria_dvc.learning.objectives.base import Figures, Material, Note, Objective
from aria_dvc.learning.objectives.scoring import OLD, REFERENCE, Scorer

if TYPE_CHECKING:
    from aria_dvc.settings.training import Clip

FURTHEST = 20.0  # of log pi - log pi_old: beyond it exp would leave float32's range


def clipped_surrogate(
    logprobs: torch.Tensor, inputs: Tensors, advantages: torch.Tensor, clip: Clip, note: Note
) -> torch.Tensor:
    """(N,) min(r A, clip(r) A) of every token.

    Notes `tokens`, and how many are `clipped`: these have no gradient.
    """
    moved = (logprobs - inputs[OLD]).clamp(-FURTHEST, FURTHEST)
    plain = moved.exp() * advantages
    held = moved.exp().clamp(1 - clip.low, 1 + clip.high) * advantages
    note("tokens", torch.ones_like(plain).sum())
    note("clipped", (held < plain).sum().float())
    return torch.minimum(plain, held)


def estimated_kl(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """(N,) k3 of every token."""
    apart = (reference - logprobs).clamp(-FURTHEST, FURTHEST)
    return apart.exp() - 1 - apart


class ClippedRatio(Objective):
    """The clipped ratio on advantages that are known from the tables."""

    @abstractmethod
    def tabled(self, frames: Sequence[LogFrames]) -> tuple[dict[Key, float], Figures]:
        """The actions that are trained with their advantages (or of what `ready` makes these), and
        what was counted on the way."""

    def material(
        self, frames: Sequence[LogFrames], examples: Sequence[Example], seed: int
    ) -> Material:
        values, figures = self.tabled(frames)
        return Material(with_values(examples, values, keep_zero=self.params.kl > 0), figures)

    @property
    def scores(self) -> tuple[str, ...]:
        """What the loss reads of every token."""
        return (OLD, REFERENCE) if self.params.kl > 0 else (OLD,)

    def ready(self, material: Material, scorer: Scorer) -> Material:
        return Material(self.scored(list(material.data), scorer), material.figures)

    def scored(self, data: Sequence[Paired], scorer: Scorer) -> list[Paired]:
        """`data` with the scores that the loss reads."""
        found = scorer.scored([example for example, _ in data], *self.scores)
        return [(example, values) for example, (_, values) in zip(found, data, strict=True)]

    def loss(self, logits: torch.Tensor, inputs: Tensors, note: Note) -> torch.Tensor:
        logprobs = token_logprobs(logits, inputs)
        gained = self.surrogate(logprobs, inputs, note)
        if not self.params.kl:
            return -gained.sum() / inputs["count"]
        kl = estimated_kl(logprobs, inputs[REFERENCE])
        note("kl_estimate", kl.detach().sum() / inputs["count"])
        return (self.params.kl * kl - gained).sum() / inputs["count"]

    def surrogate(self, logprobs: torch.Tensor, inputs: Tensors, note: Note) -> torch.Tensor:
        """(N,) what is maximised of every token."""
        return clipped_surrogate(logprobs, inputs, inputs["weights"], self.params.clip, note)
