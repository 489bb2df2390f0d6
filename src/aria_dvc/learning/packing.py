"""How the sequences of a micro-batch lie in the model's input: padded rows, or one prefix tree.

Nine tenths of the trained tokens are rules that games share. In a tree a token that follows the
same beginning is computed once, whatever sequences it belongs to: position ids are depths, and
each token attends to its ancestors only (see tree_attention.py), so that logits and gradients are
those of the padded rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aria_dvc.learning.examples import Example

if TYPE_CHECKING:
    import torch

CHUNKS = (16, 32, 64, 128)  # sizes of chunks that are tried
COPIED = 24


@dataclass(frozen=True)
class Layout:
    """A micro-batch as the model reads it.

    inputs: input_ids and position_ids (B, L) int64; attention_mask (B, L) int64; of a tree the
        fields of `TreeReads` besides, each as tree_<name>.
    places: per sequence (its length,) int64, where its tokens lie in the flattened (B x L).
    """

    inputs: dict[str, torch.Tensor]
    places: list[np.ndarray]


@dataclass(frozen=True)
class Laying:
    """Lays sequences out; what collators share.

    packed: as a prefix tree, for a model with tree attention, instead of padded rows.
    """

    pad_id: int
    packed: bool = False

    def lay_out(self, sequences: Sequence[Example]) -> Layout:
        return prefix_tree(sequences) if self.packed else padded_rows(sequences, self.pad_id)

    def cut(self, sequences: Sequence[Example], budget: int) -> list[list[int]]:
        """Places of the sequences of each micro-batch, of at most `budget` computed tokens."""
        return (cut_trees if self.packed else cut_padded)(sequences, budget)


def padded_rows(sequences: Sequence[Example], pad_id: int) -> Layout:
    """One row a sequence, padded on the right."""
    import torch

    length = max(len(sequence) for sequence in sequences)
    ids = np.full((len(sequences), length), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence.input_ids
        mask[row, : len(sequence)] = 1
    positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
    named = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    inputs = {name: torch.from_numpy(array) for name, array in named.items()}
    return Layout(inputs, [row * length + np.arange(len(s)) for row, s in enumerate(sequences)])


def prefix_tree(sequences: Sequence[Example]) -> Layout:
    """One row for all: the distinct beginnings, each after its parent."""
    import torch

    order, shared = in_order([sequence.input_ids for sequence in sequences])
    ids: list[np.ndarray] = []
    depth: list[np.ndarray] = []
    ends: list[_End] = []
    places: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(sequences)
    path, first = places[0], 0
    for index, common in zip(order, shared.tolist(), strict=True):
        tokens = sequences[index].input_ids[common:]
        ids.append(tokens)
        depth.append(np.arange(common, common + len(tokens)))
        places[index] = path = np.append(path[:common], np.arange(first, first + len(tokens)))
        first += len(tokens)
        if len(tokens):
            ends.append(_End(path, common))
    row, positions = np.concatenate(ids)[None], np.concatenate(depth)[None]
    named = {"input_ids": row, "attention_mask": np.ones_like(row), "position_ids": positions}
    if len(ends) > 1:  # a lone sequence reads as a padded row does
        named |= _reads(ends, first)
    return Layout({name: torch.from_numpy(array) for name, array in named.items()}, places)


class _End(NamedTuple):
    """A path (its length,) from the root, and how many of its tokens were there before."""

    path: np.ndarray
    common: int


def _reads(ends: Sequence[_End], total: int) -> dict[str, np.ndarray]:
    """The fields of `TreeReads`, with chunks of the size that costs least."""
    chunks = min((_chunks(ends, size) for size in CHUNKS), key=_cost)
    widest, longest = max(c.size for c in chunks), max(c.end for c in chunks)
    queries = np.zeros((len(chunks), widest), dtype=np.int64)
    keys = np.zeros((len(chunks), longest), dtype=np.int64)
    sees = np.zeros((len(chunks), widest, longest), dtype=bool)
    sees[:, :, 0] = True
    back = np.empty(total, dtype=np.int64)
    for number, (path, start, end) in enumerate(chunks):
        size = end - start
        queries[number, :size] = path[start:end]
        keys[number, :end] = path[:end]
        sees[number, :size, :end] = np.tri(size, end, start, dtype=bool)
        back[path[start:end]] = number * widest + np.arange(size)
    fields = {"queries": queries, "keys": keys, "sees": sees, "back": back}
    return {f"tree_{name}": array for name, array in fields.items()}


class _Chunk(NamedTuple):
    """Tokens start..end of a path."""

    path: np.ndarray
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def _chunks(ends: Sequence[_End], size: int) -> list[_Chunk]:
    """The new tokens of every path in pieces of nearly equal size, of at most `size`."""
    chunks = []
    for path, common in ends:
        pieces = math.ceil((len(path) - common) / size)
        cuts = np.linspace(common, len(path), pieces + 1).astype(int).tolist()
        chunks += [_Chunk(path, start, end) for start, end in pairwise(cuts)]
    return chunks


def _cost(chunks: Sequence[_Chunk]) -> int:
    """Scores to compute, and keys to copy, which cost about as much as COPIED queries."""
    widest, longest = max(c.size for c in chunks), max(c.end for c in chunks)
    return len(chunks) * (widest + COPIED) * longest


def model_inputs(inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The arguments of a forward pass over a micro-batch."""
    names = ("input_ids", "attention_mask", "position_ids")
    given: dict[str, Any] = {**{name: inputs[name] for name in names}, "use_cache": False}
    if "tree_keys" in inputs:
        from aria_dvc.learning.tree_attention import TreeReads

        given["tree"] = TreeReads(**{name: inputs[f"tree_{name}"] for name in TreeReads._fields})
        # Four dimensions stand for a mask that is ready: no other is made of it.
        given["attention_mask"] = inputs["attention_mask"][None, None]
    return given


def in_order(sequences: Sequence[np.ndarray]) -> tuple[list[int], np.ndarray]:
    """Sequences of token ids so that common beginnings stand together.

    Returns:
        Indices in lexicographic order, and (n,) int64: how many of its first tokens each shares
        with the one before it, which is the most that it shares with any before it.
    """
    order = sorted(range(len(sequences)), key=lambda i: (tuple(sequences[i].tolist()), i))
    shared = [0, *(common_beginning(sequences[a], sequences[b]) for a, b in pairwise(order))]
    return order, np.array(shared[: len(order)], dtype=np.int64)


def common_beginning(first: np.ndarray, second: np.ndarray) -> int:
    """How many tokens two sequences have in common from the start."""
    length = min(len(first), len(second))
    differ = np.flatnonzero(first[:length] != second[:length])
    return int(differ[0]) if len(differ) else length


def cut_padded(sequences: Sequence[Example], budget: int) -> list[list[int]]:
    """From longest to shortest, filled up to `budget` padded tokens (one sequence at least)."""
    lengths = [len(sequence) for sequence in sequences]
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if groups and (len(groups[-1]) + 1) * lengths[groups[-1][0]] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def cut_trees(sequences: Sequence[Example], budget: int) -> list[list[int]]:
    """In lexicographic order, filled up to `budget` tokens of a tree (one sequence at least)."""
    order, shared = in_order([sequence.input_ids for sequence in sequences])
    groups: list[list[int]] = []
    tokens = 0
    for index, common in zip(order, shared.tolist(), strict=True):
        length = len(sequences[index])
        if groups and tokens + length - common <= budget:
            groups[-1].append(index)
            tokens += length - common
        else:
            groups.append([index])
            tokens = length
    return groups
