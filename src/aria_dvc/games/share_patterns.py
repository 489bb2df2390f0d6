"""How the division of a sum is worded, and whose a part is: the patterns of `shares`.

They match the plain, marked segments of `parsing` (lower case, no contractions, "<3>" for the
fourth amount of the text); `shares` says what each of them means.
"""

from __future__ import annotations

import re

from aria_dvc.games.doubts import CORRECTING, NEGATION

_AMOUNT = r"<(?P<amount>\d+)>"
_GAIN = rf"{_AMOUNT}(?! ?(?:/|-|:|to) ?<)"
"""No part of "60/40", whose first number is Alice's whoever stands before it."""
_SMALL_WORDS = r"(?: (?:a|an|the|of|only|just|exactly|share|sum|amount|total|with|all|full))*"
_LEADS = (
    r"(?: (?:will|would|shall|should|can|must|to|just|then|also|still|like|want|rather|prefer|need"
    r"|have"
    r"|am (?:willing|happy|ready|prepared|going)))*"
)
_WISHES = (
    r"(?:want|need|deserve|demand|prefer|(?:ask|am asking|am looking|go|settle) for"
    r"|(?:must )?insist on"
    r"|would (?:like|(?:be|feel) (?:more )?(?:happy|fine|content|good|comfortable) with)"
    r"|would be (?:willing|happy|ready|prepared|glad) to (?:settle for|go with|take|get|receive)"
    r"|am (?:happy|fine|ok|okay|content|good) with)"
)
_LABEL = (
    r"\b(?P<who>alice|bob|my|your|mine|yours)(?:'s)?"
    r"(?: (?:share|part|gain|demand|ask|request|claim|number|figure|target|(?:last|final) word))?"
    r" ?(?:[:=]|is|would be|will be|should be|must be) ?"
)
BINDINGS = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<who>alice|bob|i|you){_LEADS}"
        r" (?:gets?|receives?|obtains?|takes?|keeps?|has|have|gains?|ends? up with)"
        rf"{_SMALL_WORDS} {_GAIN}",
        rf"\b(?P<who>alice|bob|i|you){_LEADS} (?:go|come) (?:up |down )?to{_SMALL_WORDS} {_GAIN}"
        r"(?! for (?:you|alice|bob)\b)",
        rf"(?:^|, )(?:now )?(?P<who>i) am (?:going|coming|moving) (?:up |down )?to {_GAIN}",
        r"(?:^|, )(?P<who>i) am (?:lowering|reducing|raising) my (?:demand|ask|share|request)"
        rf" to {_GAIN}",
        rf"\b(?P<who>i) am (?:keeping|taking|getting|receiving){_SMALL_WORDS} {_GAIN}",
        rf"\b(?P<who>i)(?: (?:will|would|can|just|also|still))* {_WISHES}{_SMALL_WORDS} {_GAIN}",
        rf"\blet (?P<who>me) (?:have|keep|take|get){_SMALL_WORDS} {_GAIN}",
        r"\b(?:reduce|lower|raise|increase|drop|cut|change|bring) (?P<who>my) (?:demand|share|part"
        rf"|request)(?: down| up)? to {_GAIN}",
        rf"(?<!/)(?<!/ )(?<!-)(?<!- )(?<!:)(?<!: )(?<!to )"
        rf"{_AMOUNT} (?:works|is (?:fine|ok|okay|good|acceptable)) (?:with|by|for) (?P<who>me)\b",
        rf"{_AMOUNT} (?:on|in) (?P<who>my|your) (?:side|pocket)\b",
        rf"{_AMOUNT} (?:in|on) (?P<who>mine|yours)\b",
        rf"\b(?P<who>i) am (?:now |still |currently )?at {_GAIN}",
        rf"^{_AMOUNT} (?P<who>me|you|alice|bob)$",
        r"\b(?:give|gives|giving|offer|offers|offering|leave|leaves|leaving|hand)"
        rf" (?P<who>alice|bob|me|you){_SMALL_WORDS} {_GAIN}",
        rf"{_AMOUNT} (?:for|to|goes to|go to|going to) (?P<who>alice|bob|me|you|myself|yourself)\b",
        rf"{_AMOUNT} (?:(?:is|are) )?(?P<who>mine|yours)\b",
        rf"{_AMOUNT} (?:is|would be|seems|sounds|feels) (?:\w+ )?(?:fair|reasonable|right|enough"
        r"|appropriate) (?:for|to) (?P<who>me|you|alice|bob)\b",
        r"\b(?P<who>i) (?:would like|want|need|deserve|prefer) (?:(?:a|the) )?(?:\w+ ){0,2}"
        rf"(?:share|part|portion|piece)(?: of)? ?:? ?{_GAIN}",
        r"(?<!\btoward )(?<!\btowards )(?<!\bmeet )"
        rf"\b(?P<who>alice|bob|me|you|i|myself|yourself) ?[:=]? ?(?:at )?{_GAIN}",
        rf"{_LABEL}{_GAIN}",
    )
]
RATIO = re.compile(r"<(?P<alice>\d+)> ?(?:/|-|:|to) ?<(?P<bob>\d+)>")
RATIO_CUE = re.compile(
    r"\b(?:propose|offer|suggest|counteroffer|counter|compromise|meet|split(?:ting)?|divid(?:e|ing)"
    r"|i (?:would )?say|take|let us|do|go|make|accept|agree|settle|would be|is fair"
    r"|my|want|prefer|like|works|is (?:fine|ok|okay|good))\b|: (?=<)"
    rf"|\b(?:{_WISHES}|keep|get|receive|have|see){_SMALL_WORDS} (?=<\d+> ?[/:])"
)
_TAKES = (
    r"(?:(?:will|would|should|must|can|could|then|still) )*"
    r"(?:has|(?:get|tak|keep|receiv|hav)(?:e|s|es|ting|ing)?)"
)
_PORTION = (
    r"(?:the |an? )?(?:(?:much|slightly|somewhat|far) )?"
    r"(?:larger|bigger|greater|better|lion's|(?P<less>smaller|lesser))"
    r" (?:share|part|portion|half|piece|slice|side|amount|sum|number|one|cut)\b"
)
_NAME = r"(?P<who>i|me|you|alice|bob)"
_FAVOURS = (
    r"in (?P<who>my|your|alice's|bob's) favou?r\b(?! to\b)",
    rf"(?:favou?r(?:s|ing)|in favou?r of) {_NAME}\b",
    rf"{_NAME} {_TAKES} {_PORTION}",
    rf"(?:giv|leav)(?:e|es|ing) {_NAME} {_PORTION}",
    rf"(?P<who>i) (?:want|need|deserve|prefer|would like) {_PORTION}",
    rf"{_PORTION}(?: (?:is|being|goes|going|should (?:be|go)|must (?:be|go)|will (?:be|go)))?"
    r"(?: (?:for|to))? (?P<who>me|you|mine|yours|alice|bob)\b",
)
FAVOURING = [
    re.compile(rf"\b{pattern}")
    for pattern in (
        *_FAVOURS,
        rf"{_NAME} {_TAKES} (?:more|(?P<less>less)) than (?:me|you|i|alice|bob)\b",
        r"(?P<who>my|your|mine|yours)(?: (?:share|part|portion))? (?:is|being|as) the"
        r" (?:larger|bigger|greater|(?P<less>smaller|lesser))\b",
    )
]
"""Who gets the larger part, whatever the order of a pair."""
_FOR_ONE = r"for (?:me|you|alice|bob|myself|yourself)"
_BEHIND = (
    r"(?:(?:and|with|where|so|so that) )?"
    rf"(?:{'|'.join(re.sub(r'[?]P<[a-z]+>', '?:', pattern) for pattern in _FAVOURS)})"
)
"""The same as it may stand right behind a pair."""
DENIED = re.compile(rf"{NEGATION.pattern}|\b(?:nobody|why)\b")
POINTING = re.compile(r"\b(?:that|this|it|which|always|already|your(?! favou?r\b))\b")
"""Of words before a pair: they are about the offer on the table."""
CUT_OFF = re.compile(
    rf"({RATIO.pattern}(?: split| division| deal)?)(?: ?,| -) (?={_BEHIND}|{_FOR_ONE}(?:[.!?,]|$))"
)
"""What says whose a pair is, behind a comma: "60/40, in my favor"."""
BARE_RATIO = re.compile(
    r"(?:(?:ok|okay|yes|sure|fine|hi|hello|hey|so|well|then|my|final|at|now|just|a|an|alice|bob"
    rf"|{CORRECTING}) )*{RATIO.pattern}"
    r"(?: (?:then|please|final|now|it is|split|division|deal|ok|okay|thanks|or nothing"
    rf"|{_FOR_ONE}|{_BEHIND}))*"
)
RATIO_OF_WHOM = re.compile(
    rf"\b(?:between|respectively)\b"
    rf"|{RATIO.pattern}(?: split| division)? {_FOR_ONE}\b"
    rf"|{_LABEL}<\d+> ?(?:/|-|:|to) ?<"
    r"|\b(?:me|you|mine|yours) first\b(?! of\b)"
)
_PARTY = r"(?:me|you|mine|yours|alice|bob|my share|your share)"
FIRST = re.compile(
    rf"\b(?P<who>{_PARTY}) ?/ ?{_PARTY}\b"
    r"|\bfirst (?:number|amount|figure|share|one) (?:is|being|for|goes to) (?:for )?"
    r"(?P<owner>me|you|mine|yours|alice|bob)\b"
)
"""Beside a pair, who comes first in it: "55/45 (me/you)"."""
GOOD_AMOUNT = re.compile(r"<\d+> (?:works|is (?:fine|ok|okay|good|acceptable)) (?:with|by|for) me")
PAID = re.compile(r"\bpay(?:s|ing)?\b")
"""Of one's own money perhaps, beside the division: "Pay me 5 and we have a deal."."""
EACH = [
    re.compile(pattern)
    for pattern in (
        r"\b(?:(?:we|us|you and i) (?:(?:should|will|can|would|could) )*(?:(?:both |each )?"
        r"(?:get|take|keep|receive|(?:walk away|end up) with)|(?:both |each )have)"
        r"|(?:both|each) of us (?:gets?|takes?|has|have|keeps?"
        rf"|receives?)|each gets?){_SMALL_WORDS} {_AMOUNT}",
        rf"\bmeet (?:halfway|half way|in the middle) at {_AMOUNT}",
        rf"{_AMOUNT} (?:for )?(?:each|apiece)"
        r"(?! (?!(?:of us|then|please|is|and|would|will|seems|sounds)\b)\w)",
    )
]
"""Both get the same."""
HALF = re.compile(
    r"(?<!\ba )(?<!\bin )(?<!\bhalf and )(?<!\bbigger )(?<!\blarger )(?<!\bbetter )(?<!\bsmaller )"
    r"\bhalf\b(?! (?:a|an|of|the|my|your|and half|hour|price)\b)"
)
_REST = (
    r"(?:rest|remainder|remaining(?: (?:sum|money|amount|<\d+>))?|(?:what is|is) left|what remains)"
)
IN_PARTS = re.compile(
    r"(?<!in )(?<!into )(?:<\d+>|\b(?:two|three|four|five|six|seven|eight|nine|ten))"
    r" (?:parts|shares|portions|pieces|slices)\b"
    rf"|\b(?:split|divid|shar|halv)(?:e|ing|ting)? (?:up )?(?:the )?{_REST}\b"
    r"|(?:\b(?:half|third|quarter|equally|evenly)|<\d+> ?[/:-] ?<\d+>)"
    rf" (?:(?:on|of|for|from) )?(?:the )?{_REST}\b"
    rf"|\b{_REST},?(?: (?:is|gets?|will|should|can|be|being|we|then|both|just|to))*"
    r" (?:split|divided|shared|halved|half|halves|evenly|equally|fifty|<\d+> ?[/:-] ?<\d+>)"
)
"""Counts of parts, or what is left divided again: what comes to whom is not said."""
MEANT_AFTER_ALL = re.compile(
    rf"(?:(?:{CORRECTING}|only|just|even|at|then) )*<\d+>(?: (?:then|please))?"
)
OF_THE_WHOLE = re.compile(r"> (?:out )?of (?:the )?(?:total |whole )?<(\d+)>")
_EVEN = (
    r"(?:(?:equally|evenly|in half|down the middle|halves)\b"
    r"|(?:equal|even|fifty[ -]fifty) (?:split|division|shares)\b|fifty[ -]fifty\b"
    r"|half (?:each|for each|and half)\b)"
)
FAIR = re.compile(r"\bfair (?:split|division|shares)\b")
EQUAL = re.compile(
    rf"\b(?:propose|offer|suggest|let us|we should|we can|we could)\b"
    rf".*(?:\b{_EVEN}|{FAIR.pattern})"
    rf"|^(?:(?:ok|so|well|then|no|just|an?|(?:we )?(?:split|divide|share|cut)(?: it| the money)?)"
    rf" )*{_EVEN}(?: (?:then|please))?$"
)
"""Said with a word of proposal, or the whole of what is said."""
EQUAL_ONE = re.compile(
    r"\b(accept|agree (?:to|with)|take|with) (?:the|your|an|this|that)"
    r" (?:equal|even|fifty[ -]fifty) (?:split|division|shares|offer|proposal)\b"
)
"""The equal split, accepted: it must be the one on the table."""
LOSS = re.compile(
    r"\b(?:costs?|costing|los(?:e|es|ing|t)|loss(?:es)?|tak(?:es?|ing)(?: away)? from|shrinks?"
    r"|shrinking|discount(?:s|ed)?|decay(?:s|ing)?|penalt(?:y|ies)|burns?|wastes?|wasting)"
    r"(?: (?!(?:gets?|takes?|keeps?|offer|propose|suggest|give|want|and|so)\b)[\w']+){0,3}"
    r" <\d+>(?: ?,? (?:and )?(?:only |just )?(?:me|you|us|alice|bob|mine|yours|my|your)(?:'s)?"
    r"(?: (?:cost|loss))?(?: is)?(?: only| just)? <\d+>(?! ?/))*"
)
"""What waiting costs, as the prompt says it: "Each round costs you 10%, Bob 5%."."""
