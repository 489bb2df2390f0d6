"""How a division of money is read from free text: who gets what, said once and clearly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from aria_dvc.games import parsing
from aria_dvc.games.alternating import ROLES, Move, number_text, other
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.decisions import REFERENCE, SPELLED, Decisions, decisions, doubt
from aria_dvc.games.parsing import MAX_DECIMALS, Amount, Sentence

_SELF = {"i", "me", "my", "mine", "myself"}
_AMOUNT = r"<(?P<amount>\d+)>"
_SMALL_WORDS = r"(?: (?:a|an|the|of|only|just|exactly|share|sum|amount|total|with|all|full))*"
_LEADS = r"(?: (?:will|would|shall|should|can|to|just|then|also|like|want))*"
_BINDINGS = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<who>alice|bob|i|you){_LEADS} (?:gets?|receives?|takes?|keeps?|has|have|gains?)"
        rf"{_SMALL_WORDS} {_AMOUNT}",
        r"\b(?:give|gives|giving|offer|offers|offering|leave|leaves|leaving|pay|hand)"
        rf" (?P<who>alice|bob|me|you){_SMALL_WORDS} {_AMOUNT}",
        rf"{_AMOUNT} (?:for|to|goes to|go to|going to) (?P<who>alice|bob|me|you|myself|yourself)\b",
        rf"\b(?P<who>alice|bob|me|you|i|myself|yourself) ?[:=]? ?(?:at )?{_AMOUNT}",
        rf"\b(?P<who>alice|bob|my|your|mine|yours)(?:'s)?(?: (?:share|part|gain))?"
        rf" ?(?:[:=]|is|would be|will be) ?{_AMOUNT}",
    )
]
_RATIO = re.compile(r"<(?P<alice>\d+)> ?(?:/|-|:|to) ?<(?P<bob>\d+)>")
_RATIO_CUE = re.compile(
    r"\b(?:propose|offer|suggest|counteroffer|counter|split|divide|take|let us|do|go|make|accept"
    r"|agree|settle)\b"
)
_BARE_RATIO = re.compile(
    rf"(?:(?:ok|so|well|then|no|my|final|at|now|just) )*{_RATIO.pattern}"
    r"(?: (?:then|please|final|now|it is))*"
)
_RATIO_OF_WHOM = re.compile(r"\b(?:between|favou?r|respectively)\b|> for (?:me|you|alice|bob)\b")
_OF_THE_WHOLE = re.compile(r"> (?:out )?of (?:the )?(?:total |whole )?<(\d+)>")
_EQUAL = re.compile(
    r"\b(?:propose|offer|suggest|let us)\b.*(?:\b(?:equally|evenly|in half|down the middle)\b"
    r"|\b(?:equal|even|fair|fifty[ -]fifty) (?:split|division|shares)\b|\bfifty[ -]fifty\b"
    r"|\bhalf (?:each|for each|and half)\b)"
)
_KEYS = ("alice_gain", "bob_gain", "message", "decision")


def read(text: str, role: str, money: Fraction, standing: Fraction | None) -> Move:
    """The move that a cleaned utterance by `role` states; "X/Y" means Alice X, Bob Y.

    Args:
        money: what is divided.
        standing: Alice's gain in the offer on the table.

    Raises:
        IllegalMove: it states no move, more than one, or gains that do not sum to `money`.
    """
    fields = parsing.json_move(text, _KEYS)
    if fields is not None:
        return _read_json(fields, money)
    marked, amounts = parsing.mark_amounts(parsing.plain(text))
    parts = parsing.sentences(marked)
    decided = decisions(parts)
    said = _Said(role, amounts, money)
    offers, doubts = said.offers(parts)
    if decided.accept:
        return said.acceptance(parts, decided, standing)
    if offers and decided.hinted:
        raise IllegalMove("accept_and_offer", "Either accept the last offer or make another.")
    if offers and SPELLED.search(marked):
        raise IllegalMove("unclear_offer", "Write all amounts in digits.")
    if offers:
        return Move("offer", _one_offer(offers, money))
    if decided.reject:
        return Move("reject")
    if decided.conditional or "conditional" in doubts:
        raise IllegalMove("conditional", 'Say "I accept." or make an offer, without conditions.')
    if doubts:
        raise IllegalMove("unclear_offer", "State one exact offer in plain words.")
    raise IllegalMove("unreadable", 'Make one clear offer, or say "I accept."')


def _read_json(fields: dict[str, Any], money: Fraction) -> Move:
    gains = [fields[key] for key in ("alice_gain", "bob_gain") if key in fields]
    decision = parsing.json_decision(fields["decision"]) if "decision" in fields else None
    if decision == "outside":
        raise IllegalMove("bad_json", 'The decision must be "accept" or "reject".')
    if decision == "accept" and gains:
        raise IllegalMove("accept_and_offer", "Either accept or make an offer.")
    if decision and not gains:
        return Move(decision)
    if len(gains) < 2 or not all(isinstance(gain, Fraction) for gain in gains):
        raise IllegalMove("bad_json", "A JSON offer has the numbers alice_gain and bob_gain.")
    _check_sum(gains[0], gains[1], money)
    return Move("offer", _one_offer({gains[0]}, money))


def _one_offer(offers: set[Fraction], money: Fraction) -> Fraction:
    if len(offers) > 1:
        raise IllegalMove("ambiguous_offer", "Make exactly one offer.")
    gain = next(iter(offers))
    _check_sum(gain, money - gain, money)
    if (gain * 10**MAX_DECIMALS).denominator != 1:
        raise IllegalMove("absurd_number", f"Use at most {MAX_DECIMALS} decimals.")
    return gain


def _check_sum(alice: Fraction, bob: Fraction, money: Fraction) -> None:
    if alice + bob != money or not 0 <= alice <= money:
        raise IllegalMove("wrong_sum", f"The two gains must sum to {number_text(money)}.")


@dataclass(frozen=True)
class _Said:
    """What `role` says about dividing `money`; `amounts` are those marked in the text."""

    role: str
    amounts: list[Amount]
    money: Fraction

    def offers(self, parts: list[Sentence]) -> tuple[set[Fraction], set[str]]:
        """Alice's gains that are offered, and the kinds of doubt about what is not.

        Raises:
            IllegalMove: gains do not sum to the money, or an offer is taken back or overloaded.
        """
        offered: set[Fraction] = set()
        doubted: set[Fraction] = set()
        doubts: set[str] = set()
        for sentence in parts:
            for segment in sentence.segments:
                gains = set() if REFERENCE.search(segment) else self.gains(segment)
                kind = doubt(sentence, segment) if gains else None
                if kind:
                    doubts.add(kind)
                    doubted |= gains
                else:
                    self._refuse_loose_amounts(segment, gains)
                    offered |= gains
            self._check_pairs(sentence)
        if offered & doubted:
            raise IllegalMove("unclear_offer", "State one exact offer in plain words.")
        return offered, doubts

    def acceptance(
        self, parts: list[Sentence], decided: Decisions, standing: Fraction | None
    ) -> Move:
        """An acceptance; whatever amounts it names must be those of the standing offer.

        An amount that is said to be nobody's is taken as the speaker's own gain.
        """
        named = set()
        for segment in (segment for part in parts for segment in part.segments):
            named |= self.gains(segment)
            for i in self._loose(segment):
                if i in decided.amounts or not self.amounts[i].percent:
                    own = self.amounts[i].of(self.money)
                    named.add(own if self.role == "alice" else self.money - own)
        if standing is not None and not named <= {standing}:
            raise IllegalMove("accept_and_offer", "Either accept the last offer or make another.")
        return Move("accept")

    def gains(self, segment: str) -> set[Fraction]:
        """Alice's gain by everything that the segment says about a division."""
        gains = {self._ratio(segment, match) for match in _ratios(segment)}
        for who, i in _bound(segment, self.role):
            value = self.amounts[i].of(self.money)
            gains.add(value if who == "alice" else self.money - value)
        if _EQUAL.search(segment):
            gains.add(self.money / 2)
        return gains

    def _ratio(self, segment: str, match: re.Match[str]) -> Fraction:
        if _RATIO_OF_WHOM.search(segment):
            raise IllegalMove("unclear_offer", "Say what Alice gets and what Bob gets.")
        sides = [self.amounts[int(match[role])] for role in ROLES]
        percent = any(side.percent for side in sides)
        alice, bob = (Amount(side.value, percent).of(self.money) for side in sides)
        _check_sum(alice, bob, self.money)
        return alice

    def _loose(self, segment: str) -> set[int]:
        """The positions of amounts that are nobody's, and not the whole: "60 of the 100"."""
        said = {i for _, i in _bound(segment, self.role)}
        said |= {int(match[role]) for match in _ratios(segment) for role in ROLES}
        wholes = map(int, _OF_THE_WHOLE.findall(segment))
        said |= {i for i in wholes if self.amounts[i].of(self.money) == self.money}
        return set(parsing.positions(segment)) - said

    def _refuse_loose_amounts(self, segment: str, gains: set[Fraction]) -> None:
        """An amount beside an offer that is neither gain nor the whole makes the offer unclear."""
        known = gains | {self.money - gain for gain in gains} | {self.money}
        values = {self.amounts[i].of(self.money) for i in parsing.positions(segment)}
        if gains and not values <= known:
            hint = "Say what Alice gets and what Bob gets, nothing more."
            raise IllegalMove("unclear_offer", hint)

    def _check_pairs(self, sentence: Sentence) -> None:
        """Two gains stated together must sum to the money: tells a wrong sum from two offers."""
        gains: dict[str, set[Fraction]] = {role: set() for role in ROLES}
        for segment in sentence.segments:
            if not REFERENCE.search(segment) and doubt(sentence, segment) is None:
                for who, i in _bound(segment, self.role):
                    gains[who].add(self.amounts[i].of(self.money))
        if len(gains["alice"]) == len(gains["bob"]) == 1:
            _check_sum(gains["alice"].pop(), gains["bob"].pop(), self.money)


def _ratios(segment: str) -> list[re.Match[str]]:
    """Every "X/Y" that is said as a division."""
    meant = _RATIO_CUE.search(segment) or _BARE_RATIO.fullmatch(segment)
    return list(_RATIO.finditer(segment)) if meant else []


def _bound(segment: str, speaker: str) -> list[tuple[str, int]]:
    """(role, position) for every amount that is said to be somebody's gain."""
    found = []
    for match in (match for pattern in _BINDINGS for match in pattern.finditer(segment)):
        who = match["who"]
        if who not in ROLES:
            who = speaker if who in _SELF else other(speaker)
        found.append((who, int(match["amount"])))
    return found
