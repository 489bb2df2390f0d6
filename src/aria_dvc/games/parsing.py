"""Free text to typed moves, strictly: what is unclear is refused with a hint, never guessed.

Shared by the games: cleaning, the search for forged turns, plain form and JSON moves. A game adds
how it reads an offer. Only the cleaned text counts; where games take whole letters, the other side
sees its words laid out as they were (`heard`).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
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
    r"alice|bob|john|oracle|agent|system|user|assistant|player ?[12]|moderator|judge|referee"
    r"|buyer|seller|opponent|ai|narrator|developer"
)
_THINGS = r"human|model|tool"
"""Speakers where a sentence begins with them; "a garden tool: a rake" is a thing."""
_ADDRESSED = "".join(
    rf"(?<!\b{words} )"
    for words in (
        "to|to the|for|for you,|ok|ok,|okay|okay,|listen|listen,|look|look,|thanks|thanks,"
        "|thank you|thank you,"
    ).split("|")
)
"""Behind none of these words, after which a name is who is spoken to: "My offer to Bob: ..."."""
_RIVALS = {"alice": "bob|buyer", "bob": "alice|seller"}
_TITLES = {"alice": "seller", "bob": "buyer"}
"""What the players of negotiation are called as well."""
_NOTE = r"(?:['’]s \w+)?(?:(?: \w+)? (?:to|for) (?:alice|bob|me|you))?\s?(?:\([^()]{0,40}\))?"
"""What may stand between a name and its colon: "Bob's reply to Alice (aside):"."""
_WHOLE_BRACKET = re.compile(r"\[\s*(?=\w+\W+\w)((?:[^\[\]:.!?]|[:.](?=\d))*[.!?]?)\s*\]")
"""One sentence in brackets and nothing else."""


@lru_cache
def _forged(name: str) -> re.Pattern[str]:
    """Another speaker's label, whatever is around it, or words in brackets, as our own hints are.

    "Alice: 55, Bob: 45" is an offer, and a speaker called `name` may address the rival. Matched on
    the NFKC form, in which a small colon is a colon.
    """
    return re.compile(
        rf"(?<![^\W_])(?={_SPEAKERS}|{_THINGS})(?<!\bhi )(?<!\bhey )(?<!\bhello )(?<!\bdear )"
        rf"(?:(?!{_RIVALS.get(name, 'opponent')})|{_ADDRESSED})"
        rf"(?:(?:{_SPEAKERS})|(?<![\w,;-] )(?:{_THINGS})){_NOTE}[\W_]{{0,4}}?"
        r":(?![*_\s]{0,5}[$€£]?\d)"
        rf"|\[\s?(?:{_SPEAKERS}|{_THINGS})\s?\]|#{{2,}}\s{{0,3}}(?:{_SPEAKERS}|{_THINGS})\b"
        rf"|(?<!\bi )(?<!\bme )(?<!\byou )\(\s?(?:{_SPEAKERS}|{_THINGS})\s?\)\s?[^\W\d]"
        r"|\[(?!\s?(?:question|guess|turn|round) #?\d{1,3}\s?\])[^\w\[{]*[^\W\d]\w*\W+\w+\W+\w",
        re.IGNORECASE,
    )


_STAGED = re.compile(
    rf"^\W*(?:{_SPEAKERS}|{_THINGS})\b[^:\n]{{0,40}}:|^\s*[(\[]", re.IGNORECASE | re.MULTILINE
)
"""A line that begins with a speaker, or in brackets, as what the game tells does."""


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


def laid_out(text: str, cleaned: str) -> str:
    """The text of which `cleaned` was read, or kept, as its speaker sampled it and is trained on.

    With its own line breaks and spaces; `cleaned` if it is long or anything else was taken out.
    """
    said = text.strip()
    lines = said.split("\n")
    plain = lines == said.splitlines() and all(_printable(line) == line for line in lines)
    short = len(said) <= MAX_CHARS
    same = short and plain and not _SPECIAL.search(said) and clean(said) == cleaned
    return said if same else cleaned


def heard(text: str, cleaned: str) -> str:
    """`laid_out` for the other side, without a line that looks like another's or the game's own."""
    said = laid_out(text, cleaned)
    return cleaned if "\n" in said and _STAGED.search(said) else said


def _printable(line: str) -> str:
    """Format characters are invisible, so they go without a space; B<zero width>ob is Bob."""
    if line.isascii() and line.isprintable():
        return line
    kinds = ((char, unicodedata.category(char)) for char in line)
    return "".join(" " if kind[0] == "C" else char for char, kind in kinds if kind != "Cf")


@lru_cache
def _own_label(name: str) -> re.Pattern[str]:
    """The label of a speaker: "Bob:", "**Bob (buyer):**", "Bob's offer:" or "[Bob]".

    A number after the name is an amount: "Alice: 55, Bob: 45".
    """
    title = _TITLES.get(name, "assistant")
    names = f"{name}|{title}|assistant"
    return re.compile(
        rf"^[\W_]{{0,3}}(?:(?:as the )?(?:{names}){_NOTE}[\W_]{{0,4}}:[\W_]{{0,3}}(?=[^\W\d])"
        rf"|\[\s?(?:{names})\s?\][\W_]{{0,3}}(?=[^\W\d])"
        rf"|{title}[\W_]{{0,3}}:[\W_]{{0,4}}?(?=[$€£]?\d))",
        re.IGNORECASE,
    )


def _unbracketed(cleaned: str) -> str:
    whole = _WHOLE_BRACKET.fullmatch(cleaned)
    return whole[1] if whole else cleaned


def utterance(text: str, own_name: str, limit: int = MAX_CHARS) -> str:
    """The cleaned text of one turn, without the speaker's own name as a label or a bracket around.

    Raises:
        IllegalMove: empty, longer than `limit`, or it writes another speaker's turn.
    """
    cleaned = _own_label(own_name).sub("", _unbracketed(clean(text)))
    if not any(char.isalnum() for char in cleaned):
        raise IllegalMove("empty", "Your message was empty. Say something.")
    if len(cleaned) > limit or len(text) > MAX_RAW_CHARS:
        raise IllegalMove("too_long", "Your message was too long. Use one or two short sentences.")
    if _forged(own_name).search(unicodedata.normalize("NFKC", cleaned)):
        raise IllegalMove("forged_turn", "Speak only for yourself, without any speaker's name.")
    return cleaned


# --- plain form -------------------------------------------------------------------------------

_ANSWER = r"(?:answer|decision|move|(?:counter-?)?(?:offer|proposal)|reply|response|message|action)"
_PLAIN = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[’‘`´]", "'"),
        ("…", "..."),
        (r"^[\[(]([^\[\]()]*)[\])]\W*$", r"\1"),
        (
            r"^((?:ok|okay|listen|look|thanks|thank you|hi|hello|hey|dear)\b,? (?:alice|bob)) ?:",
            r"\1,",
        ),
        (r"^'(?!\s)((?:[^']|(?<=\w)'(?=\w))*)'\W*$", r"\1"),
        (rf"^(?:(?:my|the) )?(?:final )?{_ANSWER}\s?: ?(?=[^\W\d])", ""),
        (
            r"(^|[.!] )\*(?!this|yes|shak\w+ (?:\w+ )?head|cross|wink)(\w+s(?: [a-z ']*)?)\*(?= )",
            r"\1\2.",
        ),
        (r"\bu\b", "you"),
        (r"\bur\b", "your"),
        (r"\bgimme\b", "give me"),
        (r"\b(?:n|nd)\b", "and"),
        (r"\bw(?:/|\b) ?(?=(?:me|that|this|it|your)\b|[$€£]?\d)", "with "),
        (r"\b4 (?=(?:me|you)\b)", "for "),
        (r"\babt\b", "about"),
        (r"\bthats\b", "that is"),
        (r"\bid(?= (?:go|pay|like|say|take|do|rather|give|offer|buy|sell|prefer)\b)", "i would"),
        (r"\b(?:alr|aight|ight)\b", "alright"),
        (r"\b(?:rn|tbh|imo|pls|plz)\b,? ?", ""),
        (
            r"\bif (?:i may(?: say so| be (?:honest|frank)| ask)?"
            r"|we (?:settle|agree|close|finish)(?: (?:this|it))? (?:right )?now)\b,? ?",
            "",
        ),
        (r"\bhow bout\b", "how about"),
        (r"\bim\b", "i am"),
        (r"\blets\b", "let us"),
        (r"\bgonna\b", "going to"),
        (r"\b(tak|pay|go|giv|buy|sell|offer|accept|mov|rais)in\b", r"\1ing"),
        (r"\burs\b", "yours"),
        (r"\bth(?:x|anx)\b", "thanks"),
        (r"\b50 50\b", "50/50"),
        (r"\bits(?= (?:a|fine|ok|okay)\b)", "it is"),
        (
            r"\bill(?= (?:keep|take|give|offer|pay|accept|do|go|buy|sell|come|have|settle|stick|be"
            r"|just|make)\b)",
            "i will",
        ),
        (r"\b(?:a )?(?:few|couple(?: of)?|several|some) (?:hundred|thousand|dozen)\b", "some"),
        (r"\b(do|does|ca|wo|could|would|is|are)nt\b", r"\1n't"),
        (r"[“”«»]", '"'),
        (r'"{2,}', '"'),
        (r"\bthat is why\b|\bthat's why\b", "so"),
        (r"[*_#<>]", " "),
        (r'^\s*"([^"]*)"\s*$', r"\1"),
        (
            rf'^([^"]*[.!] )?(?:(?:here is|here\'s|this is) )?my (?:\w+ )?{_ANSWER}(?: is)?:? ?'
            r'"([^"]*)"$',
            r"\1\2",
        ),
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
        (r"\b(it|that|what|how|there|here)'s\b", r"\1 is"),
        (r"\b(?:how|what) about\b", "i propose"),
        (r"\bcounter[- ]?(offer|proposal|bid)\b", r"counter\1"),
        (r"[–—]", " - "),
        (r";", ", "),
        (r"\s+", " "),
    )
]
_SENTENCE = re.compile(r"[^.!?]*(?:[.!?](?!\s|$)[^.!?]*)*[.!?]*")
_SEGMENT = re.compile(
    r",(?!\d)\s*(?:(?:but|so) )?|(?<!>) - | - (?!<)"
    r"| (?:but|however|so|because|instead|(?<!must )therefore|while|since(?! <)) "
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


_REFUSING = frozenset("👎❌❎🚫⛔✖✗✘🙅")
_SKIN = range(0x1F3FB, 0x1F400)


def without_pictures(text: str) -> str:
    """The text with blanks for emojis; one that refuses becomes a "no."."""
    if text.isascii():
        return text
    return "".join(map(_in_words, text))


def _in_words(char: str) -> str:
    if char in _REFUSING:
        return " no. "
    if ord(char) in _SKIN or unicodedata.category(char) == "So":
        return " "
    return "" if char in "\ufe0e\ufe0f\u20e3" else char


def plain(text: str) -> str:
    """Lower case, contractions spelled out, markup gone, quoted speech replaced by a word."""
    lowered = without_pictures(text).strip().lower()
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
    "outsideoption": "outside",
}
_DECISIONS |= {
    f"{verb}{way}john": "outside"
    for verb in ("buy", "sell", "deal", "trade", "go")
    for way in ("from", "to", "with")
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
