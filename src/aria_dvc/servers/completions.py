"""What an OpenAI-compatible server answers to a chat request."""

from __future__ import annotations

from dataclasses import dataclass

from aria_dvc.servers.answers import read_json
from aria_dvc.servers.faults import Misfit

PATH = "/chat/completions"
LONGEST_TEXT = 1 << 18  # characters; what is kept goes into every later prompt and the log
MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True)
class Completion:
    """cut: the text ends because it had no more tokens."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cut: bool


def read_completion(content: bytes) -> Completion:
    """The first choice of a chat completion.

    Raises:
        Misfit: it is none, or its text or its counts cannot be.
    """
    try:
        answer = read_json(content)
        choice = answer["choices"][0]
        text = choice["message"].get("content") or ""
        usage = answer.get("usage") or {}
        prompt = int(usage.get("prompt_tokens") or 0)
        completion = int(usage.get("completion_tokens") or 0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        raise Misfit("an answer that is not a chat completion") from None
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise Misfit(f"a message that is not text of at most {LONGEST_TEXT:,} characters")
    if not all(0 <= count <= MOST_TOKENS for count in (prompt, completion)):
        raise Misfit("a count of tokens that cannot be")
    return Completion(text, prompt, completion, cut=choice.get("finish_reason") == "length")
