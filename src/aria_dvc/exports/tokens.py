"""Tinker: token ids with a weight each, as the JSON of its `Datum`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.exports.calls import Message, with_objects
from aria_dvc.exports.chats import Record
from aria_dvc.exports.scales import Scale
from aria_dvc.exports.turns import Chat, Chats, as_text

Segments = list[tuple[str, bool]]  # see Renderer.segments
AS_TEXT = "tool calls and replies as text, since the chat template has no place for them"
UNBOUNDED = 1 << 32  # more than any context: what a tokenizer says that knows of no limit
# A chat with a call, by which a template shows whether it takes any.
PROBE = ("probe_name", "probe_key", "probe_value", "probe_reply")
_CALLED = {"name": PROBE[0], "arguments": {PROBE[1]: PROBE[2]}}
_CALL = {"id": "probe0001", "type": "function", "function": _CALLED}
PROBED: list[Message] = [
    {"role": "user", "content": "Go."},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": _CALL["id"], "name": PROBE[0], "content": PROBE[3]},
    {"role": "assistant", "content": "Done."},
]


def tinker(
    chats: Chats, scale: Scale, counts: Counter[str], model: str, signed: bool
) -> Iterator[Record]:
    """A chat a line, for the loss `cross_entropy`: its weights multiply -log p of each token.

    It ends with the last token that has a weight; a chat of which none has one is left out.

    model: whose tokenizer and chat template are used. signed: the weight of an action's tokens is
    its advantage, and pushes down where it is negative; else exp(A / beta).

    Raises:
        AriaError: the model has no chat template.
    """
    from aria_dvc.models.loading import load_tokenizer
    from aria_dvc.models.source import ModelSource

    rendered = _Rendered(load_tokenizer(ModelSource(model)), counts)
    for whole in chats():
        chat, segments = rendered.of(whole)
        if joined := len(whole.turns) - len(chat.turns):
            counts["joined to the next where calls are text"] += joined
        weigh = partial(_weight, chat.role, scale, signed)
        ids, weights = _tokens(chat, segments, rendered, weigh)
        if not any(weights[1:]):
            counts["chats without a token to train"] += 1
            continue
        last = int(np.flatnonzero(weights)[-1])
        ids, weights = ids[: last + 1], weights[: last + 1]
        counts["chats"] += 1
        counts["turns"] += len(chat.turns)
        counts["tokens"] += last
        if last > rendered.limit:
            counts[f"chats of more tokens than the {rendered.limit} of the model's context"] += 1
        inputs = {
            "target_tokens": {"data": ids[1:], "dtype": "int64", "shape": [last]},
            "weights": {"data": weights[1:], "dtype": "float32", "shape": [last]},
        }
        chunk = {"type": "encoded_text", "tokens": ids[:-1]}
        yield chat.role, {"model_input": {"chunks": [chunk]}, "loss_fn_inputs": inputs}


class _Rendered(Renderer):
    """Segments of chats by a model's own template, with calls and replies where it has a place.

    limit: how many tokens the tokenizer says that the model takes.
    """

    def __init__(self, tokenizer: Any, counts: Counter[str]) -> None:
        super().__init__(tokenizer)
        self.counts = counts
        self.limit = min(tokenizer.model_max_length, UNBOUNDED)
        self.tools: list[Message] | None = None
        shown = self._with_tools(PROBED, [])
        self.takes_tools = shown is not None and all(
            word in "".join(text for text, _ in shown) for word in PROBE
        )

    def of(self, chat: Chat) -> tuple[Chat, Segments]:
        """The chat, where there is no place for its calls and replies as text, and its segments."""
        plain = {"role", "content"}
        if not chat.tools and all(plain >= message.keys() for message in chat.messages):
            return chat, self.segments(chat.messages)
        if self.takes_tools and (found := self._with_tools(chat.messages, chat.tools)) is not None:
            return chat, found
        text = as_text(chat)
        if untold := text.worded - chat.worded:
            self.counts[AS_TEXT] += untold
        return text, self.segments(text.messages)

    def _with_tools(self, messages: list[Message], tools: list[Message]) -> Segments | None:
        """None where the template refuses them, or does not say all of a message."""
        from jinja2 import TemplateError

        self.tools = self._cleaned(tools) or None
        try:
            return self.segments([self._cleaned(with_objects(message)) for message in messages])
        except (AriaError, TemplateError, TypeError, ValueError):
            return None
        finally:
            self.tools = None

    def _cleaned(self, value: Any) -> Any:
        """The same without special tokens, and with an empty content in place of none."""
        if isinstance(value, dict):
            plain = {self._cleaned(key): self._cleaned(item) for key, item in value.items()}
            return {**plain, "content": plain["content"] or ""} if "content" in plain else plain
        if isinstance(value, list):
            return [self._cleaned(item) for item in value]
        forged = isinstance(value, str) and any(token in value for token in self._special)
        return self.clean(value) if forged else value

    def _template(self, messages: Sequence[Any], generation: bool) -> str:
        return self.tokenizer.apply_chat_template(
            list(messages), tools=self.tools, tokenize=False, add_generation_prompt=generation
        )


def _weight(role: str, scale: Scale, signed: bool, advantage: float) -> float:
    return advantage / scale.spread[role] if signed else scale.weight(role, advantage)


def _tokens(
    chat: Chat, segments: Segments, renderer: Renderer, weigh: Callable[[float], float]
) -> tuple[list[int], list[float]]:
    """Token ids of the chat, and the weight of each: 0 but for those of credited actions."""
    ids: list[int] = []
    weights: list[float] = []
    worth = {turn.message: weigh(turn.advantage) for turn in chat.turns}
    said = (at for at, message in enumerate(chat.messages) if message["role"] == "assistant")
    for text, is_action in segments:
        tokens = renderer.encode(text)
        ids += tokens
        weights += [worth.get(next(said), 0.0) if is_action else 0.0] * len(tokens)
    return ids, weights
