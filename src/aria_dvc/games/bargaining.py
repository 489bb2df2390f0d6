"""Bargaining: Alice and Bob divide a sum that loses value every round (GLEE, sec. 3.1).

Utilities at acceptance in round t with Alice's share p: p * delta_a^(t-1) and
(1-p) * delta_b^(t-1); without a deal both are 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from aria_dvc.games import parsing
from aria_dvc.games.alternating import (
    ROLES,
    AlternatingMatch,
    Move,
    check_reward,
    complete,
    exact,
    number_text,
    other,
    percent_text,
)
from aria_dvc.games.base import Config, Game, IllegalMove
from aria_dvc.games.parsing import MAX_DECIMALS, Amount, Sentence

DISCOUNTS = (0.8, 0.9, 0.95, 1.0)
SUMS = (100, 10_000, 1_000_000)
RANGES = {"money": (1, 10**12), "delta_a": (0.01, 1), "delta_b": (0.01, 1)}


class BargainingMatch(AlternatingMatch):
    """Values of offers are Alice's gains in money."""

    game = "bargaining"

    @property
    def money(self) -> Fraction:
        return exact(self.config["money"])

    @property
    def offer_hint(self) -> str:
        return (
            'Say for example "I propose that Alice gets X and Bob gets Y." '
            f"where X + Y = {number_text(self.money)}."
        )

    def read(self, text: str, role: str) -> Move:
        return read(text, role, self.money, self.standing)

    def say(self, move: Move) -> str:
        if move.value is None:
            return {"accept": "I accept.", "reject": "I reject."}[move.kind]
        alice, bob = number_text(move.value), number_text(self.money - move.value)
        return f"Alice gets {alice}, Bob gets {bob}."

    def worth(self, value: Fraction) -> tuple[Fraction, Fraction]:
        share, waited = value / self.money, len(self.offers) - 1
        alice = share * exact(self.config["delta_a"]) ** waited
        return alice, (1 - share) * exact(self.config["delta_b"]) ** waited

    def assess(self, value: Fraction | None) -> dict[str, Any]:
        if value is None:
            return {"efficiency": 0.0}
        share = value / self.money
        return {
            "efficiency": float(sum(self.worth(value))),
            "fairness": float(1 - 4 * (share - Fraction(1, 2)) ** 2),
            "alice_gain": float(value),
            "bob_gain": float(self.money - value),
            "alice_share": float(share),
        }

    def system_prompt(self, role: str) -> str:
        name, rival = role.capitalize(), other(role).capitalize()
        total = number_text(self.money)
        first = (
            "You make the first offer." if role == "alice" else f"{rival} makes the first offer."
        )
        end = self.horizon_sentence("both get nothing")
        aim = "more than " + rival if self.reward == "win" else "as much as you can"
        return (
            f"You are {name}. You and {rival} divide ${total} by taking turns. {first} "
            f"{self._losses(role)} {end} Each turn, write one short sentence: accept with "
            '"I accept.", or make an offer such as "I propose that Alice gets X and Bob gets Y." '
            f"with X + Y = {total} (X/Y also means Alice X, Bob Y). Try to gain {aim}."
        )

    def _losses(self, role: str) -> str:
        deltas = dict(zip(ROLES, (self.config["delta_a"], self.config["delta_b"]), strict=True))
        own = f"Each round, money loses {percent_text(deltas[role])} of its value for you"
        if not self.config["complete_information"]:
            return own + "."
        rival = other(role)
        return f"{own} and {percent_text(deltas[rival])} for {rival.capitalize()}."


class Bargaining(Game):
    name = "bargaining"
    category = "adversarial"
    roles = ROLES
    environment = None

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`glee48` (the default); `glee_full` also varies horizon, information and messages."""
        small = [
            complete(self.name, {"money": m, "delta_a": a, "delta_b": b}, RANGES)
            for a, b, m in product(DISCOUNTS, DISCOUNTS, SUMS)
        ]
        full = [
            {**config, "rounds": rounds, "complete_information": informed, "messages": talk}
            for config, rounds, informed, talk in product(
                small, (12, 20, 25, 99), (True, False), (True, False)
            )
        ]
        return {"default": small, "glee48": small, "glee_full": full}

    def start(self, config: Config, reward: str = "win") -> BargainingMatch:
        check_reward(self.name, reward)
        return BargainingMatch(complete(self.name, config, RANGES), reward)

    def describe(self, role: str) -> str:
        rival = other(role).capitalize()
        return (
            f"You are {role.capitalize()}. You and {rival} divide a sum of money by taking turns "
            "making offers. Each turn, accept the last offer or make another. Waiting costs value."
        )


GAME = Bargaining()


# --- parser ---------------------------------------------------------------------------------------

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
_RATIO_OF_WHOM = re.compile(r"\b(?:between|favou?r|respectively)\b|> for (?:me|you|alice|bob)\b")
_EQUAL = re.compile(
    r"\b(?:propose|offer|suggest|let us)\b.*(?:\b(?:equally|evenly|in half|down the middle)\b"
    r"|\b(?:equal|even|fair|fifty[ -]fifty) (?:split|division|shares)\b|\bfifty[ -]fifty\b"
    r"|\bhalf (?:each|for each|and half)\b)"
)
_KEYS = ("alice_gain", "bob_gain", "message", "decision")


def read(text: str, role: str, money: Fraction, standing: Fraction | None) -> Move:
    """The move that a cleaned utterance by `role` states; "X/Y" means Alice X, Bob Y.

    Raises:
        IllegalMove: it states no move, more than one, or gains that do not sum to `money`.
    """
    fields = parsing.json_move(text, _KEYS)
    if fields is not None:
        return _read_json(fields, money)
    marked, amounts = parsing.mark_amounts(parsing.plain(text))
    parts = parsing.sentences(marked)
    decided = parsing.decisions(parts)
    shares = _offered(parts, role, amounts, money)
    if decided.accept + decided.reject > 1:
        raise IllegalMove("contradiction", "Either accept or reject, not both.")
    if decided.accept:
        named = {amounts[i].of(money) for i in decided.amounts}
        restated = shares | _restated(parts, role, amounts, money)
        if standing is not None and (
            not restated <= {standing} or not named <= {standing, money - standing, money}
        ):
            raise IllegalMove("accept_and_offer", "Either accept the last offer or make another.")
        return Move("accept")
    if shares:
        return Move("offer", _one_offer(shares, money))
    if decided.reject:
        return Move("reject")
    if decided.conditional:
        raise IllegalMove("conditional", 'Say "I accept." or make an offer, without conditions.')
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


def _one_offer(shares: set[Fraction], money: Fraction) -> Fraction:
    if len(shares) > 1:
        raise IllegalMove("ambiguous_offer", "Make exactly one offer.")
    share = shares.pop()
    _check_sum(share, money - share, money)
    if (share * 10**MAX_DECIMALS).denominator != 1:
        raise IllegalMove("absurd_number", f"Use at most {MAX_DECIMALS} decimals.")
    return share


def _check_sum(alice: Fraction, bob: Fraction, money: Fraction) -> None:
    if alice + bob != money or not 0 <= alice <= money:
        raise IllegalMove("wrong_sum", f"The two gains must sum to {number_text(money)}.")


def _offered(
    parts: list[Sentence], role: str, amounts: list[Amount], money: Fraction
) -> set[Fraction]:
    """Alice's gains that the text offers; one when the offer is clear."""
    shares: set[Fraction] = set()
    for sentence in parts:
        for segment in sentence.segments:
            if parsing.REFERENCE.search(segment):
                continue
            found = _segment_gains(segment, role, amounts, money)
            if found:
                _refuse_unclear(sentence, segment)
                _refuse_loose_amounts(segment, found, amounts, money)
                shares |= {alice for alice, _ in found}
        _check_pairs(sentence, role, amounts, money)
    return shares


def _restated(
    parts: list[Sentence], role: str, amounts: list[Amount], money: Fraction
) -> set[Fraction]:
    """Alice's gains in everything said about a division, be it offered, quoted or accepted."""
    return {
        alice
        for sentence in parts
        for segment in sentence.segments
        for alice, _ in _segment_gains(segment, role, amounts, money)
    }


def _segment_gains(
    segment: str, role: str, amounts: list[Amount], money: Fraction
) -> set[tuple[Fraction, Fraction]]:
    """(Alice's gain, Bob's gain) for everything that the segment says about a division."""
    gains = set()
    for match in _RATIO.finditer(segment):
        if _RATIO_OF_WHOM.search(segment):
            raise IllegalMove("unclear_offer", "Say what Alice gets and what Bob gets.")
        alice, bob = amounts[int(match["alice"])], amounts[int(match["bob"])]
        percent = alice.percent or bob.percent
        first, second = (Amount(side.value, percent).of(money) for side in (alice, bob))
        _check_sum(first, second, money)
        gains.add((first, second))
    for who, amount in _bound(segment, role):
        value = amounts[amount].of(money)
        gains.add((value, money - value) if who == "alice" else (money - value, value))
    if _EQUAL.search(segment):
        gains.add((money / 2, money / 2))
    return gains


def _bound(segment: str, role: str) -> list[tuple[str, int]]:
    """(role, position of the amount) for every amount that is said to be somebody's."""
    found = []
    for pattern in _BINDINGS:
        for match in pattern.finditer(segment):
            who = match["who"]
            if who not in ROLES:
                who = role if who in _SELF else other(role)
            found.append((who, int(match["amount"])))
    return found


def _refuse_unclear(sentence: Sentence, segment: str) -> None:
    if parsing.NEGATION.search(segment) or parsing.VAGUE.search(segment):
        raise IllegalMove("unclear_offer", "State one exact offer in plain words.")
    if parsing.CONDITION.search(sentence.text):
        raise IllegalMove("conditional", "State one exact offer, without conditions.")


def _refuse_loose_amounts(
    segment: str,
    gains: set[tuple[Fraction, Fraction]],
    amounts: list[Amount],
    money: Fraction,
) -> None:
    """An amount beside an offer that is neither gain nor the whole makes the offer unclear."""
    known = {value for pair in gains for value in pair} | {money}
    values = {amounts[i].of(money) for i in parsing.positions(segment)}
    if not values <= known:
        raise IllegalMove("unclear_offer", "Say what Alice gets and what Bob gets, nothing more.")


def _check_pairs(sentence: Sentence, role: str, amounts: list[Amount], money: Fraction) -> None:
    """Two gains stated together must sum to the money: tells a wrong sum from two offers."""
    gains: dict[str, set[Fraction]] = {"alice": set(), "bob": set()}
    for segment in sentence.segments:
        if not parsing.REFERENCE.search(segment):
            for who, amount in _bound(segment, role):
                gains[who].add(amounts[amount].of(money))
    if len(gains["alice"]) == len(gains["bob"]) == 1:
        _check_sum(gains["alice"].pop(), gains["bob"].pop(), money)
