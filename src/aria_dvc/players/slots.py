"""Keys and values of many dialogues in one rectangle, and attention over rows of unlike length.

A slot holds one dialogue. One forward pass takes a packed row of tokens that belong to many slots:
first one token for each dialogue that is being continued, then whole chunks of prompts. Only
attention knows about slots; every other layer sees a plain (1, tokens, width) batch, so nothing is
padded. Attention reads only the filled part of the slots that take part.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

ATTENTION = "dialogue_slots"  # the name under which transformers knows `slot_attention`
BLOCK = 16  # neighbouring slots that are read together when single tokens attend
DENSE = 0.4  # below this share of a block's slots, its rows are copied out instead
FRESH_PAGES = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


@dataclass(frozen=True)
class CacheShape:
    """What one cached token costs: `layers` x 2 x (kv_heads, head_dim) of `dtype`."""

    layers: int
    kv_heads: int
    share: int  # heads that read one kv head's keys
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, model: Any) -> CacheShape:
        config = model.config.get_text_config()
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        return cls(
            layers=config.num_hidden_layers,
            kv_heads=kv_heads,
            share=heads // kv_heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
            dtype=model.get_input_embeddings().weight.dtype,
            device=model.get_input_embeddings().weight.device,
        )

    @property
    def token_bytes(self) -> int:
        return 2 * self.layers * self.kv_heads * self.head_dim * self.dtype.itemsize

    @property
    def untouched_is_free(self) -> bool:
        """Whether memory costs nothing until something is written to it."""
        return self.device.type == "cpu"


class KeyValueCache:
    """`keys[layer]`, `values[layer]`: (slots, kv_heads, length, head_dim)."""

    def __init__(self, shape: CacheShape) -> None:
        self.shape = shape
        self.slots = 0
        self.length = 0
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def resize(self, slots: int, length: int, kept: Mapping[int, int]) -> None:
        """Make room for `slots` x `length`; `kept` maps old slots to new ones, others are lost."""
        old, new = list(kept), list(kept.values())
        self.keys = self._resized(self.keys, slots, length, old, new)
        self.values = self._resized(self.values, slots, length, old, new)
        self.slots, self.length = slots, length

    def copy(self, source: int, target: int, length: int) -> None:
        """Give slot `target` the first `length` tokens of slot `source`."""
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def _resized(
        self, tensors: list[torch.Tensor], slots: int, length: int, old: list[int], new: list[int]
    ) -> list[torch.Tensor]:
        kv_heads, head_dim = self.shape.kv_heads, self.shape.head_dim
        common = min(length, self.length)
        for layer in range(self.shape.layers):
            fresh = self._zeros((slots, kv_heads, length, head_dim))
            if old and common:
                fresh[new, :, :common] = tensors[layer][old, :, :common]
            tensors[layer : layer + 1] = [fresh]
        return tensors

    def _zeros(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Zeros, of which a CPU holds only the pages that something was written to.

        Not NumPy's: it asks for huge pages, of which the first token of every slot clears one.
        """
        dtype = self.shape.dtype
        if not self.shape.untouched_is_free:
            return torch.zeros(shape, dtype=dtype, device=self.shape.device)
        pages = mmap.mmap(-1, math.prod(shape) * dtype.itemsize, flags=FRESH_PAGES)
        return torch.frombuffer(pages, dtype=dtype).view(shape)


@dataclass(frozen=True)
class PromptChunk:
    """Prompt tokens first..last of the packed row: `slot`, at positions start..end."""

    slot: int
    first: int
    last: int
    start: int
    end: int
    mask: torch.Tensor  # (tokens x heads per kv head, end) of bool: True where a key is read


@dataclass(frozen=True)
class Group:
    """Single tokens that attend together: packed row indices, their slots and the key mask."""

    tokens: torch.Tensor  # (n,) places in the packed row
    slots: slice | torch.Tensor  # a run of slots, or the n slots
    places: torch.Tensor | None  # (n,) places in that run; None if `slots` are the n slots
    mask: torch.Tensor  # (rows, 1, 1, length) of bool: True where a key is read
    length: int


@dataclass
class StepPlan:
    """One forward pass: which token of the packed row belongs to which slot and position."""

    cache: KeyValueCache
    slots: torch.Tensor  # (tokens,)
    positions: torch.Tensor  # (tokens,)
    groups: list[Group] = field(default_factory=list)
    chunks: list[PromptChunk] = field(default_factory=list)


def plan_step(
    cache: KeyValueCache,
    singles: Sequence[tuple[int, int]],
    prompts: Sequence[tuple[int, int, int]],
) -> StepPlan:
    """Lay out a packed row.

    Args:
        singles: (slot, position) of each dialogue continued by one token; these come first.
        prompts: (slot, start, end) of each chunk of prompt, in the order of the packed row.
    """
    device = cache.shape.device
    slots = [slot for slot, _ in singles]
    positions = [position for _, position in singles]
    chunks = []
    for slot, start, end in prompts:
        first = len(slots)
        slots += [slot] * (end - start)
        positions += range(start, end)
        mask = _causal(start, end, cache.shape.share, device)
        chunks.append(PromptChunk(slot, first, len(slots), start, end, mask))
    return StepPlan(
        cache,
        torch.tensor(slots, device=device),
        torch.tensor(positions, device=device),
        _groups(singles, device),
        chunks,
    )


def _causal(start: int, end: int, share: int, device: torch.device) -> torch.Tensor:
    """Token by token, `share` rows each: the heads that read the same keys."""
    rows = torch.arange(start, end, device=device).repeat_interleave(share)[:, None]
    return torch.arange(end, device=device)[None, :] <= rows


def _groups(singles: Sequence[tuple[int, int]], device: torch.device) -> list[Group]:
    """Group singles by neighbouring slots; groups with few of their slots are copied out."""
    blocks: dict[int, list[int]] = {}
    for token, (slot, _) in enumerate(singles):
        blocks.setdefault(slot // BLOCK, []).append(token)
    groups, sparse = [], []
    for _, tokens in sorted(blocks.items()):
        if len(tokens) < DENSE * BLOCK:
            sparse += tokens
        else:
            groups.append(_dense_group(singles, tokens, device))
    for first in range(0, len(sparse), BLOCK):
        groups.append(_sparse_group(singles, sparse[first : first + BLOCK], device))
    return groups


def _dense_group(
    singles: Sequence[tuple[int, int]], tokens: list[int], device: torch.device
) -> Group:
    slots = [singles[token][0] for token in tokens]
    low, high = min(slots), max(slots) + 1
    lengths = [1] * (high - low)  # a slot that does not take part reads one key, to no effect
    for token in tokens:
        slot, position = singles[token]
        lengths[slot - low] = position + 1
    places = torch.tensor([slot - low for slot in slots], device=device)
    mask, length = _key_mask(lengths, device)
    return Group(torch.tensor(tokens, device=device), slice(low, high), places, mask, length)


def _sparse_group(
    singles: Sequence[tuple[int, int]], tokens: list[int], device: torch.device
) -> Group:
    slots = torch.tensor([singles[token][0] for token in tokens], device=device)
    mask, length = _key_mask([singles[token][1] + 1 for token in tokens], device)
    return Group(torch.tensor(tokens, device=device), slots, None, mask, length)


def _key_mask(lengths: list[int], device: torch.device) -> tuple[torch.Tensor, int]:
    length = max(lengths)
    filled = torch.tensor(lengths, device=device)[:, None, None, None]
    return torch.arange(length, device=device) < filled, length


def slot_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    plan: StepPlan | None = None,
    **ignored: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a packed row; transformers calls it once a layer.

    Args:
        query: (1, heads, tokens, head_dim); key, value: (1, kv_heads, tokens, head_dim), rotated.

    Returns:
        (1, tokens, heads, head_dim), and no weights.
    """
    assert plan is not None
    keys, values = plan.cache.keys[module.layer_idx], plan.cache.values[module.layer_idx]
    keys[plan.slots, :, plan.positions] = key[0].transpose(0, 1)
    values[plan.slots, :, plan.positions] = value[0].transpose(0, 1)
    heads, tokens, head_dim = query.shape[1:]
    packed = query[0].transpose(0, 1).view(tokens, keys.shape[1], -1, head_dim)
    output = torch.empty_like(packed)
    for group in plan.groups:
        output[group.tokens] = _attend_group(packed, keys, values, group, scaling)
    for chunk in plan.chunks:
        rows = packed[chunk.first : chunk.last]
        attended = _attend_chunk(rows, keys, values, chunk, scaling)
        output[chunk.first : chunk.last] = attended
    return output.view(1, tokens, heads, head_dim), None


def _attend_group(
    packed: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    group: Group,
    scaling: float | None,
) -> torch.Tensor:
    """(n, kv_heads, heads per kv head, head_dim): every row reads its own slot up to its end."""
    read_keys = keys[group.slots, :, : group.length]
    read_values = values[group.slots, :, : group.length]
    rows = packed[group.tokens]
    if group.places is not None:
        spread = packed.new_zeros((read_keys.shape[0], *packed.shape[1:]))
        spread[group.places] = rows
        rows = spread
    attended = scaled_dot_product_attention(
        rows, read_keys, read_values, attn_mask=group.mask, scale=scaling
    )
    return attended if group.places is None else attended[group.places]


def _attend_chunk(
    rows: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    chunk: PromptChunk,
    scaling: float | None,
) -> torch.Tensor:
    """(tokens, kv_heads, heads per kv head, head_dim): causal, after what the slot holds."""
    attended = scaled_dot_product_attention(
        rows.transpose(0, 1).flatten(1, 2)[None],
        keys[chunk.slot, None, :, : chunk.end],
        values[chunk.slot, None, :, : chunk.end],
        attn_mask=chunk.mask,
        scale=scaling,
    )
    return attended[0].unflatten(1, (-1, rows.shape[2])).transpose(0, 1)
