"""Guesses: which sentences name a target and claim nothing else, read strictly.

Both sub-packages describe their ways to guess as a `GuessGrammar` over folded words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from aria_dvc.oracles.leads import without_label, without_leads
from aria_dvc.oracles.text import fold

_END = re.compile(r"(?<!\bst)(?<!\b[a-z])([.!?]+)(?=\s|$)")
_ASKS = re.compile(
    r"(?:is|isnt|are|arent|was|were|do|does|did|can|could|would|will|has|have|might|may|must|what"
    r"|which|where|who|when|how|why)\b"
)
_FILLER = (
    r"(?:(?:based on|given|considering|since|because) (?:\w+ ){1,8}?)?"
    r"(?:(?:let me guess|maybe|perhaps|surely|how about|what about|i know(?: it)?|i have it"
    r"|(?:my )?(?:final |last |next |first |second )?(?:guess|answer)"
    r"|so|ok|okay|then|now|and|well) )*"
)
"""What marks a guess; what may stand before any question is in `leads`."""
_TAIL = (
    r"(?: (?:then|right|correct|by any chance|maybe|perhaps|please|or not|yes or no"
    r"|isnt it|arent you|arent they|dont you|indeed|(?:is )?(?:my|your) (?:final |best |last )?"
    r"(?:guess|answer)|final answer|final guess))*"
)


SURE = (
    r"(?:i|id|ill|i would|i will|i am|im)(?: (?:now|pretty|quite|fairly|very|going to|like to"
    r"|want to))*"
    r" (?:guess|guessing|think|thinking|believe|say|sure|certain|confident|convinced|go with)"
    r"(?: that)?"
)
"""How a speaker marks a guess: "I am fairly sure that"."""
AM_I_RIGHT = (
    r"(?:am i right|am i correct|is it (?:possible|likely|true|correct)|could it be)"
    r"(?: (?:that|in thinking|to think|in guessing|to say)){0,2}"
)
_TAG = re.compile(
    r"(?:(?:so )?am i (?:right|correct)|is (?:that|this|it) (?:right|correct|true|it)|right|correct"
    r"|yes or no|true or false|did i (?:get|guess) (?:it|that)(?: right)?|what do you (?:think|say)"
    r"|isnt it|is it not)"
)
"""A question that only asks about the sentence before."""


@dataclass(frozen=True)
class GuessGrammar:
    """How guesses are phrased in one game, in folded words.

    lead: pattern of what may stand before the name ("is it a"); it may be empty.
    title: pattern of what may stand between them ("the capital of China,"); empty for nothing.
    suffix: pattern of what may follow the name (", China").
    """

    lead: str
    suffix: str = ""
    title: str = ""

    def pattern(self, names: Iterable[str]) -> re.Pattern[str]:
        """Matches a folded sentence that is a guess of one of the folded `names`."""
        either = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
        before = rf"(?:(?:{self.lead}) )?" + (rf"(?:(?:{self.title}) )?" if self.title else "")
        return re.compile(rf"{_FILLER}{before}(?:{either}){self.suffix}{_TAIL}")


@lru_cache(maxsize=4096)
def guess_sentence(text: str) -> tuple[str, tuple[str, ...]]:
    """The sentence that may be a guess, and the others, folded; ("", (...)) if two questions."""
    pieces = _END.split(text.lower().strip())
    ends = [*pieces[1::2], ""]
    parts = [
        (without_leads(fold(without_label(piece))), end)
        for piece, end in zip(pieces[::2], ends, strict=True)
    ]
    parts = [(piece, end) for piece, end in parts if piece]
    parts = [part for part in parts if not _TAG.fullmatch(part[0])] or parts
    asked = [i for i, (piece, end) in enumerate(parts) if "?" in end or _ASKS.match(piece)]
    if not parts or len(asked) > 1:
        return "", tuple(piece for piece, _ in parts)
    chosen = asked[0] if asked else len(parts) - 1
    others = (piece for i, (piece, _) in enumerate(parts) if i != chosen)
    return parts[chosen][0], tuple(others)


def is_guess(text: str, target: re.Pattern[str], anything: re.Pattern[str]) -> bool:
    """Whether the text guesses the target and nothing else.

    `target` matches guesses of the target, `anything` guesses of any target of the game.
    """
    guess, others = guess_sentence(text)
    return bool(target.fullmatch(guess)) and not any(
        anything.fullmatch(other) and not target.fullmatch(other) for other in others
    )
