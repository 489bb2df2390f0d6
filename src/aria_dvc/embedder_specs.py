"""How an embedding model is named: as its weights are, or with `@bfloat16` behind, to round."""

from __future__ import annotations

HALF = "@bfloat16"


def embedder_weights(source: str) -> str:
    """The packaged model, id or folder that has the weights of `source`."""
    return source.removesuffix(HALF)


def is_half(source: str) -> bool:
    """Whether it is to compute in bfloat16."""
    return source.endswith(HALF)
