"""How scripted players put their moves: short, varied sentences that the games' parsers read."""

from __future__ import annotations

import random

ACCEPT = (
    "I accept.",
    "Deal.",
    "Deal!",
    "Agreed.",
    "I accept your offer.",
    "OK, I accept.",
    "That is fair. I accept.",
    "Good, I agree.",
    "You have a deal.",
    "I accept your proposal, thank you.",
    "Fine, deal.",
    "All right, I accept that.",
)
REJECT = (
    "I reject.",
    "No deal.",
    "I do not accept.",
    "I reject your offer.",
    "No, I decline.",
    "Too little. I reject that.",
)
OUTSIDE = (
    "I deal with John.",
    "I take the outside option.",
    "I would rather deal with John.",
    "I will go to John.",
    "We have no common ground. I deal with John.",
    "I prefer to trade with John.",
)
SHARE_OPENINGS = ("", "", "Hello {rival}. ", "Let us begin. ", "Here is my offer. ")
SHARE_REPLIES = (
    "",
    "",
    "No. ",
    "That is too little for me. ",
    "I need more than that. ",
    "Not enough. ",
    "I reject that. ",
    "Let us find the middle. ",
    "Waiting costs us both. ",
    "That is not fair to me. ",
)
# One share a sentence: the other follows, and a small model need not add up two numbers.
SHARE_OFFERS = (
    "I keep {own}.",
    "I take {own}.",
    "{own} for me.",
    "I propose {own} for me.",
    "I offer you {other}.",
    "You get {other}.",
    "I propose that Alice gets {alice}.",
    "Alice gets {alice}.",
    "Bob gets {bob}.",
)
PRICE_OPENINGS = ("", "", "Hello {rival}. ", "Let us begin. ", "It is a good product. ")
SELLER_REPLIES = (
    "",
    "",
    "No. ",
    "That is too low. ",
    "I need more. ",
    "I reject that. ",
    "It is worth more. ",
    "Let us find the middle. ",
)
BUYER_REPLIES = (
    "",
    "",
    "No. ",
    "That is too high. ",
    "That is too expensive. ",
    "I reject that. ",
    "I can not pay that much. ",
    "Let us find the middle. ",
)
PRICES = (
    "I offer ${price}.",
    "My price is ${price}.",
    "How about ${price}?",
    "I propose a price of ${price}.",
    "I suggest ${price}.",
    "Let us settle at ${price}.",
    "${price} is my offer.",
    "I propose ${price}.",
)
SELLER_PRICES = (*PRICES, "I will sell it for ${price}.", "I ask ${price}.")
BUYER_PRICES = (*PRICES, "I will buy it for ${price}.", "I will pay ${price}.", "I bid ${price}.")


def say_shares(rng: random.Random, role: str, alice: str, bob: str, first: bool) -> str:
    """An offer in bargaining; `alice` and `bob` are the gains as text."""
    own, other = (alice, bob) if role == "alice" else (bob, alice)
    opening = rng.choice(SHARE_OPENINGS if first else SHARE_REPLIES)
    text = opening + rng.choice(SHARE_OFFERS)
    rival = "Bob" if role == "alice" else "Alice"
    return text.format(alice=alice, bob=bob, own=own, other=other, rival=rival)


def say_price(rng: random.Random, role: str, price: str, first: bool) -> str:
    """An offer in negotiation; `price` as text, without the currency sign."""
    seller = role == "alice"
    replies = SELLER_REPLIES if seller else BUYER_REPLIES
    opening = rng.choice(PRICE_OPENINGS if first else replies)
    offer = rng.choice(SELLER_PRICES if seller else BUYER_PRICES)
    return (opening + offer).format(price=price, rival="Bob" if seller else "Alice")
