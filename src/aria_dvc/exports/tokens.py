"""Tinker: token ids with a weight each, as the JSON of its `Datum`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.exports.chats import Record
from aria_dvc.exports.scales import Scale
from aria_dvc.exports.turns import Chat, Chats


def tinker(
    chats: Chats, scale: Scale, counts: Counter[str], model: str | None, signed: bool
) -> Iterator[Record]:
    """A chat a line, for the loss `cross_entropy`: its weights multiply -log p of each token.

    model: whose tokenizer and chat template are used. signed: the weight of an action's tokens is
    its advantage, and pushes down where it is negative; else exp(A / beta).

    Raises:
        AriaError: no model is named, or it has no chat template.
    """
    if model is None:
        raise AriaError("--to tinker: name the model to train by --model, for its tokenizer")
    from aria_dvc.models.loading import load_tokenizer
    from aria_dvc.models.source import ModelSource

    renderer = Renderer(load_tokenizer(ModelSource(model)))
    for chat in chats():
        ids, weights = _tokens(chat, renderer, partial(_weight, chat.role, scale, signed))
        counts["chats"] += 1
        counts["turns"] += len(chat.turns)
        counts["tokens"] += len(ids) - 1
        inputs = {
            "target_tokens": {"data": ids[1:], "dtype": "int64", "shape": [len(ids) - 1]},
            "weights": {"data": weights[1:], "dtype": "float32", "shape": [len(ids) - 1]},
        }
        chunk = {"type": "encoded_text", "tokens": ids[:-1]}
        yield chat.role, {"model_input": {"chunks": [chunk]}, "loss_fn_inputs": inputs}


def _weight(role: str, scale: Scale, signed: bool, advantage: float) -> float:
    return advantage / scale.spread[role] if signed else scale.weight(role, advantage)


def _tokens(chat: Chat, renderer: Renderer, weigh: Any) -> tuple[list[int], list[float]]:
    """Token ids of the chat, and the weight of each: 0 but for those of actions."""
    ids: list[int] = []
    weights: list[float] = []
    turns = iter(chat.turns)
    for text, is_action in renderer.segments(chat.messages):
        tokens = renderer.encode(text)
        ids += tokens
        weights += [weigh(next(turns).advantage) if is_action else 0.0] * len(tokens)
    return ids, weights
