"""Which decisions a text states: acceptance, rejection, the outside option, or only conditions.

Works on the plain, marked sentences of `parsing`. Only whole segments in plain first person count,
so that "I would accept 70" or "say that you accept" decide nothing. After "I accept" only the
offer, its amounts and thanks may follow in the segment: any other word may take it back. In the
rest of the text conditions and reservations do, and in what follows an objection, a demand, a
limit or a change of mind. "I agree" by itself may agree with anything: only courtesies and amounts
may follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from aria_dvc.games import decision_patterns as patterns
from aria_dvc.games.amounts import positions
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.doubts import CONDITION, SPELLED
from aria_dvc.games.parsing import Sentence

_NO_CONDITIONS = 'Accept without conditions by saying only: "I accept."'


@dataclass(frozen=True)
class Decisions:
    """What a text decides: which of the moves it states, and the amounts named with them.

    unpaid: what it rejects is to pay something, perhaps another amount.
    conditional: it talks about accepting without doing it.
    hinted: words like "agreed" stand where they decide nothing, beside an offer perhaps.
    agrees: a plain "deal" or "agreed" among them: "Deal, I take the 40."
    approves: it calls an amount good: "$130 sounds good".
    earlier: whose earlier offer is accepted ("your first offer"): "your", "the", ...; or "".
    amounts: positions of those named in the acceptance itself.
    bare: the acceptance is no more than "I agree".
    before, after: the other segments of the sentence that accepts.
    """

    accept: bool = False
    reject: bool = False
    unpaid: bool = False
    outside: bool = False
    conditional: bool = False
    hinted: bool = False
    agrees: bool = False
    approves: bool = False
    earlier: str = ""
    amounts: tuple[int, ...] = ()
    bare: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def decisions(parts: list[Sentence]) -> Decisions:
    """Find plain first-person acceptances, rejections and exits; questions decide nothing.

    Raises:
        IllegalMove: an acceptance with a condition, a reservation, a rejection, a proposal or a
            spelled-out number beside it.
    """
    parts = [replace(part, text=_without_sighs(part.text)) for part in parts]
    text = " . ".join(sentence.text for sentence in parts)
    found = [_decided(sentence, text) for sentence in parts]
    total = Decisions(
        accept=any(one.accept for one in found),
        reject=any(one.reject for one in found),
        unpaid=any(one.unpaid for one in found),
        outside=_leaves(found, parts),
        conditional=any(one.conditional for one in found),
        hinted=any(one.hinted for one in found),
        agrees=any(one.agrees for one in found),
        approves=any(one.approves for one in found),
        earlier=next((one.earlier for one in found if one.earlier), ""),
        amounts=tuple(amount for one in found for amount in one.amounts),
    )
    if not total.accept:
        return total
    if patterns.REJECTING.search(text) or total.reject:
        raise IllegalMove("contradiction", "Either accept or reject, not both.")
    last = max(i for i, one in enumerate(found) if one.accept)
    reserved = CONDITION.search(text) or _reserved(parts, last)
    limited = any(patterns.LIMIT.search(part.text) for part in parts[last:])
    undone = total.conditional or reserved or limited or _undone(found[last], parts[last + 1 :])
    if patterns.GOES_ON.search(text) or SPELLED.search(text):
        raise IllegalMove("accept_and_offer", 'To accept, say only: "I accept."')
    if undone:
        raise IllegalMove("conditional", _NO_CONDITIONS)
    later = [*found[last].after, *(part.text for part in parts[last + 1 :])]
    named = (i for said in later if patterns.AFTERTHOUGHT.fullmatch(said) for i in positions(said))
    return replace(total, amounts=(*total.amounts, *named))


def _without_sighs(text: str) -> str:
    """A sentence without what sounds like an objection and is none."""
    conceded = patterns.CONCEDED.match(text)
    if conceded and _only_sighs(conceded["sigh"]):
        text = text[conceded.end() :]
    return patterns.NO_OBJECTION.sub(
        "", patterns.CONCESSION.sub("", patterns.GRUMBLE.sub("", text))
    ).lstrip(", ")


def _only_sighs(said: str) -> bool:
    """Whether the words before "but" neither decide, ask, doubt nor object."""
    serious = (
        CONDITION,
        patterns.DOUBT,
        patterns.ASKS,
        patterns.SPEECH,
        patterns.REJECTING,
        patterns.OBJECTS,
        patterns.COMMAND,
        patterns.JOHN,
    )
    decides = any(map(patterns.APPROVE.fullmatch, Sentence(said, question=False).segments))
    return not decides and not any(pattern.search(said) for pattern in serious)


def _leaves(found: list[Decisions], parts: list[Sentence]) -> bool:
    """Whether the outside option is taken, and the last such word not taken back."""
    last = max((i for i, one in enumerate(found) if one.outside), default=None)
    if last is None:
        return False
    said = [*found[last].after, *(part.text for part in parts[last + 1 :])]
    return not any(
        pattern.search(one) for pattern in (patterns.NOT_MEANT, patterns.LIMIT) for one in said
    )


def _reserved(parts: list[Sentence], last: int) -> bool:
    """Whether the sentence `last`, which accepts, or one beside it has a reservation.

    A sigh before it may have one that asks for nothing: "I had hoped for more, but time is short.".
    """
    before = [
        part.text for part in parts[:last] if "<" in part.text or patterns.ASKS.search(part.text)
    ]
    said = [*before, *(part.text for part in parts[last:])]
    return any(map(patterns.RESERVATION.search, said))


def _undone(accepting: Decisions, later: list[Sentence]) -> bool:
    """Whether what stands beside an acceptance takes it back or puts a condition on it."""
    after = [*accepting.after, *(segment for part in later for segment in part.segments)]
    if any(map(patterns.CLAUSE.match, accepting.after)):
        return True
    if any(map(patterns.COMMAND.search, (*accepting.before, *after))):
        return True
    if accepting.bare and any(map(patterns.OBJECTS.search, accepting.before)):
        return True
    if accepting.bare and not all(map(patterns.COURTESY.fullmatch, after)):
        return True
    further = [part.text for part in later]
    if any(map(patterns.TERMS.search, (*accepting.before, *accepting.after))):
        return True
    if any(map(patterns.LATER_TERMS.match, further)):
        return True
    said = [*after, *further]
    return any(
        pattern.search(one) for pattern in (patterns.UNDONE, patterns.OBJECTS) for one in said
    )


def check_earlier(whose: str, made: int) -> None:
    """Whether an earlier offer, `whose` "your" or "the", may be accepted after `made` offers.

    Raises:
        IllegalMove: it is not the standing one.
    """
    if whose and made > (2 if whose in patterns.RIVALS else 1):
        hint = 'Only the last offer stands: say "I accept." to take it, or make another.'
        raise IllegalMove("earlier_offer", hint)


def takes_standing(decided: Decisions, parts: list[Sentence], first: int, same: bool) -> bool:
    """Whether what looks like an offer repeats the standing one in words of agreement.

    first: of the sentence that makes the offer. same: whether it is of the standing amount.

    Raises:
        IllegalMove: words of agreement with another offer, or taken back.
    """
    parts = [replace(part, text=_without_sighs(part.text)) for part in parts]
    said = " . ".join(part.text for part in parts)
    assents = _assents(parts, first) and not patterns.GOES_ON.search(said)
    takes = patterns.TAKES_STANDING.search(said) or patterns.ONLY_TAKES.fullmatch(said)
    agrees = decided.agrees or decided.approves or assents or takes
    if same and agrees and not (decided.reject or decided.outside):
        if decided.conditional or CONDITION.search(said) or _takes_back(parts[first:]):
            raise IllegalMove("conditional", _NO_CONDITIONS)
        if not any(pattern.search(said) for pattern in patterns.TAKEN_BACK):
            return True
    if decided.hinted or decided.agrees:
        raise IllegalMove("accept_and_offer", "Either accept the last offer or make another.")
    return False


def _assents(parts: list[Sentence], first: int) -> bool:
    """Whether a word of agreement opens the sentence, or is the one before: "Fine. 100."."""
    before = parts[first - 1 : first]
    alone = before and not before[0].question and patterns.ONLY_ASSENT.fullmatch(before[0].text)
    return bool(alone or patterns.ASSENT.match(parts[first].text))


def _takes_back(parts: list[Sentence]) -> bool:
    """Whether an offer in the first sentence is limited, or what follows it takes it back."""
    opening, *later = parts
    behind = Sentence(opening.text.rpartition("<")[2], question=False).segments[1:]
    said = [*behind, *(segment for part in later for segment in part.segments)]
    limited = any(patterns.LIMIT.search(part.text) for part in parts)
    return limited or any(
        pattern.search(one)
        for pattern in (patterns.COMMAND, patterns.TERMS, patterns.UNDONE, patterns.OBJECTS)
        for one in said
    )


def _decided(sentence: Sentence, text: str) -> Decisions:
    """What one sentence of `text` decides."""
    if sentence.question:
        return Decisions()
    alone = sentence.text == text and patterns.ONLY_ACCEPT.fullmatch(text)
    trades = "<" not in text and patterns.TRADE.fullmatch(sentence.text)
    if patterns.SHORT_ACCEPT.fullmatch(sentence.text) or alone or trades:
        bare = any(map(patterns.BARE.fullmatch, sentence.segments))
        named, earlier = tuple(positions(sentence.text)), _earlier(sentence.text)
        return Decisions(accept=True, earlier=earlier, amounts=named, bare=bare)
    if patterns.ONLY_OUTSIDE.fullmatch(sentence.text):
        return Decisions(outside=True)
    return _by_segments(sentence)


def _earlier(said: str) -> str:
    """Whose earlier offer is named: "your", "the", ...; or ""."""
    found = patterns.EARLIER.search(said)
    return found["whose"] if found else ""


def _by_segments(sentence: Sentence) -> Decisions:
    """What the segments of a statement decide."""
    accept = reject = outside = conditional = hinted = agrees = approves = contrary = False
    earlier = ""
    amounts: list[int] = []
    quoted = bool(patterns.SPEECH.search(sentence.text))
    sure = not quoted and not CONDITION.search(sentence.text)
    doubted = quoted or bool(patterns.DOUBT.search(sentence.text))
    segments, last = sentence.segments, 0
    for i, segment in enumerate(segments):
        accepts = patterns.ACCEPT.fullmatch(segment) or patterns.APPROVE.fullmatch(segment)
        approved = bool(patterns.APPROVED.fullmatch(segment))
        approves |= approved
        if accepts and not doubted:
            accept, last = True, i
            earlier = _earlier(segment) or earlier
            outside |= bool(patterns.JOHN.search(segment))
            amounts += positions(segment)
        elif (patterns.REJECT.fullmatch(segment) or sentence.text == "never") and sure:
            reject |= not re.search(r"\bnot (?:\w+ )?(?:reject|decline|refuse)", segment)
        elif patterns.OUTSIDE.fullmatch(segment):
            outside |= sure and not patterns.ALTERNATIVE.search(sentence.text)
            last = i if outside and not accept else last
        else:
            contrary |= bool(accepts or patterns.SHORT_ACCEPT.fullmatch(segment))
            conditional |= not approved and bool(patterns.WOULD_ACCEPT.search(segment))
            hinted |= bool(re.search(r"\b(?:agreed|accepted)\b", segment))
            agrees |= bool(patterns.SHORT_ACCEPT.fullmatch(segment))
            hinted |= sure and bool(patterns.I_ACCEPT.search(segment))
    if reject and contrary:
        raise IllegalMove("contradiction", "Either accept or reject, not both.")
    unpaid = reject and bool(patterns.NOT_PAID.search(sentence.text))
    stated = Decisions(
        *(accept, reject, unpaid, outside, conditional, hinted, agrees, approves, earlier),
        tuple(amounts),
    )
    if not (accept or outside):
        return stated
    before, (accepting, *after) = segments[:last], segments[last:]
    bare = bool(patterns.BARE.fullmatch(accepting))
    return replace(stated, bare=bare, before=tuple(before), after=tuple(after))
