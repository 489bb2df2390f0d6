"""Free text to typed moves, strictly: what is unclear is refused with a hint, never guessed.

Shared by the games: cleaning, the search for forged turns, amounts, JSON moves and decisions. A
game adds how it reads an offer. Only the cleaned text counts, and it is what the other side sees.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from aria_dvc.games.base import IllegalMove

MAX_RAW_CHARS = 4_000
"""Longer texts are cut here before anything looks at them."""
MAX_CHARS = 1_000
"""A longer utterance is refused: a cut could turn a condition into an acceptance."""
MAX_DIGITS = 15
MAX_DECIMALS = 4

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
    while before != joined:
        before, joined = joined, " ".join(_SPECIAL.sub(" ", joined).split())
    return joined


def cut(text: str, limit: int = MAX_CHARS) -> str:
    """The cleaned text, shortened to `limit` characters: for texts that are kept, not read."""
    return clean(text)[:limit].rstrip()


def _printable(line: str) -> str:
    """Format characters are invisible, so they go without a space; B<zero width>ob is Bob."""
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
    r",(?!\d)\s*|(?<!>) - | - (?!<)| (?:but|however|so|because|instead|therefore|while) "
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


# --- amounts ----------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"(?P<sign>(?:(?<=\s)|^)[-−])?(?:[$€£]\s?(?P<minus>[-−])?)?"
    r"(?<![\w.])(?P<body>[0-9][0-9.,]*[0-9]|[0-9])(?P<tail>[a-z0-9]*)"
    r"(?P<unit> ?(?:%|percent\b|per cent\b|thousand\b|million\b))?(?P<word> ?(?:dollars?|usd|\$))?"
)
_BODY = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
_ROUNDS = re.compile(r"\brounds? (?:number )?[0-9]+\b|\b[0-9]+ (?:more )?(?:rounds?|turns?)\b")
_SCALE = {"k": 1000, "m": 1_000_000, "thousand": 1000, "million": 1_000_000}


@dataclass(frozen=True)
class Amount:
    """A number in a text; `percent` means `value` is in hundredths of the whole."""

    value: Fraction
    percent: bool = False

    def of(self, whole: Fraction) -> Fraction:
        return self.value * whole / 100 if self.percent else self.value


def mark_amounts(plain_text: str) -> tuple[str, list[Amount]]:
    """Replace every amount by `<i>`, the position in the returned list.

    Numbers of rounds and ordinals (2nd) are words, not amounts.

    Raises:
        IllegalMove: a number is negative, too long or not a number in plain digits.
    """
    if any(char.isnumeric() and not char.isascii() for char in plain_text):
        raise IllegalMove("absurd_number", "Write amounts in plain digits, such as 1,500.")
    amounts: list[Amount] = []

    def mark(match: re.Match[str]) -> str:
        if match["tail"] in ("st", "nd", "rd", "th"):
            return " nth "
        amounts.append(_amount(match))
        return f" <{len(amounts) - 1}> "

    text = _NUMBER.sub(mark, _ROUNDS.sub(" rounds ", plain_text))
    return " ".join(text.split()), amounts


def positions(segment: str) -> list[int]:
    """The positions of the amounts marked in a segment."""
    return [int(number) for number in re.findall(r"<(\d+)>", segment)]


def _amount(match: re.Match[str]) -> Amount:
    if match["sign"] or match["minus"]:
        raise IllegalMove("negative_amount", "Amounts must not be negative.")
    unit = (match["unit"] or "").strip()
    if match["tail"] not in ("", "k", "m") or not _BODY.fullmatch(match["body"]):
        raise IllegalMove("absurd_number", "Write amounts in plain digits, such as 1,500.")
    value = exact_number(match["body"].replace(",", ""))
    value *= _SCALE.get(match["tail"], 1) * _SCALE.get(unit, 1)
    return Amount(value, percent=unit in ("%", "percent", "per cent"))


def exact_number(digits: str) -> Fraction:
    """Plain digits with an optional decimal part as an exact number.

    Raises:
        IllegalMove: too many digits, an exponent, a sign, nan or infinity.
    """
    whole, _, decimals = digits.partition(".")
    plain_digits = re.fullmatch(r"[0-9]+(\.[0-9]+)?", digits)
    if not plain_digits or len(whole) > MAX_DIGITS or len(decimals.rstrip("0")) > MAX_DECIMALS:
        raise IllegalMove("absurd_number", "Write amounts in plain digits, such as 1,500.")
    return Fraction(digits)


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
