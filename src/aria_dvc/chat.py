"""The one renderer: what a player sees when it samples is what training scores.

A dialogue is a list of (role, text). Seen by one role, its own utterances are `assistant`
messages and everybody else's are `user` messages, after the role's system prompt. A role that
speaks first is given an opening user message, since most chat templates (and servers) want one.
What a game tells the hearers of an utterance follows it in brackets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aria_dvc.errors import AriaError

OPENING = "You start."

Message = dict[str, str]
Line = tuple[str, str]  # (role, text)
NOTHING_TOLD: Mapping[int, str] = MappingProxyType({})


def heard(text: str, told: str) -> str:
    """An utterance as its hearers see it; `told` is what the game tells them of it, or empty."""
    return f"{text}\n({told})" if told else text


def view(
    lines: Sequence[Line], role: str, system_prompt: str, told: Mapping[int, str] = NOTHING_TOLD
) -> list[Message]:
    """The chat of `role`: system prompt (if any), then alternating user/assistant messages.

    Consecutive lines by the same side are joined by a newline into one message.

    told: by place of a line, what the game tells those who hear it.
    """
    messages: list[Message] = []
    if system_prompt:
        messages.append({"role": "system", "content": system_prompt})
    if not lines or lines[0][0] == role:
        messages.append({"role": "user", "content": OPENING})
    for place, (speaker, said) in enumerate(lines):
        side = "assistant" if speaker == role else "user"
        text = said if speaker == role else heard(said, told.get(place, ""))
        if messages and messages[-1]["role"] == side:
            messages[-1]["content"] += "\n" + text
        else:
            messages.append({"role": side, "content": text})
    return messages


class Renderer:
    """Chat messages to token ids with a tokenizer's own template, segment by segment.

    Segments (everything before an action; the action with its end-of-turn token) are tokenised
    apart, so a prompt's ids are a prefix of the ids of every longer dialogue: sampling can reuse
    its key-value cache, and training scores the text that sampling emits, in the tokenizer's own
    split, which is nearly always the one that was sampled (docs/learning.md).
    """

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise AriaError(
                f"tokenizer {tokenizer.name_or_path} has no chat template: "
                "use an instruction-tuned model or add a chat_template to its tokenizer"
            )
        self.tokenizer = tokenizer
        self._special = sorted(set(tokenizer.all_special_tokens), key=len, reverse=True)

    def clean(self, text: str) -> str:
        """`text` without special tokens, so that no speaker can forge another's turn."""
        changed = True
        while changed:
            changed = False
            for token in self._special:
                if token in text:
                    text, changed = text.replace(token, ""), True
        return text.strip()

    def segments(self, messages: Sequence[Message]) -> list[tuple[str, bool]]:
        """Split a rendered chat into (text, is_action); joined, they are the rendered chat.

        An action segment is an assistant message and its end-of-turn token. When the last
        message is not the assistant's, the last segment ends with the generation prompt.

        Raises AriaError if the template rewrites earlier messages (prompts would not be prefixes).
        """
        cleaned = [{**m, "content": self.clean(m["content"])} for m in messages]
        segments: list[tuple[str, bool]] = []
        done = ""
        for i, message in enumerate(cleaned):
            if message["role"] == "assistant":
                prompt = self._template(cleaned[:i], generation=True)
                segments.append((self._after(done, prompt), False))
                closed = self._template(cleaned[: i + 1], generation=False)
                action, end = self._split_end(self._after(prompt, closed), message["content"])
                segments.append((message["content"] + action, True))
                done = closed[: len(closed) - len(end)]
        if not cleaned or cleaned[-1]["role"] != "assistant":
            prompt = self._template(cleaned, generation=True)
            segments.append((self._after(done, prompt), False))
        return segments

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids up to where the assistant's next message begins."""
        return [token for text, _ in self.segments(messages) for token in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def end_ids(self) -> list[int]:
        """Token ids that end a turn: the tokenizer's end-of-sequence token."""
        return [self.tokenizer.eos_token_id]

    def _template(self, messages: Sequence[Message], generation: bool) -> str:
        return self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=generation
        )

    def _after(self, head: str, text: str) -> str:
        if not text.startswith(head):
            raise AriaError(
                f"the chat template of {self.tokenizer.name_or_path} rewrites earlier messages: "
                "use a template that only appends"
            )
        return text[len(head) :]

    def _split_end(self, rendered: str, content: str) -> tuple[str, str]:
        """What follows the content: (end-of-turn token, the template's text after it)."""
        tail = self._after(content, rendered)
        head, found, rest = tail.partition(self.tokenizer.eos_token)
        if not found:
            raise AriaError(
                f"the chat template of {self.tokenizer.name_or_path} does not end a turn with "
                f"its end-of-sequence token {self.tokenizer.eos_token!r}: set eos_token to match"
            )
        return head + found, rest
