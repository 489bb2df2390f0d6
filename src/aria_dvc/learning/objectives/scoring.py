"""What the policy of the moment makes of its training sequences, computed once an iteration.

Several processes share the sequences and tell each other what they have found, so each must hold
the whole model: this comes before the trainer wraps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate.utils import gather_object

from aria_dvc.learning.checkpoints import process_state
from aria_dvc.learning.examples import Example
from aria_dvc.learning.movement import evaluating
from aria_dvc.learning.objective import (
    PolicyCollate,
    ReferenceLogits,
    output_head,
    selected_logits,
    token_logprobs,
)

OLD, REFERENCE = "old", "reference"  # names of the scores


class Reading(NamedTuple):
    """logprobs: (n,) float32 of an example's action tokens; hidden: (A', H) float32, the state
    from which each of its actions with tokens begins, or (0, 0)."""

    logprobs: np.ndarray
    hidden: np.ndarray


@dataclass(frozen=True)
class Scorer:
    """Reads sequences with a policy as it is now.

    reference: the base model's logits; None: the policy still is the base model.
    """

    model: Any
    collate: PolicyCollate
    tokens_per_batch: int
    bfloat16: bool
    reference: ReferenceLogits | None = None

    def scored(self, examples: Sequence[Example], *names: str) -> list[Example]:
        """`examples` with the log-probabilities of their tokens under `old`, the policy as it is
        now, and `reference`, the base model, as asked for."""
        found: dict[str, list[Reading]] = {}
        if OLD in names or self.reference is None:
            found[OLD] = self.read(examples)
        if REFERENCE in names:
            known = found[OLD] if self.reference is None else self._read(examples, self.reference)
            found[REFERENCE] = known
        return [
            replace(example, scores={name: _placed(example, found[name][i]) for name in names})
            for i, example in enumerate(examples)
        ]

    def read(self, examples: Sequence[Example], hidden: bool = False) -> list[Reading]:
        """What the policy as it is now makes of every example."""
        return self._read(examples, selected_logits, hidden)

    def _read(
        self, examples: Sequence[Example], logits: ReferenceLogits, hidden: bool = False
    ) -> list[Reading]:
        state = process_state()
        model = self.model.to(state.device)
        mine: list[tuple[int, Reading]] = []
        with evaluating(model), torch.no_grad():
            for group in self._cut(examples)[state.process_index :: state.num_processes]:
                read = self._group(model, [examples[i] for i in group], logits, hidden)
                mine += zip(group, read, strict=True)
        every = dict(gather_object(mine))
        nothing = Reading(np.empty(0, np.float32), np.empty((0, 0), np.float32))
        return [every.get(i, nothing) for i in range(len(examples))]

    def _cut(self, examples: Sequence[Example]) -> list[list[int]]:
        """Places of the examples of each forward pass, without those that have no tokens."""
        live = [i for i, example in enumerate(examples) if len(example)]
        groups = self.collate.cut([examples[i] for i in live], self.tokens_per_batch)
        return [[live[place] for place in group] for group in groups]

    def _group(
        self, model: Any, examples: Sequence[Example], logits: ReferenceLogits, hidden: bool
    ) -> list[Reading]:
        device = process_state().device
        bare = [replace(example, scores={}) for example in examples]
        inputs = self.collate([(e, np.ones(len(e.keys), np.float32)) for e in bare], 1)
        inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
        narrow = torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.bfloat16)
        with narrow, _states(model) as states:
            logprobs = token_logprobs(logits(model, inputs), inputs).float().cpu().numpy()
        tokens = [np.flatnonzero(example.action >= 0) for example in examples]
        ends = np.cumsum([len(found) for found in tokens])[:-1]
        if not hidden:
            return [Reading(part, np.empty((0, 0))) for part in np.split(logprobs, ends)]
        seen = states[-1].float()[inputs["at"]].cpu().numpy()
        parts = zip(examples, tokens, np.split(logprobs, ends), np.split(seen, ends), strict=True)
        return [Reading(p, rows[_firsts(e.action[found])]) for e, found, p, rows in parts]


@contextmanager
def _states(model: Any) -> Iterator[list[torch.Tensor]]:
    """What the output head is given: (U, H) at the places that are scored."""
    given: list[torch.Tensor] = []
    head = output_head(model)
    handle = head.register_forward_hook(lambda module, args, out: given.append(args[0]))
    try:
        yield given
    finally:
        handle.remove()


def _firsts(actions: np.ndarray) -> np.ndarray:
    """Places at which another action begins among the action tokens."""
    return np.flatnonzero(np.diff(actions, prepend=-1))


def _placed(example: Example, reading: Reading) -> np.ndarray:
    """(L,) float32: 0 outside of actions."""
    values = np.zeros(len(example), dtype=np.float32)
    values[example.action >= 0] = reading.logprobs
    return values
