"""Which decisions a text states: acceptance, rejection, the outside option, or only conditions.

Works on the plain, marked sentences of `parsing`. Only whole segments in plain first person count,
so that "I would accept 70" or "say that you accept" decide nothing.
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
_RESERVATION = re.compile(r"\b(?:but|however|although|though|only|yet|instead|or)\b")

_FILLER = (
    r"(?:(?:ok|okay|yes|yeah|yep|sure|great|fine|good|alright|all right|very well|well|thanks"
    r"|thank you|perfect|excellent|sounds good|fair enough|then|so|and|alice|bob|hello|hi) )*"
)
_READY = (
    r"(?:(?:hereby|gladly|happily|will|do|now|must|have to|shall|am (?:happy|glad|pleased) to"
    r"|therefore|also|to|am going to) )*"
)
_THING = (
    r"(?:it|this|that|these|those|(?:your|the|this|that|these|those|bob's|alice's)(?: \w+){0,2}"
    r" (?:offers?|proposal|split|deal|terms|division|price|share|shares|suggestion|counteroffer"
    r"|bid))"
)
_REST = (
    rf"(?: (?:to |with )?{_THING})?"
    r"(?: (?:of|at|for|with|and|as|because|since|now|right away|gladly|happily|<\d+>|bob|alice)"
    r"\b.*| <\d+>.*)?"
)
_ACCEPT = re.compile(
    rf"{_FILLER}(?:(?:i|we) {_READY}(?:accept|agree)(?P<rest>{_REST})|accept|accepted|agreed"
    r"|done deal|offer accepted)(?: (?:alice|bob|then|thanks|thank you))*"
)
_DEAL = re.compile(
    r"(?:(?:ok|okay|yes|fine|alright|all right|then|so) )*(?:(?:it|that) is a |"
    r"(?:you|we) have (?:got )?a )?deal(?: (?:alice|bob|then|thanks|thank you))*"
)
_REFUSAL = r"(?:(?:can|could|do|will|would|must|am) not (?:\w+ )?(?:accept|agree|take))"
_REJECT = re.compile(
    rf"{_FILLER}(?:(?:i|we) {_READY}(?:reject|decline|refuse|turn down|{_REFUSAL}){_REST}"
    rf"|no|no deal|no thanks|no thank you|rejected|reject|offer rejected"
    r"|(?:it|that|this|your (?:offer|proposal|price)) is (?:not acceptable|unacceptable))"
    r"(?: (?:alice|bob|then|thanks|thank you))*"
)
_WOULD_ACCEPT = re.compile(r"\b(?:i|we)\b.*\b(?:accept|agree|acceptable)\b")
_JOHN = re.compile(r"\b(?:john|outside option)\b")
_OUTSIDE = re.compile(
    rf"{_FILLER}(?:i|we) (?:{_READY}|prefer to |choose to |decide to |would rather )"
    r"(?:deal|trade|go|sell|buy|take|choose|use|do business|pick)\b.*"
    r"\b(?:john|outside option)\b.*|(?:deal with john|outside option)"
)


@dataclass(frozen=True)
class Decisions:
    """What a text decides: which of the moves it states, and the amounts named with them."""

    accept: bool = False
    reject: bool = False
    outside: bool = False
    conditional: bool = False
    amounts: tuple[int, ...] = ()


def decisions(parts: list[Sentence]) -> Decisions:
    """Find plain first-person acceptances, rejections and exits; questions decide nothing.

    Raises:
        IllegalMove: an acceptance with a condition or reservation attached.
    """
    accept = reject = outside = conditional = False
    amounts: list[int] = []
    for sentence in parts:
        if sentence.question:
            continue
        unsure = bool(CONDITION.search(sentence.text))
        for segment in sentence.segments:
            if accepts(segment) and not NEGATION.search(segment):
                accept = True
                outside |= bool(_JOHN.search(segment))
                conditional |= unsure
                amounts += positions(segment)
            elif _REJECT.fullmatch(segment) and not unsure:
                reject |= not re.search(r"\bnot (?:\w+ )?(?:reject|decline|refuse)", segment)
                amounts += positions(segment)
            elif _OUTSIDE.fullmatch(segment):
                refused = unsure or NEGATION.search(segment) or _RESERVATION.search(sentence.text)
                outside |= not refused
            else:
                conditional |= bool(_WOULD_ACCEPT.search(segment))
    text = " . ".join(sentence.text for sentence in parts)
    if accept and (conditional or CONDITION.search(text) or _RESERVATION.search(text)):
        raise IllegalMove("conditional", 'Accept without conditions by saying only: "I accept."')
    return Decisions(accept, reject, outside, conditional, tuple(amounts))


def accepts(segment: str) -> bool:
    """Whether a segment is worded as an acceptance, conditions and negations aside."""
    return bool(_ACCEPT.fullmatch(segment) or _DEAL.fullmatch(segment))


# --- whose amounts count as an offer --------------------------------------------------------------

REFERENCE = re.compile(
    r"\b(?:your|his|her|previous|earlier|that|this|bob's|alice's) (?:\w+ ){0,2}"
    r"(?:offer|proposal|split|suggestion|demand|price|bid|counteroffer)\b"
    r"|\b(?:offered|proposed|suggested|asked|demanded|wanted|gave|said)\b"
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
_PROPOSES = re.compile(r"\b(?:propose|offer|suggest)\b")


def doubt(sentence: Sentence, segment: str) -> str | None:
    """Why the amounts in a segment are not offered, as the kind of an `IllegalMove`; None if none.

    Bounds, negations, complaints and questions ("60 for you?") make an offer unclear; a condition
    anywhere in the sentence makes it conditional.
    """
    if CONDITION.search(sentence.text):
        return "conditional"
    asked = sentence.question and not _PROPOSES.search(segment)
    return "unclear_offer" if asked or _UNCLEAR.search(segment) else None
