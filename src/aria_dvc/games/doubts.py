"""Why an amount in a text is not offered: bounds, conditions, steps, talk of other offers.

Asked of one segment of a sentence at a time; a question and a condition are those of its whole
sentence (see `reading` for all scopes).
"""

from __future__ import annotations

import re

from aria_dvc.games.parsing import Sentence

CONDITION = re.compile(
    r"\b(?:if|unless|provided|providing|otherwise|as long as|on condition|assuming|suppose"
    r"|imagine|pretend|hypothetically|example|once(?! (?:more|again)\b)|when|until|except|maybe"
    r"|perhaps)\b"
)
NEGATION = re.compile(r"\b(?:not|never|no|neither|nor|without)\b")
REFERENCE = re.compile(
    r"\b(?:your|his|her|previous|earlier|that|this|bob's|alice's) (?:\w+ ){0,2}"
    r"(?:offer|proposal|split|suggestion|demand|price|bid|counteroffer)\b"
    r"|\b(?:offered|proposed|suggested|asked|demanded|wanted|gave|said|was|were|had)\b"
    r"|\byou (?:\w+ )?(?:offer|propose|suggest|ask|demand|want|say|think)\b"
    r"|\byou are (?:\w+ )?(?:offering|proposing|suggesting|asking|demanding|giving|leaving)\b"
    r"|(?:^(?:so |and )?(?:that|this|it)|\b(?:the|this|that) (?:deal|trade)) (?:\w+ )?"
    r"(?:gives|leaves|gets|earns|nets|brings|makes|means)\b"
    r"|\b(?:reject|decline|refuse|turn down|accept|agree|would have)\b"
)
"""A segment that talks about an earlier offer or decides on it; its amounts offer nothing."""
OBJECTION = (
    r"unfair|unacceptable|unreasonable|ridiculous|absurd"
    r"|insult|insulting|wrong|greedy|hate|dislike|hesitant|reluctant|unwilling|unable|afraid"
    r"|hesitate"
    r"|too (?:low|high|little|much|small|few|steep|expensive)"
)
_PROTEST = rf"not|never|no|neither|nor|{OBJECTION}"
PROTEST = re.compile(rf"\b(?:{_PROTEST}|reject|rejected|decline|refuse|why)\b|^so\b")
_UNCLEAR = re.compile(
    r"\b(?:at least|at most|more than|less than|minimum|maximum|around|about|roughly"
    r"|approximately|between|up to|or more|or less|or so|give or take|over|under"
    rf"|below|above|nearly|almost|without|why|{_PROTEST})\b"
    r"|> (?:works|(?:is|sounds) \w+) (?:for|with|by|to) (?:you|him|her|them|john|others)\b"
)
_MAD = r"(?:crazy|insane|mad|madness|insanity|stupid|foolish|silly|nuts|an? (?:fool|idiot|mistake))"
_ABSURD = re.compile(
    rf"\b(?:would|will|must) be (?:\w+ )?{_MAD}\b|\b{_MAD} (?:enough )?(?:to|if)\b|\bonly {_MAD}\b"
    rf"|ing (?:\w+ )?<\d+> (?:\w+ ){{0,2}}(?:is|seems) (?:\w+ )?{_MAD}\b"
    r"|\b(?:nobody|hardly|in your dreams|who (?:would|could|will|gives|offers|pays))\b[^<]* <"
)
"""What no one would do: "I would be crazy to offer 105", "Nobody pays 105"."""
CORRECTING = (
    r"(?:or|rather|actually|i mean|i meant|sorry|oops|no|wait|better|make (?:it|that)"
    r"|correction:?|let me correct (?:that|it|myself):?)"
)
"""Before the amount that is meant after all: "60... I mean 55", "60, or rather 55"."""
SPELLED = re.compile(
    r"\b(?:(?:two|three|four|five|six|seven|eight|nine|ten)"
    r"(?! (?!(?:hundred|thousand|million|dollars?|bucks|percent|for|to|and|or|of|is|then|please"
    r"|more|less|instead|would|will|it|in|at|on)\b)[a-z])"
    r"|eleven|twelve|\w+teen|twenty|thirty|forty"
    r"|(?<!fifty[ -])fifty(?![ -]fifty)|sixty|seventy|eighty|ninety|hundred|thousand|million"
    r"|a half|dozen)\b"
    r"(?! (?:more )?(?:minutes?|hours?|days?|weeks?|months?|years?|rounds?|turns?|times|offers?"
    r"|reasons?|people|of us|sides|parties)\b)"
)
"""A number in words: it may be the amount that is meant, and no amount is read from it. "Three
kids" and "ten minutes" are none."""
_COUNTED = re.compile(
    r"<\d+>(?! ?(?:$|[-,.:)(/$€£]|(?:for|to|of(?! them\b)|out of|from|with|and|or|as|since|is|it"
    r"|will|would|go|goes|going|while|leaving|giving|please|then|now|too|ok|okay|only|instead"
    r"|final|flat|even"
    r"|left|sorry|sry|bro|man|mate|pal|dude|buddy|tho|though"
    r"|(?:in )?total|(?:in )?cash|today|right (?:now|away)"
    r"|on (?:my side|your side|mine|yours|the table)|in (?:my|your|alice's|bob's) favou?r"
    r"|each|apiece|split"
    r"|in favou?r of|favou?ring|(?:the )?(?:larger|bigger|greater|smaller|lesser)"
    r"|division|works|sounds|seems|looks|because|so|but|though|thanks|points"
    r"|alice|bob|i|you|me|my|mine|your|yours)\b))"
)
"""An amount with a noun or a sum after it, "5 minutes" or "30 + 30": perhaps no money."""
_STEP = re.compile(
    r"\b(?:by|another|extra|additional|further|plus|minus) <\d+>"
    r"|\b(?:discount|reduction|raise|increase|decrease|rebate|concession|cut|bonus|surcharge) of"
    r" (?:just |only )?<\d+>"
    r"|\b(?:add|cut|drop|knock|lower|raise|reduce|shave|decrease|increase|subtract|deduct|sweeten"
    r"|throw in|take off|(?:go|come|move) (?:down|up))"
    r"(?: (?!to\b|at\b|for\b|that\b|and\b|so\b|is\b|offer\b|pay\b)[\w']+){0,3} <\d+>"
    r"|\b(?:half|third|quarter|part|double|twice|times) (?:of )?(?:the )?<\d+>"
)
"""A change by an amount, or a part of one: what it comes to is not said."""
_EXTRA = re.compile(r"\b(?:plus|minus|extra|additional|bonus)\b")
"""Something on top, which holds for its whole sentence: "60/40, plus 5 for me"."""
_LATER = re.compile(
    r"\bnext (?:round|time|turn)\b|\b(?:by|while) waiting\b|\blater\b"
    r"|\bafter (?:the |a |one |this |another )?(?:discount|delay|loss|next|losses)\b"
)
"""What a later round would bring."""
_PROPOSES = re.compile(r"\b(?:propose|offer|suggest)\b")


def doubt(sentence: Sentence, segment: str, bare: bool = False) -> str | None:
    """Why the amounts in a segment are not offered, as the kind of an `IllegalMove`; None if none.

    Bounds, negations, complaints, steps, counts of other things and questions ("60 for you?") make
    an offer unclear; a condition anywhere in the sentence makes it conditional. A `bare` offer is
    nothing but its amounts and may be asked: "120?".
    """
    if CONDITION.search(sentence.text):
        return "conditional"
    if _EXTRA.search(sentence.text):
        return "unclear_offer"
    asked = sentence.question and not bare and not _PROPOSES.search(segment)
    patterns = (_UNCLEAR, _ABSURD, _COUNTED, _STEP, _LATER)
    unclear = asked or any(pattern.search(segment) for pattern in patterns)
    return "unclear_offer" if unclear else None
