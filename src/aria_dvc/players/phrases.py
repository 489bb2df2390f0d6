"""How scripted players put their moves: short, varied sentences that the games' parsers read."""

from __future__ import annotations

import random
from collections.abc import Sequence

from aria_dvc.packaged import read_text_yaml


def _drawn_from(lines: Sequence[str | dict[str, str]]) -> tuple[str, ...]:
    """The lines, one with a number (`text: 6`) so many times; the file is read as text."""
    weighted = [line if isinstance(line, dict) else {line: "1"} for line in lines]
    return tuple(
        text for line in weighted for text, times in line.items() for _ in range(int(times))
    )


_PHRASES = {
    name: _drawn_from(lines)
    for name, lines in read_text_yaml("aria_dvc.players", "phrases.yaml").items()
}
OFFERS = _PHRASES["own_shares"] + _PHRASES["other_shares"]
ACCEPT, REJECT, OUTSIDE = _PHRASES["accept"], _PHRASES["reject"], _PHRASES["outside"]


def say_shares(rng: random.Random, role: str, gains: Sequence[str], first: bool) -> str:
    """An offer in bargaining; `gains` are Alice's and Bob's as text."""
    opening = rng.choice(_PHRASES["share_openings" if first else "share_replies"])
    return share_text(opening + rng.choice(OFFERS), role, gains)


def share_text(phrase: str, role: str, gains: Sequence[str]) -> str:
    """A sentence with OFFERS' blanks in the mouth of `role`."""
    names = ("Alice", "Bob")
    own = 0 if role == "alice" else 1
    words = {"own": gains[own], "other": gains[1 - own]}
    return phrase.format(**words, name=names[own], rival=names[1 - own])


def say_price(rng: random.Random, role: str, price: str, first: bool) -> str:
    """An offer in negotiation; `price` as text, without the currency sign."""
    side = "seller" if role == "alice" else "buyer"
    opening = rng.choice(_PHRASES["price_openings" if first else f"{side}_replies"])
    offer = rng.choice(_PHRASES["prices"] + _PHRASES[f"{side}_prices"])
    return (opening + offer).format(price=price, rival="Bob" if side == "seller" else "Alice")
