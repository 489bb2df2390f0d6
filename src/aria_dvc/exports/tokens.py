"""Tinker: token ids with a weight each, as the JSON of its `Datum`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from aria_dvc.chat import Renderer
from aria_dvc.exports.chats import Record
from aria_dvc.exports.scales import Scale
from aria_dvc.exports.turns import Chat, Chats


def tinker(
    chats: Chats, scale: Scale, counts: Counter[str], model: str, signed: bool
) -> Iterator[Record]:
    """A chat a line, for the loss `cross_entropy`: its weights multiply -log p of each token.

    model: whose tokenizer and chat template are used. signed: the weight of an action's tokens is
    its advantage, and pushes down where it is negative; else exp(A / beta).

    Raises:
        AriaError: the model has no chat template.
    """
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
    """Token ids of the chat, and the weight of each: 0 but for those of credited actions."""
    ids: list[int] = []
    weights: list[float] = []
    worth = {turn.message: weigh(turn.advantage) for turn in chat.turns}
    said = (at for at, message in enumerate(chat.messages) if message["role"] == "assistant")
    for text, is_action in renderer.segments(chat.messages):
        tokens = renderer.encode(text)
        ids += tokens
        weights += [worth.get(next(said), 0.0) if is_action else 0.0] * len(tokens)
    return ids, weights
