"""Everyday ways to put an offer, rewritten as the plain ones that the games read.

Works on plain text with marked amounts (`<0>`). A rewrite needs its amount in the same sentence,
so that "would you be willing to wait?" stays what it is, and it keeps every negation, condition
and bound for the later checks.
"""

from __future__ import annotations

import re

_AHEAD = r"(?=[^.?!]*<\d+>)"
_WILLING = (
    r"(?:be (?:willing|able|ready|open|prepared|happy|ok|okay|fine) (?:to|with) |consider |maybe "
    r"|perhaps |possibly |please |kindly )*"
)
_DOING = (
    r"(?:accept|take|do|go|come|drop|sell|buy|pay|settle|agree|raise|lower|reduce|give|let"
    r"|meet|letting|accepting|taking|doing|going|coming|selling|buying|paying|settling|dropping|lowering)\b"
)
_NAME = r"(?:me|you|alice|bob)"
_HOPED = (
    r"i (?:was|had been|had|have) (?:(?:initially|originally|really|honestly) )?(?:hoping|hoped)"
    r" (?:for|to (?:pay|receive|have|keep|get(?: it| this| the product)?(?: for)?))"
    r"(?: (?:something|a (?:bit|little)))?(?: (?:closer to|around|about|roughly))?"
    r" (?:more|less|better|<\d+>|an? (?:\w+ )?(?:discount|division|split|price|share))"
)
"""A sigh before a move: what it names is not asked for any more."""
_FIRM = (
    r" ?,? (?:and |but )?(?:no|not|not one|not (?:even )?an?)"
    r" (?:further|more|higher|lower|less|(?:single )?(?:cent|penny|dollar|buck) (?:more|less))"
    r"(?=[,.!]|$)"
)
"""Behind an amount that is meant: "I'd sell at 120, not a penny less"."""
_LEAVES = (
    r"(?:(?:i|we) (?:(?!not\b)[^\s,.?!<]+ )*?(?:john|him|outside option|elsewhere|walk|leave|out)\b"
    r"|(?:there is )?no deal\b)[^,.?!<]*(?:[.!]|$)"
)
"""What the speaker does otherwise: goes."""
_FOR_ONE = r"<\d+> (?:for|to) (?:me|you|alice|bob)"
_REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bi am (?:afraid|sorry)(?: (?:that|but))?,? (?=i\b[^.?!]*<\d+>)", ""),
        (rf"\b{_HOPED} ?, but ", ""),
        (rf"\b(?:although|though|while) {_HOPED} ?, ", ""),
        (
            r"\b(?:go ahead|proceed) with (?:the|this|my) (?:sale|purchase|deal|trade)"
            r" (?=(?:at|for) (?:<\d+>|(?:your|the) (?:asking )?price\b))",
            "buy it ",
        ),
        (
            r"(^|[.!,] )i am buying(?: it| this)?(?: from you)?"
            r" (?=(?:at|for) (?:your|the) (?:asking )?price\b)",
            r"\1i will buy it ",
        ),
        (
            r"(^|[.!,] )(?:so )?i am (?:raising|increasing|lowering|reducing) my (?:offer|bid)"
            r"(?: up| down)? to (?=<\d+>)",
            r"\1i propose ",
        ),
        (
            rf"\b(i|we) would (sell|buy|pay|take|go)((?: it)?(?: at| for| to)? <\d+>){_FIRM}",
            r"\1 will \2\3",
        ),
        (
            r"(^|[.!,] (?:but )?|\b(?:then|so|and|well|ok|okay|yes|sure) )(i|we) can (?:accept"
            r"|live with|agree to) (?=<\d+>)",
            r"\1\2 am fine with ",
        ),
        (
            r"(<\d+>[^.?!]*?)(?: ?,| -)? (?:otherwise|or else|or(?= no deal\b)),?"
            rf" (?={_LEAVES})",
            r"\1. otherwise ",
        ),
        (r"\bfrom <\d+> to (?=<\d+>)", "to "),
        (r",? ?\b(?:instead of|rather than) (?:your |the )?<\d+>", ""),
        (
            r",? and (?:no|not a|not one) (?:further|more|higher|lower|less|(?:cent|penny|dollar)"
            r" (?:more|less))\b",
            "",
        ),
        (
            r"\b(?:increase|raise|lower|reduce) what (?:i (?:give|offer) you|you get) to (?=<\d+>)",
            "i offer you ",
        ),
        (r"(<\d+>) \((?:for |to )?(me|you|alice|bob)\)", r"\1 for \2"),
        (r" ?\(([^()]*<\d+> (?:for|to) (?:me|you|alice|bob)[^()]*)\)", r", \1"),
        (
            r"\bi (?:am|will|would|can) (?:be )?(?:ready |happy |willing |prepared |glad |able )?"
            r"(?:to )?"
            r"(?:stop|sign|close|settle|finish|shake)\b[^,.?!<]* if"
            r" (?=you (?:let me (?:have|keep|take)|give me|leave me|take|keep|get|pay) <\d+>)",
            "i propose ",
        ),
        (
            r"\b(?:what|how about) if (i|you|we)"
            rf" (?:took|kept|got|had|take|keep|get|have) {_AHEAD}",
            r"i propose \1 take ",
        ),
        (rf"\b(?:what if|i (?:was|am) thinking(?: of| about)?) {_AHEAD}", "i propose "),
        (
            r"\b(propose|suggest|offer) to"
            r" (?=(?:keep|take|get|have|receive) (?:only |just )?<\d+>)",
            r"\1 i ",
        ),
        (r"\ba ?[:=] ?(<\d+>)[,/]? (?:and )?b ?[:=] ?(<\d+>)", r"\1 for alice, \2 for bob"),
        (
            r"\bhow (?:does|would|do) (?:an? )?(<\d+> ?[/:-] ?<\d+>(?: split)?"
            r"(?: in (?:my|your) favou?r)?) sound\b",
            r"i propose \1",
        ),
        (r"\b(go|come|stretch|move) up to (?=<\d+>)", r"\1 to "),
        (r"\bby <\d+> (?=to <\d+>)", ""),
        (
            r"\b(?:reduce|lower|drop|raise|increase|cut|bring) (?:your|the|my) (?:price|offer|bid)"
            r"(?: down| up)? to (?=<\d+>)",
            "i propose ",
        ),
        (rf"(?<!for me )(?<!for you )({_FOR_ONE}) (?={_FOR_ONE})", r"\1, "),
        (r"(^|[.!,] |\bso |\bjust )take (?=<\d+>)", r"\1you take "),
        (r"\bplease (?:just )?(?:take|accept) (?=<\d+>)", "you take "),
        (
            rf"(?<!\bme )(?<!\byou )(?<!\balice )(?<!\bbob )"
            rf"(<\d+>) ({_NAME}),?(?: and| ?/)? (<\d+>) (?!\2\b)({_NAME})\b",
            r"\1 for \2, \3 for \4",
        ),
        (
            r"\b(?:can|could|may|might) i (?:please |just )?(?=(?:get|have|take|keep) <\d+>)",
            "i propose i ",
        ),
        (
            r"\b(?:can|could|may|might) i (?:please |just )?(?:get|have|take|buy) (?:it|this|that"
            r"|(?:the|your) (?:product|item)) (?:for|at) (?=<\d+>)",
            "i propose ",
        ),
        (r"\b(?:can|could|may|might) i (?:please |just )?(?=offer (?:you )?<\d+>)", "i "),
        (rf"\b({_NAME}) ?[/-] ?({_NAME}) ?[:=]? ?(<\d+>) ?[/-] ?(<\d+>)", r"\3 for \1, \4 for \2"),
        (r"\bi (?:was|am) (?:hoping|looking|aiming) for (?=<\d+>)", "i want "),
        (
            rf"\b(?:would|could|can|will|do) you {_WILLING}(?:accept|accepting|agree to) {_AHEAD}",
            "i propose you take ",
        ),
        (rf"\b(?:would|could|can|will) you {_WILLING}(?={_DOING}){_AHEAD}", "i propose you "),
        (
            r"\b(?:would|could|can|will) you be (?:willing|able|ready) to consider (?=<\d+>)",
            "i propose ",
        ),
        (
            r"\bwould you (?:consider|be (?:open to|(?:ok|okay|fine|happy|good) with)) (?=<\d+>)",
            "i propose ",
        ),
        (
            r"\b(?:can|could|shall|should|may) we (?:please |maybe |perhaps |just )*"
            r"(?:agree (?:on|to|that)|settle (?:on|at|for)|say|do|go with|make it|meet at)"
            rf" {_AHEAD}",
            "i propose ",
        ),
        (rf"\bwhy (?:not|do not we) (?:just )?(?=split|divide|go|do|share){_AHEAD}", "i propose "),
        (r"\bwhy (?:not|do not we) (?:just )?(?=split|divide|share)", "i propose to "),
        (
            rf"\bwhat (?:do|would) you (?:say to|say about|think about|think of) {_AHEAD}",
            "i propose ",
        ),
        (r"\bas (?:low|high|far) as (?=<\d+>)", "to "),
        (
            r"\b(?:would|does) (<\d+>) (?:work|do|suit you|be (?:ok|okay|fine|good|acceptable"
            r"|agreeable|possible|alright|all right|fair))(?: (?:for|with|to) you)?\?",
            r"i propose \1?",
        ),
        (r"\bis (<\d+>) (?:ok|okay|fine|good|acceptable) (?:for|with|to) you\?", r"i propose \1?"),
        (
            r"\b(?:can|could|shall|should) we (?:please |just )*(?=(?:split|divide|share)\b)",
            "i propose to ",
        ),
        (r"\bhow (?:does|would|do) (<\d+>) sound\b", r"i propose \1"),
        (rf"\bhow would you feel about {_AHEAD}", "i propose "),
        (r"\bmeet me at (<\d+>)\?", r"i propose \1?"),
        (r"\bby moving (?:up |down )?to (?=<\d+>)", "at "),
        (r"\blet us (?:just )?(?:say|agree (?:on|to)) (?=[^.?!]{0,20}<\d+>)", "i propose "),
        (r"\bthe (?:whole )?(?:hundred|million|thousand)(?: dollars)?\b", "the total"),
        (
            r"(<\d+>[^.?!]*?)(?: ?,? (?:ok|okay)|(?: ?,| -) (?:deal|yes|what do you say"
            r"|sounds? (?:good|fair)|fair|all right|alright|agreed))\?",
            r"\1.",
        ),
    )
]


def plainer(marked: str) -> str:
    """`marked` with everyday phrases for an offer replaced by "i propose ..."."""
    for pattern, replacement in _REWRITES:
        marked = pattern.sub(replacement, marked)
    return marked
