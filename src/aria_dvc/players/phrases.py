"""How scripted players put their moves: short, varied sentences that the games' parsers read."""

from __future__ import annotations

import random

from aria_dvc.packaged import read_yaml

_PHRASES = {
    name: tuple(lines) for name, lines in read_yaml("aria_dvc.players", "phrases.yaml").items()
}
ACCEPT, REJECT, OUTSIDE = _PHRASES["accept"], _PHRASES["reject"], _PHRASES["outside"]


def say_shares(rng: random.Random, role: str, alice: str, bob: str, first: bool) -> str:
    """An offer in bargaining; `alice` and `bob` are the gains as text."""
    own, other = (alice, bob) if role == "alice" else (bob, alice)
    opening = rng.choice(_PHRASES["share_openings" if first else "share_replies"])
    text = opening + rng.choice(_PHRASES["share_offers"])
    rival = "Bob" if role == "alice" else "Alice"
    return text.format(alice=alice, bob=bob, own=own, other=other, rival=rival)


def say_price(rng: random.Random, role: str, price: str, first: bool) -> str:
    """An offer in negotiation; `price` as text, without the currency sign."""
    side = "seller" if role == "alice" else "buyer"
    opening = rng.choice(_PHRASES["price_openings" if first else f"{side}_replies"])
    offer = rng.choice(_PHRASES["prices"] + _PHRASES[f"{side}_prices"])
    return (opening + offer).format(price=price, rival="Bob" if side == "seller" else "Alice")
