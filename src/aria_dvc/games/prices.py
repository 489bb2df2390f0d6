"""How a price is read from free text: one amount, offered once and clearly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from aria_dvc.games import parsing
from aria_dvc.games.alternating import Move, number_text
from aria_dvc.games.amounts import Amount, mark_amounts, positions
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.colloquial import plainer
from aria_dvc.games.decisions import (
    REFERENCE,
    SPELLED,
    Decisions,
    check_earlier,
    decisions,
    doubt,
    takes_standing,
)
from aria_dvc.games.parsing import Sentence

_CUE = re.compile(
    r"\b(?:(?:propos|offer|suggest|sell|buy|pay|ask|counter|bid|charg|settl|tak)(?:e|ing)?"
    r"|price|counteroffer|deal|trade|meet|compromise|split the difference)\b"
    r"|\b(?:would like|looking for) <\d+>"
    r"|\b(?:can|will|let us) (?:just )?do(?: it for)? <\d+>|\b(?:want|need|say|make it) <\d+>"
    r"|\b(?:go|come|stretch|down|up|raise it|lower it)(?: a (?:bit|little))? ?(?:to|:) <\d+>"
    r"|\b(?:go|work) with <\d+>|\b(?:fine|ok|okay|good|happy|content) with <\d+>"
    r"|<\d+> (?:seems|sounds|looks|is|would be) (?:\w+ )?(?:fair|reasonable|right)\b"
    r"|\b(?:yours|have it|go|sold) (?:for|at) <\d+>|<\d+> works\b"
    r"|<\d+> is (?:fine|ok|okay|good|acceptable) (?:with|by|for) me\b"
)
_GIVE = {
    "alice": re.compile(r"\bgive me <\d+>|\bpay me <\d+>"),
    "bob": re.compile(r"\bgive you <\d+>|\bpay you <\d+>"),
}
"""Money goes from the buyer to the seller."""
_OTHERS_GIFT = re.compile(r"\bgive (?:me|you) <\d+>")
_BARE = re.compile(
    r"(?:(?:ok|well|then|no|only|just|at|for|make it|please|now) )*<\d+>"
    r"(?: (?:then|please|final|flat|now|it is))*"
)
_NOT_A_PRICE = re.compile(
    r"\b(?:worth|values?|valued|costs?|profits?|gains?|john|margin|loss|lose|surplus|market|save"
    r"|shipping|delivery|tax|taxes|fees?|deposit)\b"
)
_HYPOTHETICAL = re.compile(
    r"\b(?:would|could|might|may) (?:\w+ )?(?:pay|sell|buy|take|accept)\b"
    r"|\b(?:could|might|may) (?:\w+ )?(?:give|do|go|offer)\b"
)
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
        return _read_json(fields, highest)
    standing = made[-1] if made else None
    marked, amounts = mark_amounts(parsing.plain(text), scale)
    marked = plainer(marked)
    parts = parsing.sentences(marked)
    decided = decisions(parts)
    prices, doubts = _offered(parts, amounts, role)
    if decided.outside and (decided.accept or prices):
        raise IllegalMove("contradiction", "Make one move: an offer, accept, or deal with John.")
    if decided.accept:
        check_earlier(decided.earlier, len(made))
        return _acceptance(decided, amounts, standing)
    if decided.outside:
        return Move("outside")
    if not doubts and takes_standing(decided, marked, prices, standing):
        return Move("accept")
    if prices and SPELLED.search(marked):
        raise IllegalMove("unclear_offer", "Write the price in digits.")
    if prices:
        return Move("offer", _one_price(prices, highest))
    if decided.reject:
        return Move("reject")
    raise _no_move(decided, doubts)


def _no_move(decided: Decisions, doubts: set[str]) -> IllegalMove:
    """Why a text that decides nothing and offers nothing is refused."""
    if decided.conditional or "conditional" in doubts:
        return IllegalMove("conditional", 'Say "I accept." or offer a price, without conditions.')
    if doubts:
        return IllegalMove("unclear_offer", "State one exact price in plain words.")
    return IllegalMove("unreadable", 'Offer one price, or say "I accept." or "I deal with John."')


def _read_json(fields: dict[str, Any], highest: Fraction) -> Move:
    prices = [fields[key] for key in ("price", "product_price") if key in fields]
    decision = parsing.json_decision(fields["decision"]) if "decision" in fields else None
    if decision in ("accept", "outside") and prices:
        raise IllegalMove("accept_and_offer", "Either decide or offer a price.")
    if decision and not prices:
        return Move(decision)
    if len(prices) != 1 or not isinstance(prices[0], Fraction):
        raise IllegalMove("bad_json", "A JSON offer has one number, price.")
    return Move("offer", _one_price(set(prices), highest))


def _one_price(prices: set[Fraction], highest: Fraction) -> Fraction:
    if len(prices) > 1:
        raise IllegalMove("ambiguous_offer", "Offer exactly one price.")
    price = next(iter(prices))
    if price > highest:
        raise IllegalMove("absurd_number", f"Prices above ${number_text(highest)} are not taken.")
    return price


def _offered(
    parts: list[Sentence], amounts: list[Amount], role: str
) -> tuple[set[Fraction], set[str]]:
    """The prices that are offered, and the kinds of doubt about those that are not."""
    prices: set[Fraction] = set()
    doubts: set[str] = set()
    for sentence in parts:
        for segment in sentence.segments:
            found = _amounts_in(segment, amounts) if _is_offer(segment, role) else set()
            kind = doubt(sentence, segment, bool(_BARE.fullmatch(sentence.text)))
            if found and _HYPOTHETICAL.search(segment):
                kind = "conditional"
            if found and kind:
                doubts.add(kind)
            else:
                prices |= found
    return prices, doubts


def _acceptance(decided: Decisions, amounts: list[Amount], standing: Fraction | None) -> Move:
    """An acceptance; whatever amount is named, wherever, must be the standing price."""
    named = {
        amount.value
        for i, amount in enumerate(amounts)
        if i in decided.amounts or not amount.percent
    }
    if standing is not None and not named <= {standing}:
        raise IllegalMove("accept_and_offer", "Either accept the last price or offer another.")
    return Move("accept")


def _amounts_in(segment: str, amounts: list[Amount]) -> set[Fraction]:
    """The amounts in a segment that may be prices: all but percentages."""
    found = [amounts[i] for i in positions(segment)]
    return {amount.value for amount in found if not amount.percent}


def _is_offer(segment: str, role: str) -> bool:
    if _OTHERS_GIFT.search(segment):
        return bool(_GIVE[role].search(segment)) and not _NOT_A_PRICE.search(segment)
    if REFERENCE.search(segment) or _NOT_A_PRICE.search(segment):
        return False
    return bool(_CUE.search(segment) or _BARE.fullmatch(segment))
