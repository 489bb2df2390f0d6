"""The pair loss (direct preference optimisation, Rafailov et al. 2023) on two sequences.

-log sigmoid(beta [d(better) - d(worse)]), d being the sum over the own tokens of
log pi - log pi_ref, averaged over the pairs of a batch. The reference is the base model.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from aria_dvc.learning.batches import Member, Paired
from aria_dvc.learning.examples import NO_ACTION, Example, LogFrames
from aria_dvc.learning.objective import PolicyCollate, Tensors, token_logprobs
from aria_dvc.learning.objectives.base import Figures, Material, Note, Objective
from aria_dvc.learning.objectives.scoring import REFERENCE, Scorer
from aria_dvc.learning.packing import common_beginning
from aria_dvc.learning.tree_attention import use_tree_attention

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pair:
    """Two sequences of which one is preferred; only their own tokens are actions."""

    better: Example
    worse: Example

    def __len__(self) -> int:
        return len(self.better) + len(self.worse)

    def silent(self) -> Pair:
        """The same tokens without any action to train."""
        return Pair(self.better.silent(), self.worse.silent())

    @property
    def sides(self) -> tuple[Example, Example]:
        return self.better, self.worse


@dataclass(frozen=True)
class PairCollate(PolicyCollate):
    """The collator of (pair, its one value); a pair without a value keeps a process in step.

    Besides what `PolicyCollate` gives: weights are 1 for the better and -1 for the worse; pair (N,)
    int64, which pair a token belongs to; live (P,) float32, 0 for a pair without a value.
    """

    def __call__(self, members: Sequence[Any], count: int) -> Tensors:
        sides = [pair for member, _ in members for pair in signed(member)]
        inputs = super().__call__(sides, count)
        lengths = [len(self._trained(*side)[0]) for side in sides]
        places = np.repeat(np.arange(len(sides)) // 2, lengths)
        live = np.array([len(values) > 0 for _, values in members], dtype=np.float32)
        return {**inputs, "pair": torch.from_numpy(places), "live": torch.from_numpy(live)}

    def cut(self, sequences: Sequence[Any], budget: int) -> list[list[int]]:
        """From longest to shortest, filled up to `budget` computed tokens (one pair at least)."""
        costs = [self._cost(pair) for pair in sequences]
        groups: list[list[int]] = []
        tokens = 0
        for index in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
            # in padded rows none is longer than those of the group's first pair
            cost = costs[index] if self.packed or not groups else costs[groups[-1][0]]
            if groups and tokens + cost <= budget:
                groups[-1].append(index)
                tokens += cost
            else:
                groups.append([index])
                tokens = costs[index]
        return groups

    def _cost(self, pair: Pair) -> int:
        if not self.packed:
            return 2 * max(map(len, pair.sides))
        return len(pair) - common_beginning(pair.better.input_ids, pair.worse.input_ids)


def signed(pair: Pair) -> list[Paired]:
    """Both sides, their actions worth 1 and -1."""
    signs = ((pair.better, 1.0), (pair.worse, -1.0))
    return [(e, np.full(len(e.keys), sign, dtype=np.float32)) for e, sign in signs]


def pair_loss(logprobs: torch.Tensor, inputs: Tensors, beta: float, note: Note) -> torch.Tensor:
    """The mean over the global batch's pairs; notes how many are told apart (`preferred`), and by
    how much (`margin`, the mean of beta [d(better) - d(worse)])."""
    apart = inputs["weights"] * (logprobs - inputs[REFERENCE])
    margins = beta * apart.new_zeros(len(inputs["live"])).index_add(0, inputs["pair"], apart)
    live, count = inputs["live"], inputs["count"]
    note("margin", (live * margins).detach().sum() / count)
    note("preferred", (live * (margins > 0)).sum() / count)
    return (live * torch.nn.functional.softplus(-margins)).sum() / count


class PairObjective(Objective):
    """Learns which of two sequences is better."""

    @abstractmethod
    def pairs(
        self, frames: Sequence[LogFrames], examples: Sequence[Example]
    ) -> tuple[list[Pair], Figures]:
        """The pairs, and what was counted on the way."""

    def material(
        self, frames: Sequence[LogFrames], examples: Sequence[Example], seed: int
    ) -> Material:
        found, figures = self.pairs(frames, examples)
        if not found:
            logger.warning(
                "policy.method: %s finds no pair in %s: the policy stays as it is; `repeats` above "
                "1 plays several games of one configuration",
                *(self.params.method, ", ".join(log.name for log in frames)),
            )
        data = [(pair, np.ones(1, dtype=np.float32)) for pair in found]
        return Material(data, {"pairs": float(len(found)), **figures})

    def ready(self, material: Material, scorer: Scorer) -> Material:
        sides = [side for pair, _ in material.data for side in pair.sides]
        scored = iter(scorer.scored(sides, REFERENCE))
        data = [(Pair(next(scored), next(scored)), values) for _, values in material.data]
        return Material(data, material.figures)

    def loss(self, logits: torch.Tensor, inputs: Tensors, note: Note) -> torch.Tensor:
        return pair_loss(token_logprobs(logits, inputs), inputs, self.params.dpo.beta, note)

    def collate(self, pad_id: int, model: Any) -> PolicyCollate:
        return PairCollate(pad_id, model is not None and use_tree_attention(model))

    def sequences(self, data: Sequence[Member]) -> list[Paired]:
        return [side for pair, _ in data for side in signed(pair)]


def only(example: Example, kept: Sequence[int]) -> Example:
    """`example` with no other actions than those at `kept`, and no token after the last of them."""
    end = int(np.flatnonzero(np.isin(example.action, kept))[-1]) + 1
    action = example.action[:end]
    return replace(
        example,
        input_ids=example.input_ids[:end],
        action=np.where(np.isin(action, kept), action, NO_ACTION).astype(np.int32),
        keys=example.keys[: max(kept) + 1],
        scores={name: values[:end] for name, values in example.scores.items()},
    )


def best_with_worst(ranked: Sequence[tuple[float, Any]], least: float) -> Iterator[tuple[Any, Any]]:
    """(better, worse): the best with the worst, the second with the last but one, and so on, as
    long as their values are more than `least` apart. Nothing is in two pairs."""
    order = sorted(ranked, key=lambda pair: -pair[0])
    for (high, better), (low, worse) in zip(order[: len(order) // 2], order[::-1], strict=False):
        if high - low > least:
            yield better, worse
