"""Negotiation: a seller (Alice) and a buyer (Bob) agree on a price, or not (GLEE, sec. 3.2).

With values s and b in units of `scale` and a trade at price P = q * scale, Alice gets q - s and
Bob b - q; without a trade, and with the outside option (John), both get exactly 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from aria_dvc.games import prices
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
    with_unrated,
)
from aria_dvc.games.base import Config, Game

FACTORS = (0.8, 1.0, 1.2, 1.5)
SCALES = (100, 10_000, 1_000_000)
RANGES = {"seller_value": (0.01, 100), "buyer_value": (0.01, 100), "scale": (1, 10**12)}
MAX_FACTOR = 1_000
"""Prices above this many times `scale` are refused as absurd."""


class NegotiationMatch(AlternatingMatch):
    """Values of offers are prices in money."""

    game = "negotiation"

    @property
    def values(self) -> tuple[Fraction, Fraction]:
        """What the product is worth to the seller and to the buyer, in units of `scale`."""
        return exact(self.config["seller_value"]), exact(self.config["buyer_value"])

    @property
    def scale(self) -> Fraction:
        return exact(self.config["scale"])

    @property
    def highest_price(self) -> Fraction:
        return MAX_FACTOR * self.scale

    @property
    def offer_hint(self) -> str:
        return 'Say for example "I offer $P." with your price for P.'

    def read(self, text: str, role: str) -> Move:
        return prices.read(text, role, self.scale, self.highest_price, self.offers)

    def say(self, move: Move, role: str) -> str:
        if move.value is None:
            return {
                "accept": "I accept.",
                "reject": "I reject.",
                "outside": "I deal with John.",
            }[move.kind]
        return f"I offer ${number_text(move.value)}."

    def worth(self, value: Fraction) -> tuple[Fraction, Fraction]:
        seller, buyer = self.values
        return value / self.scale - seller, buyer - value / self.scale

    def amount_demanded(self, role: str) -> Demand:
        """Tenths of the scale: the price, up to twice the scale."""
        return Demand("price", self.offers[-1] / self.scale / 2, 20, ("high", "low"))

    def assess(self, value: Fraction | None) -> dict[str, Any]:
        seller, buyer = self.values
        good = buyer >= seller if value is not None else buyer <= seller
        details: dict[str, Any] = {"efficiency": float(good)}
        if value is not None:
            gap = value / self.scale - (seller + buyer) / 2
            details |= {"fairness": float(1 - 4 * gap**2), "price": float(value)}
        return details

    def rules(self, role: str) -> str:
        trade = "sell a product to Bob" if role == "alice" else "buy a product from Alice"
        return (
            f'and {trade}. Briefly say "I accept.", "I offer $P." or "I deal with John.", '
            "who trades at your own value. No deal, no gain."
        )

    def numbers(self, role: str) -> str:
        money = [number_text(value * self.scale) for value in self.values]
        own, rival = money if role == "alice" else money[::-1]
        text = f"Worth ${own} to you"
        if not self.config["complete_information"]:
            return text + "."
        return f"{text}, ${rival} to {other(role).capitalize()}: {self._lead(role)}."

    def rating(self, role: str) -> str:
        """With the price to go by, since a small model hardly finds it in its rules any more."""
        return f"{super().rating(role)}; {self._lead(role)}"

    def _lead(self, role: str) -> str:
        """From which price on `role` gains more, which a small model can not work out itself."""
        seller, buyer = self.values
        if buyer <= seller:
            return "no price suits both"
        side = "above" if role == "alice" else "below"
        return f"you gain more {side} ${number_text((seller + buyer) / 2 * self.scale)}"


class Negotiation(Game):
    name = "negotiation"
    category = "adversarial"
    roles = ROLES
    environment = None

    def grids(self) -> Mapping[str, Sequence[Config]]:
        """`glee48` (the default); `glee_full` also varies horizon, information and messages;
        `surplus` is what of `glee48` a trade can help both in, 18 of its configurations; each
        without `rated_offers` where `_unrated` follows."""
        small = [
            complete(self.name, {"seller_value": s, "buyer_value": b, "scale": m}, RANGES)
            for s, b, m in product(FACTORS, FACTORS, SCALES)
        ]
        surplus = [config for config in small if config["buyer_value"] > config["seller_value"]]
        return with_unrated({**glee_grids(small, (1, 10, 20, 30)), "surplus": surplus})

    def winnable(self, config: Config, role: str) -> bool:
        """With a surplus only: without one, a price that wins is a loss for the other."""
        return exact(config["buyer_value"]) > exact(config["seller_value"])

    def start(self, config: Config, reward: str = "win") -> NegotiationMatch:
        return NegotiationMatch(complete(self.name, config, RANGES), reward)


GAME = Negotiation()
