"""How a price is read from free text: one amount, offered once and clearly."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from aria_dvc.games import parsing
from aria_dvc.games.alternating import Move, number_text
from aria_dvc.games.amounts import Amount, mark_amounts, positions
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.colloquial import plainer
from aria_dvc.games.decisions import decisions
from aria_dvc.games.doubts import CORRECTING, REFERENCE, doubt
from aria_dvc.games.parsing import Sentence
from aria_dvc.games.reading import Hints, Offered, Reader, Text, json_offer

_CUE = re.compile(
    r"\b(?:(?:propos|offer|suggest|sell|buy|purchas|pay|ask|counter|bid|charg|settl|tak)(?:e|ing)?"
    r"|price|(?:counter)?proposal|counteroffer|deal|trade|meet|compromise|split the difference)\b"
    r"|\b(?:would like|looking for) <\d+>"
    r"|\b(?:can|will|let us) (?:just )?do(?: it for)? <\d+>"
    r"|\b(?:want|need|demand|insist on|say|make it|call it) <\d+>"
    r"|\b(?:go|come|stretch|down|up|(?:raise|lower|drop|reduce|cut) it)(?: a (?:bit|little))?"
    r" ?(?:to|:) <\d+>|\bstart(?:ing)? at <\d+>|\bbest (?:i|we) can do is <\d+>"
    r"|\b(?:go|work) with <\d+>|\b(?:fine|ok|okay|good|happy|content) with <\d+>"
    r"|<\d+> (?:seems|sounds|looks|is|would be) (?:the )?(?:\w+ )?(?:fair|reasonable|right)\b"
    r"|\b(?:yours|have it|go|sold) (?:for|at) <\d+>|<\d+> works\b"
    r"|<\d+> is (?:fine|ok|okay|good|acceptable) (?:with|by|for) me\b"
)
_GIVE = {
    "alice": re.compile(r"\bgive me <\d+>|\bpay me <\d+>"),
    "bob": re.compile(r"\bgive you <\d+>|\bpay you <\d+>|\bi (?:\w+ )?give <\d+>"),
}
"""Money goes from the buyer to the seller."""
_STATED = re.compile(
    r"\b(?:i|(?<!have )(?<!has )to) (?:propose|offer|suggest|pay|bid|counter with) <\d+>"
    r"(?! ?(?:profit|off)\b)"
)
"""An offer in so many words, whatever reasons follow it."""
_OTHERS_GIFT = re.compile(r"\bgive (?:me|you) <\d+>")
_BARE = re.compile(
    rf"(?:(?:ok|well|then|only|just|at|for|please|now|{CORRECTING}) )*<\d+>"
    r"(?: (?:then|please|final|flat|now|it is|(?:in )?cash))*"
)
_AFTER_ALL = re.compile(rf"\b{CORRECTING}[,.! ]* <(\d+)>")
_PART_OF = re.compile(r"<(\d+)> of (?:\w+ ){0,2}<\d+>")
"""In percent: what it comes to is not said."""
_NOT_A_PRICE = re.compile(
    r"\b(?:worth|values?|valued|costs?|profits?|gains?|john|margin|loss|lose|surplus|market|save"
    r"|shipping|delivery|tax|taxes|fees?|deposit)\b"
    r"|\b(?:others?|people|they|he|she|every(?:one|body)|some(?:one|body)|friends?|neighbou?rs?"
    r"|products|items|shops?|stores?|sellers|buyers|competitors) (?:\w+ )?"
    r"(?:sells?|sold|buys?|bought|pays?|paid|asks?|charges?|charged|go|goes)\b|\belsewhere\b"
    r"|<\d+> (?:out of|from) (?:this|that|the|it|our)\b"
    r"|\b(?:have|has) to pay <\d+> for (?!it\b|this\b|that\b|(?:the|your) (?:product|item)\b)"
)
"""What the speaker, or somebody else, gains, pays or takes elsewhere."""
_HYPOTHETICAL = re.compile(
    r"\b(?:would|could|might|may) (?:\w+ )?(?:pay|sell|buy|take|accept)\b"
    r"|\b(?:could|might|may) (?:\w+ )?(?:give|do|go|offer)\b"
)
_OTHER_NUMBER = re.compile(
    r"\b(?:in|since|until|by|page|number|model|version|day|week|item|chapter|aged?) <\d+>"
    r"|\b(?:paid|bought|sold|spent|earned|similar|another|other|used to"
    r"|last (?:time|week|month|year))\b"
    r"|\b(?:alice|bob)'s\b|\bworks\b"
)
"""No price perhaps, that of another trade or player, or one that is accepted."""
_KEYS = ("price", "product_price", "message", "decision")


def read(
    text: str, role: str, scale: Fraction, highest: Fraction, made: Sequence[Fraction]
) -> Move:
    """The move that a cleaned utterance by `role` states.

    Args:
        scale: the order of magnitude of prices.
        highest: the largest price allowed.
        made: the prices offered so far; the last one stands.

    Raises:
        IllegalMove: it states no move, more than one, or a price out of range.
    """
    fields = parsing.json_move(text, _KEYS)
    if fields is not None:
        return _read_json(fields, highest, made)
    marked, amounts = mark_amounts(parsing.plain(text), scale)
    marked = plainer(marked)
    parts = parsing.sentences(marked)
    reader = _Prices(role, amounts, highest)
    return reader.stated_move(Text(marked, parts, decisions(parts), reader.offered(parts)), made)


def _read_json(fields: dict[str, Any], highest: Fraction, made: Sequence[Fraction]) -> Move:
    prices = json_offer(fields, _KEYS[:2], {key: made[-1] for key in _KEYS[:2] if made})
    if isinstance(prices, Move):
        return prices
    if len(prices) != 1 or not isinstance(prices[0], Fraction):
        raise IllegalMove("bad_json", "A JSON offer has one number, price.")
    return Move("offer", _one_price(set(prices), highest), sure="decision" not in fields)


def _one_price(prices: Set[Fraction], highest: Fraction) -> Fraction:
    if len(prices) > 1:
        raise IllegalMove("ambiguous_offer", "Offer exactly one price.")
    price = next(iter(prices))
    if price > highest:
        raise IllegalMove("absurd_number", f"Prices above ${number_text(highest)} are not taken.")
    return price


@dataclass(frozen=True)
class _Prices(Reader):
    """What `role` says about prices up to `highest`; `amounts` are those marked in the text."""

    role: str
    amounts: list[Amount]
    highest: Fraction

    hints = Hints(
        digits="Write the price in digits.",
        conditional='Say "I accept." or offer a price, without conditions.',
        unclear="State one exact price in plain words.",
        unreadable='Offer one price, or say "I accept." or "I deal with John."',
    )

    def offered(self, parts: list[Sentence]) -> Offered:
        """The prices that are offered, and the kinds of doubt about those that are not."""
        found = Offered()
        for i, sentence in enumerate(parts):
            segments = sentence.segments
            for segment in segments:
                alone = sentence.text if len(segments) < 2 or segment != segments[-1] else segment
                bare = bool(_BARE.fullmatch(alone))
                prices = self._prices_in(segment)
                kind = doubt(sentence, segment, bare) if prices else None
                if prices and _HYPOTHETICAL.search(segment):
                    kind = "conditional"
                if prices and self._parts_in(segment):
                    kind = "unclear_offer"
                if kind:
                    found.doubts.add(kind)
                else:
                    found.add(prices, i, asked=bare and sentence.question)
        return found

    def named(self, text: Text) -> set[Fraction]:
        """Whatever amounts are named, wherever; a percentage only in the acceptance itself."""
        amounts = enumerate(self.amounts)
        return {a.value for i, a in amounts if i in text.decided.amounts or not a.percent}

    def checked(self, values: Set[Fraction]) -> Fraction:
        return _one_price(values, self.highest)

    def told_apart(
        self, text: Text, values: Set[Fraction], standing: Fraction | None
    ) -> Set[Fraction]:
        again = {self.amounts[int(i)].value for i in _AFTER_ALL.findall(text.marked)}
        told = standing in again or re.search(r"\bor\b", text.marked)
        return values if told else values - {standing}

    def sole(self, text: Text, made: Sequence[Fraction]) -> Set[Fraction]:
        """The prices that nobody named before, in whatever words; none if one is in any doubt."""
        found = set[Fraction]()
        for sentence in text.parts:
            for segment in sentence.segments:
                named = [self.amounts[i] for i in positions(segment)]
                new = {amount.value for amount in named if not amount.percent} - set(made)
                asked = sentence.question or _tells_of_others(segment)
                if new and (asked or doubt(sentence, segment) or self._parts_in(segment)):
                    return set()
                found |= new
        return found

    def _parts_in(self, segment: str) -> bool:
        """Whether it names a part of an amount: "110% of 100"."""
        return any(self.amounts[int(i)].percent for i in _PART_OF.findall(segment))

    def _prices_in(self, segment: str) -> set[Fraction]:
        """The amounts that a segment offers: all but percentages."""
        if not _is_offer(segment, self.role):
            return set()
        found = [self.amounts[i] for i in positions(segment)]
        return {amount.value for amount in found if not amount.percent}


def _tells_of_others(segment: str) -> bool:
    """Whether amounts in it may be no price that the speaker offers now."""
    patterns = (REFERENCE, _NOT_A_PRICE, _HYPOTHETICAL, _OTHERS_GIFT, _OTHER_NUMBER)
    return any(pattern.search(segment) for pattern in patterns)


def _is_offer(segment: str, role: str) -> bool:
    if _OTHERS_GIFT.search(segment):
        return bool(_GIVE[role].search(segment)) and not _NOT_A_PRICE.search(segment)
    stated = _STATED.search(segment)
    told = segment[: stated.end()] if stated else segment
    if REFERENCE.search(told) or _NOT_A_PRICE.search(told):
        return False
    cues = _CUE.search(segment) or _BARE.fullmatch(segment) or _GIVE[role].search(segment)
    return bool(cues)
