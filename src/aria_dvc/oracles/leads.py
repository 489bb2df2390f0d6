"""What players say before a question or a guess: one list for both games, and for both readings.

What the oracle hears as a question must be heard as a guess, too, or a right name is confirmed and
does not win. All patterns fit folded text as well as lower case text with commas.
"""

from __future__ import annotations

import re

_AUX = r"(?:is|are|was|were|does|do|did|can|could|would|will|has|have|am|it|its|a|an|the)"
_ORDINAL = r"(?:first|second|third|fourth|fifth|next|last|final|new|another)"
_COUNTED = r"(?:question|turn|round|guess|number|q|no)"
_LABELS = (
    r"question|q|inquiry|query|ask|asking|guess|try|answer|player|tell me|i know(?: it)?|i have it"
)
_NUMBERING = re.compile(
    rf"^\W*(?:{_COUNTED}\W{{0,2}})?\d{{1,2}}(?:\s*(?:of|/)\s*\d{{1,2}})?\s*[.):\-\]]+\s*"
)
_LABEL = re.compile(
    r"^(?!(?:is|are|does|do|can) (?:it|they|this|that)\b)"
    rf"[^.?!:]*?\b(?:{_LABELS})\b[^:.?!]{{0,80}}:\s*"
)
_WORDS = re.compile(
    r"^(?:(?:so|ok|okay|then|now|next|and|well|alright|all right|great|good|nice|perfect|thanks"
    r"|thank you|hm+|um|uh|ah|aha|also|please|interesting|hello|hi|hey|first|lastly|finally"
    r"|lets see|let us see|i see|got it|but|cool|oh|wow|sorry|in that case|that being said"
    rf"|is the answer yes|(?:(?:my|the) )?(?:{_ORDINAL} )?(?:question|q)(?=[ ,]+{_AUX}\b)"
    rf"|{_COUNTED} ?\d{{1,2}}(?: of \d{{1,2}})?|\d{{1,2}}(?: of \d{{1,2}})?(?=[ ,]+{_AUX}\b)"
    r")[ ,]+)+"
)
ASKING = (
    r"i(?: would|d)?(?: like| love| want)? to know(?: if| whether)|i want to know(?: if| whether)?"
    r"|i(?: am|m)? wonder(?:ing)?(?: if| whether)?|i ask(?: if| whether)?"
    r"|(?:can|could|would|will) you (?:please )?(?:tell|let|inform|confirm)(?: me| us)?(?: to me)?"
    r"(?: know)?(?: if| whether| that)|do you know (?:if|whether)|does it happen that"
    r"|is it (?:true|correct|right|the case|fair to say|safe to say|accurate to say"
    r"|correct to say)(?: that)?|is it (?:possible|likely)(?: that|(?= (?:it|its|you|the|your)\b))"
    r"|would it be (?:correct|right|fair|accurate) to say(?: that)?|would you say(?: that)?"
    r"|am i (?:right|correct)(?: that| in thinking(?: that)?)?|can i assume(?: that)?"
    r"|do you think(?: that)?|may i ask (?:if|whether)|could it be that"
)
"""Ways to ask whether something is so."""
_ASKING = re.compile(rf"^(?:{ASKING}) (?=\w)")


def without_label(text: str) -> str:
    """Lower case text without "question 5 of 20:", "3)" or "my guess is:" in front."""
    before = None
    while text != before:
        before, text = text, _LABEL.sub("", _NUMBERING.sub("", text))
    return text


def without_words(text: str) -> str:
    """Without "interesting, then" in front."""
    return _WORDS.sub("", text)


def without_leads(text: str) -> str:
    """Without such words and without "do you think that" in front."""
    before = None
    while text != before:
        before, text = text, _ASKING.sub("", without_words(text))
    return text
