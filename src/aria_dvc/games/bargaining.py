"""Bargaining: Alice and Bob divide a sum that loses value every round (GLEE, sec. 3.1).

Utilities at acceptance in round t with Alice's share p: p * delta_a^(t-1) and
(1-p) * delta_b^(t-1); without a deal both are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from aria_dvc.games import shares
from aria_dvc.games.alternating import (
    ROLES,
    AlternatingMatch,
    Demand,
    Move,
    complete,
    exact,
    glee_grids,
    number_text,
    other,
    percent_text,
    with_unrated,
)
from aria_dvc.games.base import Config, Game

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
            'Name one share, for example "I keep X." or "I offer you Y."; the rest of '
            f"{number_text(self.money)} goes to the other."
        )

    def read(self, text: str, role: str) -> Move:
        return shares.read(text, role, self.money, self.offers)

    def say(self, move: Move, role: str) -> str:
        if move.value is None:
            return {"accept": "I accept.", "reject": "I reject."}[move.kind]
        alice, bob = move.value, self.money - move.value
        own, rest = (alice, bob) if role == "alice" else (bob, alice)
        if shares.readable(own, self.money):
            return f"I keep {number_text(own)}."
        return f"I offer you {number_text(rest)}."

    def worth(self, value: Fraction) -> tuple[Fraction, Fraction]:
        share, waited = value / self.money, len(self.offers) - 1
        alice = share * exact(self.config["delta_a"]) ** waited
        return alice, (1 - share) * exact(self.config["delta_b"]) ** waited

    def amount_demanded(self, role: str) -> Demand:
        """Tenths of the sum."""
        alice = self.offers[-1]
        own = alice if role == "alice" else self.money - alice
        return Demand("offer", own / self.money, 10)

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

    def rules(self, role: str) -> str:
        return (
            f'and split money with {other(role).capitalize()}. Briefly say "I accept.", '
            '"I keep X." or "I offer you Y." 60/40 is 60 for Alice. No deal, no gain.'
        )

    def numbers(self, role: str) -> str:
        deltas = dict(zip(ROLES, (self.config["delta_a"], self.config["delta_b"]), strict=True))
        text = f"Sum: ${number_text(self.money)}. Each round costs you {percent_text(deltas[role])}"
        if not self.config["complete_information"]:
            return text + "."
        rival = other(role)
        return f"{text}, {rival.capitalize()} {percent_text(deltas[rival])}."


class Bargaining(Game):
    name = "bargaining"
    category = "adversarial"
    roles = ROLES
    environment = None

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`glee48` (the default); `glee_full` also varies horizon, information and messages; either
        without `rated_offers` where `_unrated` follows."""
        small = [
            complete(self.name, {"money": m, "delta_a": a, "delta_b": b}, RANGES)
            for a, b, m in product(DISCOUNTS, DISCOUNTS, SUMS)
        ]
        return with_unrated(glee_grids(small, (12, 20, 25, 99)))

    def start(self, config: Config, reward: str = "win") -> BargainingMatch:
        return BargainingMatch(complete(self.name, config, RANGES), reward)


GAME = Bargaining()
