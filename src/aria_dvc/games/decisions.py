"""Which decisions a text states: acceptance, rejection, the outside option, or only conditions.

Works on the plain, marked sentences of `parsing`. Only whole segments in plain first person count,
so that "I would accept 70" or "say that you accept" decide nothing. After "I accept" only the
offer, its amounts and thanks may follow: any other word may take it back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from aria_dvc.games.base import IllegalMove
from aria_dvc.games.parsing import Sentence, positions

CONDITION = re.compile(
    r"\b(?:if|unless|provided|providing|otherwise|as long as|on condition|assuming|suppose"
    r"|imagine|pretend|hypothetically|example|once|when|until|except|maybe|perhaps)\b"
)
NEGATION = re.compile(r"\b(?:not|never|no|neither|nor|without)\b")
_DOUBT = re.compile(rf"{NEGATION.pattern}|\b(?:doubt|doubts|hardly)\b")
_SPEECH = re.compile(
    r"\b(?:say|says|said|saying|repeat|repeats|tell|tells|told|write|writes|wrote|type|quotation)\b"
)
_RESERVATION = re.compile(r"\b(?:but|however|although|though|only|yet|instead|or|for now)\b")
_GOES_ON = re.compile(r"(?<!\byou )\b(?:let us|propose|suggest|continue|negotiate)\b")
_ALTERNATIVE = re.compile(r"\b(?:but|however|although|though|yet|or|rather than)\b")

_LIGHT = "ok|okay|yes|yeah|yep|fine|alright|all right|then|so|and|well"
_PRAISE = "sure|great|good|very well|thanks|thank you|perfect|excellent|sounds good|fair enough"
_FILLER = rf"(?:(?:{_LIGHT}|{_PRAISE}|alice|bob|hello|hi) )*"
_CLOSING = r"(?:,? (?:alice|bob|then|thanks|thank you))*"
_READY = (
    r"(?:(?:hereby|gladly|happily|will|do|now|must|have to|shall|am (?:happy|glad|pleased) to"
    r"|therefore|also|to|am going to) )*"
)
_THING = (
    r"(?:it|this|that|these|those|(?:your|the|this|that|these|those|bob's|alice's)(?: \w+){0,2}"
    r" (?:offers?|proposal|split|deal|terms|division|price|share|shares|suggestion|counteroffer"
    r"|bid))"
)
_NAMED = (
    r"(?:(?= .*<\d+>)(?: (?:<\d+>|[/-]|of|at|for|with|to|on|and|a|the|total|price|share|split"
    r"|points|(?:for|to) (?:me|you|alice|bob)|(?:that )?(?:i|you|alice|bob) (?:will )?"
    r"(?:gets?|receives?|takes?|keeps?|have|has)))+)?"
)
"""The amounts of an offer, in words that can say nothing else."""
_MANNER = (
    r"(?: (?:now|right away|gladly|happily|too|with (?:pleasure|thanks)|and (?:thanks|thank you)))?"
)
_TO_THING = rf"(?: (?:to |with )?{_THING})?"
_I_ACCEPT = re.compile(rf"\b(?:i|we) {_READY}accept\b")
_ACCEPT = re.compile(
    rf"{_FILLER}(?:i|we) {_READY}(?:accept|agree){_TO_THING}{_NAMED}{_MANNER}{_CLOSING}"
)
_SHORT = rf"(?:(?:{_LIGHT}),? |(?:{_PRAISE}), )*"
_SHORT_ACCEPT = re.compile(
    rf"{_SHORT}(?:accepted|agreed|done deal|offer accepted"
    rf"|(?:(?:it|that) is a |(?:you|we) have (?:got )?a )?deal){_CLOSING}"
)
"""Said of a whole sentence only: "a great deal of money" and "come on, deal" accept nothing."""
_ONLY_ACCEPT = re.compile(rf"{_SHORT}accept{_CLOSING}")
"""Said of the whole text only: after another sentence it may be a plea to the other side."""
_REFUSAL = r"(?:(?:can|could|do|will|would|must|am) not (?:\w+ )?(?:accept|agree|take))"
_REJECT = re.compile(
    rf"{_FILLER}(?:(?:i|we) {_READY}(?:reject|decline|refuse|turn down|{_REFUSAL}){_TO_THING}"
    r"(?: (?:of|at|for|with|and|as|because|since|now|right away|gladly|happily|alice|bob)\b.*"
    r"| <\d+>.*)?"
    r"|no|no way|no deal|no thanks|no thank you|rejected|reject|offer rejected"
    r"|(?:it|that|this|your (?:offer|proposal|price)) is (?:not acceptable|unacceptable))"
    rf"{_CLOSING}"
)
_REJECTING = re.compile(r"\b(?:reject|rejected|decline|refuse|turn down|no deal|unacceptable)\b")
_WOULD_ACCEPT = re.compile(r"\b(?:i|we)\b.*\b(?:accept|agree|acceptable)\b")
_JOHN = re.compile(r"\b(?:john|outside)\b")
_LEAVING = rf"(?:i|we) (?:{_READY}|prefer to |choose to |decide to |would rather )"
_OUTSIDE = re.compile(
    rf"{_FILLER}(?:{_LEAVING}(?:deal|trade|go|sell|buy|do business)"
    r"(?: (?:it|this|the product|my product))? (?:to|with|from) john"
    rf"|{_LEAVING}(?:take|choose|use|pick) (?:the |my )?(?:outside option|john's (?:deal|offer))"
    r"|deal with john|outside option)(?: (?:then|now|instead|again))*"
)


@dataclass(frozen=True)
class Decisions:
    """What a text decides: which of the moves it states, and the amounts named with them.

    conditional: it talks about accepting without doing it.
    hinted: words like "agreed" stand where they decide nothing, beside an offer perhaps.
    amounts: positions of those named in the acceptance itself.
    """

    accept: bool = False
    reject: bool = False
    outside: bool = False
    conditional: bool = False
    hinted: bool = False
    amounts: tuple[int, ...] = ()


def decisions(parts: list[Sentence]) -> Decisions:
    """Find plain first-person acceptances, rejections and exits; questions decide nothing.

    Raises:
        IllegalMove: an acceptance with a condition, a reservation, a rejection, a proposal or a
            spelled-out number beside it.
    """
    found = [_decided(sentence, alone=len(parts) == 1) for sentence in parts]
    total = Decisions(
        accept=any(one.accept for one in found),
        reject=any(one.reject for one in found),
        outside=any(one.outside for one in found),
        conditional=any(one.conditional for one in found),
        hinted=any(one.hinted for one in found),
        amounts=tuple(amount for one in found for amount in one.amounts),
    )
    text = " . ".join(sentence.text for sentence in parts)
    if total.accept and (_REJECTING.search(text) or total.reject):
        raise IllegalMove("contradiction", "Either accept or reject, not both.")
    if total.accept and (total.conditional or CONDITION.search(text) or _RESERVATION.search(text)):
        raise IllegalMove("conditional", 'Accept without conditions by saying only: "I accept."')
    if total.accept and (_GOES_ON.search(text) or SPELLED.search(text)):
        raise IllegalMove("accept_and_offer", 'To accept, say only: "I accept."')
    return total


def _decided(sentence: Sentence, alone: bool) -> Decisions:
    """What one sentence decides; `alone` when it is the whole text."""
    if sentence.question:
        return Decisions()
    if _SHORT_ACCEPT.fullmatch(sentence.text) or (alone and _ONLY_ACCEPT.fullmatch(sentence.text)):
        return Decisions(accept=True)
    accept = reject = outside = conditional = hinted = False
    amounts: list[int] = []
    quoted = bool(_SPEECH.search(sentence.text))
    sure = not quoted and not CONDITION.search(sentence.text)
    doubted = quoted or bool(_DOUBT.search(sentence.text))
    for segment in sentence.segments:
        if _ACCEPT.fullmatch(segment) and not doubted:
            accept = True
            outside |= bool(_JOHN.search(segment))
            amounts += positions(segment)
        elif _REJECT.fullmatch(segment) and sure:
            reject |= not re.search(r"\bnot (?:\w+ )?(?:reject|decline|refuse)", segment)
        elif _OUTSIDE.fullmatch(segment):
            outside |= sure and not _ALTERNATIVE.search(sentence.text)
        else:
            conditional |= bool(_WOULD_ACCEPT.search(segment))
            hinted |= bool(re.search(r"\b(?:agreed|accepted)\b", segment))
            hinted |= sure and bool(_I_ACCEPT.search(segment))
    return Decisions(accept, reject, outside, conditional, hinted, tuple(amounts))


# --- whose amounts count as an offer --------------------------------------------------------------

REFERENCE = re.compile(
    r"\b(?:your|his|her|previous|earlier|that|this|bob's|alice's) (?:\w+ ){0,2}"
    r"(?:offer|proposal|split|suggestion|demand|price|bid|counteroffer)\b"
    r"|\b(?:offered|proposed|suggested|asked|demanded|wanted|gave|said|was|were|had)\b"
    r"|\byou (?:\w+ )?(?:offer|propose|suggest|ask|demand|want|say|think)\b"
    r"|\b(?:reject|decline|refuse|turn down|accept|agree|would have)\b"
)
"""A segment that talks about an earlier offer or decides on it; its amounts offer nothing."""
_UNCLEAR = re.compile(
    r"\b(?:at least|at most|more than|less than|minimum|maximum|around|about|roughly"
    r"|approximately|between|up to|or more|or less|over|under|below|above|nearly|almost"
    r"|not|never|no|neither|nor|without|why|unfair|unacceptable|unreasonable|ridiculous|absurd"
    r"|insult|insulting|wrong|greedy|hate|dislike|too (?:low|high|little|much|small|few))\b"
)
SPELLED = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty"
    r"|(?<!fifty[ -])fifty(?![ -]fifty)|sixty|seventy|eighty|ninety|hundred|thousand|million"
    r"|a half|dozen)\b"
)
"""A number in words: it may be the amount that is meant, and no amount is read from it."""
_COUNTED = re.compile(
    r"<\d+>(?! ?(?:$|[-,.:)(/$€£]|(?:for|to|of|out of|from|with|and|or|as|since|is|it|will|would"
    r"|goes|going|while|leaving|giving|please|then|now|too|only|instead|final|flat|(?:in )?total"
    r"|points|alice|bob|i|you|me|my|mine|your|yours)\b))"
)
"""An amount with a noun or a sum after it, "5 minutes" or "30 + 30": perhaps no money."""
_PROPOSES = re.compile(r"\b(?:propose|offer|suggest)\b")


def doubt(sentence: Sentence, segment: str) -> str | None:
    """Why the amounts in a segment are not offered, as the kind of an `IllegalMove`; None if none.

    Bounds, negations, complaints, counts of other things and questions ("60 for you?") make an
    offer unclear; a condition anywhere in the sentence makes it conditional.
    """
    if CONDITION.search(sentence.text):
        return "conditional"
    asked = sentence.question and not _PROPOSES.search(segment)
    unclear = asked or _UNCLEAR.search(segment) or _COUNTED.search(segment)
    return "unclear_offer" if unclear else None
