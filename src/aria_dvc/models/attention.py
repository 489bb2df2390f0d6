"""Whose attention can be driven by a function of ours, in play and in training."""

from __future__ import annotations

from typing import Any


def attends_plainly(model: Any) -> bool:
    """Whether every layer of `model` is full causal attention that may be replaced."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    capped = getattr(config, "attn_logit_softcapping", None)
    backend = getattr(base, "_supports_attention_backend", False)
    return bool(kinds == {"full_attention"} and not capped and backend)
