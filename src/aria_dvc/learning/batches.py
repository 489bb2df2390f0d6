"""The whole training run as a list of micro-batches, fixed before the first step.

A global batch is a set of sequences drawn by seed and epoch. It is cut into
`processes x accumulation` micro-batches of at most `tokens_per_batch` computed tokens (see
packing.py). How it is cut changes nothing in the sum, since every micro-batch carries the number
of actions of its *global* batch, by which losses are divided: 8 x 1 and 2 x 4 take the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aria_dvc.learning.examples import Example

Paired = tuple[Example, np.ndarray]  # an example and its actions' values, (A,) float32
# What a batch is drawn from, with its values: a `Paired`, or another thing that has a length and
# `silent` (see objectives/pairs.py).
Member = tuple[Any, np.ndarray]
Cut = Callable[[Sequence[Any], int], list[list[int]]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which sequences each micro-batch holds.

    micro: of every step its micro-batches, as indices into the data; number m of process p stands
        at m * processes + p.
    step_actions: (steps,) actions in each global batch.
    lanes: in which the one process computes a step's micro-batches (see lanes.py), or 1.
    """

    micro: list[list[list[int]]]
    step_actions: list[int]
    processes: int
    lanes: int

    @property
    def steps(self) -> int:
        return len(self.step_actions)

    @property
    def accumulation(self) -> int:
        """Items of a process's dataset that make a step."""
        return 1 if self.lanes > 1 else len(self.micro[0]) // self.processes


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


def trains_nothing(data: Sequence[Member]) -> bool:
    """Whether no sequence has a token to train on."""
    return not any(len(example) for example, _ in data)


def zero_share(data: Sequence[Paired]) -> float:
    """The share of the actions that train nothing because their advantage is 0."""
    values = np.concatenate([np.empty(0, np.float32), *(values for _, values in data)])
    known = values[np.isfinite(values)]
    return float((known == 0).mean()) if len(known) else 0.0


def make_plan(
    data: Sequence[Member],
    batches: Sequence[Sequence[int] | np.ndarray],
    tokens_per_batch: int,
    cut: Cut,
    processes: int = 1,
    lanes: int = 1,
) -> Plan:
    """Cut global batches into micro-batches; every step gets the same number per process.

    Sequences without a token are in no micro-batch, but their actions count in their global batch.

    Args:
        cut: the collator's (see `Collate.cut`).
        lanes: if there are several, a step that fills them gets a multiple of that number.
    """
    cuts = []
    for batch in batches:
        live = [int(i) for i in batch if len(data[i][0])]
        groups = cut([data[i][0] for i in live], tokens_per_batch)
        cuts.append([[live[place] for place in group] for group in groups])
    if lanes > 1:
        counts = [max(1, _filling(len(groups), lanes)) for groups in cuts]
    else:
        most = max(1, *(math.ceil(len(groups) / processes) for groups in cuts))
        counts = [most * processes] * len(cuts)
    micro = [_spread(groups, count) for groups, count in zip(cuts, counts, strict=True)]
    actions = [sum(int(np.isfinite(data[i][1]).sum()) for i in batch) for batch in batches]
    return Plan(micro, actions, processes, lanes)


def _filling(count: int, lanes: int) -> int:
    """How many micro-batches keep the lanes busy to the end of a step; fewer than lanes stay."""
    return count if count < lanes else math.ceil(count / lanes) * lanes


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


class Collate(Protocol):
    """Turns the members of a micro-batch into the model's tensors."""

    def __call__(self, members: Sequence[Any], count: int) -> dict[str, Any]:
        """Args:
        count: actions in the global batch.
        """

    def cut(self, sequences: Sequence[Any], budget: int) -> list[list[int]]:
        """Places of the sequences of each micro-batch, of at most `budget` computed tokens."""


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """A map-style dataset: item i is the plan's i-th micro-batch, collated when asked for."""

    data: Sequence[Member]
    plan: Plan
    collate: Collate

    def __len__(self) -> int:
        return sum(map(len, self.plan.micro))

    def __getitem__(self, index: int) -> Any:
        step, place = divmod(index, len(self.plan.micro[0]))
        return self.collated(step, self.plan.micro[step][place])

    def collated(self, step: int, group: Sequence[int]) -> dict[str, Any]:
        """A micro-batch of that step: what the collator makes of `group`."""
        members = [self.data[i] for i in group]
        return self.collate(members or [_silent(self.data)], self.plan.step_actions[step])


class WholeSteps(MicroBatches):
    """A map-style dataset: item s is the list of the micro-batches of step s, for lanes."""

    def __len__(self) -> int:
        return self.plan.steps

    def __getitem__(self, index: int) -> Any:
        groups = [group for group in self.plan.micro[index] if group] or [[]]
        return [self.collated(index, group) for group in groups]


def _silent(data: Sequence[Member]) -> Member:
    """The shortest sequence without any action: keeps an idle process in step."""
    member, values = min((pair for pair in data if len(pair[0])), key=lambda pair: len(pair[0]))
    return member.silent(), values[:0]
