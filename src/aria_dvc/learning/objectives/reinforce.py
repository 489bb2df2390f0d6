"""REINFORCE on the credit of every action (sec. 3.5), and behaviour cloning of successful roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aria_dvc.learning.advantages import policy_weights
from aria_dvc.learning.examples import Example, LogFrames, with_values
from aria_dvc.learning.objective import Tensors, weighted_nll
from aria_dvc.learning.objectives.base import Material, Note, Objective

if TYPE_CHECKING:
    import torch


class Reinforce(Objective):
    """-sum over t of A_t log pi(a_t | h_t); A_t is 1 for the actions that are cloned."""

    exact_kl = True
    scores_first = False

    def material(
        self, frames: Sequence[LogFrames], examples: Sequence[Example], seed: int
    ) -> Material:
        weights = policy_weights(frames, self.params, seed)
        return Material(with_values(examples, weights, keep_zero=self.params.kl > 0))

    def loss(self, logits: torch.Tensor, inputs: Tensors, note: Note) -> torch.Tensor:
        return weighted_nll(logits, inputs)
