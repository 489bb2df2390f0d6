"""How a division of money is read from free text: who gets what, said once and clearly."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from aria_dvc.games import parsing
from aria_dvc.games.alternating import ROLES, Move, number_text, other
from aria_dvc.games.amounts import MAX_DECIMALS, Amount, mark_amounts, positions
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.colloquial import plainer
from aria_dvc.games.decision_patterns import APPROVED
from aria_dvc.games.decisions import decisions
from aria_dvc.games.doubts import CORRECTING, NEGATION, REFERENCE, doubt
from aria_dvc.games.parsing import Sentence
from aria_dvc.games.reading import Hints, Offered, Reader, Text, json_offer

REMEMBERED = 8192  # texts whose meaning is kept: scripted and small models repeat themselves
_SELF = {"i", "me", "my", "mine", "myself"}
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
_BINDINGS = [
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
_RATIO = re.compile(r"<(?P<alice>\d+)> ?(?:/|-|:|to) ?<(?P<bob>\d+)>")
_RATIO_CUE = re.compile(
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
_FAVOURING = [
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
_DENIED = re.compile(rf"{NEGATION.pattern}|\b(?:nobody|why)\b")
_POINTING = re.compile(r"\b(?:that|this|it|which|always|already|your(?! favou?r\b))\b")
"""Of words before a pair: they are about the offer on the table."""
_CUT_OFF = re.compile(
    rf"({_RATIO.pattern}(?: split| division| deal)?)(?: ?,| -) (?={_BEHIND}|{_FOR_ONE}(?:[.!?,]|$))"
)
"""What says whose a pair is, behind a comma: "60/40, in my favor"."""
_BARE_RATIO = re.compile(
    r"(?:(?:ok|okay|yes|sure|fine|hi|hello|hey|so|well|then|my|final|at|now|just|a|an|alice|bob"
    rf"|{CORRECTING}) )*{_RATIO.pattern}"
    r"(?: (?:then|please|final|now|it is|split|division|deal|ok|okay|thanks|or nothing"
    rf"|{_FOR_ONE}|{_BEHIND}))*"
)
_RATIO_OF_WHOM = re.compile(
    rf"\b(?:between|respectively)\b"
    rf"|{_RATIO.pattern}(?: split| division)? {_FOR_ONE}\b"
    rf"|{_LABEL}<\d+> ?(?:/|-|:|to) ?<"
    r"|\b(?:me|you|mine|yours) first\b(?! of\b)"
)
_PARTY = r"(?:me|you|mine|yours|alice|bob|my share|your share)"
_FIRST = re.compile(
    rf"\b(?P<who>{_PARTY}) ?/ ?{_PARTY}\b"
    r"|\bfirst (?:number|amount|figure|share|one) (?:is|being|for|goes to) (?:for )?"
    r"(?P<owner>me|you|mine|yours|alice|bob)\b"
)
"""Beside a pair, who comes first in it: "55/45 (me/you)"."""
_GOOD_AMOUNT = re.compile(r"<\d+> (?:works|is (?:fine|ok|okay|good|acceptable)) (?:with|by|for) me")
_PAID = re.compile(r"\bpay(?:s|ing)?\b")
"""Of one's own money perhaps, beside the division: "Pay me 5 and we have a deal."."""
_EACH = [
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
_HALF = re.compile(
    r"(?<!\ba )(?<!\bin )(?<!\bhalf and )(?<!\bbigger )(?<!\blarger )(?<!\bbetter )(?<!\bsmaller )"
    r"\bhalf\b(?! (?:a|an|of|the|my|your|and half|hour|price)\b)"
)
_REST = (
    r"(?:rest|remainder|remaining(?: (?:sum|money|amount|<\d+>))?|(?:what is|is) left|what remains)"
)
_IN_PARTS = re.compile(
    r"(?<!in )(?<!into )(?:<\d+>|\b(?:two|three|four|five|six|seven|eight|nine|ten))"
    r" (?:parts|shares|portions|pieces|slices)\b"
    rf"|\b(?:split|divid|shar|halv)(?:e|ing|ting)? (?:up )?(?:the )?{_REST}\b"
    r"|(?:\b(?:half|third|quarter|equally|evenly)|<\d+> ?[/:-] ?<\d+>)"
    rf" (?:(?:on|of|for|from) )?(?:the )?{_REST}\b"
    rf"|\b{_REST},?(?: (?:is|gets?|will|should|can|be|being|we|then|both|just|to))*"
    r" (?:split|divided|shared|halved|half|halves|evenly|equally|fifty|<\d+> ?[/:-] ?<\d+>)"
)
"""Counts of parts, or what is left divided again: what comes to whom is not said."""
_MEANT_AFTER_ALL = re.compile(
    rf"(?:(?:{CORRECTING}|only|just|even|at|then) )*<\d+>(?: (?:then|please))?"
)
_OF_THE_WHOLE = re.compile(r"> (?:out )?of (?:the )?(?:total |whole )?<(\d+)>")
_EVEN = (
    r"(?:(?:equally|evenly|in half|down the middle|halves)\b"
    r"|(?:equal|even|fifty[ -]fifty) (?:split|division|shares)\b|fifty[ -]fifty\b"
    r"|half (?:each|for each|and half)\b)"
)
_FAIR = re.compile(r"\bfair (?:split|division|shares)\b")
_EQUAL = re.compile(
    rf"\b(?:propose|offer|suggest|let us|we should|we can|we could)\b"
    rf".*(?:\b{_EVEN}|{_FAIR.pattern})"
    rf"|^(?:(?:ok|so|well|then|no|just|an?|(?:we )?(?:split|divide|share|cut)(?: it| the money)?)"
    rf" )*{_EVEN}(?: (?:then|please))?$"
)
"""Said with a word of proposal, or the whole of what is said."""
_EQUAL_ONE = re.compile(
    r"\b(accept|agree (?:to|with)|take|with) (?:the|your|an|this|that)"
    r" (?:equal|even|fifty[ -]fifty) (?:split|division|shares|offer|proposal)\b"
)
"""The equal split, accepted: it must be the one on the table."""
_LOSS = re.compile(
    r"\b(?:costs?|costing|los(?:e|es|ing|t)|loss(?:es)?|tak(?:es?|ing)(?: away)? from|shrinks?"
    r"|shrinking|discount(?:s|ed)?|decay(?:s|ing)?|penalt(?:y|ies)|burns?|wastes?|wasting)"
    r"(?: (?!(?:gets?|takes?|keeps?|offer|propose|suggest|give|want|and|so)\b)[\w']+){0,3}"
    r" <\d+>(?: ?,? (?:and )?(?:only |just )?(?:me|you|us|alice|bob|mine|yours|my|your)(?:'s)?"
    r"(?: (?:cost|loss))?(?: is)?(?: only| just)? <\d+>(?! ?/))*"
)
"""What waiting costs, as the prompt says it: "Each round costs you 10%, Bob 5%."."""
WHOLE = 100
"""A pair with this sum is in percent."""
_KEYS = ("alice_gain", "bob_gain", "message", "decision")


def read(text: str, role: str, money: Fraction, made: Sequence[Fraction]) -> Move:
    """The move that a cleaned utterance by `role` states; "X/Y" means Alice X, Bob Y.

    A pair that sums to 100 is in percent, whatever the sum.

    Args:
        money: what is divided.
        made: Alice's gains in the offers so far; the last one stands.

    Raises:
        IllegalMove: it states no move, more than one, or gains that do not sum to `money`.
    """
    fields = parsing.json_move(text, _KEYS)
    if fields is not None:
        return _read_json(fields, money, made)
    reader, said = _understood(text, role, money)
    return reader.stated_move(said, made)


@lru_cache(REMEMBERED)
def _understood(text: str, role: str, money: Fraction) -> tuple[_Shares, Text]:
    """What the text says whatever was said before, and who reads it."""
    plain = _HALF.sub("50%", _EQUAL_ONE.sub(r"\1 50%", parsing.plain(text)))
    marked, amounts = mark_amounts(plain, money)
    marked = _LOSS.sub("a loss", plainer(_parts_of_whole(marked, amounts, money)))
    marked = _CUT_OFF.sub(r"\1 ", marked)
    parts = parsing.sentences(marked)
    reader = _Shares(role, amounts, money).with_percent_pairs(parts)
    decided = replace(decisions(parts), outside=False)
    return reader, Text(marked, parts, decided, reader.offered(parts))


def _parts_of_whole(marked: str, amounts: Sequence[Amount], money: Fraction) -> str:
    """The text with "55/100" as 55 of 100: a pair with the whole in it has a nought as well."""

    def told(match: re.Match[str]) -> str:
        part, whole = (amounts[int(match[role])] for role in ROLES)
        pair = "/" not in match[0] or not part.value or whole.of(money) != money
        return match[0] if pair else f"<{match['alice']}> of <{match['bob']}>"

    return _RATIO.sub(told, marked)


def _read_json(fields: dict[str, Any], money: Fraction, made: Sequence[Fraction]) -> Move:
    standing = dict(zip(_KEYS[:2], (made[-1], money - made[-1]), strict=True)) if made else {}
    gains = json_offer(fields, _KEYS[:2], standing)
    if isinstance(gains, Move):
        if gains.kind == "outside":
            raise IllegalMove("bad_json", 'The decision must be "accept" or "reject".')
        return gains
    if len(gains) < 2 or not all(isinstance(gain, Fraction) for gain in gains):
        raise IllegalMove("bad_json", "A JSON offer has the numbers alice_gain and bob_gain.")
    _check_sum(gains[0], gains[1], money)
    return Move("offer", _one_offer({gains[0]}, money), sure="decision" not in fields)


def readable(gain: Fraction, money: Fraction) -> bool:
    """Whether `read` takes the amount as it is."""
    return _short(gain) and not _maybe_part(gain, money)


def _short(gain: Fraction) -> bool:
    return (gain * 10**MAX_DECIMALS).denominator == 1


def _maybe_part(amount: Fraction, money: Fraction) -> bool:
    """Whether it may be meant as a part of the whole: 0.6 of 100."""
    return money >= WHOLE and 0 < amount < 1


def _one_offer(offers: Set[Fraction], money: Fraction) -> Fraction:
    if len(offers) > 1:
        raise IllegalMove("ambiguous_offer", "Make exactly one offer.")
    gain = next(iter(offers))
    _check_sum(gain, money - gain, money)
    if not _short(gain):
        raise IllegalMove("absurd_number", f"Use at most {MAX_DECIMALS} decimals.")
    return gain


def _check_sum(alice: Fraction, bob: Fraction, money: Fraction) -> None:
    if alice + bob != money or not 0 <= alice <= money:
        raise IllegalMove("wrong_sum", f"The two gains must sum to {number_text(money)}.")


@dataclass(frozen=True)
class _Shares(Reader):
    """What `role` says about dividing `money`; `amounts` are those marked in the text."""

    role: str
    amounts: list[Amount]
    money: Fraction

    hints = Hints(
        digits="Write all amounts in digits.",
        conditional='Say "I accept." or make an offer, without conditions.',
        unclear="State one exact offer in plain words.",
        unreadable='Make one clear offer, or say "I accept."',
    )

    def with_percent_pairs(self, parts: list[Sentence]) -> _Shares:
        """The same with both amounts in percent where a sentence gives each side one, 100 in all:
        "60 for you and 40 for me" of 10,000."""
        amounts = list(self.amounts)
        for sentence in parts:
            bound = {pair for segment in sentence.segments for pair in _bound(segment, self.role)}
            pair = {who: self.amounts[i].value for who, i in bound}
            if len(bound) == len(pair) == len(ROLES) and sum(pair.values()) == WHOLE:
                for _, i in bound:
                    amounts[i] = Amount(amounts[i].value, percent=True)
        return replace(self, amounts=amounts)

    def offered(self, parts: list[Sentence]) -> Offered:
        """Alice's gains that are offered, and the kinds of doubt about what is not.

        Raises:
            IllegalMove: gains do not sum to the money, or an offer is taken back or overloaded.
        """
        found, doubted = Offered(), set[Fraction]()
        in_parts = any(_IN_PARTS.search(sentence.text) for sentence in parts)
        reversed_pair = self._bob_first(parts)
        for i, sentence in enumerate(parts):
            asked = sentence.question and self._bare(sentence)
            for segment in sentence.segments:
                gains = set() if REFERENCE.search(segment) else self.gains(segment)
                kind = self.doubt(sentence, segment) if gains else None
                if gains and (in_parts or (reversed_pair and _ratios(segment))):
                    kind = "unclear_offer"
                if not gains and _MEANT_AFTER_ALL.fullmatch(segment):
                    self._refuse_loose_amounts(segment, found.values | found.asked)
                if kind:
                    found.doubts.add(kind)
                    doubted |= gains
                else:
                    self._refuse_loose_amounts(segment, gains)
                    found.add(gains, i, asked)
            self._check_pairs(sentence)
        self._refuse_contrary(parts, found.values | found.asked)
        if (found.values | found.asked) & doubted:
            raise IllegalMove("unclear_offer", "State one exact offer in plain words.")
        return found

    def stated_move(self, text: Text, made: Sequence[Fraction]) -> Move:
        move = super().stated_move(text, made)
        if made and move.value == self.money - made[-1] != made[-1] and self._only_approves(text):
            # "6,000 works for me" after "I keep 6,000": a demand, or what the other keeps?
            raise IllegalMove("unclear_offer", self.hints.unclear)
        return move

    def _only_approves(self, text: Text) -> bool:
        """Whether all that it offers is an amount that it calls good: "6,000 works for me"."""
        offering = [s for part in text.parts for s in part.segments if self.gains(s)]
        return bool(offering) and all(map(_GOOD_AMOUNT.fullmatch, offering))

    def checked(self, values: Set[Fraction]) -> Fraction:
        amounts = self.amounts
        small = [not a.percent and _maybe_part(a.value, self.money) for a in amounts]
        if small and all(small):
            hint = "Write amounts as 60 or as 60%."
            raise IllegalMove("unclear_number", hint)
        return _one_offer(values, self.money)

    def _bare(self, sentence: Sentence) -> bool:
        """Whether it is nothing but a division, which may be asked."""
        patterns = (_BARE_RATIO, _EQUAL, *_EACH)
        return any(pattern.fullmatch(sentence.text) for pattern in patterns)

    def doubt(self, sentence: Sentence, segment: str) -> str | None:
        """Why a segment offers nothing; "60/40?" and "half each?" may be asked."""
        whose = _ratios(segment) and _RATIO_OF_WHOM.search(sentence.text)
        if whose or _PAID.search(segment):
            return "unclear_offer"
        return doubt(sentence, segment, self._bare(sentence))

    def _bob_first(self, parts: list[Sentence]) -> bool:
        """Whether a pair is said to begin with Bob."""
        found = (one for part in parts for one in _FIRST.finditer(part.text))
        firsts = ((one["who"] or one["owner"]).removesuffix(" share") for one in found)
        return any(_whose(first, self.role) == "bob" for first in firsts)

    def named(self, text: Text) -> set[Fraction]:
        """Alice's gain by whatever amounts are named, wherever.

        An amount that is said to be nobody's is taken as the speaker's own gain.
        """
        found = set()
        for segment in (segment for part in text.parts for segment in part.segments):
            found |= self.gains(segment)
            for i in self._loose(segment):
                if i in text.decided.amounts or not self.amounts[i].percent:
                    own = self.amounts[i].of(self.money)
                    found.add(own if self.role == "alice" else self.money - own)
        return found

    def gains(self, segment: str) -> set[Fraction]:
        """Alice's gain by everything that the segment says about a division."""
        gains = {self._ratio(segment, match) for match in _ratios(segment)}
        for who, i in _bound(segment, self.role):
            value = self.amounts[i].of(self.money)
            gains.add(value if who == "alice" else self.money - value)
        if _EQUAL.search(segment) and not (gains and _FAIR.search(segment)):
            gains.add(self.money / 2)
        named = {self.amounts[i].of(self.money) for i in positions(segment)}
        if APPROVED.fullmatch(segment) and named == {self.money / 2}:
            gains |= named  # "50 it is" of 100: no matter whose
        return gains

    def _ratio(self, segment: str, match: re.Match[str]) -> Fraction:
        if _RATIO_OF_WHOM.search(segment):
            raise IllegalMove("unclear_offer", "Say what Alice gets and what Bob gets.")
        sides = [self.amounts[int(match[role])] for role in ROLES]
        percent = any(side.percent for side in sides) or sum(side.value for side in sides) == WHOLE
        alice, bob = (Amount(side.value, percent).of(self.money) for side in sides)
        _check_sum(alice, bob, self.money)
        favoured = _favoured(segment[match.end() :], self.role)
        if len(favoured) > 1:
            raise IllegalMove("unclear_offer", "Say what Alice gets and what Bob gets.")
        if favoured:
            return max(alice, bob) if "alice" in favoured else min(alice, bob)
        return alice

    def _loose(self, segment: str) -> set[int]:
        """The positions of amounts that are nobody's, and not the whole: "60 of the 100"."""
        said = {i for _, i in _bound(segment, self.role)}
        said |= {int(match[role]) for match in _ratios(segment) for role in ROLES}
        wholes = map(int, _OF_THE_WHOLE.findall(segment))
        said |= {i for i in wholes if self.amounts[i].of(self.money) == self.money}
        return set(positions(segment)) - said

    def _refuse_loose_amounts(self, segment: str, gains: set[Fraction]) -> None:
        """An amount beside an offer that is neither gain nor the whole makes the offer unclear."""
        known = gains | {self.money - gain for gain in gains} | {self.money}
        pairs = {int(match[role]) for match in _ratios(segment) for role in ROLES}
        loose = set(positions(segment)) - pairs
        values = {self.amounts[i].of(self.money) for i in loose}
        if gains and not values <= known:
            hint = "Say what Alice gets and what Bob gets, nothing more."
            raise IllegalMove("unclear_offer", hint)

    def _refuse_contrary(self, parts: list[Sentence], gains: Set[Fraction]) -> None:
        """Words beside a pair that give the larger part to the other one make it unclear.

        Not those about other offers: with amounts of their own, or pointing back.
        """
        segments = [segment for part in parts for segment in part.segments]
        segments = [segment for segment in segments if not REFERENCE.search(segment)]
        pairs = [i for i, segment in enumerate(segments) if _ratios(segment)]
        if len(gains) != 1 or not pairs or any(_bound(segment, self.role) for segment in segments):
            return
        alice = 2 * next(iter(gains)) - self.money
        for i, segment in enumerate(segments):
            earlier = i < pairs[0] and _POINTING.search(segment)
            apart = earlier or ("<" in segment and i not in pairs)
            favoured = set() if apart else _favoured(segment, self.role)
            if (alice > 0 and "bob" in favoured) or (alice < 0 and "alice" in favoured):
                raise IllegalMove("unclear_offer", "Say what Alice gets and what Bob gets.")

    def _check_pairs(self, sentence: Sentence) -> None:
        """Two gains stated together must sum to the money: tells a wrong sum from two offers."""
        gains: dict[str, set[Fraction]] = {role: set() for role in ROLES}
        for segment in sentence.segments:
            if not REFERENCE.search(segment) and self.doubt(sentence, segment) is None:
                for who, i in _bound(segment, self.role):
                    gains[who].add(self.amounts[i].of(self.money))
        if len(gains["alice"]) == len(gains["bob"]) == 1:
            _check_sum(gains["alice"].pop(), gains["bob"].pop(), self.money)


def _ratios(segment: str) -> list[re.Match[str]]:
    """Every "X/Y" that is said as a division."""
    found = list(_RATIO.finditer(segment))
    meant = _RATIO_CUE.search(segment) or _BARE_RATIO.fullmatch(segment)
    return found if meant or APPROVED.fullmatch(segment) else []


def _bound(segment: str, speaker: str) -> list[tuple[str, int]]:
    """(role, position) for every amount that is said to be somebody's gain."""
    found = []
    for match in (match for pattern in _BINDINGS for match in pattern.finditer(segment)):
        found.append((_whose(match["who"], speaker), int(match["amount"])))
    for match in (match for pattern in _EACH for match in pattern.finditer(segment)):
        found += [(role, int(match["amount"])) for role in ROLES]
    return found


def _favoured(said: str, speaker: str) -> set[str]:
    """The roles that are said to get the larger part."""
    found = set()
    for match in (match for pattern in _FAVOURING for match in pattern.finditer(said)):
        who, less = _whose(match["who"], speaker), bool(match.groupdict().get("less"))
        found.add(who if less == bool(_DENIED.search(said)) else other(who))
    return found


def _whose(who: str, speaker: str) -> str:
    """The role that a name or pronoun means."""
    who = who.removesuffix("'s")
    if who in ROLES:
        return who
    return speaker if who in _SELF else other(speaker)
