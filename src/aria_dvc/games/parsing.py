"""Free text to typed moves, strictly: what is unclear is refused with a hint, never guessed.

Shared by the games: cleaning, the search for forged turns, plain form and JSON moves. A game adds
how it reads an offer. Only the cleaned text counts, and it is what the other side sees.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from aria_dvc.games.amounts import exact_number
from aria_dvc.games.base import IllegalMove

MAX_RAW_CHARS = 4_000
"""Longer texts are cut here before anything looks at them."""
MAX_CHARS = 1_000
"""A longer utterance is refused: a cut could turn a condition into an acceptance."""

_SPECIAL = re.compile(
    r"<\|[^<>|]{0,60}\|>|<[｜|][^<>]{0,60}[｜|]>|</?s>|<<?/?sys>?>|\[/?inst\]"
    r"|<(?:start|end)_of_turn>|</?(?:bos|eos|pad|unk)>|</?(?:system|user|assistant)>",
    re.IGNORECASE,
)
_SPEAKERS = (
    r"alice|bob|john|oracle|agent|system|user|assistant|human|player ?[12]|moderator|judge|referee"
    r"|buyer|seller|opponent|ai|model|narrator|developer|tool"
)
_FORGED = re.compile(
    rf"(?<![^\W_])(?:{_SPEAKERS})(?:['’]s \w+)?\s?(?:\([^()]{{0,40}}\))?[\W_]{{0,4}}?"
    r":(?!\s{0,3}[$€£]?\d)"
    rf"|\[\s?(?:{_SPEAKERS})\s?\]|#{{2,}}\s{{0,3}}(?:{_SPEAKERS})\b"
    rf"|(?<!\bi )(?<!\bme )(?<!\byou )\(\s?(?:{_SPEAKERS})\s?\)\s?[^\W\d]"
    r"|\[[^\w\[{]*[^\W\d]\w*\W+\w+\W+\w",
    re.IGNORECASE,
)
"""A speaker's label, whatever is around the name, or words in brackets, as our own hints are.

"Alice: 55, Bob: 45" is an offer. Matched on the NFKC form, in which a small colon is a colon.
"""


def clean(text: str) -> str:
    """`text` on one line without control characters and chat special tokens.

    Line breaks between words become full stops, so that "I accept" on a line of its own remains a
    sentence. At most `MAX_RAW_CHARS` characters are looked at.
    """
    lines = [_printable(line) for line in text[:MAX_RAW_CHARS].splitlines()]
    joined = ""
    for line in filter(None, (" ".join(line.split()) for line in lines)):
        stop = "." if joined and joined[-1].isalnum() and line[0].isalnum() else ""
        joined = f"{joined}{stop} {line}" if joined else line
    before = None
    while before != joined and ("<" in joined or "[" in joined):  # as every special token has
        before, joined = joined, " ".join(_SPECIAL.sub(" ", joined).split())
    return joined


def cut(text: str, limit: int = MAX_CHARS) -> str:
    """The cleaned text, shortened to `limit` characters: for texts that are kept, not read."""
    return clean(text)[:limit].rstrip()


def _printable(line: str) -> str:
    """Format characters are invisible, so they go without a space; B<zero width>ob is Bob."""
    if line.isascii() and line.isprintable():
        return line
    kinds = ((char, unicodedata.category(char)) for char in line)
    return "".join(" " if kind[0] == "C" else char for char, kind in kinds if kind != "Cf")


def utterance(text: str, own_name: str, limit: int = MAX_CHARS) -> str:
    """The cleaned text of one turn, without the speaker's own name as a label.

    Raises:
        IllegalMove: empty, longer than `limit`, or it writes another speaker's turn.
    """
    own = re.compile(
        rf"^[\W_]{{0,2}}(?:{own_name}|assistant)[\W_]{{0,2}}:\W{{0,2}}(?=[^\W\d])", re.I
    )
    cleaned = own.sub("", clean(text))
    if not any(char.isalnum() for char in cleaned):
        raise IllegalMove("empty", "Your message was empty. Say something.")
    if len(cleaned) > limit or len(text) > MAX_RAW_CHARS:
        raise IllegalMove("too_long", "Your message was too long. Use one or two short sentences.")
    if _FORGED.search(unicodedata.normalize("NFKC", cleaned)):
        raise IllegalMove("forged_turn", "Speak only for yourself, without any speaker's name.")
    return cleaned


# --- plain form -------------------------------------------------------------------------------

_PLAIN = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[’‘`´]", "'"),
        (r"\bu\b", "you"),
        (r"\bhow bout\b", "how about"),
        (r"\bim\b", "i am"),
        (r"\blets\b", "let us"),
        (r"\b50 50\b", "50/50"),
        (r"\bits(?= (?:a|fine|ok|okay)\b)", "it is"),
        (r"\bill(?= (?:keep|take|give|offer|pay|accept|do|go|buy|sell)\b)", "i will"),
        (r"\b(do|does|ca|wo|could|would|is|are)nt\b", r"\1n't"),
        (r"[“”«»]", '"'),
        (r"[*_#<>]", " "),
        (r'^\s*"([^"]*)"\s*$', r"\1"),
        (r'"[^"]*"', " quotation "),
        (r"\bcan'?t\b|\bcannot\b", "can not"),
        (r"\bwon'?t\b", "will not"),
        (r"\bdon'?t\b", "do not"),
        (r"n't\b", " not"),
        (r"\bi'm\b", "i am"),
        (r"'d\b", " would"),
        (r"'ll\b", " will"),
        (r"'ve\b", " have"),
        (r"'re\b", " are"),
        (r"\blet's\b", "let us"),
        (r"\b(it|that|what|how)'s\b", r"\1 is"),
        (r"\b(?:how|what) about\b", "i propose"),
        (r"\bcounter[- ]?offer\b", "counteroffer"),
        (r"[–—]", " - "),
        (r";", ", "),
        (r"\s+", " "),
    )
]
_SENTENCE = re.compile(r"[^.!?]*(?:[.!?](?!\s|$)[^.!?]*)*[.!?]*")
_SEGMENT = re.compile(
    r",(?!\d)\s*(?:(?:but|so) )?|(?<!>) - | - (?!<)"
    r"| (?:but|however|so|because|instead|therefore|while) "
    r"| and (?=(?:i |we |would |will |like to |want to |now )*(?:propose|offer|suggest|counter)\b)"
)


@dataclass(frozen=True)
class Sentence:
    """A lower-case sentence in plain form; `segments` are its parts between commas and "but"."""

    text: str
    question: bool

    @property
    def segments(self) -> list[str]:
        return [part.strip() for part in _SEGMENT.split(self.text) if part and part.strip()]


def plain(text: str) -> str:
    """Lower case, contractions spelled out, markup gone, quoted speech replaced by a word."""
    lowered = text.lower()
    for pattern, replacement in _PLAIN:
        lowered = pattern.sub(replacement, lowered)
    return lowered.strip()


def sentences(plain_text: str) -> list[Sentence]:
    """Split plain text at full stops, exclamation and question marks."""
    found = []
    for raw in _SENTENCE.findall(plain_text):
        body = raw.strip().rstrip(".!?").strip()
        if body:
            found.append(Sentence(body, raw.rstrip().endswith("?")))
    return found


# --- JSON moves -------------------------------------------------------------------------------

_FENCE = re.compile(r"^```(?:json)?\s*(.*?)\s*```$", re.DOTALL | re.IGNORECASE)


def json_move(text: str, allowed: Iterable[str]) -> dict[str, Any] | None:
    """The JSON object that the whole text is, numbers as exact `Fraction`s; None for prose.

    Raises:
        IllegalMove: JSON mixed with prose, broken, nested, with a repeated or unknown key.
    """
    fenced = _FENCE.match(text)
    body = fenced[1] if fenced else text
    if "{" not in body and "}" not in body:
        return None
    try:
        pairs = json.loads(
            body,
            object_pairs_hook=lambda items: items,
            parse_float=exact_number,
            parse_int=exact_number,
            parse_constant=exact_number,
        )
    except (ValueError, RecursionError):
        raise IllegalMove("bad_json", "Write one plain sentence, or one JSON object.") from None
    keys = [pair[0] for pair in pairs if isinstance(pair, tuple)]
    scalars = all(isinstance(pair, tuple) and not isinstance(pair[1], list) for pair in pairs)
    if not scalars or len(set(keys)) < len(keys) or not set(keys) <= set(allowed):
        raise IllegalMove("bad_json", f"A JSON move has only the keys {', '.join(allowed)}.")
    return dict(pairs)


Decision = Literal["accept", "reject", "outside"]
_DECISIONS: dict[str, Decision] = {
    "accept": "accept",
    "acceptoffer": "accept",
    "reject": "reject",
    "rejectoffer": "reject",
    "dealwithjohn": "outside",
    "outsideoption": "outside",
}


def json_decision(value: Any) -> Decision:
    """What the `decision` of a JSON move means.

    Raises:
        IllegalMove: another value.
    """
    word = re.sub(r"[^a-z]", "", value.lower()) if isinstance(value, str) else ""
    if word not in _DECISIONS:
        raise IllegalMove("bad_json", 'The decision must be "accept" or "reject".')
    return _DECISIONS[word]
