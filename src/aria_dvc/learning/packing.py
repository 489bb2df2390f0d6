"""How the sequences of a micro-batch lie in the model's input: padded rows, or one prefix tree.

Nine tenths of the trained tokens are rules that games share. In a tree a token that follows the
same beginning is computed once, whatever sequences it belongs to: position ids are depths, and
each token attends to its ancestors only, so that logits and gradients are those of the padded
rows. Attention is computed over the whole row and partly masked away, so rows stay moderate.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from aria_dvc.learning.examples import Example

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Layout:
    """A micro-batch as the model reads it.

    inputs: input_ids and position_ids (B, L) int64; attention_mask (B, L) int64, or of a tree
        (1, 1, L, L) bool, true where a token (row) attends to another (column).
    places: per sequence (its length,) int64, where its tokens lie in the flattened (B x L).
    """

    inputs: dict[str, torch.Tensor]
    places: list[np.ndarray]


@dataclass(frozen=True)
class Laying:
    """Lays sequences out; what collators share.

    packed: as a prefix tree, which the model's attention must take, instead of padded rows.
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
    total = sum(len(sequences[i]) for i in order) - int(shared.sum())
    ids, depth = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    sees = np.zeros((total, total), dtype=bool)
    places: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(sequences)
    path, first = places[0], 0
    for index, common in zip(order, shared, strict=True):
        tokens = sequences[index].input_ids[common:]
        last = first + len(tokens)
        ids[first:last], depth[first:last] = tokens, common + np.arange(len(tokens))
        sees[first:last, path[:common]] = True
        sees[first:last, first:last] = np.tri(len(tokens), dtype=bool)
        places[index] = path = np.concatenate([path[:common], np.arange(first, last)])
        first = last
    # A lone sequence needs no mask, and plain causal attention is faster.
    alone = len(path) == total
    mask = np.ones((1, total), dtype=np.int64) if alone else sees[None, None]
    named = {"input_ids": ids[None], "attention_mask": mask, "position_ids": depth[None]}
    return Layout({name: torch.from_numpy(array) for name, array in named.items()}, places)


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


def takes_trees(model: Any) -> bool:
    """Whether the model's attention can be told for each token what it sees.

    PyTorch's own can, in every layer with full attention; flash attention cannot. Positions must
    be what `position_ids` says.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    config = base.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None) if kinds is None else None
    full = set(kinds or ["full_attention"]) == {"full_attention"} and window is None
    told = "position_ids" in inspect.signature(base.forward).parameters
    return config._attn_implementation == "sdpa" and full and told
