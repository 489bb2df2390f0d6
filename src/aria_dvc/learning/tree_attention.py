"""Attention over a prefix tree: each token reads its own beginning and nothing else.

The textbook masks a square of all tokens by all tokens. Here the tokens are cut into chunks that
lie on one path of the tree, and each chunk reads the keys of its path: the work grows with the
length of a dialogue, not of the row. On a CPU, plain products of matrices take a third of the time
of PyTorch's masked kernel, backwards above all; on a GPU its kernels need less memory.

Launch: `use_tree_attention(model)`, then `model(..., tree=TreeReads(...))`; without `tree` the
model attends as before.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch
from torch.nn.functional import dropout as drop
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from aria_dvc.models.attention import attends_plainly

_plain_on = ("cpu",)
TREE = "prefix_tree"  # the name under which transformers knows `tree_attention`


class TreeReads(NamedTuple):
    """Which tokens of a row of T read which, in B chunks of at most C tokens and L keys.

    queries: (B, C) int64, a chunk's tokens; keys: (B, L) int64, the tokens of its path; both
        filled up with any.
    sees: (B, C, L) bool; a filled-up token sees one key, whatever it is.
    back: (T,) int64, where in the flattened (B x C) each token is.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    sees: torch.Tensor
    back: torch.Tensor


def use_tree_attention(model: Any) -> bool:
    """Let `model` be told what each token reads, if its attention can be replaced.

    It can in a model with PyTorch's own attention (not flash attention), in full in every layer,
    and positions that are what `position_ids` says.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    config = base.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None) if kinds is None else None
    told = "position_ids" in inspect.signature(base.forward).parameters
    own = config._attn_implementation in ("sdpa", TREE)
    able = own and window is None and told and attends_plainly(model)
    if able:
        config._attn_implementation = TREE
    return able


def tree_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    tree: TreeReads | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer; transformers calls it.

    Args:
        query: (1, heads, T, width); key, value: (1, kv_heads, T, width), rotated.

    Returns:
        (1, T, heads, width), and no weights.
    """
    if tree is None:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **more
        )
        return found
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    kv_heads, chunks = key.shape[1], tree.queries.shape[0]
    # (B, kv_heads, heads per kv head x C, width); (B, kv_heads, L, width)
    rows = _picked(query.to(value.dtype), tree.queries).unflatten(1, (kv_heads, -1)).flatten(2, 3)
    keys, values = _picked(key.to(value.dtype), tree.keys), _picked(value, tree.keys)
    if query.device.type in _plain_on:
        read = _read_plainly(rows * scale, keys, values, tree.sees, dropout)
    else:
        groups = rows.shape[2] // tree.sees.shape[1]
        mask = tree.sees[:, None].expand(chunks, 1, -1, -1).repeat(1, 1, groups, 1)
        read = scaled_dot_product_attention(rows, keys, values, mask, dropout, scale=scale)
    width = read.shape[-1]
    heads = read.unflatten(2, (-1, tree.sees.shape[1])).permute(0, 3, 1, 2, 4)
    return heads.reshape(-1, query.shape[1], width).index_select(0, tree.back)[None], None


def _picked(tokens: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """(1, heads, T, width) at (B, n) places: (B, heads, n, width)."""
    rows = tokens[0].transpose(0, 1).index_select(0, places.flatten())
    return rows.unflatten(0, tuple(places.shape)).transpose(1, 2)


def _read_plainly(
    rows: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sees: torch.Tensor,
    dropout: float,
) -> torch.Tensor:
    hidden = rows.new_zeros(sees.shape).masked_fill_(~sees, float("-inf"))
    scores = (rows @ keys.transpose(-1, -2)).unflatten(2, (-1, sees.shape[1]))
    weights = scores.add_(hidden[:, None, None]).softmax(dim=-1).flatten(2, 3)
    return drop(weights, dropout) @ values


AttentionInterface.register(TREE, tree_attention)
AttentionMaskInterface.register(TREE, sdpa_mask)
