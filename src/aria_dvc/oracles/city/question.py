"""Brings a question about the hidden city into one plain form.

The city itself becomes the word `CITY`, its country `COUNTRY`; preambles ("Based on what you
said, my next question is: ..."), numbering, quotes and accents go. Letters, digits, commas and
single spaces remain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from aria_dvc.oracles.leads import ASKING, without_label, without_words
from aria_dvc.oracles.text import strip_accents

_HOME = r"(?:home ?town|home city|native city|city|town|metropolis|place|birthplace)"
_YOU = (
    r"(?:(?:that|which|where|in which) )?(?:you|i|we|youre|im)(?: (?:are|were|am|come|came|live|"
    r"lived|grew up|have|had|think|reside|originally|currently|hail|call|was))*"
    r"(?: (?:thinking|looking|talking|guessing|trying to guess|born|raised|living|residing|"
    r"describing|referring|searching))*(?: and (?:raised|grew up|live))?"
    r"(?: (?:from|in mind|in|of|about|for|to|home))?"
)
_REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\byour (?:home ?)?country of origin\b", "COUNTRY"),
        (
            r"\b(?:the|its|your|this|that|which)(?: same| home)? country(?: "
            r"(?:that |which |where )?(?:CITY|it|your city|your hometown|this city|the city|you)"
            r"(?: (?:is|are|come|lies|live))?(?: (?:located|situated|found))?(?: (?:in|from))?)\b",
            "COUNTRY",
        ),
        (r"\b(?:the|its|your|this|that)(?: home)? (?:country|nation)s?\b(?! side|side)", "COUNTRY"),
        (
            rf"\b(?:the|your|this|that|our|my|its|said|hidden|secret|mystery) (?:current )?{_HOME}"
            rf"(?: (?:is|s))?(?: in question| being described| {_YOU})\b",
            "CITY",
        ),
        (
            rf"\b(?:your|this|that|hidden|secret|mystery|the|our|my) {_HOME}s?\b"
            r"(?! (?:of|center|centre|walls?|hall|state|planning|layout|proper|limits|life|name|"
            r"gates?|skyline))",
            "CITY",
        ),
        (rf"\byour {_HOME}s?\b", "CITY"),
        (
            r"\b(?:your|the) (?:region|area|state|province)(?: (?:or|and|/) (?:city|CITY|region))? "
            r"(?:where )?you (?:are|come|live)(?: from| in)?\b",
            "CITY",
        ),
        (r"\byour (?:local |home )?(?:region|area|community|locality|state|province)\b", "CITY"),
        (r"\b(?:where )(?:you are from|you come from|you live|you are|you were born)\b", "CITY"),
        (
            r"\bCITY (?:or|and|/) (?:CITY|city|region|hometown|country|area|surrounding area)\b",
            "CITY",
        ),
        (r"\bCITY (?:or|and) its (?:surroundings|surrounding areas?|vicinity|outskirts)\b", "CITY"),
        (r"\bCITY and the surrounding (?:area|region)\b", "CITY"),
        (r"\bCITY itself\b", "CITY"),
        (r"\byou (?:are )?from CITY\b", "CITY"),
        (r"\bCITY you are from\b", "CITY"),
        (r"\bCITYs\b", "CITY"),
        (r"\bCITY(?: CITY)+\b", "CITY"),
    )
]
_LOOP = re.compile(r"\b(\w+(?: \w+){0,2})(?: \1\b){2,}")
"""What is said three times on end: small models loop."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[a-z\"'(0-9])")
_ABBREVIATIONS = re.compile(r"\b(st|mt|dr|mr|ft|u\.s|d\.c|no|vs|e\.g|i\.e|etc)\.")
_ASK_IF = re.compile(rf"^(?:{ASKING}|could it be) (?!in\b|on\b|an?\b)")
_CLAUSE = re.compile(
    r"^(?P<subject>CITY|it|there|COUNTRY|this|that) (?P<verb>is|are|was|were|has|have|had|does|"
    r"lies)\b ?(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class Question:
    """`text` is the plain form; `negated` tells that a literal "not" was taken out of it."""

    text: str
    negated: bool


def plain_question(raw: str) -> Question:
    """The plain form of the (last) question in `raw`."""
    sentence = _last_question(strip_accents(raw))
    text = _plain(sentence)
    text = without_words(text)
    text = _ask_if(_cities(text))
    text, negated = _negation(text)
    return Question(text, negated)


def _last_question(text: str) -> str:
    text = _ABBREVIATIONS.sub(r"\1", re.sub(r"\s+", " ", text)).strip()
    text = _LOOP.sub(r"\1", text)
    text = (without_label(text) or text).strip(" \"'")
    sentences = [part for part in _SENTENCE_END.split(text) if re.search("[a-z]", part)]
    asked = [part for part in sentences if "?" in part]
    chosen = (asked or sentences or [""])[-1 if asked else 0]
    return without_label(chosen) or chosen


def _plain(sentence: str) -> str:
    sentence = re.sub(
        r"\b(is|are|was|were|does|do|did|has|have|had|can|could|would)n['’`]t\b", r"\1 nt", sentence
    )
    sentence = re.sub(r"\b(you|we|they)['’`]re\b", r"\1 are", sentence)
    sentence = re.sub(
        r"\b(it|city|that|what|where|who|there)['’`]s\b(?= (?:the|a|an|in|on|located|your|it))",
        r"\1 is",
        sentence,
    )
    sentence = re.sub(r"['’‘`ʼ´\"“”]", "", sentence)
    sentence = re.sub(r"[,;]", " , ", sentence)
    sentence = re.sub(r"(?<=\d)\s,\s(?=\d{3})", "", sentence)
    sentence = re.sub(r"(?<=\d)\.(?=\d)", "DOT", sentence)
    sentence = re.sub(r"[^a-z0-9,A-Z]+", " ", sentence).replace("DOT", ".")
    return re.sub(r"\s+", " ", sentence).strip(" ,")


def _cities(text: str) -> str:
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def _ask_if(text: str) -> str:
    match = _ASK_IF.match(text)
    if not match:
        return text
    rest = text[match.end() :]
    clause = _CLAUSE.match(rest)
    if not clause:
        return rest
    verb = "is" if clause["verb"] == "lies" else clause["verb"]
    if verb in {"has", "have", "had"}:
        return f"does {clause['subject']} have {clause['rest']}"
    return f"{verb} {clause['subject']} {clause['rest']}"


def _negation(text: str) -> tuple[str, bool]:
    """Takes out a literal "not"; a tag ("isn't it") asks for the plain fact."""
    text = re.sub(r"^(\w+) nt (CITY|it|there)\b", r"\1 \2", text)
    found = re.match(
        r"^((?:is|are|does|do|was|has|can) (?:CITY|it|there|COUNTRY))(?: nt| not|,? not) (.*)$",
        text,
    )
    if found:
        return f"{found[1]} {found[2]}", True
    return text, False
