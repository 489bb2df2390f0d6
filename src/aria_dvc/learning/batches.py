"""The whole training run as a list of micro-batches, fixed before the first step.

A global batch is a set of sequences drawn by seed and epoch. It is sorted by length and cut into
`processes x accumulation` micro-batches of at most `tokens_per_batch` padded tokens. How it is
cut changes nothing in the sum, since every micro-batch carries the number of actions of its
*global* batch, by which losses are divided: 8 x 1 and 2 x 4 take the same steps. Padding sorted
sequences beats packing them end to end here: packed attention is computed over the whole block
and mostly masked away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.learning.examples import Example

if TYPE_CHECKING:
    import torch

Paired = tuple[Example, np.ndarray]  # an example and its actions' values, (A,) float32


@dataclass(frozen=True, slots=True)
class Plan:
    """Which sequences each micro-batch holds.

    micro: indices into the data; micro-batch m of process p at step s stands at
        (s * accumulation + m) * processes + p.
    step_actions: (steps,) actions in each global batch.
    """

    micro: list[list[int]]
    step_actions: list[int]
    accumulation: int
    processes: int

    @property
    def steps(self) -> int:
        return len(self.step_actions)

    def actions_of(self, index: int) -> int:
        """Actions in the global batch that micro-batch `index` belongs to."""
        return self.step_actions[index // (self.accumulation * self.processes)]


def global_batches(count: int, batch_size: int, epochs: float, seed: int) -> list[np.ndarray]:
    """The sequences of every optimiser step: shuffled anew each epoch, batches of near-equal size.

    Args:
        epochs: passes over the data; a fraction ends within a pass.
    """
    per_epoch = math.ceil(count / batch_size)
    steps = max(1, math.ceil(per_epoch * epochs - 1e-9))
    batches: list[np.ndarray] = []
    for epoch in range(math.ceil(steps / per_epoch)):
        # Not `derived_seed`: the warm start comes before every game, so all data would change.
        order = np.random.default_rng([seed, epoch]).permutation(count)
        batches += np.array_split(order, per_epoch)
    return batches[:steps]


def trains_nothing(data: Sequence[Paired]) -> bool:
    """Whether no sequence has a token to train on."""
    return not any(len(example) for example, _ in data)


def make_plan(
    data: Sequence[Paired],
    batches: Sequence[Sequence[int] | np.ndarray],
    tokens_per_batch: int,
    processes: int = 1,
) -> Plan:
    """Cut global batches into micro-batches; every step gets the same number per process.

    Sequences without a token are in no micro-batch, but their actions count in their global batch.
    """
    lengths = np.array([len(example) for example, _ in data])
    cuts = [
        cut_by_tokens([i for i in batch if lengths[i]], lengths, tokens_per_batch)
        for batch in batches
    ]
    accumulation = max(1, *(math.ceil(len(groups) / processes) for groups in cuts))
    micro: list[list[int]] = []
    for groups in cuts:
        micro += _spread(groups, accumulation * processes)
    actions = [sum(int(np.isfinite(data[i][1]).sum()) for i in batch) for batch in batches]
    return Plan(micro, actions, accumulation, processes)


def cut_by_tokens(
    batch: Sequence[int] | np.ndarray, lengths: np.ndarray, budget: int
) -> list[list[int]]:
    """Sequences from longest to shortest, filled up to `budget` padded tokens (one at least)."""
    groups: list[list[int]] = []
    for index in sorted((int(i) for i in batch), key=lambda i: (-lengths[i], i)):
        if groups and (len(groups[-1]) + 1) * lengths[groups[-1][0]] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _spread(groups: list[list[int]], count: int) -> list[list[int]]:
    """Halve the largest groups until there are `count`; what cannot be halved adds empty ones."""
    groups = [list(group) for group in groups] or [[]]
    while len(groups) < count:
        largest = max(range(len(groups)), key=lambda i: len(groups[i]))
        group = groups[largest]
        if len(group) < 2:
            groups.append([])
            continue
        middle = len(group) // 2
        groups[largest : largest + 1] = [group[:middle], group[middle:]]
    return groups


Collate = Callable[[Sequence[Paired], int], dict[str, Any]]


class MicroBatches:
    """A map-style dataset: item i is micro-batch i of the plan, collated when asked for."""

    def __init__(self, data: Sequence[Paired], plan: Plan, collate: Collate) -> None:
        self.data = data
        self.plan = plan
        self.collate = collate

    def __len__(self) -> int:
        return len(self.plan.micro)

    def __getitem__(self, index: int) -> dict[str, Any]:
        members = [self.data[i] for i in self.plan.micro[index]]
        return self.collate(members or [_silent(self.data)], self.plan.actions_of(index))


def _silent(data: Sequence[Paired]) -> Paired:
    """The shortest sequence without any action: keeps an idle process in step."""
    example, values = min((pair for pair in data if len(pair[0])), key=lambda pair: len(pair[0]))
    silent = Example(
        example.log,
        example.episode_id,
        example.role,
        example.input_ids,
        np.full_like(example.action, -1),
        (),
    )
    return silent, values[:0]


def pad(examples: Sequence[Example], pad_id: int) -> tuple[dict[str, torch.Tensor], np.ndarray]:
    """Model inputs (B, L), padded on the right: input_ids, attention_mask, position_ids (all
    int64); and the action index of every token, (B, L) int32 with -1 for padding."""
    import torch

    length = max(len(example) for example in examples)
    ids = np.full((len(examples), length), pad_id, dtype=np.int64)
    action = np.full((len(examples), length), -1, dtype=np.int32)
    mask = np.zeros((len(examples), length), dtype=np.int64)
    for row, example in enumerate(examples):
        ids[row, : len(example)] = example.input_ids
        action[row, : len(example)] = example.action
        mask[row, : len(example)] = 1
    positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    return {name: torch.from_numpy(array) for name, array in inputs.items()}, action
