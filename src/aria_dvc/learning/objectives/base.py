"""What every objective has; see the package for how they are used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from aria_dvc.learning.batches import Member, Paired
from aria_dvc.learning.objective import PolicyCollate, Tensors, policy_collate

if TYPE_CHECKING:
    from aria_dvc.learning.examples import Example, Key, LogFrames
    from aria_dvc.learning.objectives.scoring import Scorer
    from aria_dvc.settings.training import PolicyParams

Note = Callable[[str, torch.Tensor], None]  # adds to a figure of the step
Figures = dict[str, float]


@dataclass(frozen=True)
class Material:
    """What is trained on.

    data: members of the batches; figures: what was counted on the way; further: JSON-able, what
    besides decides how the training ends.
    """

    data: Sequence[Member]
    figures: Figures = field(default_factory=dict)
    further: Any = None


class Objective(ABC):
    """What a policy is trained to do.

    exact_kl: whether `policy.kl` weighs the exact divergence, which the trainer adds; otherwise
        the loss has its own.
    scores_first: whether `ready` asks the policy of the moment.
    """

    exact_kl: ClassVar[bool] = False
    scores_first: ClassVar[bool] = True

    def __init__(self, params: PolicyParams) -> None:
        self.params = params

    @abstractmethod
    def material(
        self, frames: Sequence[LogFrames], examples: Sequence[Example], seed: int
    ) -> Material:
        """What there is to train on, from tables and tokens alone."""

    def ready(self, material: Material, scorer: Scorer) -> Material:
        """The same with what the policy of the moment knows, before the first of its steps."""
        return material

    @abstractmethod
    def loss(self, logits: torch.Tensor, inputs: Tensors, note: Note) -> torch.Tensor:
        """The micro-batch's share of the global batch's mean loss.

        Args:
            logits: (U, V) float32, at the places from which tokens are trained.
            inputs: of the collator.
            note: takes sums over the micro-batch, which become figures of the step.
        """

    def collate(self, pad_id: int, model: Any) -> PolicyCollate:
        """The collator of `material.data`."""
        return policy_collate(pad_id, self.params.kl > 0, model=model)

    def sequences(self, data: Sequence[Member]) -> list[Paired]:
        """The examples in `data` with the values of their actions."""
        return list(data)


def trainable(example: Example, known: Mapping[Key, float]) -> list[int]:
    """The example's actions that have tokens and a value in `known`."""
    present = np.unique(example.action[example.action >= 0]).tolist()
    return [place for place in present if example.keys[place] in known]
