"""What an OpenAI-compatible server answers to a chat request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from aria_dvc.servers.answers import read_json
from aria_dvc.servers.faults import Misfit

PATH = "/chat/completions"
LONGEST_TEXT = 1 << 18  # characters; what is kept goes into every later prompt and the log
MOST_TOKENS = 2**31 - 1
# Some templates open the block in the prompt, so that a reply has its end only.
_THOUGHT = re.compile(r"\s*(?:<think>.*?(?:</think>|\Z)|(?:(?!<think>).)*?</think>)\s*", re.DOTALL)


@dataclass(frozen=True)
class Completion:
    """text: without the model's thoughts, where it begins with them.
    cut: the text ends because it had no more tokens.
    thought: the model thought first, in the text or in a field of its own.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    cut: bool
    thought: bool = False


def read_completion(content: bytes) -> Completion:
    """The first choice of a chat completion.

    Raises:
        Misfit: it is none, or its text or its counts cannot be.
    """
    try:
        answer = read_json(content)
        choice = answer["choices"][0]
        message = choice["message"]
        said = _joined(message.get("content") or "")
        apart = message.get("reasoning_content") or message.get("reasoning")
        usage = answer.get("usage") or {}
        prompt = int(usage.get("prompt_tokens") or 0)
        completion = int(usage.get("completion_tokens") or 0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        raise Misfit("an answer that is not a chat completion") from None
    if not isinstance(said, str):
        raise Misfit("a message that is not text")
    if len(said) > LONGEST_TEXT:
        raise Misfit(f"a message of more than {LONGEST_TEXT:,} characters")
    if not all(0 <= count <= MOST_TOKENS for count in (prompt, completion)):
        raise Misfit("a count of tokens that cannot be")
    block = _THOUGHT.match(said)
    text = said[block.end() :] if block else said
    unfinished = block is not None and "</think>" not in block[0]
    cut = choice.get("finish_reason") == "length" or unfinished
    return Completion(text, prompt, completion, cut, thought=bool(apart or block))


def _joined(content: Any) -> Any:
    """The texts of a message in parts, as one; anything else as it is."""
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")
