"""Brings a question about the hidden object into one plain form: `is it X`, `do you X it`, ...

Lower case, no punctuation, contractions written out, preambles and question tags taken away.
"""

from __future__ import annotations

import re

from aria_dvc.oracles.leads import without_label, without_leads
from aria_dvc.oracles.text import strip_accents

_END = re.compile(r"(?<!\d)[.!](?=\s|$)|(?<=\d)[.!](?=\s|$)|\?|\n")
_CONTRACTIONS = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"['’‘`´]", "'"),
        (r"\bcan't\b", "can nt"),
        (r"\bwon't\b", "will nt"),
        (r"\b(is|are|was|were|do|does|did|has|have|could|would|should)n'?t\b", r"\1 nt"),
        (r"\b(it|they|you|that|this|there)'(?:s|re)\b", r"\1 is"),
        (r"\b(you|they|i|we|people)'d\b", r"\1 would"),
        (r"\b(it|you|they)'ll\b", r"\1 will"),
        (r"\bi'm\b", "i am"),
        (r"\$\s?(\d[\d,]*)", r"\1 dollars"),
        (r"(\d),(\d{3})", r"\1\2"),
        (r"\bt\.v\.", "tv"),
        (r"\be\.g\.|\bi\.e\.|\betc\b", ","),
    )
]
_PLAINER = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"'s\b", "s"),
        (r"(\d)(?=(?:kg|cm|lbs?|ft|m|g|inches|feet|meters|pounds)\b)", r"\1 "),
        (r"\([^)]*\)", " "),
        (r"[^a-z0-9,.\n]+", " "),
        (r"\s+", " "),
        (r"\s*,\s*", ", "),
    )
]
_STATING = re.compile(
    r"^(?:i (?:think|believe|guess|suspect|assume)(?: that)?"
    r"|my (?:final |next )?guess is(?: that)?) (?=\w)"
)
_THING = (
    r"(?:(?:the|this|that|your|our|my) (?:(?:mystery|secret|hidden|target|chosen|correct|unknown|"
    r"right|mysterious) )?(?:object|thing|item|answer|word|noun|target|entity|subject|concept)"
    r"(?: in question)?(?: (?:that |which )?(?:you are|you re|i am|you is|you were|we are) "
    r"(?:thinking|looking)(?: of| about| for)?| you have in mind| you chose| you picked)?"
    r"|what (?:you are|you is) thinking(?: of| about)?)(?= |$)"
)
KIND = (
    r"(?:animal|fruit|vegetable|vehicle|(?:musical )?instrument|tool|toy|food|device|machine"
    r"|electronic device|appliance|garment|piece of (?:furniture|clothing|jewell?ery|art))"
)
"""What players call the object when they think they know its kind."""
_KIND_IS = re.compile(rf"^(is|are|was|it is|i think) (?:the|your) {KIND} (?=(?:an?|the|called) )")
_TAG_QUESTION = re.compile(
    r"\W*(?:(?:so )?am i (?:right|correct)|is (?:that|this|it) (?:right|correct|true|it)|right"
    r"|correct|yes or no|true or false|did i (?:get|guess) (?:it|that)(?: right)?)\W*"
)
_IT = re.compile(rf"\b(?:{_THING}|(?:this|these|those|them)\b)")
_TAIL = re.compile(
    r"(?:[ ,]+(?:then|right|correct|by any chance|please|or not|yes or no|"
    r"true or false|is nt it|are nt they|does nt it|do nt they|can nt you|do nt you|is it not|"
    r"is it))+ *$"
)
_WH = re.compile(
    r"^(?:what|which|where|who|whom|whose|when|why|how)\b|^(?:tell|describe|give|name|list|explain|"
    r"say|ignore|forget|repeat|reveal|print|write)\b|^(?:can|could|would|will) you (?:please )?"
    r"(?:give|describe|explain|reveal|help|provide|repeat|list|tell)\b"
)
_SWAP = re.compile(
    r"^(?P<subject>it|they|this|that|you|i|we|people|there) "
    r"(?P<verb>is|are|was|were|has|have|does|do|can|could|would|"
    r"might|may|must|will)\b ?(?P<rest>.*)$"
)
_AUX = r"is|are|was|were|does|do|did|can|could|would|will|might|may|must|has|have|should"
ASKED = re.compile(rf"^(?:{_AUX})\b")


def read_question(raw: str) -> str:
    """The plain form of the only question in `raw`; "" when there is none or more than one."""
    text = _replace(strip_accents(raw).strip(), _CONTRACTIONS)
    sentences = _sentences(without_label(text))
    return _plain(sentences[0]) if len(sentences) == 1 else ""


def _replace(text: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _sentences(text: str) -> list[str]:
    ends = [match.group() for match in _END.finditer(text)]
    parts = [part.strip() for part in _END.split(text)]
    pairs = [(p, e) for p, e in zip(parts, [*ends, ""], strict=True) if re.search("[a-z]", p)]
    pairs = [pair for pair in pairs if not _TAG_QUESTION.fullmatch(pair[0])] or pairs
    asked = [part for part, end in pairs if end == "?"]
    return asked or [part for part, _ in pairs][-1:]


def _plain(sentence: str) -> str:
    text = without_leads(_replace(without_label(sentence), _PLAINER).strip(" ,."))
    text = _KIND_IS.sub(r"\1 it ", _IT.sub("it", text))
    if _WH.match(text):
        return ""
    for _ in range(3):
        text = _swap(without_leads(_STATING.sub("", text)))
    text = re.sub(rf"^({_AUX}) nt ", r"\1 ", text)
    text = re.sub(r" nt\b", " not", _TAIL.sub("", text))
    text = re.sub(r"^(?:based on|given|considering|since|because) [^,]*, ", "", text)
    return re.sub(rf"^({_AUX}) (?:they|that)(?= |$)", r"\1 it", text).strip(" ,")


def _swap(text: str) -> str:
    """`it is alive` -> `is it alive`; a fragment (`an animal`) -> `is it an animal`."""
    match = _SWAP.match(text)
    if match:
        return f"{match['verb']} {match['subject']} {match['rest']}".strip()
    text = re.sub(r"^(?:if|whether) ", "", text)
    if text and not ASKED.match(text):
        text = f"is it {text}"
    return text
