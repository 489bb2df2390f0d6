"""A micro-batch of made-up dialogues, laid out as the trainer lays out real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aria_dvc.learning.examples import NO_ACTION, Example
from aria_dvc.learning.packing import Layout, prefix_tree

OWN_TURN = 16  # tokens of a made-up action


@dataclass(frozen=True)
class Load:
    """What is trained at once: `dialogues` of `length` tokens, a share `own` of which are trained.

    They share no beginning: the most that they can cost.
    """

    dialogues: int
    length: int
    own: float

    @property
    def tokens(self) -> int:
        return self.dialogues * self.length

    @property
    def trained(self) -> int:
        """Tokens that are trained, each from a place of its own."""
        return self.dialogues * self._turns * self._each

    @property
    def _each(self) -> int:
        """Tokens of an action."""
        return max(1, min(OWN_TURN, self.length // 2))

    @property
    def _turns(self) -> int:
        """As many actions as come nearest to `own`, of those that have room."""
        return max(1, min(round(self.own * self.length / OWN_TURN), self.length // self._each))

    def reads(self) -> Reads:
        """How the trainer's own collator cuts the dialogues for attention over a tree."""
        return Reads.of(prefix_tree(self.examples(self.dialogues)))

    def examples(self, count: int, vocabulary: int = 1_000, seed: int = 0) -> list[Example]:
        """`count` made-up dialogues; they end with their last action."""
        rng = np.random.default_rng(seed)
        return [self._example(rng, number, vocabulary) for number in range(count)]

    def _example(self, rng: np.random.Generator, number: int, vocabulary: int) -> Example:
        turns, each = self._turns, self._each
        action = np.full(self.length, NO_ACTION, dtype=np.int32)
        ends = np.linspace(self.length / turns, self.length, turns).astype(int)
        for turn, end in enumerate(ends.tolist()):
            action[end - each : end] = turn
        ids = rng.integers(1, vocabulary, self.length)
        ids[0] = 1 + number % (vocabulary - 1)  # no two begin alike
        name = f"made-up-{number}"
        keys = tuple(("made-up", name, turn) for turn in range(turns))
        return Example("made-up", name, "agent", ids, action, keys)


@dataclass(frozen=True)
class Reads:
    """Chunks of attention over a tree, the tokens of each, and the keys that it reads; no chunks:
    one dialogue alone, which attends as it always does."""

    chunks: int
    size: int
    keys: int

    @classmethod
    def of(cls, layout: Layout) -> Reads:
        sees = layout.inputs.get("tree_sees")
        return cls(*sees.shape) if sees is not None else cls(0, 0, 0)


def load_of(tokens_per_batch: int, length: int, own: float, *, pairs: bool = False) -> Load:
    """As many dialogues as the trainer puts into a micro-batch (one at least, or one pair)."""
    step = 2 if pairs else 1
    return Load(step * max(1, tokens_per_batch // (step * length)), length, own)


def values_of(examples: Sequence[Example], seed: int = 0) -> list[tuple[Example, np.ndarray]]:
    """The examples with a value for each of their actions, (A,) float32."""
    rng = np.random.default_rng(seed)
    return [(e, rng.normal(size=len(e.keys)).astype(np.float32)) for e in examples]
