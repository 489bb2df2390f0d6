"""How a division of money is read from free text: who gets what, said once and clearly."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from aria_dvc.games import parsing
from aria_dvc.games import share_patterns as patterns
from aria_dvc.games.alternating import ROLES, Move, number_text, other
from aria_dvc.games.amounts import MAX_DECIMALS, Amount, mark_amounts, positions
from aria_dvc.games.base import IllegalMove
from aria_dvc.games.colloquial import plainer
from aria_dvc.games.decision_patterns import APPROVED
from aria_dvc.games.decisions import decisions
from aria_dvc.games.doubts import REFERENCE, doubt
from aria_dvc.games.parsing import Sentence
from aria_dvc.games.reading import Hints, Offered, Reader, Text, json_offer

REMEMBERED = 8192  # texts whose meaning is kept: scripted and small models repeat themselves
_SELF = {"i", "me", "my", "mine", "myself"}
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
    plain = patterns.HALF.sub("50%", patterns.EQUAL_ONE.sub(r"\1 50%", parsing.plain(text)))
    marked, amounts = mark_amounts(plain, money)
    marked = patterns.LOSS.sub("a loss", plainer(_parts_of_whole(marked, amounts, money)))
    marked = patterns.CUT_OFF.sub(r"\1 ", marked)
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

    return patterns.RATIO.sub(told, marked)


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
        in_parts = any(patterns.IN_PARTS.search(sentence.text) for sentence in parts)
        reversed_pair = self._bob_first(parts)
        for i, sentence in enumerate(parts):
            asked = sentence.question and self._bare(sentence)
            for segment in sentence.segments:
                gains = set() if REFERENCE.search(segment) else self.gains(segment)
                kind = self.doubt(sentence, segment) if gains else None
                if gains and (in_parts or (reversed_pair and _ratios(segment))):
                    kind = "unclear_offer"
                if not gains and patterns.MEANT_AFTER_ALL.fullmatch(segment):
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
        return bool(offering) and all(map(patterns.GOOD_AMOUNT.fullmatch, offering))

    def checked(self, values: Set[Fraction]) -> Fraction:
        amounts = self.amounts
        small = [not a.percent and _maybe_part(a.value, self.money) for a in amounts]
        if small and all(small):
            hint = "Write amounts as 60 or as 60%."
            raise IllegalMove("unclear_number", hint)
        return _one_offer(values, self.money)

    def _bare(self, sentence: Sentence) -> bool:
        """Whether it is nothing but a division, which may be asked."""
        whole = (patterns.BARE_RATIO, patterns.EQUAL, *patterns.EACH)
        return any(pattern.fullmatch(sentence.text) for pattern in whole)

    def doubt(self, sentence: Sentence, segment: str) -> str | None:
        """Why a segment offers nothing; "60/40?" and "half each?" may be asked."""
        whose = _ratios(segment) and patterns.RATIO_OF_WHOM.search(sentence.text)
        if whose or patterns.PAID.search(segment):
            return "unclear_offer"
        return doubt(sentence, segment, self._bare(sentence))

    def _bob_first(self, parts: list[Sentence]) -> bool:
        """Whether a pair is said to begin with Bob."""
        found = (one for part in parts for one in patterns.FIRST.finditer(part.text))
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
        if patterns.EQUAL.search(segment) and not (gains and patterns.FAIR.search(segment)):
            gains.add(self.money / 2)
        named = {self.amounts[i].of(self.money) for i in positions(segment)}
        if APPROVED.fullmatch(segment) and named == {self.money / 2}:
            gains |= named  # "50 it is" of 100: no matter whose
        return gains

    def _ratio(self, segment: str, match: re.Match[str]) -> Fraction:
        if patterns.RATIO_OF_WHOM.search(segment):
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
        wholes = map(int, patterns.OF_THE_WHOLE.findall(segment))
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
            earlier = i < pairs[0] and patterns.POINTING.search(segment)
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
    found = list(patterns.RATIO.finditer(segment))
    meant = patterns.RATIO_CUE.search(segment) or patterns.BARE_RATIO.fullmatch(segment)
    return found if meant or APPROVED.fullmatch(segment) else []


def _bound(segment: str, speaker: str) -> list[tuple[str, int]]:
    """(role, position) for every amount that is said to be somebody's gain."""
    found = []
    for match in (match for pattern in patterns.BINDINGS for match in pattern.finditer(segment)):
        found.append((_whose(match["who"], speaker), int(match["amount"])))
    for match in (match for pattern in patterns.EACH for match in pattern.finditer(segment)):
        found += [(role, int(match["amount"])) for role in ROLES]
    return found


def _favoured(said: str, speaker: str) -> set[str]:
    """The roles that are said to get the larger part."""
    found = set()
    for match in (match for pattern in patterns.FAVOURING for match in pattern.finditer(said)):
        who, less = _whose(match["who"], speaker), bool(match.groupdict().get("less"))
        found.add(who if less == bool(patterns.DENIED.search(said)) else other(who))
    return found


def _whose(who: str, speaker: str) -> str:
    """The role that a name or pronoun means."""
    who = who.removesuffix("'s")
    if who in ROLES:
        return who
    return speaker if who in _SELF else other(speaker)
